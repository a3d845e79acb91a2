"""The problem's functions in compiled form: one call of a package instead of a call of the user's function.

The package was made for what the functions read when it was traced. Tensors they reach are given to it at every call;
whether all else is as it was is asked at every call too, in about a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nonsmooth.evaluate.differentiation import Costs, Given
from nonsmooth.evaluate.flat import FlatForm
from nonsmooth.evaluate.kept import note
from nonsmooth.evaluate.trial import Derivatives

if TYPE_CHECKING:
    from compile_inspect.tuning.background import Build
    from compile_inspect.variants.task import Task

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Changed(Exception):  # noqa: N818 (it reads as a statement of fact)
    """What a compiled function was made for is no longer so."""


class Packages:
    """The packages of a problem on their way: kept from an earlier run, or being built in other processes."""

    def __init__(self, form: FlatForm, size: int) -> None:
        from compile_inspect.variants.task import Task

        x = torch.zeros(size, dtype=torch.float64)
        self.form, self.size = form, size
        self._tasks = {"rows": Task(form.rows, (x, *form.tensors), within=True)}
        if form.penalty is not None:
            weights = torch.zeros(1 + form.constraints, dtype=torch.float64)
            self._tasks["penalty"] = Task(form.penalty, (x, weights, *form.tensors), within=True)
        self._builds: dict[str, Build] = {}
        self._started = perf_counter()
        self.seconds = 0.0
        self.from_disk = False

    @cached_property
    def name(self) -> tuple[str, ...]:
        """Another one for everything that the packages depend on."""
        from compile_inspect.tuning.store import digest

        return tuple(digest(task) for task in self._tasks.values())

    def kept(self) -> Compiled | None:
        """The compiled form from packages that an earlier run has kept, if all of them are there and can be used."""
        from compile_inspect.tuning.store import Store

        store = Store()
        found = {name: store.load(task) for name, task in self._tasks.items()}
        paths = {name: entry[1] for name, entry in found.items() if entry is not None and entry[1] is not None}
        if len(paths) < len(self._tasks):
            return None
        try:
            compiled = self._ready({name: _loaded(path) for name, path in paths.items()})
        except Exception:  # damaged, or of another machine: it is made anew
            for task in self._tasks.values():
                store.drop(task)
            return None
        self.from_disk = True
        return compiled

    def drop(self) -> None:
        """Remove what an earlier run has kept."""
        from compile_inspect.tuning.store import Store

        self.from_disk = False
        for task in self._tasks.values():
            Store().drop(task)

    def begin(self, at: Vector, *, idly: bool = False) -> None:
        """Begin to build, at a point where the functions are known to work; raises where that cannot be.

        `idly`: with time that nothing else wants.
        """
        from compile_inspect.tuning.background import Build

        for task in self._tasks.values():
            task.args[0].numpy()[:] = at
        self._started = perf_counter()
        try:
            for name, task in self._tasks.items():
                self._builds[name] = Build(task, idly=idly)
        except BaseException:
            self.stop()
            raise

    @property
    def done(self) -> bool:
        """Whether nothing is being built any more."""
        return all(build.done for build in self._builds.values())

    def wait(self) -> None:
        """Wait until nothing is being built any more."""
        for build in self._builds.values():
            build.wait()

    def finish(self) -> Compiled:
        """The compiled form of what was built, kept on disk for the next run; raises `Refused` where there is none."""
        from compile_inspect.tuning.choosing import decide
        from compile_inspect.tuning.store import Store

        self.seconds = perf_counter() - self._started
        try:
            compiled = self._ready({name: build.load()[1] for name, build in self._builds.items()})
            for name, task in self._tasks.items():
                reason = "It was built for a run of the solver."
                decision = decide(task, "aot-inductor", reason, self._started, {})
                Store().save(task, decision, str(self._builds[name].package))
            note(self.size, self.form.constraints, self.form.equalities)
        finally:
            self.stop()
        return compiled

    def stop(self) -> None:
        """End what is being built, and remove its files."""
        for build in self._builds.values():
            build.stop()
        self._builds = {}

    def _ready(self, flats: Mapping[str, Callable[[list[Any]], list[Any]]]) -> Compiled:
        calls = {name: checked(task, flats[name]) for name, task in self._tasks.items()}
        return Compiled(self.form, calls["rows"], calls.get("penalty"), self.size)


class Compiled:
    """Values and gradients at flat points, from packages."""

    def __init__(self, form: FlatForm, rows: Callable[..., Tensor], penalty: Callable[..., Tensor] | None, size: int) -> None:
        self._form, self._rows, self._penalty = form, rows, penalty
        self._x = torch.empty(size, dtype=torch.float64)
        self._weights = torch.zeros(1 + form.constraints, dtype=torch.float64)
        self._x_numbers, self._weight_numbers = self._x.numpy(), self._weights.numpy()

    def __call__(self, x: Vector, costs: Costs) -> tuple[float, Vector, Derivatives]:
        """f, the user's constraints and their gradients at x."""
        count = 1 + self._form.constraints
        if self._penalty is None:
            out = self.rows(x)
            rows = out[count:].reshape(count, -1)
            return float(out[0]), out[1:count], Given(rows[0], rows[1:], costs)
        self._x_numbers[:] = x
        out = self._penalty(self._x, self._weights, *self._form.tensors).numpy()
        derivatives = _OnDemand(self, x, out[1:count], out[count:], self._weight_numbers.copy(), costs)
        return float(out[0]), out[1:count], derivatives

    def rows(self, x: Vector) -> Vector:
        """f, c and the gradients of all of them, in one vector."""
        self._x_numbers[:] = x
        return self._rows(self._x, *self._form.tensors).numpy()

    def expect(self, objective: float, constraints: Vector) -> None:
        """Let the next gradient be that of objective·f + Σ constraintsᵢ·(violation of cᵢ)."""
        self._weight_numbers[0] = objective
        self._weight_numbers[1:] = constraints

    def signs(self, c: Vector) -> Vector:
        """The derivative of the violations with respect to c."""
        signs = (c >= 0).astype(np.float64)
        signs[: self._form.equalities] = 2.0 * signs[: self._form.equalities] - 1.0
        return signs


