"""The problem's functions in compiled form: one call of a package instead of a call of the user's function.

The package was made for what the functions read when they were captured. Tensors they reach are given to it at every
call; whether all else is as it was is asked at every call too, by the guard of the capture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nonsmooth.compile.cache_index import note
from nonsmooth.compile.flat import FlatForm, captured_graph
from nonsmooth.evaluate.differentiation import Costs, Given
from nonsmooth.evaluate.trial import Derivatives

if TYPE_CHECKING:
    from compile_inspect.packages import Build

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Changed(Exception):  # noqa: N818 (it reads as a statement of fact)
    """What a compiled function was made for is no longer so."""


class Captured:
    """The user's functions as one graph under a guard, at a point where they work."""

    def __init__(self, form: FlatForm, at: Vector, device: torch.device | None = None) -> None:
        """Raises `RefusalError` where the functions cannot be captured whole."""
        from compile_inspect.packages import RefusalError, Task

        self.form = form
        x = torch.from_numpy(at.copy()).to(device or "cpu")
        _, leaves = form.assemble(x)
        given = form.tensors if form.of_module else (*leaves, *form.tensors)
        self._args, self._leaf_count = given, len(given) - len(form.tensors)
        self.task = Task(form.values, given, gradients=True)
        with torch.enable_grad():
            self.program = self.task.program
        places = {id(tensor): place for place, tensor in enumerate(self.program.inputs)}
        self._at = [places.get(id(leaf)) for leaf in leaves]
        variables = {place for place in self._at if place is not None}
        self._others: list[Any] = []
        """For every input that is no variable: the tensor itself, or the number of the argument it comes with."""
        for place, source in enumerate(self.program.fullgraph.sources):
            if place in variables:
                continue
            if place in self.program.fullgraph.identity_guarded:
                self._others.append(self.program.inputs[place])
            elif source.startswith("args["):
                self._others.append(int(source[5:-1]) - self._leaf_count)
            else:
                raise RefusalError("they read something that must be turned into a tensor at every call")
        self.graph = captured_graph(form, self.program.results, self._at, len(self.program.inputs))

    def label(self, what: str) -> str:
        """Names a package for these functions: what it computes, and of which variables."""
        return f"{what} {self.form.constraints} {self.form.equalities} {self.form.layout}"

    def others(self, tensors: tuple[Tensor, ...]) -> list[Tensor]:
        """The inputs of the graph that are no variables."""
        return [tensors[item] if isinstance(item, int) else item.detach() for item in self._others]

    def check(self, tensors: tuple[Tensor, ...]) -> None:
        """Raise `Changed` where the functions read something that is not as it was."""
        guard = self.program.guard
        args = (*self._args[: self._leaf_count], *tensors)
        with torch.enable_grad():
            if not guard.holds(args, {}) and not guard.matches(args, {}):
                raise Changed(guard.failure_reason(args, {}))

    def rows(self, x: Tensor, *others: Tensor) -> list[Tensor]:
        """f, c and the gradients of all of them."""
        return [self.form.rows(self.graph, x, others)]

    def penalty(self, x: Tensor, weights: Tensor, *others: Tensor) -> list[Tensor]:
        """f, c and the gradient of a weighted sum of violations."""
        return [self.form.penalty(self.graph, x, weights, others)]


class Packages:
    """The packages of a problem on their way: kept from an earlier run, or being built in other processes."""

    def __init__(self, form: FlatForm, size: int, at: Vector) -> None:
        """Raises `RefusalError` where the functions cannot be captured whole at a point."""
        self.form, self.size = form, size
        self.captured = Captured(form, at)
        x = torch.from_numpy(at.copy())
        self._inputs = {"rows": [x]}
        if form.has_penalty:
            self._inputs["penalty"] = [x, torch.zeros(1 + form.constraints, dtype=torch.float64)]
        self._tasks = {name: replace(self.captured.task, label=self.captured.label(name)) for name in self._inputs}
        for task in self._tasks.values():
            task.__dict__["program"] = self.captured.program  # captured once for all of them
        self._builds: dict[str, Build] = {}
        self._started = perf_counter()
        self.seconds = 0.0
        self.from_disk = False

    @cached_property
    def name(self) -> tuple[str, ...]:
        """Another one for everything that the packages depend on."""
        from compile_inspect.packages import program_key

        return tuple(program_key(task) for task in self._tasks.values())

    def kept(self) -> Compiled | None:
        """The compiled form from packages that an earlier run has kept, if all of them are there and can be used."""
        from compile_inspect.packages import DecisionCache

        store = DecisionCache()
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
        from compile_inspect.packages import DecisionCache

        self.from_disk = False
        for task in self._tasks.values():
            DecisionCache().drop(task)

    def begin(self, *, idly: bool = False) -> None:
        """Begin to build; raises where that cannot be. `idly`: with time that nothing else wants."""
        from compile_inspect.packages import Build

        self._started = perf_counter()
        try:
            for name, task in self._tasks.items():
                self._builds[name] = Build(task, partial(self._derived, name), idle_priority=idly)
        except BaseException:
            self.stop()
            raise

    def _derived(self, name: str, _: Any) -> tuple[Callable[..., list[Tensor]], list[Tensor]]:
        function = self.captured.rows if name == "rows" else self.captured.penalty
        return function, [*self._inputs[name], *self.captured.others(self.form.tensors)]

    @property
    def done(self) -> bool:
        """Whether nothing is being built any more."""
        return all(build.done for build in self._builds.values())

    def wait(self) -> None:
        """Wait until nothing is being built any more."""
        for build in self._builds.values():
            build.wait()

    def finish(self) -> Compiled:
        """The compiled form of what was built, kept on disk for the next run; raises `RefusalError` where there is none."""
        from compile_inspect.packages import DecisionCache, decide

        self.seconds = perf_counter() - self._started
        try:
            compiled = self._ready({name: build.load() for name, build in self._builds.items()})
            for name, task in self._tasks.items():
                reason = "It was built for a run of the solver."
                decision = decide(task, "aot-inductor", reason, self._started, {})
                DecisionCache().save(task, decision, str(self._builds[name].package))
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
        def calling(flat: Callable[[list[Any]], list[Any]]) -> Callable[..., Tensor]:
            def call(*inputs: Tensor) -> Tensor:
                tensors = self.form.tensors
                self.captured.check(tensors)
                with torch.no_grad():
                    answer: Tensor = flat([*inputs, *self.captured.others(tensors)])[0]
                return answer

            return call

        penalty = flats.get("penalty")
        return Compiled(self.form, calling(flats["rows"]), None if penalty is None else calling(penalty), self.size)


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
        out = self._penalty(self._x, self._weights).numpy()
        derivatives = _OnDemand(self, x, out[1:count], out[count:], self._weight_numbers.copy(), costs)
        return float(out[0]), out[1:count], derivatives

    def rows(self, x: Vector) -> Vector:
        """f, c and the gradients of all of them, in one vector."""
        self._x_numbers[:] = x
        return self._rows(self._x).numpy()

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
    from compile_inspect.packages import load_package

    return load_package(str(path))
