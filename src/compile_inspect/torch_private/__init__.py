"""The only package that imports torch's private parts.

Everything that the recorder needs of `torch._dynamo`, `torch._inductor`, `torch._functorch`, `torch._guards` and
`torch._logging` is reached through the functions below, so a change in torch affects one place. Nothing is imported that
the program has not imported itself: a hooked function is wrapped once its module is imported.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from compile_inspect.torch_private.bisection import DECOMPOSITIONS as DECOMPOSITIONS
from compile_inspect.torch_private.bisection import LOWERINGS as LOWERINGS
from compile_inspect.torch_private.bisection import PASSES as PASSES
from compile_inspect.torch_private.bisection import CompilerPart as CompilerPart
from compile_inspect.torch_private.bisection import GraphNode as GraphNode
from compile_inspect.torch_private.bisection import close_transforms as close_transforms
from compile_inspect.torch_private.bisection import leave_out as leave_out
from compile_inspect.torch_private.compilers import LOAD_PACKAGE as LOAD_PACKAGE
from compile_inspect.torch_private.compilers import clear_workspaces as clear_workspaces
from compile_inspect.torch_private.compilers import compile_graph as compile_graph
from compile_inspect.torch_private.compilers import cpp_compiler as cpp_compiler
from compile_inspect.torch_private.compilers import die_with_parent as die_with_parent
from compile_inspect.torch_private.compilers import explain as explain
from compile_inspect.torch_private.compilers import flatten as flatten
from compile_inspect.torch_private.compilers import forbids_forks as forbids_forks
from compile_inspect.torch_private.compilers import has_triton as has_triton
from compile_inspect.torch_private.compilers import import_compilers as import_compilers
from compile_inspect.torch_private.compilers import is_tensor as is_tensor
from compile_inspect.torch_private.compilers import load_package as load_package
from compile_inspect.torch_private.compilers import package_program as package_program
from compile_inspect.torch_private.compilers import replay_function as replay_function
from compile_inspect.torch_private.compilers import save_program as save_program
from compile_inspect.torch_private.compilers import single_threaded as single_threaded
from compile_inspect.torch_private.compilers import storage_uses as storage_uses
from compile_inspect.torch_private.compilers import stream_waiter as stream_waiter
from compile_inspect.torch_private.compilers import suppressed_compiler_output as suppressed_compiler_output
from compile_inspect.torch_private.compilers import trace as trace
from compile_inspect.torch_private.compilers import unflatten as unflatten
from compile_inspect.torch_private.compilers import write_package as write_package
from compile_inspect.torch_private.configuration import forget_compiled_code as forget_compiled_code
from compile_inspect.torch_private.configuration import preserve_configuration as preserve_configuration
from compile_inspect.torch_private.configuration import run_setting as run_setting
from compile_inspect.torch_private.dispatch_state import dispatch_depth as dispatch_depth
from compile_inspect.torch_private.dispatch_state import driver_version as driver_version
from compile_inspect.torch_private.dispatch_state import forward_mode as forward_mode
from compile_inspect.torch_private.tour import cache_folder as cache_folder
from compile_inspect.torch_private.tour import fresh_stance as fresh_stance
from compile_inspect.torch_private.tour import mode_settings as mode_settings
from compile_inspect.torch_private.tour import registered_backend as registered_backend

TRACE_LOGGER = "torch.__trace"
# The range that the test suite covers. Outside this range, hooks are still installed.
OLDEST_TESTED = (2, 11)
NEWEST_TESTED = (2, 15)

Observer = Callable[[tuple[Any, ...], dict[str, Any], Any], None]


def torch_version() -> tuple[int, int]:
    """The installed torch as (major, minor)."""
    import torch

    major, minor = torch.__version__.split(".")[:2]
    return int(major), int("".join(character for character in minor if character.isdigit()) or 0)


def is_known_version() -> bool:
    """Whether the recorder was tested with this torch."""
    return OLDEST_TESTED <= torch_version() <= NEWEST_TESTED


def known_versions() -> tuple[tuple[int, int], tuple[int, int]]:
    """The oldest and the newest torch that the recorder was tested with."""
    return OLDEST_TESTED, NEWEST_TESTED


@dataclass(frozen=True)
class HookPoint:
    """A function of torch, by module and dotted attribute, for example `torch._inductor.graph:GraphLowering.run`."""

    module: str
    attribute: str

    def __str__(self) -> str:
        return f"{self.module}:{self.attribute}"


LOG_GRAPH_BREAK = HookPoint("torch._dynamo.symbolic_convert", "InstructionTranslatorBase.log_graph_break")
TRACE = HookPoint("torch._logging._internal", "trace_structured")
COMPILE_FRAME = HookPoint("torch._dynamo.convert_frame", "compile_frame")
EXCEEDS_LIMIT = HookPoint("torch._dynamo.cache_size", "exceeds_recompile_limit")
RECOMPILE_REASONS = HookPoint("torch._dynamo.guards", "get_and_maybe_log_recompilation_reasons")
BUILD_GUARDS = HookPoint("torch._dynamo.guards", "CheckFunctionManager.__init__")
CALL_BACKEND = HookPoint("torch._dynamo.output_graph", "OutputGraph.call_user_compiler")
LOG_JOINT = HookPoint("torch._functorch._aot_autograd.graph_compile", "_log_joint_graph")
LOG_PARTITIONED = HookPoint("torch._functorch._aot_autograd.graph_compile", "_log_fw_bw_graphs")
TRACE_INFERENCE = HookPoint("torch._functorch._aot_autograd.graph_capture", "aot_dispatch_base_graph")
LOWER_GRAPH = HookPoint("torch._inductor.graph", "GraphLowering.run")
PLACE_KERNEL = HookPoint("torch._inductor.debug", "set_kernel_post_grad_provenance_tracing")
WHY_NOT_FUSED = HookPoint("torch._inductor.scheduler", "WhyNoFuse.__call__")
ESTIMATE_MEMORY = HookPoint("torch._inductor.memory", "estimate_peak_memory")
SKIP_CUDA_GRAPH = HookPoint("torch._inductor.cudagraph_utils", "log_cudagraph_skip_and_bump_counter")
FINISH_GRAPH = HookPoint("torch._inductor.output_code", "CompiledFxGraph.post_compile")
RECORD_CUDA_GRAPH = HookPoint("torch._inductor.cudagraph_trees", "CUDAGraphTreeManager.record_function")


class Hook:
    """A hook on one function of torch: a wrapper that passes its calls to an observer.

    The wrapper calls the original with the same arguments and returns or raises what the original returned or raised.
    Functions that other modules imported by name are replaced there too, and restored on removal.
    """

    def __init__(self, point: HookPoint, observer: Observer, *, before: bool = False, failed: Observer | None = None) -> None:
        self.point = point
        self._observer = observer
        self._failed = failed
        self._before = before
        self._original: Any = None
        self._wrapper: Any = None

    @property
    def installed(self) -> bool:
        """Whether the wrapper is in place."""
        return self._wrapper is not None

    @property
    def ready(self) -> bool:
        """Whether the program has imported the module that defines the function."""
        module = sys.modules.get(self.point.module)
        # A module that is still being imported may not have defined the function yet.
        specification = getattr(module, "__spec__", None)
        return module is not None and not getattr(specification, "_initializing", False)

    def install(self) -> None:
        """Install the wrapper; raises AttributeError where this torch has no such function."""
        owner, name = self._owner()
        original = getattr(owner, name)
        self._original, self._wrapper = original, self._wrap(original)
        setattr(owner, name, self._wrapper)
        if isinstance(owner, ModuleType):
            _replace_imported(name, original, self._wrapper)

    def remove(self) -> None:
        """Restore the original, unless something else has replaced the function since."""
        if self._wrapper is None:
            return
        owner, name = self._owner()
        if getattr(owner, name) is self._wrapper:
            setattr(owner, name, self._original)
        if isinstance(owner, ModuleType):
            _replace_imported(name, self._wrapper, self._original)
        self._original = self._wrapper = None

    def _owner(self) -> tuple[Any, str]:
        owner: Any = sys.modules[self.point.module]
        *path, name = self.point.attribute.split(".")
        for part in path:
            owner = getattr(owner, part)
        return owner, name

    def _wrap(self, original: Any) -> Any:
        observer, failed, before = self._observer, self._failed, self._before
        # Dynamo must not trace what the observer calls: the hook is active when a backward runs inside compiled code. The
        # wrapper sets the switch itself because Dynamo would first trace any function of ours that did it.
        switch = _eval_frame_switch()

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if before:
                visited = switch(None)
                try:
                    observer(args, kwargs, None)
                finally:
                    switch(visited)
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                # Keep tracebacks as they are without the hook: a bare raise does not add this frame again.
                error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ else None
                if failed is not None:
                    failed(args, kwargs, error)
                raise
            if not before:
                visited = switch(None)
                try:
                    observer(args, kwargs, result)
                finally:
                    switch(visited)
            return result

        _disguise(wrapper, original)
        return wrapper


def _disguise(wrapper: Any, original: Any) -> None:
    """Give the wrapper's code the name and file of the original's.

    Dynamo skips frames by their file: it would try to trace the wrapper when a backward runs inside compiled code. And
    stacks that torch logs then name torch's own file, as they do without the hook.
    """
    code = getattr(original, "__code__", None)
    if code is not None:
        wrapper.__code__ = wrapper.__code__.replace(
            co_filename=code.co_filename, co_name=code.co_name, co_firstlineno=code.co_firstlineno
        )


def _replace_imported(name: str, old: Any, new: Any) -> None:
    """Replace `old` by `new` in every torch module that did `from … import name`."""
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("torch.") and isinstance(module, ModuleType) and module.__dict__.get(name) is old:
            setattr(module, name, new)


def torch_writes_a_trace() -> bool:
    """Whether torch itself writes its structured events to a file."""
    trace_folder = os.environ.get("TORCH_TRACE") or os.environ.get("TORCH_DTRACE")
    return bool(trace_folder or os.environ.get("TORCH_COMPILE_DEBUG", "0") == "1")


def add_trace_handler(handler: logging.Handler) -> None:
    """Let `handler` receive every structured event of torch.

    It goes first: torch's own handler may remove itself from the list during an event, and a handler behind it would miss
    that event.
    """
    logger = logging.getLogger(TRACE_LOGGER)
    if handler not in logger.handlers:
        logger.handlers.insert(0, handler)


def remove_trace_handler(handler: logging.Handler) -> None:
    """Undo `add_trace_handler`."""
    logging.getLogger(TRACE_LOGGER).removeHandler(handler)


def _eval_frame_switch() -> Callable[[Any], Any]:
    """The function that sets which frames Dynamo traces, and returns the previous setting."""
    module = sys.modules.get("torch._C._dynamo.eval_frame")
    return module.set_eval_frame if module is not None else _no_switch  # type: ignore[no-any-return]


def _no_switch(callback: Any) -> None:
    return None


def interned_strings() -> dict[int, str]:
    """The file names that torch's structured events refer to by number."""
    module = sys.modules.get("torch._logging.structured")
    table = getattr(module, "INTERN_TABLE", {}) if module is not None else {}
    return {number: text for text, number in table.items()}


