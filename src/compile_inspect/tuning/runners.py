"""The callables that `tune` returns: a guard, then the shortest way to the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from compile_inspect import torch_private
from compile_inspect.tuning.fused import Body, Elsewhere, calling, fused, in_place, listed_inputs, replaying
from compile_inspect.variants import Prepared, Refused, Task
from compile_inspect.variants.compiled import Compiled
from compile_inspect.variants.cuda_graph import Replays
from compile_inspect.variants.guard import Guard
from compile_inspect.variants.program import Flat, Program

Runner = Callable[..., Any]


class Safe(Protocol):
    """Runs a call that the guard does not accept; `guard` knows why."""

    def __call__(self, guard: Guard, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The result of the function itself."""
        ...


def runner(task: Task, prepared: Prepared, safe: Safe, *, reuse_outputs: bool = False) -> Runner:
    """A function with the task's signature: it runs the variant if the guard accepts a call, and `safe` otherwise.

    Raises `Refused` if Dynamo cannot capture the task as one graph and the variant has frozen something. Code that
    torch.compile made from several graphs has guards of its own and needs no other.
    """
    if prepared.variant.name == "eager":
        return task.function
    try:
        program = task.program if prepared.program is None else prepared.program
    except Refused:
        if isinstance(prepared.variant, Compiled) and prepared.call is not None:
            return prepared.call
        raise
    guard = program.guard
    flat = prepared.flat
    if flat is None:
        call = task.function if prepared.call is None else prepared.call
        return fused(guard, Body(("return call(*args, **kwargs)",), {"call": call}), _elsewhere(guard, call, safe))
    if task.gradients:
        if not _is_one_number(prepared.run(*task.args, **task.kwargs).result):
            raise Refused("computing result and gradients in one run requires a function that returns one number")
        return _differentiable(program, flat, safe, reuse_outputs=reuse_outputs)
    general = flat.reusing if isinstance(flat, Replays) and reuse_outputs else flat
    body = replaying(program, flat, reuse_outputs=reuse_outputs) if isinstance(flat, Replays) else calling(program, flat)
    return fused(guard, body, _elsewhere(guard, program.direct(general), safe, flat))


def _elsewhere(guard: Guard, call: Runner, safe: Safe, flat: Flat | None = None) -> Elsewhere:
    """Handle a failed quick check: make the call if a closer look allows it, otherwise fall back."""

    def elsewhere(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        readable = not isinstance(flat, Replays) or flat.in_place()
        return call(*args, **kwargs) if readable and guard.matches(args, kwargs) else safe(guard, args, kwargs)

    return elsewhere


def _differentiable(program: Program, recorded: Flat, safe: Safe, *, reuse_outputs: bool) -> Runner:
    """Result and gradients come from one run; the backward only multiplies them by the incoming gradient."""
    import torch
    from torch.autograd.function import once_differentiable

    guard, count, wanted = program.guard, program.output_count, program.wanted
    flat = recorded.reusing if isinstance(recorded, Replays) and reuse_outputs else recorded

    class Together(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, everything: list[Any], *_: Any) -> Any:
            outputs = flat(list(everything))
            context.save_for_backward(*outputs[count:])
            return outputs[0]

        @staticmethod
        @once_differentiable
        def backward(context: Any, above: Any) -> tuple[Any, ...]:
            return (None, *torch._foreach_mul(list(context.saved_tensors), above.reshape(())))

    def together(everything: list[Any]) -> Any:
        return Together.apply(everything, *[everything[place] for place in wanted])  # type: ignore[no-untyped-call]

    bound = program.whole.bound(lambda *inputs: [together(list(inputs))])
    names: dict[str, Any] = {"together": together, "bound": bound}
    listed = listed_inputs(program, names)
    simple = listed is not None and program.leaves and program.leaves[0].is_output and count == 1
    line = f"return together({listed})" if simple else "return bound(*args, **kwargs)"
    body = Body((line,), names)
    body = in_place(recorded, body) if isinstance(recorded, Replays) else body
    return fused(guard, body, _elsewhere(guard, bound, safe, recorded))


def _is_one_number(result: Any) -> bool:
    return torch_private.is_tensor(result) and result.numel() == 1
