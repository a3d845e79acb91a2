"""The callables that `tune` returns: a guard, then the shortest way to the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from compile_inspect import torch_private
from compile_inspect.tuning.fused_call import (
    Body,
    SlowPath,
    call_body,
    fuse,
    input_list_source,
    replay_body,
    with_address_check,
)
from compile_inspect.variants import Prepared, RefusalError, Task
from compile_inspect.variants.captured_program import CapturedProgram, FlatFunction
from compile_inspect.variants.compiled import Compiled
from compile_inspect.variants.cuda_graph import ReplayedFunction
from compile_inspect.variants.guard import Guard

TunedFunction = Callable[..., Any]


class Fallback(Protocol):
    """Runs a call that the guard does not accept; `guard` knows why."""

    def __call__(self, guard: Guard, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The result of the function itself."""
        ...


def make_callable(task: Task, prepared: Prepared, fallback: Fallback, *, reuse_outputs: bool = False) -> TunedFunction:
    """A function with the task's signature: it runs the variant if the guard accepts a call, and `fallback` otherwise.

    Raises `RefusalError` if Dynamo cannot capture the task as one graph and the variant has frozen something. Code that
    torch.compile made from several graphs has guards of its own and needs no other.
    """
    if prepared.variant.name == "eager":
        return task.function
    try:
        program = task.program if prepared.program is None else prepared.program
    except RefusalError:
        if isinstance(prepared.variant, Compiled) and prepared.call is not None:
            return prepared.call
        raise
    guard = program.guard
    flat = prepared.flat
    if flat is None:
        call = task.function if prepared.call is None else prepared.call
        return fuse(guard, Body(("return call(*args, **kwargs)",), {"call": call}), _slow_path(guard, call, fallback))
    if task.gradients:
        if not _is_one_number(prepared.run(*task.args, **task.kwargs).result):
            raise RefusalError("computing result and gradients in one run requires a function that returns one number")
        return _make_differentiable(program, flat, fallback, reuse_outputs=reuse_outputs)
    general = flat.call_reusing_outputs if isinstance(flat, ReplayedFunction) and reuse_outputs else flat
    body = (
        replay_body(program, flat, reuse_outputs=reuse_outputs)
        if isinstance(flat, ReplayedFunction)
        else call_body(program, flat)
    )
    return fuse(guard, body, _slow_path(guard, program.unguarded_call(general), fallback, flat))


def _slow_path(guard: Guard, call: TunedFunction, fallback: Fallback, flat: FlatFunction | None = None) -> SlowPath:
    """Handle a failed quick check: make the call if a closer look allows it, otherwise fall back."""

    def slow_path(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        readable = not isinstance(flat, ReplayedFunction) or flat.tensors_in_place()
        return call(*args, **kwargs) if readable and guard.matches(args, kwargs) else fallback(guard, args, kwargs)

    return slow_path


def _make_differentiable(
    program: CapturedProgram, recorded_function: FlatFunction, fallback: Fallback, *, reuse_outputs: bool
) -> TunedFunction:
    """Result and gradients come from one run; the backward only multiplies them by the incoming gradient."""
    import torch
    from torch.autograd.function import once_differentiable

    guard, count, gradient_positions = program.guard, program.output_count, program.gradient_positions
    flat = (
        recorded_function.call_reusing_outputs
        if isinstance(recorded_function, ReplayedFunction) and reuse_outputs
        else recorded_function
    )

    class ResultWithGradients(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, inputs: list[Any], *_: Any) -> Any:
            outputs = flat(list(inputs))
            context.save_for_backward(*outputs[count:])
            return outputs[0]

        @staticmethod
        @once_differentiable
        def backward(context: Any, incoming_gradient: Any) -> tuple[Any, ...]:
            return (None, *torch._foreach_mul(list(context.saved_tensors), incoming_gradient.reshape(())))

    def run_together(inputs: list[Any]) -> Any:
        return ResultWithGradients.apply(inputs, *[inputs[position] for position in gradient_positions])  # type: ignore[no-untyped-call]

    bound = program.fullgraph.bind(lambda *inputs: [run_together(list(inputs))])
    names: dict[str, Any] = {"run_together": run_together, "bound": bound}
    inputs_source = input_list_source(program, names)
    simple = inputs_source is not None and program.leaves and program.leaves[0].is_output and count == 1
    line = f"return run_together({inputs_source})" if simple else "return bound(*args, **kwargs)"
    body = Body((line,), names)
    body = with_address_check(recorded_function, body) if isinstance(recorded_function, ReplayedFunction) else body
    return fuse(guard, body, _slow_path(guard, bound, fallback, recorded_function))


def _is_one_number(result: Any) -> bool:
    return torch_private.is_tensor(result) and result.numel() == 1
