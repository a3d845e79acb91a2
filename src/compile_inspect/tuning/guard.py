"""A check whether a call looks like the one a variant was built for, in a microsecond or two.

The check is Python source written for the inputs at hand: no loops, no flattening, nothing looked up twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from compile_inspect.capture import torch_private
from compile_inspect.variants.base import Refused
from compile_inspect.variants.task import Cell, Task

PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Guard:
    """Whether inputs, held tensors, Python values and torch's modes are as they were when the variant was built.

    `matches(args, kwargs)` says so; `tensors(args, kwargs)` gives the list a compiled function takes.
    """

    def __init__(self, task: Task) -> None:
        import torch

        writer = _Writer()
        paths = writer.structure("args", task.args) + writer.structure("kwargs", dict(task.kwargs))
        self.source = writer.source(task, paths)
        writer.names |= {
            "Tensor": torch.Tensor,
            "Parameter": torch.nn.Parameter,
            "grad": torch.is_grad_enabled,
            "autocast": torch_private.autocast_switch(),
            "default": torch.get_default_dtype,
            "dtype": torch.get_default_dtype(),
        }
        self.constants = task.constants
        for number, constant in enumerate(task.constants):
            owner = constant.owner
            writer.names[f"o{number}"] = owner._cell if isinstance(owner, Cell) else owner
            writer.names[f"k{number}"], writer.names[f"v{number}"] = constant.key, constant.value
        for number, item in enumerate(task.held):
            owner = item.owner
            writer.names[f"h{number}"] = owner._cell if isinstance(owner, Cell) else owner
            writer.names[f"n{number}"], writer.names[f"t{number}"] = item.key, item.now()
            writer.names[f"a{number}"] = item.now().data_ptr()
        self._names = writer.names
        exec(compile(self.source, "<input check>", "exec"), self._names)
        self.matches: Callable[[tuple[Any, ...], Mapping[str, Any]], bool] = self._names["matches"]
        self.tensors: Callable[[tuple[Any, ...], Mapping[str, Any]], list[Any]] = self._names["tensors"]

    def why_not(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], task: Task) -> str:
        """The first thing that is not as it was, in words; for reports, not for speed."""
        import torch

        if torch.get_default_dtype() is not self._names["dtype"]:
            return f"the default dtype is now {torch.get_default_dtype()}"
        for constant in task.constants:
            if not constant.unchanged():
                return f"{constant.name} was {constant.value!r} and is {constant.owner[constant.key]!r}"
        for number, item in enumerate(task.held):
            if item.now() is not self._names[f"t{number}"] or item.now().data_ptr() != self._names[f"a{number}"]:
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
        return "gradients are wanted, or autocast is on"


class _Writer:
    """Writes the source of a check, and keeps the values its names stand for."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.conditions: list[str] = []
        self.lines: list[str] = []

    def structure(self, path: str, value: Any) -> list[str]:
        """Conditions for one value; gives the paths of its tensors."""
        number = len(self.lines)
        name = f"x{number}"
        if torch_private.is_tensor(value):
            self.names |= {f"{name}_{part}": getattr(value, part) for part in ("dtype", "shape", "device")}
            self.names[f"{name}_stride"] = value.stride()
            self.names[f"{name}_type"] = type(value)
            self.lines.append(f"{name} = {path}")
            negation = "" if value.requires_grad else "not "
            self.conditions.append(
                f"type({name}) is {name}_type and {name}.shape == {name}_shape and {name}.dtype is {name}_dtype "
                f"and {name}.stride() == {name}_stride and {name}.device == {name}_device and {negation}{name}.requires_grad"
            )
            return [path]
        if isinstance(value, PLAIN):
            self.names[f"{name}_value"], self.names[f"{name}_type"] = value, type(value)
            self.lines.append(f"{name} = {path}")
            self.conditions.append(f"type({name}) is {name}_type and {name} == {name}_value")
            return []
        if type(value) in (tuple, list, dict):
            self.lines.append(f"{name} = {path}")
            self.names[f"{name}_type"] = type(value)
            self.conditions.append(f"type({name}) is {name}_type and len({name}) == {len(value)}")
            items = value.items() if isinstance(value, dict) else enumerate(value)
            paths: list[str] = []
            for key, item in items:
                if not isinstance(key, (str, int)):
                    raise Refused(f"an input is a dictionary with a key of type {type(key).__name__}")
                paths += self.structure(f"{path}[{key!r}]", item)
            return paths
        raise Refused(f"an input of type {type(value).__name__} cannot be checked quickly")

    def source(self, task: Task, paths: list[str]) -> str:
        """The two functions."""
        conditions = list(self.conditions)
        body: list[str] = []
        held = [_reach(f"h{number}", f"n{number}", item.owner) for number, item in enumerate(task.held)]
        for line, condition in zip(self.lines, conditions, strict=True):
            body += [line, f"if not ({condition}): return False"]
        constants = [
            f"{_reach(f'o{number}', f'k{number}', item.owner)} is v{number}" for number, item in enumerate(task.constants)
        ]
        if constants:
            body.append(f"if not ({' and '.join(constants)}) and not unchanged(): return False")
        for number, path in enumerate(held):
            body.append(f"y = {path}")
            body.append(f"if y is not t{number} or y.data_ptr() != a{number}: return False")
        body.append("if autocast() or default() is not dtype: return False")
        if not task.gradients:
            wanting = [f"t{number}.requires_grad" for number in range(len(task.held))]
            wants_input = any(_wants(item) for item in (task.args, dict(task.kwargs)))
            needs = " or ".join(wanting) if wanting else str(wants_input)
            body.append(f"if grad() and ({needs}): return False")
        else:
            body.append("if not grad(): return False")
        text = "    try:\n" + "".join(f"        {line}\n" for line in body)
        text += "        return True\n"
        text += "    except (KeyError, IndexError, TypeError, AttributeError, ValueError):\n        return False\n"
        self.names["unchanged"] = lambda: all(constant.unchanged() for constant in task.constants)
        listed = ", ".join([*held, *paths])
        return f"def matches(args, kwargs):\n{text}\ndef tensors(args, kwargs):\n    return [{listed}]\n"


def _reach(owner: str, key: str, place: Any) -> str:
    return f"{owner}.cell_contents" if isinstance(place, Cell) else f"{owner}[{key}]"


def _wants(value: Any) -> bool:
    return any(torch_private.is_tensor(leaf) and leaf.requires_grad for leaf in torch_private.flatten(value)[0])