def compile_id() -> str | None:
    """The id of the compilation under way in this thread, such as `0/1`."""
    guards = sys.modules.get("torch._guards")
    if guards is None:
        return None
    current = guards.CompileContext.current_compile_id()
    return None if current is None else str(current)


def attempt() -> int | None:
    """Which attempt at the current compilation this thread is in: Dynamo starts again after some breaks."""
    guards = sys.modules.get("torch._guards")
    current = guards.CompileContext.current_trace_id() if guards is not None else None
    return None if current is None else int(current.attempt)


def graph_break_identifier(kind: str) -> tuple[str | None, str | None]:
    """The `GB…` id of a kind of graph break, and the page that documents it, as far as torch has them."""
    exceptions = sys.modules.get("torch._dynamo.exc")
    if exceptions is None:
        return None, None
    identifier = exceptions._load_gb_type_to_gb_id_map().get(kind)
    link = exceptions.get_gbid_documentation_link(kind)
    return (str(identifier) if identifier else None), (str(link) if link else None)


def tracing_stack() -> Any:
    """The user's stack at the point Dynamo is tracing."""
    return sys.modules["torch._guards"].TracingContext.extract_stack()


def traced_stacks(translator: Any) -> list[str]:
    """The stacks of the operations that a Dynamo translator has put into its graph so far, as Python prints them."""
    nodes = translator.output.graph.nodes
    return [node.stack_trace for node in nodes if node.op.startswith("call") and node.stack_trace]


