"""Capture one call of a function as one graph with Dynamo: the graph, its guard, and what was read.

The function is called from a small caller whose code object is new for every capture. Dynamo stores its results on that
code object, and nothing on the user's code. Dynamo options that skip guards are off during the capture.
"""

from __future__ import annotations

import contextlib
import dis
import linecache
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from compile_inspect.errors import InspectError
from compile_inspect.torch_private import dynamo_state, guard_tree
from compile_inspect.torch_private.guard_shortcut import Shortcut

_COMPILED_PREFIX = "__compiled_fn"
_FILE = "<captured call>"
_UNGUARDED_ATTRIBUTES = ("_version",)
"""Attributes of tensors that Dynamo treats as constants."""
_STRICT_SETTINGS = {
    "skip_nnmodule_hook_guards": False,
    "skip_fsdp_guards": False,
    "skip_no_tensor_aliasing_guards_on_parameters": False,
    "skip_tensor_guards_with_matching_dict_tags": False,
    "assume_dunder_attributes_remain_unchanged": False,
    "use_recursive_dict_tags_for_guards": False,
    "skip_guards_on_constant_func_defaults": False,
    "guard_nn_modules": True,
    "automatic_dynamic_local_pgo": False,
    "automatic_dynamic_remote_pgo": False,
    "capture_scalar_outputs": False,
    "capture_dynamic_output_shape_ops": False,
}


class NotOneGraphError(InspectError):
    """Dynamo cannot capture a call as one graph without side effects; the message is the reason, in one line."""


@dataclass(frozen=True)
class GuardedFact:
    """One guarded fact: the source of a value, what Dynamo guards about it, and the value."""

    name: str
    kind: str
    value: Any
    is_stable: bool = True
    """Whether a second lookup gives the same object."""

    @property
    def is_call_input(self) -> bool:
        """Whether the value is part of the call's inputs."""
        return _is_call_input(self.name)


