"""The callables that `tune` hands out: a check of the inputs, then the shortest way to the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from compile_inspect.capture import torch_private
from compile_inspect.tuning.fused import Body, Elsewhere, calling, fused, replaying
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
    flat, functional = prepared.flat, prepared.functional
    if flat is None or functional is None:
        call = task.function if prepared.call is None else prepared.call
        return fused(guard, Body(("return call(*args, **kwargs)",), {"call": call}), _elsewhere(guard, call, safe))
    if task.gradients:
        if not _is_one_number(prepared.run(*task.args, **task.kwargs).result):
            raise Refused("result and gradients in one run are for functions that return one number")
        if isinstance(flat, Replays) and reuse_outputs:
            flat = flat.reusing
        return _differentiable(task, guard, flat, safe)
    body = (
        replaying(guard, flat, functional, reuse_outputs=reuse_outputs)
        if isinstance(flat, Replays)
        else calling(guard, flat, functional)
    )
    general = flat.reusing if isinstance(flat, Replays) and reuse_outputs else flat
    return fused(guard, body, _elsewhere(guard, _listed(guard, functional, general), safe))


def _listed(guard: Guard, functional: Functional, flat: Flat) -> Runner:
    return lambda *args, **kwargs: functional.step(flat(guard.tensors(args, kwargs))).result


def _elsewhere(guard: Guard, call: Runner, safe: Runner) -> Elsewhere:
    """Where the quick check failed: the call if the thorough one allows it, the safe way if not."""

    def elsewhere(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return call(*args, **kwargs) if guard.matches(args, kwargs) else safe(*args, **kwargs)

    return elsewhere


def _differentiable(task: Task, guard: Guard, flat: Flat, safe: Runner) -> Runner:
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
            outputs = flat(list(everything))
            context.save_for_backward(*outputs[1:])
            return outputs[0]

        @staticmethod
        @once_differentiable
        def backward(context: Any, above: Any) -> tuple[Any, ...]:
            return (None, *torch._foreach_mul(list(context.saved_tensors), above.reshape(())))

    def together(everything: list[Any]) -> Any:
        return Together.apply(everything, *[everything[index] for index in chosen])  # type: ignore[no-untyped-call]

    body = Body((f"return together({guard.parts.listed})",), {"together": together})
    return fused(guard, body, _elsewhere(guard, lambda *args, **kwargs: together(guard.tensors(args, kwargs)), safe))


def _is_one_number(result: Any) -> bool:
    return torch_private.is_tensor(result) and result.numel() == 1
