"""The problem as functions from one flat vector to another, the form that compilers accept.

The user's functions are captured once, as a graph with a guard on everything they read; gradients are derived from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from nonsmooth.evaluate.trial import MAX_ROWS_WITH_FULL_JACOBIAN
from nonsmooth.problem import Form, Problem, flatten, scalar, sum_of_terms
from nonsmooth.variables import Variables


@dataclass(frozen=True)
class FlatForm:
    """`values(*leaves, *tensors)` returns f and c (None if there are no constraints), equalities first; `leaves` are the
    variables, created from a flat x by `assemble`, and `tensors` are the tensor arguments of the user's functions. For a
    module, `values` takes no leaves: they are its parameters, which `assemble` writes to."""

    values: Callable[..., tuple[Tensor, Tensor | None]]
    assemble: Callable[[Tensor], tuple[Any, list[Tensor]]]
    layout: tuple[Any, ...]
    tensors: tuple[Tensor, ...]
    constraints: int
    equalities: int
    of_module: bool = False

    @property
    def has_penalty(self) -> bool:
        """Whether gradients of constraints are computed on demand; with few of them, one function computes all at once."""
        return self.constraints > MAX_ROWS_WITH_FULL_JACOBIAN

    def rows(self, graph: Graph, x: Tensor, others: Sequence[Tensor]) -> Tensor:
        """f, c and the gradients of all of them, in one vector."""
        count = self.constraints
        with torch.enable_grad():
            f, c, at = graph(x, others)
            parts = [f.detach().reshape(1), _flat(_gradients([f], at, [torch.ones_like(f)]))]
            if c is not None:
                parts.insert(1, c.detach())
                if not c.requires_grad:
                    parts.append(x.new_zeros(count * len(x)))
                elif count == 1:
                    parts.append(_flat(_gradients([c], at, [torch.ones_like(c)])))
                else:
                    directions = torch.eye(count, dtype=c.dtype, device=c.device)
                    rows = _gradients([c], at, [directions], batched=True)
                    parts.append(torch.cat([piece.reshape(count, -1).double() for piece in rows], dim=1).reshape(-1))
        return torch.cat(parts)

    def penalty(self, graph: Graph, x: Tensor, weights: Tensor, others: Sequence[Tensor]) -> Tensor:
        """f, c and the gradient of weights₀·f + Σ weightsᵢ·|c|ᵢ in one vector, where |c| is the violation."""
        with torch.enable_grad():
            f, c, at = graph(x, others)
            assert c is not None
            violated = (c.detach() >= 0).double()
            signs = torch.cat([2.0 * violated[: self.equalities] - 1.0, violated[self.equalities :]])
            total = weights[0] * f + (weights[1:] * signs * c).sum()
            gradient = _flat(_gradients([total], at, [torch.ones_like(total)]))
        return torch.cat([f.detach().reshape(1), c.detach(), gradient])


Graph = Callable[[Tensor, Sequence[Tensor]], tuple[Tensor, Tensor | None, list[Tensor]]]
"""From a flat x and the other inputs of a captured graph to f, c, and the leaves that both depend on."""


def flat_form(problem: Problem, variables: Variables, forms: tuple[Form, Form]) -> FlatForm:
    """The functions for a problem whose constraints have these forms (inequalities, equalities)."""
    count, equalities = forms[0].size + forms[1].size, forms[1].size
    computed = _values(problem)
    positional, names = len(problem.arguments), tuple(problem.keywords)
    leaves = [*problem.arguments, *problem.keywords.values()]
    positions = [position for position, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    tensors = tuple(leaves[position].detach() for position in positions)
    leaves = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]  # tensors are passed at every call
    module, single, variable_names = variables.module, variables.is_single, variables.names
    variable_count = 0 if module is not None else len(variable_names)

    def values(*inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        arguments = list(leaves)
        for position, tensor in zip(positions, inputs[variable_count:], strict=True):
            arguments[position] = tensor
        keywords = dict(zip(names, arguments[positional:], strict=True))
        if module is not None:
            argument: Any = module
        else:
            argument = inputs[0] if single else dict(zip(variable_names, inputs[:variable_count], strict=True))
        f, inequality_values, equality_values = computed(argument, tuple(arguments[:positional]), keywords)
        blocks = [flatten(block, "c")[0] for block in (equality_values, inequality_values)]
        parts = [block.double() for block in blocks if block is not None]
        return f.double(), torch.cat(parts) if parts else None

    assemble = variables.assembler()
    return FlatForm(values, assemble, variables.layout, tensors, count, equalities, module is not None)


def captured_graph(form: FlatForm, results: Callable[[list[Tensor]], list[Tensor]], at: list[int | None], size: int) -> Graph:
    """A captured graph as a function of x and of its inputs that are not variables.

    `results` runs the graph; `at` gives for every variable its index among the graph's `size` inputs, None if the graph does
    not read it.
    """
    variables = {index for index in at if index is not None}

    def graph(x: Tensor, others: Sequence[Tensor]) -> tuple[Tensor, Tensor | None, list[Tensor]]:
        _, leaves = form.assemble(x)
        rest = iter(others)
        inputs: list[Any] = [None if index in variables else next(rest) for index in range(size)]
        for index, leaf in zip(at, leaves, strict=True):
            if index is not None:
                inputs[index] = leaf
        with _Substitutes():
            f, *c = results(inputs)
        return f, c[0] if c else None, leaves

    return graph


class _Substitutes(TorchFunctionMode):
    """Replaces calls that compilers or CUDA graphs cannot differentiate by equivalent ones.

    The gradient of a trace synchronizes with the device, which a CUDA graph cannot do, and Inductor computes a row of zeros
    for it if several gradients are computed at once.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Called for every function of torch."""
        if func in _TRACES and not kwargs:
            return args[0].diagonal().sum()
        return func(*args, **(kwargs or {}))


_TRACES = (torch.trace, Tensor.trace)


def _values(problem: Problem) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], tuple[Tensor, Any, Any]]:
    function, objective, smooth, terms = problem.function, problem.objective, problem.smooth, problem.terms
    inequalities, equalities = problem.inequalities, problem.equalities
    # A decorated function reads its globals and closure in the function that it wraps.
    inner = None if function is None else inspect.unwrap(function)

    def values(x: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Tensor, Any, Any]:
        if function is None or inner is None:
            if objective is None:
                f = sum_of_terms(smooth, terms, x, arguments, keywords)
            else:
                f = objective(x, *arguments, **keywords)
            parts = [None if part is None else part(x, *arguments, **keywords) for part in (inequalities, equalities)]
            return scalar(f), parts[0], parts[1]
        answer = function(x, *arguments, **keywords)
        if not isinstance(answer, tuple | list):
            return scalar(answer), None, None
        f, inequality_values, equality_values = [*answer, None, None][:3]
        return scalar(f), inequality_values, equality_values

    return values


def _gradients(outputs: list[Tensor], at: list[Tensor], weights: list[Tensor], *, batched: bool = False) -> list[Tensor]:
    if not outputs[0].requires_grad:
        return [torch.zeros_like(tensor) for tensor in at]
    parts = torch.autograd.grad(outputs, at, weights, retain_graph=True, allow_unused=True, is_grads_batched=batched)
    count = (len(weights[0]),) if batched else ()
    return [tensor.new_zeros(*count, *tensor.shape) if part is None else part for part, tensor in zip(parts, at, strict=True)]


def _flat(pieces: list[Tensor]) -> Tensor:
    return torch.cat([piece.detach().reshape(-1).double() for piece in pieces])
