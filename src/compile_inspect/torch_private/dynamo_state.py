"""Isolate Dynamo's state for a while, query it, and restore it.

Dynamo stores what it compiled on code objects. In isolation, a function that was compiled before gets a copy of its code
with nothing stored on it; what Dynamo stores on code that is new to it is removed afterward.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Dynamo puts names with the compilation's number into a module's globals: our numbers must never be used again.
_FIRST_FRAME_NUMBER, _ISOLATION_NUMBERS = 1_000_000, itertools.count(1)
_MARKS = ("_dynamo_", "_has_dynamo_dim_marking")
_IMPORTED = "__import_"


@contextlib.contextmanager
def isolate_dynamo(*, limit: int | None = None) -> Iterator[None]:
    """Compile as in a fresh process; afterward compiled code, counters and configuration are restored.

    `limit` is the recompile limit inside. Other threads wait if they want to compile.
    """
    from torch._dynamo import config, convert_frame

    changes: dict[str, Any] = {} if limit is None else {"recompile_limit": limit}
    if hasattr(config, "automatic_dynamic_local_pgo"):  # what earlier runs of the program recorded on disk
        changes |= {"automatic_dynamic_local_pgo": False, "automatic_dynamic_remote_pgo": False}
    with (
        convert_frame.compile_lock,
        config.patch(**changes),
        silence_loggers(),
        _fresh_trackers(),
        separate_frame_numbers(),
        preserve_statistics(),
        _without_new_imports(),
    ):
        yield


@contextlib.contextmanager
def _fresh_trackers() -> Iterator[None]:
    """Make Dynamo forget all code; functions that it knew get copies of theirs."""
    from torch._C._dynamo.eval_frame import reset_code
    from torch._dynamo import convert_frame

    trackers = convert_frame.input_codes, convert_frame.output_codes
    known_codes = [code for reference in trackers[0].seen if (code := reference()) is not None]
    copies = list(_with_copied_code(known_codes))
    convert_frame.input_codes, convert_frame.output_codes = convert_frame.Tracker(), convert_frame.Tracker()
    try:
        yield
    finally:
        ours = convert_frame.input_codes.seen
        convert_frame.input_codes, convert_frame.output_codes = trackers
        for function, code in copies:
            function.__code__ = code
        for reference in ours:
            code = reference()
            if code is not None and code not in trackers[0]:
                reset_code(code)


def _with_copied_code(known_codes: list[types.CodeType]) -> Iterator[tuple[types.FunctionType, types.CodeType]]:
    """Give every function that has one of these codes, or creates functions that have, a copy; yields the original."""
    if not known_codes:
        return
    code_ids, files = {id(code) for code in known_codes}, {code.co_filename for code in known_codes}
    copies: dict[int, types.CodeType] = {}
    for item in _tracked_objects():
        if type(item) is types.FunctionType and item.__code__.co_filename in files and _holds(item.__code__, code_ids):
            before = item.__code__
            item.__code__ = _copy(before, copies)
            yield item, before


def _tracked_objects() -> list[Any]:
    """Everything that the garbage collector tracks; frozen objects are not listed, so they are unfrozen for this."""
    if not gc.get_freeze_count():
        return gc.get_objects()
    gc.unfreeze()
    try:
        return gc.get_objects()
    finally:
        gc.freeze()


def _holds(code: types.CodeType, code_ids: set[int]) -> bool:
    return id(code) in code_ids or any(_holds(item, code_ids) for item in code.co_consts if isinstance(item, types.CodeType))


def _copy(code: types.CodeType, copies: dict[int, types.CodeType]) -> types.CodeType:
    """A copy with copies of nested functions; functions that share code still share it."""
    if id(code) not in copies:
        inside = tuple(_copy(item, copies) if isinstance(item, types.CodeType) else item for item in code.co_consts)
        copies[id(code)] = code.replace(co_consts=inside)
    return copies[id(code)]


@contextlib.contextmanager
def separate_frame_numbers() -> Iterator[None]:
    """Use compilation numbers that the program does not use; its own then continue as if nothing had been compiled."""
    from torch._dynamo import convert_frame

    before, counts = convert_frame.FRAME_COUNTER, dict(convert_frame.FRAME_COMPILE_COUNTER)
    convert_frame.FRAME_COUNTER = _FIRST_FRAME_NUMBER * next(_ISOLATION_NUMBERS)
    try:
        yield
    finally:
        convert_frame.FRAME_COUNTER = before
        _refill(convert_frame.FRAME_COMPILE_COUNTER, counts)


@contextlib.contextmanager
def preserve_statistics() -> Iterator[None]:
    """Restore counters, timers and recorded dynamic sizes afterward; the sizes start empty."""
    from torch._dynamo import pgo, utils

    counters = {name: dict(group) for name, group in utils.counters.items()}
    tables: list[Any] = [utils.cumulative_time_spent_ns, utils.compilation_time_metrics, utils.guard_failures]
    saved = [
        {key: (value, list(value) if isinstance(value, list) else None) for key, value in table.items()} for table in tables
    ]
    metrics, reasons, frame = list(utils._compilation_metrics), list(utils.graph_break_reasons), utils.curr_frame
    warned = set(utils.warn_once_cache)
    recorded_sizes = {name: getattr(pgo, name) for name in ("_CODE_STATE", "_INIT_CODE_STATE")}
    pgo.reset_code_state()
    for group in utils.counters.values():
        group.clear()
    try:
        yield
    finally:
        for name in list(utils.counters):
            if name in counters:
                _refill(utils.counters[name], counters[name])
            else:
                del utils.counters[name]
        for table, before in zip(tables, saved, strict=True):
            _refill(table, {key: value for key, (value, _) in before.items()})
            for value, content in before.values():
                if content is not None:
                    value[:] = content
        utils._compilation_metrics.clear()
        utils._compilation_metrics.extend(metrics)
        utils.graph_break_reasons[:] = reasons
        utils.warn_once_cache.clear()
        utils.warn_once_cache.update(warned)
        utils.curr_frame = frame
        for name, value in recorded_sizes.items():
            setattr(pgo, name, value)


def _refill(table: Any, content: dict[Any, Any]) -> None:
    table.clear()
    table.update(content)


@contextlib.contextmanager
def _without_new_imports() -> Iterator[None]:
    """Remove modules that Dynamo adds to the globals of functions it compiles, under names of its own."""
    before = {name: _imported(module) for name, module in list(sys.modules.items())}
    try:
        yield
    finally:
        for name, module in list(sys.modules.items()):
            for added in _imported(module) - before.get(name, set()):
                del vars(module)[added]


def _imported(module: Any) -> set[str]:
    namespace = getattr(module, "__dict__", None) if isinstance(module, types.ModuleType) else None
    return {name for name in list(namespace) if name.startswith(_IMPORTED) and name != "__import__"} if namespace else set()


@contextlib.contextmanager
def silence_loggers() -> Iterator[None]:
    """Hide torch's log messages about trials, such as recompile limits and failed calls, from the user."""
    loggers = [logging.getLogger(name) for name in ("torch", "torch._dynamo", "torch.fx")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def frame_counts() -> dict[int, int]:
    """The number of compilations, including failed ones, by frame number."""
    from torch._dynamo import convert_frame

    return {number: count for number, count in convert_frame.FRAME_COMPILE_COUNTER.items() if isinstance(number, int)}


class CallEnded(BaseException):
    """Ends a call before a graph that need not run; no `except Exception` in the program catches it."""


class GraphRecorder:
    """A backend that records which of its graphs are called; another backend compiles them, or none does.

    Graphs of compilations in `enough` are not run: the call ends there.
    """

    def __init__(self, backend: str | Callable[..., Any] | None = None, **options: Any) -> None:
        self._backend = backend
        self._options = options
        self.compiled: list[str] = []
        self.used_compilations: list[str] = []
        self.enough: set[str] = set()

    def __call__(self, graph: Any, inputs: list[Any], **more: Any) -> Callable[..., Any]:
        """Called by Dynamo with a graph that it has traced."""
        from torch._guards import CompileContext

        identifier = str(CompileContext.current_compile_id())
        self.compiled.append(identifier)
        compiled = self._compile(graph, inputs)

        def run(*args: Any) -> Any:
            self.used_compilations.append(identifier)
            if identifier in self.enough:
                raise CallEnded
            return compiled(*args)

        return run

    def _compile(self, graph: Any, inputs: list[Any]) -> Callable[..., Any]:
        from torch._dynamo.backends.registry import lookup_backend

        if self._backend is None:
            forward: Callable[..., Any] = graph.forward
            return forward
        backend = lookup_backend(self._backend) if isinstance(self._backend, str) else self._backend
        compiled: Callable[..., Any] = backend(graph, inputs, **self._options)
        return compiled


def covers_whole_call(identifier: str) -> bool:
    """Whether a compilation is_covered a whole call: Dynamo met no other function outside torch and no graph break, and the
    compiled code changes no Python object. False where this torch has no such information.
    """
    import torch
    from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list
    from torch._dynamo import convert_frame, utils

    side_effects_of = getattr(convert_frame, "get_compiled_code_side_effects", None)
    if side_effects_of is None or any(utils.counters["graph_break"].values()):
        return False
    library = str(Path(torch.__file__).parent)
    is_covered = False
    for code in [code for reference in convert_frame.input_codes.seen if (code := reference()) is not None]:
        versions = {str(entry.compile_id): entry.code for entry in _debug_get_cache_entry_list(code)}
        if identifier in versions:
            is_covered = side_effects_of(versions[identifier]) == ()
        elif not code.co_filename.startswith(library):
            return False
    return is_covered


def is_compiled(function: Any) -> bool:
    """Whether torch.compile made a function. torch.compiler.disable's result looks alike, but can still be compiled."""
    if type(function).__name__ == "OptimizedModule":
        return type(function.dynamo_ctx).__name__ != "DisableContext"
    return hasattr(function, "_torchdynamo_orig_callable") and not getattr(function, "_torchdynamo_disable", False)


def original_function(function: Any) -> Any:
    """The function or module behind a compiled one; other functions as they are."""
    if type(function).__name__ == "OptimizedModule":
        return function._orig_mod
    return getattr(function, "_torchdynamo_orig_callable", function)


def copy_marks(source: Any, copy: Any) -> Any:
    """Copy a tensor's Dynamo marks, such as a dynamic dimension, to another tensor; returns the other."""
    for name, value in vars(source).items():
        if name.startswith(_MARKS):
            setattr(copy, name, value.copy() if hasattr(value, "copy") else value)
    return copy


def mark_dynamic(tensor: Any, dimension: int, *, firmly: bool) -> None:
    """Mark a dimension of a tensor as dynamic: `firmly`, so that Dynamo raises if it cannot be, or as a hint."""
    import torch._dynamo

    if firmly:
        torch._dynamo.mark_dynamic(tensor, dimension)
    else:
        torch._dynamo.maybe_mark_dynamic(tensor, dimension)