class _OnDemand:
    """Gradients at one point: that of the expected sum is there, the others are computed when asked for."""

    def __init__(self, compiled: Compiled, x: Vector, c: Vector, gradient: Vector, weights: Vector, costs: Costs) -> None:
        self._compiled, self._x, self._c, self._gradient, self._weights = compiled, x, c, gradient, weights
        self._costs = costs
        self._known: tuple[Vector, Matrix] | None = None

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """Gradient of objective·f + constraints·c; nearly always the expected one."""
        self._costs.gradients += 1
        signs = self._compiled.signs(self._c)
        if objective == self._weights[0] and np.array_equal(constraints, self._weights[1:] * signs):
            return self._gradient
        sizes = np.abs(constraints)
        # Weights of satisfied inequalities are not seen in a sum of violations: they are those of the others.
        self._compiled.expect(objective, np.where(signs == 0.0, sizes.max(initial=0.0), sizes))
        gradient, jacobian = self._rows()
        return objective * gradient + constraints @ jacobian

    def full(self) -> tuple[Vector, Matrix]:
        """Gradient of f and Jacobian of c."""
        self._costs.jacobians += 1
        return self._rows()

    def _rows(self) -> tuple[Vector, Matrix]:
        if self._known is None:
            rows = self._compiled.rows(self._x)[1 + len(self._c) :].reshape(1 + len(self._c), -1)
            self._known = rows[0], rows[1:]
        return self._known


def _loaded(path: Path) -> Callable[[list[Any]], list[Any]]:
    from compile_inspect.capture import torch_private

    return torch_private.load_package(str(path))


def checked(task: Task, flat: Callable[[list[Any]], list[Any]]) -> Callable[..., Tensor]:
    """The package behind a check that what the functions read is as it was; `Changed` where it is not."""
    from compile_inspect.tuning.fused import Body, fused
    from compile_inspect.tuning.guard import Guard

    # What they give has no gradients, whatever they read: so it is asked for, and made, where none are wanted.
    with torch.no_grad():
        guard = Guard(task)

    def elsewhere(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if guard.matches(args, kwargs):
            return flat(guard.tensors(args, kwargs))[0]
        raise Changed(guard.why_not(args, kwargs, task))

    body = Body((f"return flat({guard.parts.listed})[0]",), {"flat": flat})
    with torch.no_grad():
        call = fused(guard, body, elsewhere)

    def without_gradients(*given: Tensor) -> Tensor:
        with torch.no_grad():
            answer: Tensor = call(*given)
        return answer

    return without_gradients
