"""The problem's functions in compiled form: a call of a compiled package instead of the user's function.

The package is valid for the values that the functions read when they were captured. Tensors that the functions read are
passed at every call; for everything else, the guard of the capture checks at every call that it is unchanged.
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

from nonsmooth.compile.cache_index import add_entry
from nonsmooth.compile.flat import FlatForm, captured_graph
from nonsmooth.evaluate.differentiation import Costs, ExplicitDerivatives
from nonsmooth.evaluate.trial import Derivatives

if TYPE_CHECKING:
    from compile_inspect.packages import Build

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class GuardFailed(Exception):  # noqa: N818 (the name states what happened)
    """The guard of a compiled function rejects the call: something that it reads has changed."""


class CapturedFunctions:
    """The user's functions captured as one graph with a guard, at a point where they are defined."""

    def __init__(self, form: FlatForm, at: Vector, device: torch.device | None = None) -> None:
        """Raises `RefusalError` if the functions cannot be captured as one graph."""
        from compile_inspect.packages import RefusalError, Task

        self.form = form
        x = torch.from_numpy(at.copy()).to(device or "cpu")
        _, leaves = form.assemble(x)
        arguments = form.tensors if form.of_module else (*leaves, *form.tensors)
        self._args, self._leaf_count = arguments, len(arguments) - len(form.tensors)
        self.task = Task(form.values, arguments, gradients=True)
        with torch.enable_grad():
            self.program = self.task.program
        indices = {id(tensor): index for index, tensor in enumerate(self.program.inputs)}
        self._variable_inputs = [indices.get(id(leaf)) for leaf in leaves]
        variables = {index for index in self._variable_inputs if index is not None}
        self._other_inputs: list[Any] = []
        """For every input that is not a variable: the tensor itself, or the index of the argument that supplies it."""
        for index, source in enumerate(self.program.fullgraph.sources):
            if index in variables:
                continue
            if index in self.program.fullgraph.identity_guarded:
                self._other_inputs.append(self.program.inputs[index])
            elif source.startswith("args["):
                self._other_inputs.append(int(source[5:-1]) - self._leaf_count)
            else:
                raise RefusalError("they read a value that would have to be converted to a tensor at every call")
        self.graph = captured_graph(form, self.program.results, self._variable_inputs, len(self.program.inputs))

    def label(self, what: str) -> str:
        """A name for a package of these functions: what it computes, and the layout of its variables."""
        return f"{what} {self.form.constraints} {self.form.equalities} {self.form.layout}"

    def other_inputs(self, tensors: tuple[Tensor, ...]) -> list[Tensor]:
        """The inputs of the graph that are not variables."""
        return [tensors[item] if isinstance(item, int) else item.detach() for item in self._other_inputs]

    def check(self, tensors: tuple[Tensor, ...]) -> None:
        """Raise `GuardFailed` if something that the functions read has changed."""
        guard = self.program.guard
        args = (*self._args[: self._leaf_count], *tensors)
        with torch.enable_grad():
            if not guard.holds(args, {}) and not guard.matches(args, {}):
                raise GuardFailed(guard.failure_reason(args, {}))

    def rows(self, x: Tensor, *others: Tensor) -> list[Tensor]:
        """f, c and the gradients of all of them."""
        return [self.form.rows(self.graph, x, others)]

    def penalty(self, x: Tensor, weights: Tensor, *others: Tensor) -> list[Tensor]:
        """f, c and the gradient of a weighted sum of violations."""
        return [self.form.penalty(self.graph, x, weights, others)]


