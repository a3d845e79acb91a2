"""Five correct programs, and more than thirty kinds of faults to put into a variant that runs them correctly.

A faulty variant is eager plus a fault, so that nothing needs to be compiled. It claims to use kernels of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from compile_inspect.variants import Prepared, Step, Task, Variant

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
COLUMNS = 24

Compute = Callable[[Tensor, Tensor], Tensor]
PROGRAMS: dict[str, Compute] = {
    "softmax": lambda x, w: (x @ w / 5).softmax(-1),
    "layer norm": lambda x, w: functional.layer_norm(x @ w, (COLUMNS,)),
    "gelu": lambda x, w: functional.gelu(x @ w) * x,
    "attention": lambda x, w: (x @ x.t() / 5).softmax(-1) @ w,
    "pointwise": lambda x, w: torch.tanh(x) * w.sigmoid() + x.exp().log1p(),
}


class Program(torch.nn.Module):
    """A result, a sum of it, a copy of an input, and a buffer that counts calls."""

    seen: Tensor

    def __init__(self, compute: Compute) -> None:
        super().__init__()
        self.compute = compute
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        weights = torch.linspace(0.5, 1.5, COLUMNS, dtype=x.dtype)  # else the gradient of a softmax's sum is zero
        result = self.compute(x, w) * weights
        self.seen.add_(1)
        return result, result.sum(-1), x.detach().clone()


def task_of(program: str, dtype: torch.dtype) -> Task:
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(COLUMNS, COLUMNS, generator=generator).to(dtype) for _ in range(2))
    return Task(Program(PROGRAMS[program]), (x.requires_grad_(), w.requires_grad_()), {}, True)


@dataclass
class Call:
    """One call of a faulty variant."""

    step: Step
    x: Tensor
    w: Tensor
    number: int
    memory: dict[str, Any]

    def changed(self, new: Tensor) -> Step:
        """The step with another first result, in dtype and gradient as it was."""
        old = self.step.result[0]
        new = new.to(old.dtype)
        if new.stride() != old.stride():
            new = torch.empty_like(old).copy_(new)
        return replace(self.step, result=(new.detach().requires_grad_(old.requires_grad), *self.step.result[1:]))

    @property
    def main(self) -> Tensor:
        """The first result, to be changed at will."""
        result: Tensor = self.step.result[0].detach().clone()
        return result

    def if_(self, condition: Any) -> Step:
        """The step with a result off by 20 % of its scale, where a condition holds."""
        if not bool(condition):
            return self.step
        return self.changed((self.main * 1.2 + 0.2 * max(_scale(self.main), 0.1)).nan_to_num(0.5, 0.5, 0.5))


Fault = Callable[[Call], Step]


def _scale(values: Tensor) -> float:
    finite = values[values.isfinite()]
    return float(finite.double().square().mean().sqrt()) if finite.numel() else 1.0


def _one_element(call: Call) -> Step:
    new = call.main
    new.view(-1)[int(new.abs().view(-1).nan_to_num().argsort()[new.numel() // 2])] *= 1.1
    return call.changed(new)


def _slice(call: Call, dim: int) -> Step:
    new = call.main
    new.select(dim, 3).mul_(1.03)
    return call.changed(new)


def _ulps(call: Call, count: float) -> Step:
    return call.changed(call.main.double() * (1 + count * torch.finfo(call.main.dtype).eps))


def _smallest_zeroed(call: Call) -> Step:
    new = call.main
    new.view(-1)[new.abs().view(-1).nan_to_num(1e9, 1e9, 1e9).argmin()] = 0
    return call.changed(new)


def _swapped(call: Call) -> Step:
    new = call.main
    new[0, :2] = new[0, :2].flip(0)
    return call.changed(new)


def _swapped_rows(call: Call) -> Step:
    new = call.main
    new[:2] = new[:2].flip(0)
    return call.changed(new)


def _results(call: Call, **changes: Tensor) -> Step:
    results = list(call.step.result)
    for place, new in changes.items():
        results[int(place[-1])] = new
    return replace(call.step, result=tuple(results))


def _transposed_memory(call: Call) -> Step:
    old = call.step.result[0]
    return _results(call, result0=old.detach().t().contiguous().t().requires_grad_(old.requires_grad))


def _shared_storage(call: Call) -> Step:
    old = call.step.result
    memory = torch.cat([old[0].detach().reshape(-1), old[1].detach().reshape(-1)])
    parts = memory[: old[0].numel()].view_as(old[0]), memory[old[0].numel() :].view_as(old[1])
    return _results(call, result0=parts[0].requires_grad_(), result1=parts[1].requires_grad_())


def _reused_memory(call: Call) -> Step:
    old = call.step.result[1].detach()
    memory = call.memory.setdefault("buffer", torch.empty_like(old))
    if memory.shape != old.shape:
        return call.step
    memory.copy_(old)
    return _results(call, result1=memory.detach().requires_grad_())


def _gradient(call: Call, place: int, change: Callable[[Tensor], Tensor]) -> Step:
    gradients = list(call.step.gradients)
    gradients[place] = change(gradients[place])
    return replace(call.step, gradients=tuple(gradients))


def _one_row_of_gradient(gradient: Tensor) -> Tensor:
    new = gradient.clone()
    new[2] *= 1.1
    return new


def _nan_ignored(call: Call) -> Step:
    return call.changed(call.main.nan_to_num(0.0)) if bool(call.x.isnan().any()) else call.step


def _input_changed(call: Call) -> Step:
    call.w.detach()[0, 0] += 1
    return call.step


def _raises_for_nan(call: Call) -> Step:
    if bool(call.x.isnan().any()):
        raise ValueError("NaN")
    return call.step


def _is_huge(x: Tensor) -> bool:
    return bool(x.abs().max() > torch.finfo(x.dtype).max ** 0.35)


def _is_subnormal(x: Tensor) -> bool:
    return bool(((x != 0) & (x.abs() < torch.finfo(x.dtype).tiny)).any())


FAULTS: dict[str, Fault] = {
    "scaled by 10 %": lambda call: call.changed(call.main * 1.1),
    "scaled by 1 %": lambda call: call.changed(call.main.double() * 1.01),
    "scaled down by 2 %": lambda call: call.changed(call.main.double() * 0.98),
    "shifted by 1 % of its scale": lambda call: call.changed(call.main.double() + 0.01 * _scale(call.main)),
    "one element off by 10 %": _one_element,
    "one row off by 3 %": lambda call: _slice(call, 0),
    "one column off by 3 %": lambda call: _slice(call, 1),
    "four units too large everywhere": lambda call: _ulps(call, 4),
    "eight units too small everywhere": lambda call: _ulps(call, -8),
    "smallest entry zeroed": _smallest_zeroed,
    "two neighbors swapped": _swapped,
    "two rows swapped": _swapped_rows,
    "second result off by 5 %": lambda call: _results(call, result1=call.step.result[1] * 1.05),
    "wrong strides": _transposed_memory,
    "wrong dtype": lambda call: _results(call, result0=call.step.result[0].double()),
    "wrong shape": lambda call: _results(call, result1=call.step.result[1][None]),
    "requires_grad lost": lambda call: _results(call, result0=call.step.result[0].detach()),
    "result is an input": lambda call: _results(call, result2=call.x.detach()),
    "two results in one storage": _shared_storage,
    "result overwritten by the next call": _reused_memory,
    "wrong from the second call on": lambda call: call.if_(call.number >= 2),
    "wrong from the 20th call on": lambda call: call.if_(call.number >= 20),
    "wrong from the 100th call on": lambda call: call.if_(call.number >= 100),
    "wrong at every 50th call": lambda call: call.if_(call.number % 50 == 0),
    "NaN ignored": _nan_ignored,
    "raises for NaN": _raises_for_nan,
    "wrong for infinities": lambda call: call.if_(call.x.isinf().any()),
    "wrong for zeros": lambda call: call.if_((call.x == 0).all()),
    "wrong for equal inputs": lambda call: call.if_((call.x == call.x[0, 0]).all() and call.x[0, 0] != 0),
    "wrong for huge inputs": lambda call: call.if_(_is_huge(call.x)),
    "wrong for subnormal inputs": lambda call: call.if_(_is_subnormal(call.x)),
    "wrong where the mean is negative": lambda call: call.if_(call.x.mean() < 0),
    "wrong for other strides": lambda call: call.if_(not call.x.is_contiguous()),
    "wrong for one tensor given twice": lambda call: call.if_(call.x.data_ptr() == call.w.data_ptr()),
    "gradient of x off by 10 %": lambda call: _gradient(call, 0, lambda gradient: gradient * 1.1),
    "gradient of w off by 2 %": lambda call: _gradient(call, 1, lambda gradient: (gradient.double() * 1.02).to(gradient)),
    "gradient of w zero": lambda call: _gradient(call, 1, torch.zeros_like),
    "one row of a gradient off by 10 %": lambda call: _gradient(call, 1, _one_row_of_gradient),
    "input changed": _input_changed,
}
EFFECT = "side effect missing"
KINDS = (*FAULTS, EFFECT)


@dataclass(frozen=True)
class Faulty(Variant):
    """Eager with a fault in it; none where the name is empty."""

    fault: str = ""
    calls: list[int] = field(default_factory=lambda: [0])

    @property
    def name(self) -> str:
        return "faulty"

    def build(self, task: Task) -> Prepared:
        memory: dict[str, Any] = {}

        def run(x: Tensor, w: Tensor) -> Step:
            self.calls[0] += 1
            before = task.function.seen.clone()  # type: ignore[attr-defined]
            step = task.run(task.function, (x, w), {})
            if self.fault == EFFECT:
                task.function.seen.copy_(before)  # type: ignore[attr-defined]
            change = FAULTS.get(self.fault)
            return step if change is None else change(Call(step, x, w, self.calls[0], memory))

        return Prepared(self, run, None, 0.0)
