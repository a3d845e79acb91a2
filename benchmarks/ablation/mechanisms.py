"""One switch for each mechanism of the solver: what stands in its place when it is off.

Switches act on the imported package, for the rest of the process. Nothing in the package knows of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Mechanism:
    """Something that the solver could do without."""

    meaning: str
    source: str
    """Where it is described, or "own"."""
    switch_off: Callable[[], None] = lambda: None
    options: dict[str, Any] = field(default_factory=dict)
    """Options that switch it off."""


def _never(*_: object, **__: object) -> None:
    return None


def _no(*_: object, **__: object) -> bool:
    return False


def _valley() -> None:
    from nonsmooth.loop.run import Run

    Run._follow_valley = _no  # type: ignore[method-assign]


def _habit(name: str, *, due: bool) -> Callable[[], None]:
    """Do one of the three corrections of steps never, or all of them whenever they can help."""

    def switch() -> None:
        from nonsmooth.step.correction import Curved, Habit

        class Fixed(Habit):
            def due(self, *, later: bool = False) -> bool:
                return due and not later

            def learn(self, worked: bool) -> None:
                pass

            def copy(self) -> Habit:
                return self

        fixed = Fixed()
        for one in ("correcting", "restoring", "foreseeing") if name == "all" else (name,):
            setattr(Curved, one, property(lambda self: fixed, lambda self, value: None))

    return switch


def _without(module: str, place: str, replacement: Any) -> Callable[[], None]:
    """Put something else into the place of a function, method or constant."""

    def switch() -> None:
        import importlib

        owner: Any = importlib.import_module(f"nonsmooth.{module}")
        *path, last = place.split(".")
        for name in path:
            owner = getattr(owner, name)
        assert hasattr(owner, last), f"there is no {place} in nonsmooth.{module}"
        setattr(owner, last, replacement)

    return switch


def _search_without_kinks() -> None:
    import nonsmooth.step.iteration as iteration

    search = iteration.search
    iteration.search = lambda *args, **kwargs: search(*args, **{**kwargs, "kink": None})


def _own_gradient_only() -> None:
    import nonsmooth.kinks.bundle as bundle

    bundle.Bundle.cuts = lambda self, at: bundle.own_cut(at)  # type: ignore[method-assign]


def _plain_updates() -> None:
    from nonsmooth.step.iteration import Iteration

    Iteration._objective_gradients = (  # type: ignore[method-assign]
        lambda self, state, move: (state.current.gradient, move.trial.gradient)
    )


def _fallback(level: int) -> Callable[[], None]:
    def switch() -> None:
        from nonsmooth.step.iteration import Iteration

        every = Iteration.fall_back
        Iteration.fall_back = (  # type: ignore[method-assign]
            lambda self, state, at_level, generator: None if at_level == level else every(self, state, at_level, generator)
        )

    return switch


SQP = "Curtis, Mitchell and Overton 2017"
BUNDLE = "Kiwiel 1985; Mäkelä and Neittaanmäki 1992"
NW = "Nocedal and Wright 2006"

MECHANISMS: dict[str, Mechanism] = {
    "none": Mechanism("everything as it is", ""),
    "scaling": Mechanism("units chosen by what the start shows", "own", options={"scaling": "none"}),
    "steering": Mechanism(
        "the penalty weight grows until steps promise feasibility",
        "Byrd, Lopez-Calva and Nocedal 2012",
        options={"steering_max_reductions": 0},
    ),
    "relaxation": Mechanism(
        "the weight is lowered where multipliers need less", "own", _without("run", "Run._relax_weight", _never)
    ),
    "weight retries": Mechanism(
        "the weight grows where the penalty function falls without end",
        SQP,
        options={"penalty_retries": 0, "first_penalty_retries": 0},
    ),
    "second-order correction": Mechanism(
        "a step that left curved constraints is corrected", f"{NW}, 18.6", _habit("correcting", due=False)
    ),
    "restoration": Mechanism("from a trial point straight back to the constraints", "own", _habit("restoring", due=False)),
    "predicted correction": Mechanism("a step is corrected as the last one had to be", "own", _habit("foreseeing", due=False)),
    "skip policy": Mechanism("corrections that keep failing are tried less often", "own", _habit("all", due=True)),
    "bundle": Mechanism("gradients of earlier points are cuts of the model", BUNDLE, _own_gradient_only),
    "null steps": Mechanism(
        "a step that failed shows gradients for the next model", BUNDLE, _without("iteration", "Iteration._gather", _never)
    ),
    "constraint pieces": Mechanism(
        "gradients of other pieces of constraints are rows of the model", BUNDLE, _without("iteration", "keep_gradients", _no)
    ),
    "refuted cuts": Mechanism("cuts above the function are dropped", "own", _without("bundle", "Bundle.drop_refuted", _never)),
    "smoothness test": Mechanism(
        "no null steps where the function may be smooth", "own", _without("iteration", "SMOOTH_SHARE", math.inf)
    ),
    "far kinks": Mechanism(
        "kinks seen from far trial points", "own", _without("iteration", "Iteration._kinked", staticmethod(_no))
    ),
    "kinks in the search": Mechanism("the line search ends where a kink explains it", "own", _search_without_kinks),
    "kink memory": Mechanism("all cuts are used for some iterations after a kink", "own", _without("iteration", "CALM", 1)),
    "gradient-only steps": Mechanism(
        "steps whose promise is lost in rounding are judged by gradients",
        "own",
        _without("iteration", "Iteration._blindly", _never),
    ),
    "aggregated updates": Mechanism("updates from combinations of gradients at kinks", "own", _plain_updates),
    "skipped updates": Mechanism("no update where a constraint's gradient jumped", "own", _without("iteration", "jumped", _no)),
    "growth limit": Mechanism(
        "the matrix grows by a limited factor in one update",
        "own",
        _without("iteration", "limit_growth", lambda pair, *_: pair),
    ),
    "damping": Mechanism("updates of negative curvature are damped", "Powell 1978", options={"damping": 0.0}),
    "matrix reset": Mechanism(
        "the matrix starts anew after a fallback", "own", _without("state", "State.reset_hessian", _never)
    ),
    "return to feasibility": Mechanism(
        "back to the best feasible point with a larger weight", "own", _without("rescue", "Rescue.recover", _no)
    ),
    "runaway test": Mechanism("the same where violations explode", "own", _without("run", "far_violation", lambda _: math.inf)),
    "look around": Mechanism(
        "points around one where the violation is stationary", "own", _without("rescue", "Rescue._look_around", _never)
    ),
    "fallback: identity": Mechanism("the model with the identity", SQP, _fallback(1)),
    "fallback: quasi-Newton": Mechanism("a quasi-Newton step of the penalty function", SQP, _fallback(2)),
    "fallback: steepest descent": Mechanism("steepest descent of the penalty function", SQP, _fallback(3)),
    "fallback: random": Mechanism("random directions of descent", SQP, _fallback(4)),
    "curvature condition": Mechanism(
        "the second of the weak Wolfe conditions", "Lewis and Overton 2013", options={"backtracking_only": True}
    ),
    "valley following": Mechanism("extrapolation along the floor of a curved kink", "own", _valley),
}