class Packages:
    """The packages of a problem: stored by an earlier run, or being built in other processes."""

    def __init__(self, form: FlatForm, size: int, at: Vector) -> None:
        """Raises `RefusalError` if the functions cannot be captured as one graph at a point."""
        self.form, self.size = form, size
        self.captured = CapturedFunctions(form, at)
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
        """A key that covers everything the packages depend on."""
        from compile_inspect.packages import program_key

        return tuple(program_key(task) for task in self._tasks.values())

    def load_saved(self) -> Compiled | None:
        """The compiled form from packages of an earlier run, if all of them are stored and usable."""
        from compile_inspect.packages import DecisionCache

        store = DecisionCache()
        entries = {name: store.load(task) for name, task in self._tasks.items()}
        paths = {name: entry[1] for name, entry in entries.items() if entry is not None and entry[1] is not None}
        if len(paths) < len(self._tasks):
            return None
        try:
            compiled = self._assemble({name: _load(path) for name, path in paths.items()})
        except Exception:  # damaged, or built on another machine: it will be rebuilt
            for task in self._tasks.values():
                store.drop(task)
            return None
        self.from_disk = True
        return compiled

    def drop(self) -> None:
        """Remove the stored packages of an earlier run."""
        from compile_inspect.packages import DecisionCache

        self.from_disk = False
        for task in self._tasks.values():
            DecisionCache().drop(task)

    def begin(self, *, idly: bool = False) -> None:
        """Start the builds; raises if that is impossible. `idly`: at idle priority."""
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
        return function, [*self._inputs[name], *self.captured.other_inputs(self.form.tensors)]

    @property
    def done(self) -> bool:
        """Whether all builds have finished."""
        return all(build.done for build in self._builds.values())

    def wait(self) -> None:
        """Wait until all builds have finished."""
        for build in self._builds.values():
            build.wait()

    def finish(self) -> Compiled:
        """The compiled form from the finished builds, which are also stored on disk; raises `RefusalError` if one failed."""
        from compile_inspect.packages import DecisionCache, decide

        self.seconds = perf_counter() - self._started
        try:
            compiled = self._assemble({name: build.load() for name, build in self._builds.items()})
            for name, task in self._tasks.items():
                reason = "It was built for a solver run."
                decision = decide(task, "aot-inductor", reason, self._started, {})
                DecisionCache().save(task, decision, str(self._builds[name].package))
            add_entry(self.size, self.form.constraints, self.form.equalities)
        finally:
            self.stop()
        return compiled

    def stop(self) -> None:
        """Stop all builds and remove their files."""
        for build in self._builds.values():
            build.stop()
        self._builds = {}

    def _assemble(self, flats: Mapping[str, Callable[[list[Any]], list[Any]]]) -> Compiled:
        def with_guard(flat: Callable[[list[Any]], list[Any]]) -> Callable[..., Tensor]:
            def call(*inputs: Tensor) -> Tensor:
                tensors = self.form.tensors
                self.captured.check(tensors)
                with torch.no_grad():
                    answer: Tensor = flat([*inputs, *self.captured.other_inputs(tensors)])[0]
                return answer

            return call

        penalty = flats.get("penalty")
        return Compiled(self.form, with_guard(flats["rows"]), None if penalty is None else with_guard(penalty), self.size)


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
            return float(out[0]), out[1:count], ExplicitDerivatives(rows[0], rows[1:], costs)
        self._x_numbers[:] = x
        out = self._penalty(self._x, self._weights).numpy()
        derivatives = _OnDemand(self, x, out[1:count], out[count:], self._weight_numbers.copy(), costs)
        return float(out[0]), out[1:count], derivatives

    def rows(self, x: Vector) -> Vector:
        """f, c and the gradients of all of them, in one vector."""
        self._x_numbers[:] = x
        return self._rows(self._x).numpy()

    def expect(self, objective: float, constraints: Vector) -> None:
        """Set the weights of the next gradient, that of objective·f + Σ constraintsᵢ·(violation of cᵢ)."""
        self._weight_numbers[0] = objective
        self._weight_numbers[1:] = constraints

    def signs(self, c: Vector) -> Vector:
        """The derivative of the violations with respect to c."""
        signs = (c >= 0).astype(np.float64)
        signs[: self._form.equalities] = 2.0 * signs[: self._form.equalities] - 1.0
        return signs


class _OnDemand:
    """Gradients at one point: that of the expected sum is already computed, the others are computed on demand."""

    def __init__(self, compiled: Compiled, x: Vector, c: Vector, gradient: Vector, weights: Vector, costs: Costs) -> None:
        self._compiled, self._x, self._c, self._gradient, self._weights = compiled, x, c, gradient, weights
        self._costs = costs
        self._derivatives: tuple[Vector, Matrix] | None = None

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """Gradient of objective·f + constraints·c; nearly always the expected one."""
        self._costs.gradients += 1
        signs = self._compiled.signs(self._c)
        if objective == self._weights[0] and np.array_equal(constraints, self._weights[1:] * signs):
            return self._gradient
        sizes = np.abs(constraints)
        # The weights of satisfied inequalities have no effect on the sum of violations: expect those of the others.
        self._compiled.expect(objective, np.where(signs == 0.0, sizes.max(initial=0.0), sizes))
        gradient, jacobian = self._rows()
        return objective * gradient + constraints @ jacobian

    def full(self) -> tuple[Vector, Matrix]:
        """Gradient of f and Jacobian of c."""
        self._costs.jacobians += 1
        return self._rows()

    def _rows(self) -> tuple[Vector, Matrix]:
        if self._derivatives is None:
            rows = self._compiled.rows(self._x)[1 + len(self._c) :].reshape(1 + len(self._c), -1)
            self._derivatives = rows[0], rows[1:]
        return self._derivatives


def _load(path: Path) -> Callable[[list[Any]], list[Any]]:
    from compile_inspect.packages import load_package

    return load_package(str(path))
