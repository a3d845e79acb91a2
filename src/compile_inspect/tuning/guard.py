"""A check whether a call looks like the one a variant was built for.

Checks are Python source written for the inputs at hand: no loops, no flattening, nothing looked up twice. The one here
asks every attribute in turn and is right in every mode of torch; `fused` writes one that is quicker where nothing
unusual goes on, and comes here for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from compile_inspect.capture import torch_private
from compile_inspect.variants.base import Refused
from compile_inspect.variants.task import Cell, Constant, Holding, Task

PLAIN = (bool, int, float, complex, str, bytes, type(None))
MISFITS = "(KeyError, IndexError, TypeError, AttributeError, ValueError, RuntimeError)"
"""What taking inputs apart and asking for their attributes raises where they are not like the example."""


class Guard:
    """Whether inputs, held tensors, Python values and torch's modes are as they were when the variant was built.

    `matches(args, kwargs)` says so; `tensors(args, kwargs)` gives the list a compiled function takes.
    """

    def __init__(self, task: Task) -> None:
        import torch

        self.parts = Parts(task)
        self.modes = torch_private.modes()
        self.source = self.parts.source()
        names = self.parts.names | {
            "grad": torch.is_grad_enabled,
            "autocast": torch_private.autocast_switch(),
            "modes": torch_private.modes,
            "as_they_were": self.modes,
            "autocast_was": torch_private.autocast_switch()(),
            "unchanged": lambda: all(constant.unchanged() for constant in task.constants),
        }
        exec(compile(self.source, "<input check>", "exec"), names)
        self.matches: Callable[[tuple[Any, ...], Mapping[str, Any]], bool] = names["matches"]
        self.tensors: Callable[[tuple[Any, ...], Mapping[str, Any]], list[Any]] = names["tensors"]

    def why_not(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], task: Task) -> str:
        """The first thing that is not as it was, in words; for reports, not for speed."""
        import torch

        if torch.get_default_dtype() is not self.modes[0]:
            return f"the default dtype is now {torch.get_default_dtype()}"
        if torch_private.modes() != self.modes:
            return "a mode of torch is another (determinism, precision of products, default device, transform or dispatch mode)"
        for constant in task.constants:
            if not constant.unchanged():
                return f"{constant.name} was {constant.value!r} and is {constant.owner[constant.key]!r}"
        for other in task.identities:
            if not other.unchanged():
                return f"{other.name} is another function or module"
        for number, item in enumerate(task.held):
            if item.now() is not self.parts.names[f"t{number}"] or item.now().data_ptr() != self.parts.names[f"a{number}"]:
                return f"{item.name} is another tensor, or lies elsewhere in memory"
        given, structure = torch_private.flatten((args, dict(kwargs)))
        known, known_structure = torch_private.flatten((task.args, dict(task.kwargs)))
        if structure != known_structure:
            return "the inputs have another structure"
        for number, (now, then) in enumerate(zip(given, known, strict=True)):
            if torch_private.is_tensor(now) and torch_private.is_tensor(then):
                for name in ("dtype", "shape", "device", "requires_grad"):
                    if getattr(now, name) != getattr(then, name):
                        return f"{name} of tensor {number} of the inputs was {getattr(then, name)} and is {getattr(now, name)}"
                if now.stride() != then.stride():
                    return f"the strides of tensor {number} of the inputs were {then.stride()} and are {now.stride()}"
            elif type(now) is not type(then) or now != then:
                return f"input {number} was {then!r:.40} and is {now!r:.40}"
        return "gradients are wanted, autocast is on, or a module has other parts or hooks"


class Parts:
    """The pieces that checks are written from, and the values that their names stand for.

    `steps` take the inputs apart, in order: a line of source, the condition it must meet, and whether that is one of a
    tensor. `inputs` are the names of the tensors given, `held` how to reach those held, `constants` conditions on
    Python values.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.names: dict[str, Any] = {}
        self.steps: list[tuple[str, str, bool]] = []
        self.inputs: list[str] = []
        self.examples: list[Any] = []
        self._structure("args", task.args)
        self._structure("kwargs", dict(task.kwargs))
        self.constants = []
        for number, constant in enumerate(task.constants):
            self.names[f"v{number}"] = constant.value
            value = repr(constant.value) if type(constant.value) in (bool, type(None)) else f"v{number}"
            self.constants.append(f"{self._reach(f'o{number}', constant)} is {value}")
        self.others = self._others()
        self.held = []
        for number, item in enumerate(task.held):
            tensor = item.now()
            self.names |= {f"t{number}": tensor, f"p{number}": tensor.data_ptr, f"a{number}": tensor.data_ptr()}
            # The same object can still have been given other memory, or another dtype, through its `data`.
            self.held.append(f"{self._reach(f'h{number}', item)} is t{number} and p{number}() == a{number}")

    def _others(self) -> list[str]:
        """Conditions on functions and modules: the same ones, with as many parts and hooks as before."""
        conditions = []
        for number, item in enumerate(self.task.identities):
            self.names[f"f{number}"] = item.value
            conditions.append(f"{self._reach(f'g{number}', item)} is f{number}")
        empty: list[str] = []
        parts = [part for module in self.task.modules for part in module.modules()]
        for number, part in enumerate(parts):
            for kind, place in (("c", part._modules), ("b", part._forward_pre_hooks), ("e", part._forward_hooks)):
                name = f"{kind}{number}"
                self.names[name] = place
                if place:
                    conditions.append(f"len({name}) == {len(place)}")
                else:
                    empty.append(name)
        return [*conditions, *([f"not ({' or '.join(empty)})"] if empty else [])]

    @property
    def differentiable(self) -> str:
        """Source that says whether eager's result would be differentiable with grad mode on."""
        wants = any(item.requires_grad for item in self.examples)
        return "True" if wants else " or ".join(f"t{number}.requires_grad" for number in range(len(self.held))) or "False"

    def source(self) -> str:
        """The check that asks everything, and the list of tensors."""
        body: list[str] = []
        for line, condition, _ in self.steps:
            body += [line, f"if not ({condition}): return False"]
        if self.constants:
            body.append(f"if not ({' and '.join(self.constants)}) and not unchanged(): return False")
        for conditions in (self.others, self.held):
            if conditions:
                body.append(f"if not ({' and '.join(conditions)}): return False")
        body.append("if autocast() or autocast_was or modes() != as_they_were: return False")
        body.append("return grad()" if self.task.gradients else f"return not (grad() and ({self.differentiable}))")
        text = "".join(f"        {line}\n" for line in body)
        taken = "".join(f"    {line}\n" for line, _, _ in self.steps)
        return (
            f"def matches(args, kwargs):\n    try:\n{text}    except {MISFITS}:\n        return False\n"
            f"def tensors(args, kwargs):\n{taken}    return {self.listed}\n"
        )

    @property
    def listed(self) -> str:
        """Source of the list of tensors that compiled functions take: held ones, then those given."""
        return f"[{', '.join([*(f't{number}' for number in range(len(self.held))), *self.inputs])}]"

    def _structure(self, name: str, value: Any, line: str = "pass") -> None:
        """Steps for one value, to which the line gives its name."""
        if torch_private.is_tensor(value):
            self.inputs.append(name)
            self.examples.append(value)
            self.names |= {f"{name}_{part}": getattr(value, part) for part in ("dtype", "shape", "device")}
            self.names |= {f"{name}_stride": value.stride(), f"{name}_type": type(value)}
            negation = "" if value.requires_grad else "not "
            condition = (
                f"type({name}) is {name}_type and {name}.shape == {name}_shape and {name}.dtype is {name}_dtype "
                f"and {name}.stride() == {name}_stride and {name}.device == {name}_device and {negation}{name}.requires_grad "
                f"and {name}.is_neg() is {value.is_neg()} and {name}.is_conj() is {value.is_conj()}"
            )
            self.steps.append((line, condition, True))
        elif isinstance(value, PLAIN):
            self.names |= {f"{name}_value": value, f"{name}_type": type(value)}
            self.steps.append((line, f"type({name}) is {name}_type and {name} == {name}_value", False))
        elif type(value) in (tuple, list, dict):
            self.names[f"{name}_type"] = type(value)
            self.steps.append((line, f"type({name}) is {name}_type and len({name}) == {len(value)}", False))
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                if not isinstance(key, (str, int)):
                    raise Refused(f"an input is a dictionary with a key of type {type(key).__name__}")
                part = f"x{len(self.steps)}"
                self._structure(part, item, f"{part} = {name}[{key!r}]")
        else:
            raise Refused(f"an input of type {type(value).__name__} cannot be checked quickly")

    def _reach(self, name: str, item: Constant | Holding) -> str:
        """Source that reads an entry of an owner of that name; text as key is written out, which is quicker to read."""
        if isinstance(item.owner, Cell):
            self.names[name] = item.owner._cell
            return f"{name}.cell_contents"
        self.names[name] = item.owner
        if type(item.key) is str:
            return f"{name}[{item.key!r}]"
        self.names[f"{name}_key"] = item.key
        return f"{name}[{name}_key]"