def current_lowering() -> Any:
    """The `GraphLowering` that Inductor is working on in this thread, or None."""
    virtualized = sys.modules.get("torch._inductor.virtualized")
    if virtualized is None:
        return None
    graph = virtualized.V.graph
    # Outside a lowering, V.graph is a placeholder object without a module.
    return graph if hasattr(graph, "graph_id") and hasattr(graph, "module") else None


def root_lowering(graph: Any) -> tuple[Any, str]:
    """The outermost lowering around a nested one (a branch of `torch.cond`, say), and the path down to it."""
    path = []
    while getattr(graph, "parent", None) is not None:
        path.append(str(getattr(graph, "name", "") or "subgraph"))
        graph = graph.parent
    return graph, "/".join(reversed(path))


def cuda_graphs_requested() -> bool:
    """Whether Inductor's configuration asks for CUDA graphs right now."""
    inductor_config = sys.modules.get("torch._inductor.config")
    return bool(inductor_config is not None and inductor_config.triton.cudagraphs)


@contextlib.contextmanager
def without_graph_caches() -> Iterator[None]:
    """Compile graphs anew instead of loading them, so that Inductor's scheduler can be hooked; kernels stay cached."""
    import torch._functorch.config
    import torch._inductor.config

    with (
        torch._inductor.config.patch(fx_graph_cache=False),
        torch._functorch.config.patch(enable_autograd_cache=False),
    ):
        yield


