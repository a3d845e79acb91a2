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
    kept_for: str = "no"
    """Why it stays where these problems do not need it."""


def _never(*_: object, **__: object) -> None:
    return None


def _no(*_: object, **__: object) -> bool:
    return False


def change_threshold(name: str, value: float) -> Callable[[], None]:
    """Another value of a threshold."""

    def switch() -> None:
        from nonsmooth.thresholds import THRESHOLDS

        assert hasattr(THRESHOLDS, name), f"there is no threshold {name}"
        object.__setattr__(THRESHOLDS, name, type(getattr(THRESHOLDS, name))(value) if math.isfinite(value) else value)

    return switch


def _all(*switches: Callable[[], None]) -> Callable[[], None]:
    def switch() -> None:
        for one in switches:
            one()

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


def _own_gradient_only() -> None:
    import nonsmooth.kinks.bundle as bundle

    bundle.Bundle.cuts = lambda self, at: bundle.own_cut(at)  # type: ignore[method-assign]


def _plain_updates() -> None:
    from nonsmooth.step.update import Acceptance

    Acceptance._objective_gradients = (  # type: ignore[method-assign]
        lambda self, state, accepted: (state.current.gradient, accepted.trial.gradient)
    )


SQP = "Curtis, Mitchell and Overton 2017"
BUNDLE = "Kiwiel 1985; Mäkelä and Neittaanmäki 1992"
NW = "Nocedal and Wright 2006"

MECHANISMS: dict[str, Mechanism] = {
    "none": Mechanism("everything as it is", ""),
    "scaling": Mechanism("units chosen from values and gradients at the start", "own", options={"scaling": "none"}),
    "steering": Mechanism(
        "the penalty weight grows until steps predict enough feasibility",
        "Byrd, Lopez-Calva and Nocedal 2012",
        options={"steering_max_reductions": 0},
    ),
    "weight reductions": Mechanism(
        "the weight is lowered where it has long been far larger than multipliers need",
        "own",
        change_threshold("excessive_weight", math.inf),
    ),
    "weight retries": Mechanism(
        "the weight grows where the penalty function decreases without bound",
        SQP,
        options={"penalty_retries": 0, "first_penalty_retries": 0},
    ),
    "second-order correction": Mechanism(
        "Newton steps return a trial point to curved constraints",
        f"{NW}, 18.3",
        _without("step.attempt", "correct", _never),
    ),
    "corrected parts": Mechanism(
        "where the corrected step is too long, parts of it are corrected",
        "own",
        change_threshold("max_corrected_parts", 0),
    ),
    "bundle": Mechanism("gradients of earlier points are cuts of the model", BUNDLE, _own_gradient_only),
    "null steps": Mechanism(
        "gradients at the end of a failed step enter the next model", BUNDLE, _without("step.attempt", "add_cuts", _never)
    ),
    "constraint pieces": Mechanism(
        "gradients of other pieces of constraints are rows of the model",
        BUNDLE,
        _all(*(_without(module, "store_gradients", _no) for module in ("step.attempt", "step.null_steps", "step.update"))),
    ),
    "refuted cuts": Mechanism(
        "cuts above the function are dropped",
        "own",
        _without("kinks.bundle", "Bundle.drop_refuted", _never),
    ),
    "smoothness test": Mechanism(
        "no null steps where the function may be smooth",
        "own",
        change_threshold("smooth_share", math.inf),
    ),
    "kink memory": Mechanism("all cuts are used for some iterations after a kink", "own", change_threshold("kink_memory", 1)),
    "steps by gradients": Mechanism(
        "steps whose predicted decrease is below rounding errors are judged by gradients",
        "own",
        _without("step.attempt", "Stepper._judge_by_gradients", _never),
        kept_for="tolerances of 1e-9 and below, which runs do not reach by values alone",
    ),
    "aggregated updates": Mechanism(
        "updates from combinations of gradients at kinks",
        "own",
        _plain_updates,
    ),
    "skipped updates": Mechanism(
        "no update where a constraint's gradient jumped",
        "own",
        _without("step.update", "gradient_jumped", _no),
    ),
    "growth limit": Mechanism(
        "the matrix grows by a limited factor in one update",
        "own",
        _without("step.update", "limit_growth", lambda pair, *_: pair),
    ),
    "damping": Mechanism("updates of negative curvature are damped", "Powell 1978", options={"damping": 0.0}),
    "curvature condition": Mechanism(
        "the second of the weak Wolfe conditions",
        "Lewis and Overton 2013",
        options={"backtracking_only": True},
    ),
    "more feasible points": Mechanism(
        "random points around one where the violation is stationary",
        "own",
        _without("loop.recovery", "Recovery._search_nearby", _never),
        kept_for="a correct INFEASIBLE at maxima of the violation",
    ),
    "longer steps": Mechanism(
        "before a verdict, longer steps are tried along the remaining gradient",
        "own",
        _without("certify.certificate", "_StationarityTest._longer_step", _never),
        kept_for="correct verdicts from very steep starts",
    ),
    "fallback directions": Mechanism(
        "simpler directions where the model's failed", SQP, options={"last_fallback": 0}, kept_for="options that choose them"
    ),
}
