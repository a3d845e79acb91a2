"""The callables that `tune` hands out: a check of the inputs, then the shortest way to the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compile_inspect.capture import torch_private
from compile_inspect.tuning.guard import Guard
from compile_inspect.variants import Prepared, Refused, Task
from compile_inspect.variants.cuda_graph import Replays
from compile_inspect.variants.functional import Functional

Runner = Callable[..., Any]
Flat = Callable[[list[Any]], list[Any]]


def runner(task: Task, prepared: Prepared, safe: Runner, *, reuse_outputs: bool = False) -> Runner:
    """A function with the signature of the task's: the variant where the guard allows it, `safe` elsewhere."""
    if prepared.variant.name == "eager":
        return task.function
    guard = Guard(task)
    if prepared.flat is None or prepared.functional is None:
        return _guarded(guard, task.function if prepared.call is None else prepared.call, safe)
    flat = prepared.flat
    if isinstance(flat, Replays) and reuse_outputs:
        flat = flat.reusing
    if task.gradients:
        if not _is_one_number(prepared.run(*task.args, **task.kwargs).result):
            raise Refused("result and gradients in one run are for functions that return one number")
        return _differentiable(task, prepared.functional, guard, flat, safe)
    return _inference(prepared.functional, guard, flat, safe)


def _guarded(guard: Guard, call: Runner, safe: Runner) -> Runner:
    matches = guard.matches

    def fast(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs) if matches(args, kwargs) else safe(*args, **kwargs)

    return fast


def _inference(functional: Functional, guard: Guard, flat: Flat, safe: Runner) -> Runner:
    matches, tensors, step = guard.matches, guard.tensors, functional.step
    if functional.single:

        def fast(*args: Any, **kwargs: Any) -> Any:
            return flat(tensors(args, kwargs))[0] if matches(args, kwargs) else safe(*args, **kwargs)

        return fast

    def structured(*args: Any, **kwargs: Any) -> Any:
        return step(flat(tensors(args, kwargs))).result if matches(args, kwargs) else safe(*args, **kwargs)

    return structured


def _differentiable(task: Task, functional: Functional, guard: Guard, flat: Flat, safe: Runner) -> Runner:
    """Result and gradients come from one run; the backward only multiplies by what comes from above."""
    import torch
    from torch.autograd.function import once_differentiable

    wanted = [item.differentiable and item.now().requires_grad for item in task.held]
    leaves = torch_private.flatten((task.args, dict(task.kwargs)))[0]
    wanted += [leaf.requires_grad for leaf in leaves if torch_private.is_tensor(leaf)]
    chosen = [index for index, wants in enumerate(wanted) if wants]

    class Together(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, everything: list[Any], *_: Any) -> Any:
            outputs = flat([tensor.detach() for tensor in everything])
            context.save_for_backward(*outputs[1:])
            return outputs[0]

        @staticmethod
        @once_differentiable
        def backward(context: Any, above: Any) -> tuple[Any, ...]:
            return (None, *torch._foreach_mul(list(context.saved_tensors), above.reshape(())))

    matches, tensors = guard.matches, guard.tensors

    def fast(*args: Any, **kwargs: Any) -> Any:
        if not matches(args, kwargs):
            return safe(*args, **kwargs)
        everything = tensors(args, kwargs)
        return Together.apply(everything, *[everything[index] for index in chosen])  # type: ignore[no-untyped-call]

    return fast


def _is_one_number(result: Any) -> bool:
    return torch_private.is_tensor(result) and result.numel() == 1
