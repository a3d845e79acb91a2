"""The connection between torch's hooks and the journals, shared by all recordings of a process."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from time import time
from typing import TYPE_CHECKING, Any

from compile_inspect import torch_private
from compile_inspect.journal import Event, Journal

if TYPE_CHECKING:
    from compile_inspect.capture.collectors.base import Collector

# A collector that fails usually does so for every graph; a few reports are enough.
MAX_REPORTED_FAILURES = 3
# Torch's events that carry their name in their content.
_EVENTS_NAMED_BY_CONTENT = ("artifact", "graph_dump")


class Tap:
    """Sends the events of the collectors to all journals that listen.

    Hooks are installed only while there is a listener. Exceptions inside a collector are caught here, recorded as missing
    evidence, and never reach the program.
    """

    def __init__(self, collector_types: Iterable[type[Collector]]) -> None:
        self._collector_types = tuple(collector_types)
        self._collectors: list[Collector] = []
        self._listeners: list[_Listener] = []
        self._pending_hooks: list[tuple[Collector, torch_private.Hook]] = []
        self._installed_hooks: list[torch_private.Hook] = []
        self._trace_hooks: list[torch_private.Hook] = []
        self._handler = _TraceHandler(self)
        self._failures: Counter[str] = Counter()
        self._stacks: dict[Any, int] = {}
        self._definitions: list[Any] = []
        self._lock = threading.RLock()
        self._version_checked = False
        self._module_count = 0
        self._started_ids: set[str | None] = set()
        self._resets = 0

    def add(self, journal: Journal) -> None:
        """Start sending events to `journal`."""
        with self._lock:
            is_first = not self._listeners
            self._listeners = [*self._listeners, _Listener(journal)]
            if is_first:
                self._open()
            else:
                for collector in self._collectors:
                    self.guard(collector, collector.on_listener)

    def remove(self, journal: Journal) -> None:
        """Stop sending events to `journal`, after the collectors have written their pending events."""
        with self._lock:
            for collector in self._collectors:
                self.guard(collector, collector.flush)
            self._listeners = [listener for listener in self._listeners if listener.journal is not journal]
            if not self._listeners:
                self._close()

    def forget(self, journal: Journal) -> None:
        """Drop a journal without writing to it: a forked child must not touch its parent's file."""
        self._lock = threading.RLock()
        self._listeners = [listener for listener in self._listeners if listener.journal is not journal]
        if not self._listeners:
            self._close()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Send no events to the current journals inside the block, and continue afterward."""
        with self._lock:
            listeners, started_ids, resets = self._listeners, set(self._started_ids), self._resets
            stacks, definitions = dict(self._stacks), list(self._definitions)
            if listeners:
                for collector in self._collectors:
                    self.guard(collector, collector.flush)
                self._listeners = []
                self._close()
        try:
            yield
        finally:
            with self._lock:
                if listeners:
                    self._open()
                    self._listeners = listeners
                    self._started_ids, self._resets = started_ids, resets
                    self._stacks, self._definitions = stacks, definitions

    def emit(self, kind: str, data: Event, *, compilation: str | None = None, stacks: Iterable[int] = ()) -> None:
        """Write one event to every journal, preceded by the stacks it refers to."""
        event = {
            "kind": kind,
            "compilation": self._qualified(compilation if compilation is not None else torch_private.compile_id()),
            "attempt": torch_private.attempt(),
            "time": time(),
            "thread": threading.get_ident(),
            **data,
        }
        for listener in self._listeners:
            for index in stacks:
                if index not in listener.stacks:
                    listener.stacks.add(index)
                    listener.journal.append({"kind": "stack", "index": index, "stack": self._definitions[index]})
            listener.journal.append(event)

    def begin_compilation(self, identifier: str | None) -> None:
        """A compilation starts; if its id was already used, `torch._dynamo.reset` has restarted torch's numbering."""
        if identifier in self._started_ids:
            self._started_ids.clear()
            self._resets += 1
        self._started_ids.add(identifier)

    def _qualified(self, identifier: str | None) -> str | None:
        """A compile id that is unique in the recording: `0/1`, and after a reset `0/1@1`."""
        return identifier if identifier is None or not self._resets else f"{identifier}@{self._resets}"

    def intern(self, stack: str | tuple[tuple[str, int, str, str], ...]) -> int:
        """The index of a stack, given as text in Python's format or as (file, line, function, code) rows."""
        with self._lock:
            index = self._stacks.get(stack)
            if index is None:
                index = self._stacks[stack] = len(self._definitions)
                self._definitions.append(stack)
            return index

    def guard(self, collector: Collector, action: Callable[..., None], *arguments: Any) -> None:
        """Run part of a collector; if it raises, report missing evidence and continue."""
        self._protect(collector.name, action, *arguments)

    def report_missing(self, collector: str, reason: str) -> None:
        """Record that evidence could not be collected."""
        self._failures[collector] += 1
        if self._failures[collector] <= MAX_REPORTED_FAILURES:
            self.emit("missing", {"collector": collector, "reason": reason[:1000]})

    def trace_event(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Handle one structured event of torch."""
        self._protect("recorder", self._prepare)
        for collector in self._collectors:
            if name in collector.trace_names:
                self.guard(collector, collector.on_trace, name, metadata, payload)

    def _on_trace_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Torch called its tracing function: build the event here if a collector uses it.

        A handler on torch's trace logger would be simpler. But torch would then build every event without protection, so that
        errors would reach the program; and `logging.config` can disable the logger.
        """
        call = {**dict(zip(("name", "metadata_fn"), args, strict=False)), **kwargs}
        name, content = call["name"], None
        if name in _EVENTS_NAMED_BY_CONTENT:
            content = call["metadata_fn"]()
            name = str(content.get("name"))
        self._protect("recorder", self._prepare)
        if not any(name in collector.trace_names for collector in self._collectors):
            return
        if content is None:
            content = call["metadata_fn"]() if "metadata_fn" in call else {}
        identifier = torch_private.compile_id() or (str(call["compile_id"]) if call.get("compile_id") else None)
        payload = call["payload_fn"]() if "payload_fn" in call else None
        self.trace_event(name, {call["name"]: content, "compile_id": identifier}, payload)

    def _protect(self, name: str, action: Callable[..., None], *arguments: Any) -> None:
        """Run recorder code; its exceptions never reach the program."""
        try:
            action(*arguments)
        except Exception as error:
            # The report can fail too, if the journal is the problem.
            with contextlib.suppress(Exception):
                self.report_missing(name, f"{type(error).__name__}: {error}")

    def _prepare(self) -> None:
        if not self._version_checked:
            self._check_version()
        # Other hooks can only be ready if modules were imported since.
        if self._pending_hooks and len(sys.modules) != self._module_count:
            self._install_ready()

    def _open(self) -> None:
        self._failures.clear()
        # Discard the stack indices of an earlier recording, with their definitions.
        self._stacks.clear()
        self._definitions.clear()
        self._collectors = []
        for collector_type in self._collector_types:
            self._protect(collector_type.name, self._attach, collector_type)
        self._protect("recorder", self._install_ready)
        if torch_private.torch_writes_a_trace():
            torch_private.add_trace_handler(self._handler)  # torch builds the events anyway: use them
        else:
            trace = torch_private.Hook(torch_private.TRACE, functools.partial(self._protect, "trace", self._on_trace_call))
            self._trace_hooks = [trace]
            self._protect("recorder", self._install_trace)
        self._version_checked = False
        self._started_ids.clear()
        self._resets = 0

    def _install_trace(self) -> None:
        for hook in self._trace_hooks:
            if hook.ready and not hook.installed:
                hook.install()

    def _check_version(self) -> None:
        # Torch may be imported after the recording begins; at its first event, it certainly is.
        self._version_checked = True
        if not torch_private.is_known_version():
            oldest, newest = (".".join(map(str, item)) for item in torch_private.known_versions())
            version = ".".join(map(str, torch_private.torch_version()))
            self.report_missing(
                "torch version",
                f"torch {version} is not one this recorder was tested with ({oldest} to {newest}): "
                "what its hooks provide was recorded",
            )

    def _attach(self, collector_type: type[Collector]) -> None:
        collector = collector_type(self)
        self._collectors.append(collector)
        for hook_point, method, before in collector.hooks():
            observer = self._observer(collector, method)
            failed = self._observer(collector, collector.on_failure) if hook_point in collector.failure_hooks else None
            self._pending_hooks.append((collector, torch_private.Hook(hook_point, observer, before=before, failed=failed)))

    def _observer(self, collector: Collector, method: torch_private.Observer) -> torch_private.Observer:
        def observe(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            self._protect("recorder", self._prepare)
            self.guard(collector, method, args, kwargs, result)

        return observe

    def _install_ready(self) -> None:
        """Wrap the functions whose modules are already imported."""
        with self._lock:
            waiting = []
            for collector, hook in self._pending_hooks:
                if not hook.ready:
                    waiting.append((collector, hook))
                    continue
                try:
                    hook.install()
                    self._installed_hooks.append(hook)
                except AttributeError:
                    version = ".".join(map(str, torch_private.torch_version()))
                    self.report_missing(collector.name, f"torch {version} has no {hook.point}")
            self._pending_hooks = waiting
            # A module that is still being imported becomes ready without another import.
            importing = any(hook.point.module in sys.modules for _, hook in waiting)
            self._module_count = 0 if importing else len(sys.modules)

    def _close(self) -> None:
        torch_private.remove_trace_handler(self._handler)
        for hook in reversed([*self._trace_hooks, *self._installed_hooks]):
            hook.remove()
        self._installed_hooks, self._pending_hooks, self._collectors, self._trace_hooks = [], [], [], []


class _Listener:
    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.stacks: set[int] = set()


class _TraceHandler(logging.Handler):
    """Receives torch's structured events as Python objects."""

    def __init__(self, tap: Tap) -> None:
        super().__init__(logging.DEBUG)
        self._tap = tap

    def emit(self, record: logging.LogRecord) -> None:
        """Forward one event, under the name in its content if it has one."""
        metadata: dict[str, Any] | None = getattr(record, "metadata", None)
        if not metadata:
            return
        name = next(iter(metadata))
        if name in _EVENTS_NAMED_BY_CONTENT:
            name = str(metadata[name].get("name"))
        self._tap.trace_event(name, metadata, getattr(record, "payload", None))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (the name is logging's)
        """Do nothing: logging would print to the program's stderr."""
