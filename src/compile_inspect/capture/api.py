"""`inspect`: compile one callable with given options, run it, and return the evidence."""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from compile_inspect import torch_private
from compile_inspect.capture.backward import run_backward
from compile_inspect.capture.recorder import Recording
from compile_inspect.errors import TargetError
from compile_inspect.records import Inspection
from compile_inspect.target import Inputs, Target
from compile_inspect.torch_private import dynamo_state

_COMPILE_OPTIONS = ("backend", "mode", "dynamic", "fullgraph", "options", "path", "force", "fresh")


def inspect(
    function: Callable[..., Any] | Target,
    /,
    *args: Any,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    dynamic: bool | None = None,
    fullgraph: bool = False,
    options: Mapping[str, Any] | None = None,
    path: str | Path | None = None,
    force: bool = False,
    fresh: bool = False,
    **kwargs: Any,
) -> Inspection:
    """Compile `function`, call it with `args` and `kwargs`, and return everything about its compilation.

    The backward runs where an output has a gradient; gradients are computed and dropped, no `.grad` is touched.
    Nothing is reset: if this process compiled the function before with the same options, torch reuses that and
    the inspection says so. With a `Target`, its inputs are used, the further ones too. With `path`, the capture
    is also written there. What torch's caches on disk hold is loaded as always, and then says little about kernels;
    `fresh=True` compiles graphs anew.

    If torch fails to compile (with `fullgraph=True`, say), the evidence is returned, and its `failures` say why; if the
    function itself fails in eager mode, `TargetError` is raised from its exception. With `gradients=False` in a `Target`
    everything runs without gradients.

        inspection = compile_inspect.inspect(model, x, mode="reduce-overhead")
        for cause in inspection.breaks:
            print(cause.kind, cause.location)
    """
    target = _as_target(function, args, kwargs)
    compiled = _compile(target.function, backend, mode, dynamic, fullgraph, options)
    recording = Recording(None if path is None else Path(path), force=force)
    with recording, torch_private.without_graph_caches() if fresh else nullcontext():
        for inputs in target.all_inputs():
            if not _call(recording, compiled, target, inputs):
                break
        if not recording.inspection.compilations:
            recording.note(
                "Nothing was compiled. Torch had compiled this code with these options before in this process "
                "(start a new process to see it again), or a stance or torch.compiler.disable forbids it."
            )
    return recording.inspection


def _as_target(function: Callable[..., Any] | Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Target:
    if isinstance(function, Target):
        if args or kwargs:
            raise TargetError("a Target has its own inputs; call inspect(target) without further arguments")
        return function
    if not callable(function):
        raise TargetError(f"inspect needs a callable, not {function!r:.80}")
    try:
        parameters = set(python_inspect.signature(getattr(function, "forward", function)).parameters)
    except (TypeError, ValueError):
        parameters = set()
    shared = sorted(parameters.intersection(_COMPILE_OPTIONS))
    if shared:
        raise TargetError(
            f"{', '.join(shared)} is both a parameter of the function and an option of inspect: "
            "pass the inputs as Target(function, args, kwargs)"
        )
    return Target(function, args, kwargs)


def _compile(
    function: Callable[..., Any],
    backend: str | Callable[..., Any],
    mode: str | None,
    dynamic: bool | None,
    fullgraph: bool,
    options: Mapping[str, Any] | None,
) -> Callable[..., Any]:
    import torch

    if dynamo_state.is_compiled(function):
        return function  # compiled by the user, with the user's options
    try:
        compiled: Callable[..., Any] = torch.compile(
            function,
            backend=backend,
            mode=mode,
            dynamic=dynamic,
            fullgraph=fullgraph,
            options=dict(options) if options else None,
        )
    except (RuntimeError, TypeError, ValueError) as error:
        raise TargetError(f"torch.compile refused these options: {error}") from error
    return compiled


def _call(recording: Recording, compiled: Callable[..., Any], target: Target, inputs: Inputs) -> bool:
    """Run forward and backward once; False if it failed, though it runs in eager mode."""
    import torch

    try:
        with torch.no_grad() if target.gradients is False else nullcontext():
            result = compiled(*inputs[0], **inputs[1])
        if target.gradients is not False and run_backward(result, required=target.gradients is True):
            recording.note("The function runs a backward of its own; none was run after it.")
    except TargetError:
        raise
    except Exception as error:
        from compile_inspect.eager import describe_error, eager_failure

        failure = eager_failure(target, inputs)
        recording.failed(error)
        if failure is not None:
            recording.stop()
            raise TargetError(f"the target fails in eager mode: {describe_error(failure)}") from failure
        return False
    return True
