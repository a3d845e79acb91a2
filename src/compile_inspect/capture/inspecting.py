"""`inspect`: compile one callable with given options, run it, and return the evidence."""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from traceback import walk_tb
from typing import Any

from compile_inspect.capture import torch_private
from compile_inspect.capture.recorder import Recording
from compile_inspect.errors import TargetError
from compile_inspect.records import Inspection
from compile_inspect.target import Target

_COMPILERS = ("torch._dynamo", "torch._inductor", "torch._functorch")
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

    If torch fails to compile (with `fullgraph=True`, say), the evidence is returned with a note; if the function
    itself fails, `TargetError` is raised from its exception.

        inspection = compile_inspect.inspect(model, x, mode="reduce-overhead")
        for cause in inspection.breaks:
            print(cause.kind, cause.location)
    """
    target = _as_target(function, args, kwargs)
    compiled = _compile(target.function, backend, mode, dynamic, fullgraph, options)
    recording = Recording(None if path is None else Path(path), force=force)
    with recording, torch_private.without_graph_caches() if fresh else nullcontext():
        for call_args, call_kwargs in target.all_inputs():
            if not _call(recording, compiled, call_args, call_kwargs, target.gradients):
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

    if hasattr(function, "_torchdynamo_orig_callable") or type(function).__name__ == "OptimizedModule":
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


def _call(
    recording: Recording, compiled: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], gradients: bool | None
) -> bool:
    """Run forward and backward once; False if torch could not compile."""
    try:
        result = compiled(*args, **kwargs)
        if gradients is not False:
            own = _backward(result, required=gradients is True)
            if own:
                recording.note("The function runs a backward of its own; none was run after it.")
    except TargetError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(_COMPILERS) and not _came_while_compiling(error):
            recording.stop()
            raise TargetError(f"calling the target raised {type(error).__name__}: {error}") from error
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        recording.note(f"The call raised {type(error).__name__}: {first}")
        return False
    return True


def _came_while_compiling(error: BaseException) -> bool:
    """Whether torch was tracing when an exception came: an `except` of the program never sees it then, in eager mode it may."""
    files = (frame.f_code.co_filename.replace("\\", "/") for frame, _ in walk_tb(error.__traceback__))
    return any(file.endswith("torch/_dynamo/convert_frame.py") for file in files)


def _backward(result: Any, *, required: bool) -> bool:
    """Run the backward of a result; True where the function had run it already, and what it needs is gone."""
    import torch

    outputs = [tensor for tensor in _tensors(result) if tensor.requires_grad and tensor.grad_fn is not None]
    leaves = list(_leaves(outputs))
    if not leaves:
        if required:
            raise TargetError("the target was given with gradients=True, but no output has a gradient")
        return False
    try:
        # `grad` rather than `backward`: the user's .grad fields stay as they are.
        torch.autograd.grad(outputs, leaves, [torch.ones_like(output) for output in outputs], allow_unused=True)
    except RuntimeError as error:
        if "backward through the graph a second time" not in str(error):
            raise
        return True
    return False


def _tensors(value: Any) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _tensors(getattr(value, name))


def _leaves(outputs: list[Any]) -> Iterator[Any]:
    """The tensors that a backward of `outputs` reaches: parameters and inputs that want a gradient."""
    seen, pending = set(), [output.grad_fn for output in outputs]
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        pending.extend(following for following, _ in node.next_functions)
