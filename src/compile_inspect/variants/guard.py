"""Check whether a frozen variant is valid for a call: Dynamo's guard of the capture, plus what that guard omits.

The quick check is written into the tuned function itself (`fused_call`): a shortcut through the guard as long as
nothing that the guard reads was assigned, otherwise the whole guard. It also fails in harmless cases: in another grad or
inference mode, with another number of threads, after a method was added to a class. `matches` then does a thorough check: it
captures the call again, and accepts the new guard if this gives the same program and the same result as the function.
"""

from __future__ import annotations

import logging
import re
import types
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import RLock
from time import perf_counter
from typing import Any

from compile_inspect import torch_private
from compile_inspect.torch_private import object_memory
from compile_inspect.torch_private.fullgraph import Fullgraph, readable
from compile_inspect.torch_private.guard_shortcut import NoShortcutError, Shortcut
from compile_inspect.torch_private.unguarded_state import Surroundings
from compile_inspect.variants.base import RefusalError
from compile_inspect.variants.captured_program import CapturedProgram, capture

MAX_MODES = 6
"""Maximum number of torch modes that a program is captured in; calls in further modes run eagerly."""
MAX_RECAPTURE_SECONDS = 10.0
"""Total time for recaptures after changes in the surroundings of a function; after that, such calls run eagerly."""

MAX_HARMLESS_RENEWALS = 5
"""Renewals without a real change after which the surroundings are no longer checked by the versions of dictionaries, which
are quick to compare but change with every assignment."""

MAX_HARMLESS_ASSIGNMENTS = 3
"""Assignments to an object, without a change of what the function reads, after which shortcuts no longer watch it."""

SHORTCUT_DELAY_GROWTH = 2
"""Factor by which the number of checks before the next shortcut grows with every shortcut."""
TIMING_REPETITIONS = 7
"""How often a shortcut and the whole guard are each timed before the quicker one is chosen."""

logger = logging.getLogger("compile_inspect")

Scope = dict[str, Any]
Recapture = Callable[[tuple[Any, ...], Mapping[str, Any]], Fullgraph | None]


