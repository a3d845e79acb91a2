"""Whether a call is one that a frozen variant stands for: Dynamo's guard of the capture, and what it leaves out.

The quick check is written into the tuned function itself (`fused`). It also fails where nothing is wrong: in another grad
or inference mode, with another number of threads, after somebody added a method to a class. `matches` then looks again: the
call is captured anew, and the guard of that capture is taken if the very same program comes out.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from compile_inspect.capture import torch_private
from compile_inspect.capture.torch_private import fullgraph
from compile_inspect.capture.torch_private.fullgraph import Fullgraph
from compile_inspect.capture.torch_private.surroundings import Surroundings
from compile_inspect.variants.base import Refused
from compile_inspect.variants.program import Program, capture

MAX_MODES = 6
"""Modes of torch that a program is captured in; further ones run eagerly."""
MAX_RECAPTURE_SECONDS = 10.0
"""Time that captures may take in all that are made because something around a function changed; then such calls run eagerly."""

RENEWALS_BEFORE_BUSY = 5
"""How often signs may change without anything behind it, before quicker but touchier ones are given up."""

Scope = dict[str, Any]
Check = Callable[[Scope], bool]


class Guard:
    """The guard of one program. `source` is its condition, for generated code with the namespace that `names` gives."""

    source = "(check(scope) or also(scope)) and around(around_scope) and forward._current_level < 0 and depth() == depth_was"

    def __init__(self, program: Program) -> None:
        self.program = program
        self._captures = [program.whole]
        self._modes = {_mode()} if program.task.gradients else set()
        self._around = _surroundings(program.whole)
        self._recapture_seconds = 0.0
        self._renewals = 0
        self._known: list[tuple[list[Any], list[Fullgraph]]] = [(self._around.contents, self._captures)]
        """What was found around the function so far, with the captures that hold there; none where it was another program."""
        self._namespaces: list[dict[str, Any]] = []
        if not program.task.gradients and not any(tensor.requires_grad for tensor in program.inputs):
            # Nothing is differentiable: the result is the same with grad mode on, where most calls are made.
            self._add_mode(program.task.args, program.task.kwargs, grad_mode=True)

    def names(self) -> dict[str, Any]:
        """A namespace for generated code in which the conditions of `source` can be evaluated."""
        depth = torch_private.dispatch_depth()
        names = {
            "function": self.program.task.function,
            "forward": torch_private.forward_mode(),
            "depth": depth,
            "depth_was": depth(),
        }
        self._namespaces.append(names)
        self._publish()
        return names

    def _publish(self) -> None:
        checks = [item.check for item in self._captures]
        also = _any(checks[1:])
        for names in self._namespaces:
            names |= {"check": checks[0], "also": also, "around": self._around.check, "around_scope": self._around.scope}

    def holds(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """The quick check: true only where the program stands for a call, false also where nothing is wrong."""
        scope = self._scope(args, kwargs)
        return (
            any(item.check(scope) for item in self._captures)
            and self._around.check(self._around.scope)
            and torch_private.forward_mode()._current_level < 0
        )

    def matches(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Whether the program stands for a call, looked at closely."""
        if torch_private.forward_mode()._current_level >= 0:
            return False
        scope = self._scope(args, kwargs)
        if not any(item.check(scope) for item in self._captures):
            return _mode() not in self._modes and self._add_mode(args, kwargs)
        return self._around.check(self._around.scope) or self._renew(args, kwargs)

    def _scope(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Scope:
        return {"function": self.program.task.function, "args": args, "kwargs": kwargs}

    def _renew(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Look at what is around the function; where that changed, capture the call: whether it gives the same program."""
        self._renewals += 1
        renewed = self._around.renewed(busy=self._renewals > RENEWALS_BEFORE_BUSY)
        captures = next((known for contents, known in self._known if contents == renewed.contents), None)
        if captures is None:
            if self._recapture_seconds > MAX_RECAPTURE_SECONDS:
                return False
            started = perf_counter()
            whole = self._captured(args, kwargs)
            self._recapture_seconds += perf_counter() - started
            captures = [] if whole is None else [whole]
            self._known.append((renewed.contents, captures))
            if whole is not None:
                renewed = _surroundings(whole, busy=self._renewals > RENEWALS_BEFORE_BUSY)
                self._known.append((renewed.contents, captures))
        if not captures:
            return False
        self._captures, self._around = captures, renewed
        self._publish()
        return any(item.check(self._scope(args, kwargs)) for item in captures)

    def _add_mode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, grad_mode: bool | None = None) -> bool:
        """Capture the call in a mode that was not met before; whether that gives the same program."""
        import torch

        with torch.set_grad_enabled(torch.is_grad_enabled() if grad_mode is None else grad_mode):
            self._modes.add(_mode())
            whole = self._captured(args, kwargs) if len(self._captures) < MAX_MODES else None
        if whole is None:
            return False
        self._captures.append(whole)
        self._publish()
        return True

    def _captured(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Fullgraph | None:
        """A capture of a call in the present mode; None where it is another program, or eager's result is differentiable."""
        import torch

        task = replace(self.program.task, args=args, kwargs=kwargs)
        try:
            whole = capture(task, grad_mode=torch.is_grad_enabled())
        except Refused:
            return None
        differentiable = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in whole.inputs)
        if not same_program(self.program.whole, whole) or (differentiable and not task.gradients):
            return None
        return whole

    def why_not(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """The first thing that is not as it was, in words."""
        import torch

        if torch_private.forward_mode()._current_level >= 0:
            return "forward-mode differentiation is on"
        scope = self._scope(args, kwargs)
        reasons = [fullgraph.readable(item.explain(scope)) for item in self._captures]
        wanted = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in self.program.inputs)
        if wanted and not self.program.task.gradients:
            return "gradients are wanted: call it under torch.no_grad(), or tune it with gradients=True"
        if not all(reasons):
            changed = self._around.changed()
            return f"something may have changed that it depends on: {changed}" if changed else "a dispatch mode is on"
        named = [reason for reason in reasons if "global_state" not in reason.lower()]
        return (named or reasons)[0]


def _surroundings(whole: Fullgraph, *, busy: bool = False) -> Surroundings:
    return Surroundings([read.value for read in whole.reads], whole.traced, busy=busy)


def _any(checks: list[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]
    return lambda scope: any(check(scope) for check in checks)


def _mode() -> tuple[Any, ...]:
    """What of torch's state a capture may be repeated for: it changes guards, and mostly not the program."""
    import torch

    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_num_threads()


def same_program(one: Fullgraph, other: Fullgraph) -> bool:
    """Whether two captures have the same graph, take the same inputs and build the same result."""
    return (
        program_text(one) == program_text(other)
        and one.sources == other.sources
        and [_metadata(tensor) for tensor in one.inputs] == [_metadata(tensor) for tensor in other.inputs]
        and all(one.inputs[place] is other.inputs[place] for place in one.identified)
        and one.identified == other.identified
        and _instructions(one.code) == _instructions(other.code)
    )


def without_numbers(name: str) -> str:
    """A name of Dynamo's without the counters and addresses that make it another one in every capture.

    >>> without_numbers("___module_torch_139988212833216_c2"), without_numbers("G['__builtins_dict___4']['abs']")
    ('___module_torch', "G['__builtins_dict__']['abs']")
    """
    return re.sub(r"(__compiled_fn)_\d\w*|(?<=\w|')_\d{6,}_c\d+|(__builtins_dict__)_\d+", r"\1\2", name)


def _metadata(tensor: Any) -> tuple[Any, ...]:
    if not torch_private.is_tensor(tensor):
        return (type(tensor),)
    return type(tensor), tensor.dtype, tensor.device, tuple(tensor.shape), tensor.stride(), tensor.requires_grad


def program_text(whole: Fullgraph) -> str:
    """The graph as text, with the graphs inside it and the values of its constants."""
    import torch

    parts = []
    for name, module in whole.graph.named_modules():
        if isinstance(module, torch.fx.GraphModule):
            parts.append(f"{name}\n{module.graph}")
    for name, tensor in (*whole.graph.named_buffers(), *whole.graph.named_parameters()):
        parts.append(f"{name} {tensor.dtype} {tensor.tolist()}")
    return "\n".join(parts)


def _instructions(code: types.CodeType) -> tuple[Any, ...]:
    names = tuple(without_numbers(name) for name in code.co_names)
    consts = tuple(_instructions(item) if isinstance(item, types.CodeType) else (type(item), item) for item in code.co_consts)
    return code.co_code, names, repr(consts), code.co_varnames, code.co_freevars