@dataclass(frozen=True)
class Fullgraph:
    """A call as one graph.

    `sources` are Python expressions of `function`, `args` and `kwargs` for every input of the graph; `inputs` are their
    values. `check(scope)` is Dynamo's guard, where `scope` is `{"function": …, "args": …, "kwargs": …}`.
    """

    graph: Any
    sources: tuple[str, ...]
    inputs: tuple[Any, ...]
    reads: tuple[GuardedFact, ...]
    traced_codes: tuple[types.CodeType, ...]
    root: Any
    """Dynamo's tree of guards."""
    identity_guarded: frozenset[int]
    """Positions of graph inputs that the guard requires to be the very same tensor objects."""
    code: types.CodeType
    globals: dict[str, Any]
    closure: tuple[types.CellType, ...]

    def check(self, scope: dict[str, Any]) -> bool:
        """Whether the graph is valid for a call."""
        return bool(self.root.check(scope))

    def explain(self, scope: dict[str, Any]) -> str:
        """The first guard that does not hold for a call; empty if all hold."""
        return guard_tree.first_failure(self.root, scope)

    def shortcut(self, surroundings: Any, scope: dict[str, Any], often_assigned: Iterable[int] = ()) -> Shortcut:
        """A quicker check, valid as long as nothing is assigned; `check` must hold for the call."""
        return Shortcut(self, surroundings, _names_in(scope, self.globals), often_assigned)

    def bind(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """The function with `compiled` in place of the graph; Dynamo's code looks up inputs and builds results."""
        name = next(name for name in self.code.co_names if name.startswith(_COMPILED_PREFIX))
        return types.FunctionType(self.code, self.globals | {name: compiled}, "bound", None, self.closure)


class _StopCall(BaseException):
    """Ends the first call before its graph runs: nothing of the program is computed."""


def capture_fullgraph(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, grad_mode: bool
) -> Fullgraph:
    """Capture one call without running it; raises `NotOneGraphError` if it is not a single graph without side effects."""
    import torch
    from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list

    caller = _caller(function)
    record = _CompilationRecord()
    with _strict_compilation(), torch.set_grad_enabled(grad_mode):
        compiled = torch.compile(caller, backend=record.backend, fullgraph=True, dynamic=False)
        try:
            compiled(*args, **kwargs)
        except _StopCall:
            pass
        except Exception as error:
            raise NotOneGraphError(_reason(error)) from error
        if record.graph is None:
            raise NotOneGraphError("it computes nothing with tensors, or torch.compile is disabled")
    if record.effects:
        raise NotOneGraphError(f"it has side effects: {', '.join(dict.fromkeys(record.effects))}")
    if any(name in code.co_names for code in record.traced_codes for name in _UNGUARDED_ATTRIBUTES):
        raise NotOneGraphError(f"it reads {' or '.join(_UNGUARDED_ATTRIBUTES)} of a tensor, which no guard covers")
    entries = _debug_get_cache_entry_list(caller.__code__)
    if len(entries) != 1:
        raise NotOneGraphError("Dynamo stored no guard for it")
    entry = entries[0]
    manager = entry.guard_manager
    captured = _collect(entry.code, caller, args, kwargs)
    held_tensors = {
        source: tensor for source, tensor in zip(record.sources, captured, strict=True) if not _is_call_input(source)
    }
    scope = {"function": function, "args": args, "kwargs": kwargs}
    reads = tuple(_guarded_facts(record.guards, scope, caller.__globals__))
    _refuse_shared(args, kwargs, reads, record.traced_codes)
    identity_guarded = guard_tree.add_exact_guards(manager.root, reads, held_tensors)
    guard_tree.guard_restored_attributes(manager.root, record.restored)
    fullgraph = Fullgraph(
        record.graph,
        tuple(_expression(source) for source in record.sources),
        captured,
        reads,
        tuple(dict.fromkeys(record.traced_codes)),
        manager.root,
        frozenset(position for position, source in enumerate(record.sources) if source in identity_guarded),
        entry.code,
        caller.__globals__,
        caller.__closure__ or (),
    )
    with torch.set_grad_enabled(grad_mode):
        if not fullgraph.check(scope):
            raise NotOneGraphError(f"its guard does not hold for the call it was made from: {fullgraph.explain(scope)}")
    return fullgraph


def _refuse_shared(args: Any, kwargs: Any, reads: tuple[GuardedFact, ...], traced: list[types.CodeType]) -> None:
    """Refuse a call with a tensor that the function also reads by itself: Dynamo treats the two as one, without a guard."""
    from torch import Tensor
    from torch.utils._pytree import tree_leaves

    call_inputs = {id(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
    instructions = [instruction for code in set(traced) for instruction in dis.get_instructions(code)]
    attributes = {str(item.argval) for item in instructions if item.opname in ("LOAD_ATTR", "LOAD_METHOD")}
    names = {str(item.argval) for item in instructions if item.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for read in reads:
        if read.is_call_input:
            continue
        namespace = getattr(read.value, "__dict__", None)
        mentioned = names | attributes if isinstance(read.value, types.ModuleType) else attributes
        shared = [name for name in mentioned if type(namespace) is dict and id(namespace.get(name)) in call_inputs]
        if shared:
            raise NotOneGraphError(f"an input is the same tensor that it reads as {shared[0]}; tune it with another one")


class _CompilationRecord:
    """What Dynamo exposes while it compiles."""

    def __init__(self) -> None:
        self.graph: Any = None
        self.sources: list[str] = []
        self.guards: list[tuple[str, str]] = []
        """Source and kind of every guard."""
        self.restored: list[tuple[dict[str, Any], str, Any]] = []
        """Attributes that the call sets to their present value: owner, name, value."""
        self.traced_codes: list[types.CodeType] = []
        self.effects: list[str] = []

    def backend(self, graph: Any, _: Any) -> Callable[..., Any]:
        from torch._dynamo.symbolic_convert import InstructionTranslator

        output = InstructionTranslator.current_tx().output  # type: ignore[no-untyped-call]
        self.graph = graph
        self.traced_codes = list(output.tracing_context.traced_code)
        self.effects = list(_side_effects(output, self.restored))
        self.guards = sorted({(_name(guard.originating_source), guard.create_fn_name()) for guard in output.guards})
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                source = getattr(node, "_dynamo_source", None)
                self.sources.append("" if source is None else _name(source))

        def stop(*_: Any) -> Any:
            raise _StopCall

        return stop


def _name(source: Any) -> str:
    name = source.name
    return str(name() if callable(name) else name)


def _side_effects(output: Any, restored: list[tuple[dict[str, Any], str, Any]]) -> Iterator[str]:
    """Dynamo's changes to Python objects after the graph, as text; those that change nothing go to `restored`."""
    if output.random_calls:
        yield "it draws from Python's random"
    effects = output.side_effects
    if effects.tensor_hooks:
        yield "it registers hooks on tensors"
    for variable in effects._get_modified_vars():
        if type(getattr(variable, "mutation_type", None)).__name__.endswith("New"):
            continue  # created by the call itself
        unchanged = _unchanged_attributes(effects, variable)
        if unchanged is not None:
            restored += unchanged
            continue
        source = getattr(variable, "source", None)
        owner = "an object" if source is None else readable(_name(source))
        names = list(effects.store_attr_mutations.get(variable) or ())
        yield f"it changes {owner}" if not names else f"it sets {', '.join(names)} of {owner}"


def _unchanged_attributes(effects: Any, variable: Any) -> list[tuple[dict[str, Any], str, Any]] | None:
    """The attributes that a call sets on an object, if all of them keep their value; None if one does not."""
    owner = getattr(getattr(variable, "value", None), "__dict__", None)
    mutations = effects.store_attr_mutations.get(variable)
    if type(owner) is not dict or not mutations or _content_changed(effects, variable):
        return None
    unchanged = []
    for name, value in mutations.items():
        if not value.is_python_constant() or name not in owner:
            return None
        constant = value.as_python_constant()
        if type(constant) is not type(owner[name]) or repr(constant) != repr(owner[name]):
            return None
        unchanged.append((owner, name, constant))
    return unchanged


def _content_changed(effects: Any, variable: Any) -> bool:
    """Whether an object that is also a dictionary, list or tuple had its contents changed."""
    test = getattr(variable, "is_base_vt_modified", None)
    if test is not None:
        return bool(test(effects))
    parts = [getattr(variable, name, None) for name in ("_dict_vt", "_list_vt", "_set_vt", "_tuple_vt")]
    return any(part is not None and effects.is_modified(part) for part in parts)


def _guarded_facts(guards: list[tuple[str, str]], scope: dict[str, Any], names: dict[str, Any]) -> Iterator[GuardedFact]:
    """The guarded facts with their values, looked up as Dynamo does."""
    known = _names_in(scope, names)
    for name, kind in guards:
        try:
            # A source is an expression that Dynamo wrote for its own guards.
            value, second_value = (eval(name, known) if name else None for _ in range(2))
            yield GuardedFact(name, kind, value, value is second_value)
        except Exception:
            yield GuardedFact(name, kind, None, is_stable=False)


def _names_in(scope: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """The values of the names in Dynamo's sources for a call."""
    from torch._dynamo import guards

    return {"L": scope, "G": names, **guards._get_closure_vars()}


def _caller(function: Callable[..., Any]) -> types.FunctionType:
    """A function that calls another one, with separate code and globals."""
    import builtins

    def caller(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    # In a separate file too, because Dynamo may skip this one. It must have lines, or torch calls it through a function
    # that all such callers share.
    lines = ["def caller(*args, **kwargs):\n", "    return function(*args, **kwargs)\n"]
    linecache.cache[_FILE] = (sum(map(len, lines)), None, lines, _FILE)
    code = caller.__code__.replace(co_filename=_FILE, co_firstlineno=1)
    return types.FunctionType(code, {"__builtins__": builtins, "__name__": "captured_call"}, "caller", None, caller.__closure__)


@contextlib.contextmanager
def _strict_compilation() -> Iterator[None]:
    from torch._dynamo import config, convert_frame

    known: dict[str, Any] = {name: value for name, value in _STRICT_SETTINGS.items() if hasattr(config, name)}
    with (
        convert_frame.compile_lock,
        config.patch(**known),
        dynamo_state.silence_loggers(),
        dynamo_state.separate_frame_numbers(),
        dynamo_state.preserve_statistics(),
        _without_marks(),
    ):
        yield


@contextlib.contextmanager
def _without_marks() -> Iterator[None]:
    """Skip guards on marks of dynamic dimensions: all shapes are guarded anyway, and the marks take half of the time."""
    from torch._C._dynamo import guards

    name = "add_dimension_marking_guard"
    if not hasattr(guards.GuardManager, name):
        yield
        return
    before = getattr(guards.GuardManager, name)
    setattr(guards.GuardManager, name, lambda *_: None)
    try:
        yield
    finally:
        setattr(guards.GuardManager, name, before)


def _collect(code: types.CodeType, caller: types.FunctionType, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """The inputs of the graph, as looked up by Dynamo's code."""
    call_inputs: list[Any] = []

    def receive(*inputs: Any) -> Any:
        call_inputs.extend(inputs)
        raise _StopCall

    name = next(name for name in code.co_names if name.startswith(_COMPILED_PREFIX))
    with contextlib.suppress(_StopCall):
        types.FunctionType(code, caller.__globals__ | {name: receive}, "collect", None, caller.__closure__)(*args, **kwargs)
    return tuple(call_inputs)


def _is_call_input(source: str) -> bool:
    return source.startswith(("L['args']", "L['kwargs']"))


def _expression(source: str) -> str:
    """A Dynamo source as an expression of `function`, `args` and `kwargs`; empty if it is not one.

    >>> _expression("L['args'][0].mask")
    'args[0].mask'
    >>> _expression("___from_numpy(L['args'][0])")
    ''
    """
    for name in ("args", "kwargs", "function"):
        if source.startswith(f"L['{name}']"):
            return source.replace(f"L['{name}']", name)
    return ""


def readable(text: str) -> str:
    """A guard's text with the names of the user's program.

    >>> readable("L['function'].scale == 2.0")
    'scale == 2.0'
    >>> readable("G['__import_my_dot_models'].GAIN")
    'my.models.GAIN'
    """
    import re

    text = re.sub(r"G\['__import_([A-Za-z0-9_]+)'\]", lambda match: match[1].replace("_dot_", "."), text)
    text = re.sub(r"G\['([A-Za-z0-9_]+)'\]", r"\1", text)
    text = text.replace("L['function'].", "").replace("L['function']", "the function")
    return text.replace("L['args']", "args").replace("L['kwargs']", "kwargs")


def _reason(error: BaseException) -> str:
    """Why Dynamo gave up, in one line, with the user's line if it is known."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    explanation = next((line.partition(":")[2].strip() for line in lines if line.startswith("Explanation:")), "")
    text = f"{text}: {explanation}" if explanation and explanation not in text else text
    location = ""
    for frame in reversed(list(getattr(error, "real_stack", None) or ())):
        if frame.filename != _FILE:
            location = f" ({frame.filename}:{frame.lineno})"
            break
    return f"Dynamo cannot capture it as one graph: {text[:240]}{location}"