class Guard:
    """The guard of one program.

    `source` is its condition, for generated code with the namespace that `names` returns, after the line `prelude`.
    """

    prelude = (
        "check, positions, expected_words, check_tensors, held_tensors, look_up_tensors, check_surroundings, memory, "
        "surroundings_scope = parts"
    )
    """All in one assignment: another thread may replace `parts`."""
    source = (
        "(check(scope) and (positions is None or take(positions).tobytes() == expected_words "
        "and check_tensors(*held_tensors, *look_up_tensors(scope))) and check_surroundings(surroundings_scope) "
        "or full_guard_holds(scope)) and forward._current_level < 0 and depth() == initial_depth"
    )

    def __init__(self, program: CapturedProgram) -> None:
        import torch

        self.program = program
        self._captures = [program.fullgraph]
        self._modes = {_mode()} if program.task.gradients else set()
        self._surroundings = _surroundings_of(program.fullgraph)
        self._recapture_seconds = 0.0
        self._renewals = 0
        self._known_surroundings: list[tuple[list[Any], list[Fullgraph]]] = [(self._surroundings.contents, self._captures)]
        """The surroundings so far, each with the captures that are valid there; empty if the program was different."""
        self._namespaces: list[dict[str, Any]] = []
        self._shortcuts: dict[int, Shortcut] = {}
        """By the position of the capture."""
        self._assignments: Counter[int] = Counter()
        """How often an object, by identity, was assigned to while the guard still held."""
        self._checks_until_shortcut, self._shortcut_count = 0, 0
        self._awaits_shortcut = object_memory.supported()
        self._lock = RLock()
        if not program.task.gradients and not any(tensor.requires_grad for tensor in program.inputs):
            # Nothing is differentiable: the result is the same with grad mode on, in which most calls are made.
            with torch.enable_grad():
                self._add_mode(program.task.args, program.task.kwargs, self._recapture)

    def names(self) -> dict[str, Any]:
        """A namespace for generated code in which the conditions of `source` can be evaluated."""
        import torch

        depth = torch_private.dispatch_depth()
        names = {
            "function": self.program.task.function,
            "forward": torch_private.forward_mode(),
            "depth": depth,
            "initial_depth": depth(),
            "take": object_memory.take,
            "full_guard_holds": self._full_guard_holds,
        }
        self._namespaces.append(names)
        self._publish(0)
        with torch.set_grad_enabled(self.program.task.gradients):
            self._full_guard_holds(self._scope(self.program.task.args, self.program.task.kwargs))
        return names

    def _publish(self, position: int) -> None:
        """Make generated code check one capture first: by its shortcut, or by Dynamo's guard where none is quicker."""
        shortcut = self._shortcuts.get(position)
        if shortcut is not None:
            parts = (*shortcut.parts, self._surroundings.scope)
        elif self._awaits_shortcut:
            parts = (_never, *_NO_SHORTCUT, None, None, None)
        else:
            surroundings = self._surroundings
            parts = (self._captures[position].root.check, *_NO_SHORTCUT, surroundings.check, None, surroundings.scope)
        for names in self._namespaces:
            names["parts"] = parts

    def _full_guard_holds(self, scope: Scope) -> bool:
        """Whether a capture's guard and its surroundings hold; later calls then take a shortcut."""
        for position, shortcut in list(self._shortcuts.items()):
            if shortcut.holds(scope, self._surroundings.scope):
                self._publish(position)
                return True
        for position, fullgraph in enumerate(list(self._captures)):
            if fullgraph.check(scope):
                if not self._surroundings.check(self._surroundings.scope):
                    return False
                with self._lock:
                    if position < len(self._captures) and self._captures[position] is fullgraph:
                        self._find_shortcut(position, scope)
                        self._publish(position)
                return True
        return False

    def _find_shortcut(self, position: int, scope: Scope) -> None:
        """Make a shortcut for the state in which a capture's guard holds, less and less often if none lasts."""
        before = self._shortcuts.pop(position, None)
        if before is not None:
            self._assignments.update(before.changed())
        self._checks_until_shortcut -= 1
        if self._checks_until_shortcut > 0 or not self._awaits_shortcut:
            return
        self._shortcut_count += 1
        self._checks_until_shortcut = SHORTCUT_DELAY_GROWTH**self._shortcut_count
        often_assigned = [identity for identity, count in self._assignments.items() if count >= MAX_HARMLESS_ASSIGNMENTS]
        fullgraph, surroundings = self._captures[position], self._surroundings
        try:
            shortcut = fullgraph.shortcut(surroundings, scope, often_assigned)
        except Exception as error:  # the guard still works; no error here may end the user's call
            logger.debug("no shortcut through the guard of %s: %r", self.program.task.name, error)
            self._awaits_shortcut = isinstance(error, NoShortcutError)
            return
        if is_quicker(
            lambda: shortcut.holds(scope, surroundings.scope),
            lambda: fullgraph.check(scope) and surroundings.check(surroundings.scope),
        ):
            self._shortcuts[position] = shortcut
        else:
            self._awaits_shortcut = bool(self._shortcuts)

    def _replace(self, captures: list[Fullgraph], surroundings: Surroundings) -> None:
        with self._lock:
            self._captures, self._surroundings = captures, surroundings
            self._shortcuts.clear()
            self._publish(0)

    def holds(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """The quick check: true only where the program is valid for a call, but false in some harmless cases too."""
        return self._full_guard_holds(self._scope(args, kwargs)) and torch_private.forward_mode()._current_level < 0

    def matches(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """The thorough check of whether the program is valid for a call."""
        if torch_private.forward_mode()._current_level >= 0:
            return False
        scope = self._scope(args, kwargs)
        if not any(item.check(scope) for item in self._captures):
            return _mode() not in self._modes and self._add_mode(args, kwargs, self._recapture_and_compare)
        return self._surroundings.check(self._surroundings.scope) or self._renew(args, kwargs)

    def _scope(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Scope:
        return {"function": self.program.task.function, "args": args, "kwargs": kwargs}

    def _renew(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Check the surroundings of the function; if they changed, capture the call again and compare the programs."""
        self._renewals += 1
        renewed = self._surroundings.refresh(often_assigned=self._renewals > MAX_HARMLESS_RENEWALS)
        captures = next((known for contents, known in self._known_surroundings if contents == renewed.contents), None)
        if captures is None:
            if self._recapture_seconds > MAX_RECAPTURE_SECONDS:
                return False
            started = perf_counter()
            fullgraph = self._recapture_and_compare(args, kwargs)
            self._recapture_seconds += perf_counter() - started
            captures = [] if fullgraph is None else [fullgraph]
            self._known_surroundings.append((renewed.contents, captures))
            if fullgraph is not None:
                renewed = _surroundings_of(fullgraph, often_assigned=self._renewals > MAX_HARMLESS_RENEWALS)
                self._known_surroundings.append((renewed.contents, captures))
        if not captures:
            return False
        self._replace(captures, renewed)
        return any(item.check(self._scope(args, kwargs)) for item in captures)

    def _add_mode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], recapture: Recapture) -> bool:
        """Capture the call in a new mode; whether that gives the same program."""
        self._modes.add(_mode())
        fullgraph = recapture(args, kwargs) if len(self._captures) < MAX_MODES else None
        if fullgraph is None:
            return False
        self._captures.append(fullgraph)
        return True

    def _recapture(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Fullgraph | None:
        """A capture of a call in the current mode; None if it is another program, or if eager's result is differentiable."""
        import torch

        task = replace(self.program.task, args=args, kwargs=kwargs)
        try:
            fullgraph = capture(task, grad_mode=torch.is_grad_enabled())
        except RefusalError:
            return None
        except Exception as error:  # so nothing shows that it is the same program
            logger.debug("%s could not be captured again: %r", task.name, error)
            return None
        differentiable = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in fullgraph.inputs)
        if not same_program(self.program.fullgraph, fullgraph) or (differentiable and not task.gradients):
            return None
        return fullgraph

    def _recapture_and_compare(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Fullgraph | None:
        """A capture that gives the same result as the function: Dynamo may miss a change, as its guards did."""
        fullgraph = self._recapture(args, kwargs)
        same = fullgraph is not None and _matches_function(fullgraph, self.program.task.function, args, kwargs)
        return fullgraph if same else None

    def failure_reason(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """The first thing that changed, as text."""
        import torch

        if torch_private.forward_mode()._current_level >= 0:
            return "forward-mode differentiation is on"
        scope = self._scope(args, kwargs)
        reasons = [readable(item.explain(scope)) for item in self._captures]
        differentiable = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in self.program.inputs)
        if differentiable and not self.program.task.gradients:
            return "gradients are required: call it under torch.no_grad(), or tune it with gradients=True"
        if not all(reasons):
            change = self._surroundings.changed()
            return f"something it depends on may have changed: {change}" if change else "a dispatch mode is on"
        specific_reasons = [reason for reason in reasons if "global_state" not in reason.lower()]
        return (specific_reasons or reasons)[0]


def _matches_function(fullgraph: Fullgraph, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a captured graph, run as it is, gives the function's own result; both run the same kernels.

    The graph runs on copies. A graph that writes to them, or draws random numbers, is not compared and counts as
    different: the function itself would have to run once more than its caller asked for.
    """
    import torch

    copies: list[Any] = []

    def on_copies(*inputs: Any) -> Any:
        with torch.inference_mode(False), torch.no_grad():  # inference tensors do not record writes
            copies.extend(tensor.clone() for tensor in inputs)
            versions = [copy._version for copy in copies]
            outputs = fullgraph.graph(*copies)
        if [copy._version for copy in copies] != versions:
            raise _SideEffectError
        return outputs

    devices = sorted({tensor.device.index for tensor in fullgraph.inputs if tensor.is_cuda})
    with torch.no_grad(), torch.random.fork_rng(devices):
        generators = _generators(devices)
        try:
            results = torch_private.flatten(fullgraph.bind(on_copies)(*args, **kwargs))[0]
            if any(not torch.equal(*pair) for pair in zip(generators, _generators(devices), strict=True)):
                raise _SideEffectError
            eager = torch_private.flatten(function(*args, **kwargs))[0]
        except Exception:
            return False
    # An input that is returned unchanged is a copy on one side.
    return len(results) == len(eager) and all(map(_same_values, results, eager))


class _SideEffectError(Exception):
    """A graph has an effect besides computing its result."""


def _generators(devices: list[int]) -> list[Any]:
    import torch

    return [torch.get_rng_state(), *(torch.cuda.get_rng_state(device) for device in devices)]


def _same_values(one: Any, other: Any) -> bool:
    import torch

    if not (torch_private.is_tensor(one) and torch_private.is_tensor(other)):
        plain = isinstance(one, (bool, int, float, complex, str, bytes))
        return type(one) is type(other) and (not plain or repr(one) == repr(other))
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(torch.allclose(one, other, equal_nan=True))


def _surroundings_of(fullgraph: Fullgraph, *, often_assigned: bool = False) -> Surroundings:
    return Surroundings([read.value for read in fullgraph.reads], fullgraph.traced_codes, often_assigned=often_assigned)


def _never(_: Scope) -> bool:
    return False


_NO_SHORTCUT = (None, b"", None, (), None)


def is_quicker(one: Callable[[], object], other: Callable[[], object]) -> bool:
    """Whether one check is quicker than another."""
    return _quickest(one) < _quickest(other)


def _quickest(check: Callable[[], object]) -> float:
    """The shortest of several timings of a check, in seconds."""
    times = []
    for _ in range(TIMING_REPETITIONS):
        started = perf_counter()
        check()
        times.append(perf_counter() - started)
    return min(times)


def _mode() -> tuple[Any, ...]:
    """The part of torch's state that a capture may be repeated for: it changes guards, but seldom the program."""
    import torch

    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_num_threads()


def same_program(one: Fullgraph, other: Fullgraph) -> bool:
    """Whether two captures have the same graph, take the same inputs and build the same result."""
    return (
        program_text(one) == program_text(other)
        and one.sources == other.sources
        and [_metadata(tensor) for tensor in one.inputs] == [_metadata(tensor) for tensor in other.inputs]
        and all(one.inputs[position] is other.inputs[position] for position in one.identity_guarded)
        and one.identity_guarded == other.identity_guarded
        and _instructions(one.code) == _instructions(other.code)
    )


def without_numbers(name: str) -> str:
    """A name of Dynamo's without the counters and addresses that differ in every capture.

    >>> without_numbers("___module_torch_139988212833216_c2"), without_numbers("G['__builtins_dict___4']['abs']")
    ('___module_torch', "G['__builtins_dict__']['abs']")
    """
    return re.sub(r"(__compiled_fn)_\d\w*|(?<=\w|')_\d{6,}_c\d+|(__builtins_dict__)_\d+", r"\1\2", name)


def _metadata(tensor: Any) -> tuple[Any, ...]:
    if not torch_private.is_tensor(tensor):
        return (type(tensor),)
    return type(tensor), tensor.dtype, tensor.device, tuple(tensor.shape), tensor.stride(), tensor.requires_grad


def program_text(fullgraph: Fullgraph) -> str:
    """The graph as text, with nested graphs and the values of constants."""
    import torch

    parts = []
    for name, module in fullgraph.graph.named_modules():
        if isinstance(module, torch.fx.GraphModule):
            parts.append(f"{name}\n{module.graph}")
    for name, tensor in (*fullgraph.graph.named_buffers(), *fullgraph.graph.named_parameters()):
        parts.append(f"{name} {tensor.dtype} {tensor.tolist()}")
    return "\n".join(parts)


def _instructions(code: types.CodeType) -> tuple[Any, ...]:
    names = tuple(without_numbers(name) for name in code.co_names)
    consts = tuple(_instructions(item) if isinstance(item, types.CodeType) else (type(item), item) for item in code.co_consts)
    return code.co_code, names, repr(consts), code.co_varnames, code.co_freevars
