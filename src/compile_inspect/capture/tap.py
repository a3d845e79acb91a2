"""The one place where torch is tapped, shared by all recordings of a process."""

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

# A collector that fails does so for every graph; a few reports tell as much as a thousand.
REPORTED_FAILURES = 3
# Events of torch's that say inside what they are.
_NAMED_INSIDE = ("artifact", "graph_dump")


class Tap:
    """Hands what the collectors see to every journal that listens.

    Hooks are in place only while there is a listener. Whatever goes wrong inside a collector is caught here,
    noted as missing evidence, and never reaches the program.
    """

    def __init__(self, collector_types: Iterable[type[Collector]]) -> None:
        self._collector_types = tuple(collector_types)
        self._collectors: list[Collector] = []
        self._listeners: list[_Listener] = []
        self._pending: list[tuple[Collector, torch_private.Hook]] = []
        self._installed: list[torch_private.Hook] = []
        self._trace: list[torch_private.Hook] = []
        self._handler = _TraceHandler(self)
        self._failures: Counter[str] = Counter()
        self._stacks: dict[Any, int] = {}
        self._definitions: list[Any] = []
        self._lock = threading.RLock()
        self._version_checked = False
        self._modules_seen = 0
        self._begun: set[str | None] = set()
        self._resets = 0

    def add(self, journal: Journal) -> None:
        """Start sending events to `journal`."""
        with self._lock:
            first = not self._listeners
            self._listeners = [*self._listeners, _Listener(journal)]
            if first:
                self._open()
            else:
                for collector in self._collectors:
                    self.guard(collector, collector.on_listener)

    def remove(self, journal: Journal) -> None:
        """Stop sending events to `journal`, after the collectors wrote what they still hold."""
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
    def apart(self) -> Iterator[None]:
        """Journals that listen now hear nothing of what happens inside, and go on afterwards."""
        with self._lock:
            listeners, begun, resets = self._listeners, set(self._begun), self._resets
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
                    self._begun, self._resets = begun, resets
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
        """A compilation starts; if its id was used before, `torch._dynamo.reset` has made torch count anew."""
        if identifier in self._begun:
            self._begun.clear()
            self._resets += 1
        self._begun.add(identifier)

    def _qualified(self, identifier: str | None) -> str | None:
        """A compile id that is unique in the recording: `0/1`, and after a reset `0/1@1`."""
        return identifier if identifier is None or not self._resets else f"{identifier}@{self._resets}"

    def intern(self, stack: str | tuple[tuple[str, int, str, str], ...]) -> int:
        """A number for a stack, either as Python prints it or as (file, line, function, code) rows."""
        with self._lock:
            index = self._stacks.get(stack)
            if index is None:
                index = self._stacks[stack] = len(self._definitions)
                self._definitions.append(stack)
            return index

    def guard(self, collector: Collector, action: Callable[..., None], *arguments: Any) -> None:
        """Run part of a collector; if it raises, say what is missing and go on."""
        self._protect(collector.name, action, *arguments)

    def report_missing(self, collector: str, reason: str) -> None:
        """Note that evidence could not be collected."""
        self._failures[collector] += 1
        if self._failures[collector] <= REPORTED_FAILURES:
            self.emit("missing", {"collector": collector, "reason": reason[:1000]})

    def trace_event(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """A structured event of torch arrived."""
        self._protect("recorder", self._prepare)
        for collector in self._collectors:
            if name in collector.trace_names:
                self.guard(collector, collector.on_trace, name, metadata, payload)

    def _on_trace_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Torch called its tracing function: make the event ourselves, if anybody wants it.

        Adding a handler to torch's trace logger would be simpler, but then torch makes every event, without any
        protection, for the program to trip over; and `logging.config` can silence the logger.
        """
        call = {**dict(zip(("name", "metadata_fn"), args, strict=False)), **kwargs}
        name, content = call["name"], None
        if name in _NAMED_INSIDE:
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
        """The wall between the recorder and the program: nothing that goes wrong on our side gets past it."""
        try:
            action(*arguments)
        except Exception as error:
            # Even the report may fail, when it is the journal that is broken.
            with contextlib.suppress(Exception):
                self.report_missing(name, f"{type(error).__name__}: {error}")

    def _prepare(self) -> None:
        if not self._version_checked:
            self._check_version()
        # Something new can only be there if something was imported since.
        if self._pending and len(sys.modules) != self._modules_seen:
            self._install_ready()

    def _open(self) -> None:
        self._failures.clear()
        # Numbers given to stacks by an earlier recording are dropped with their definitions.
        self._stacks.clear()
        self._definitions.clear()
        self._collectors = []
        for collector_type in self._collector_types:
            self._protect(collector_type.name, self._attach, collector_type)
        self._protect("recorder", self._install_ready)
        if torch_private.torch_writes_a_trace():
            torch_private.add_trace_handler(self._handler)  # torch makes the events anyway: share them
        else:
            trace = torch_private.Hook(torch_private.TRACE, functools.partial(self._protect, "trace", self._on_trace_call))
            self._trace = [trace]
            self._protect("recorder", self._install_trace)
        self._version_checked = False
        self._begun.clear()
        self._resets = 0

    def _install_trace(self) -> None:
        for observation in self._trace:
            if observation.ready and not observation.installed:
                observation.install()

    def _check_version(self) -> None:
        # Torch may not have been imported when the recording began; its first event says that it is here.
        self._version_checked = True
        if not torch_private.is_known_version():
            oldest, newest = (".".join(map(str, item)) for item in torch_private.known_versions())
            version = ".".join(map(str, torch_private.torch_version()))
            self.report_missing(
                "torch version",
                f"torch {version} is not one this recorder was tested with ({oldest} to {newest}): "
                "what its hooks still give was recorded",
            )

    def _attach(self, collector_type: type[Collector]) -> None:
        collector = collector_type(self)
        self._collectors.append(collector)
        for place, method, before in collector.observations():
            observer = self._observer(collector, method)
            failed = self._observer(collector, collector.on_failure) if place in collector.failures else None
            self._pending.append((collector, torch_private.Hook(place, observer, before=before, failed=failed)))

    def _observer(self, collector: Collector, method: torch_private.Observer) -> torch_private.Observer:
        def observe(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            self._protect("recorder", self._prepare)
            self.guard(collector, method, args, kwargs, result)

        return observe

    def _install_ready(self) -> None:
        """Wrap the functions whose modules have been imported by now."""
        with self._lock:
            waiting = []
            for collector, observation in self._pending:
                if not observation.ready:
                    waiting.append((collector, observation))
                    continue
                try:
                    observation.install()
                    self._installed.append(observation)
                except AttributeError:
                    version = ".".join(map(str, torch_private.torch_version()))
                    self.report_missing(collector.name, f"torch {version} has no {observation.point}")
            self._pending = waiting
            # A module that is half imported will be ready without another import.
            importing = any(observation.point.module in sys.modules for _, observation in waiting)
            self._modules_seen = 0 if importing else len(sys.modules)

    def _close(self) -> None:
        torch_private.remove_trace_handler(self._handler)
        for observation in reversed([*self._trace, *self._installed]):
            observation.remove()
        self._installed, self._pending, self._collectors, self._trace = [], [], [], []


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
        """Pass one event on under its own name, or under the name of what it holds."""
        metadata: dict[str, Any] | None = getattr(record, "metadata", None)
        if not metadata:
            return
        name = next(iter(metadata))
        if name in _NAMED_INSIDE:
            name = str(metadata[name].get("name"))
        self._tap.trace_event(name, metadata, getattr(record, "payload", None))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (the name is logging's)
        """Stay silent: logging would print to the program's stderr."""