# The same as environment variables, for another process.
WITHOUT_GRAPH_CACHES = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}


def set_by_dynamic() -> frozenset[str]:
    """Settings that `torch.compile(dynamic=...)` switches while the current call runs: they are not the program's."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "compile_wrapper" and frame.f_code.co_filename.endswith("eval_frame.py"):
            dynamic = getattr(frame.f_locals.get("self"), "_dynamic", None)
            names: dict[Any, tuple[str, ...]] = {True: ("assume_static_by_default",), False: ("automatic_dynamic_shapes",)}
            return frozenset(f"torch._dynamo.config.{name}" for name in names.get(dynamic, ()))
        frame = frame.f_back  # type: ignore[assignment]
    return frozenset()


def changed_configuration() -> Iterator[tuple[str, Any]]:
    """Every setting of Dynamo, AOTAutograd and Inductor that the program has changed from its default."""
    set_by_torch = set_by_dynamic()
    for module_name in ("torch._dynamo.config", "torch._functorch.config", "torch._inductor.config"):
        module: Any = sys.modules.get(module_name)
        if module is None or not hasattr(module, "_is_default"):
            continue
        for name in sorted(module._config):
            # Aliases have no value of their own, and one broken setting must not hide the others.
            try:
                if module._is_default(name) or f"{module_name}.{name}" in set_by_torch:
                    continue
                value = getattr(module, name)
                # Torch also reports settings as changed that were switched temporarily and restored.
                if value != module._config[name].default:
                    yield f"{module_name}.{name}", value
            except Exception as error:
                yield f"{module_name}.{name}", f"could not be read: {error!r}"


def recompile_limit(name: str) -> int | None:
    """The value of one of Dynamo's recompile limits."""
    value = getattr(sys.modules.get("torch._dynamo.config"), name, None)
    return value if isinstance(value, int) else None
