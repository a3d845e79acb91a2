"""The present value of a variable whose guard failed, without running any of the user's code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any

_REASON = re.compile(r"^(?:!?\d+/\d+(?:/\d+)?: )?(?P<condition>[^\n#]*)")
_CHECK_TYPE = re.compile(r"___check_type_id\((?P<name>.*), \d+\)")
_COMPARISON = re.compile(r"^(?P<name>.+?) (?:==|!=|is not|is|<=|>=|<|>) ")
_SIZE = re.compile(r"(?P<name>[^\W\d][\w.\[\]']*)\.size\(\)\[(?P<dimension>\d+)\]")
_TENSORS = (("torch", "Tensor"), ("torch.nn.parameter", "Parameter"))
_PLAIN = (bool, int, float, complex, str, type(None))
_LONGEST = 80


def actual_values(reasons: Iterable[str], local: Mapping[str, Any], global_: Mapping[str, Any]) -> dict[str, str]:
    """For each variable that the reasons compare, what it is now.

    Only plain values are read, and only through dictionaries: a property or `__getattr__` of the user's is never
    called. The type of a variable is given under `type(name)`.

    >>> actual_values(["0/0: flag == True"], {"flag": False}, {})
    {'flag': 'False'}
    """
    values: dict[str, str] = {}
    for reason in reasons:
        match = _REASON.match(reason)
        condition = match["condition"].strip() if match else ""
        of_type = _CHECK_TYPE.search(condition)
        compared = _COMPARISON.match(condition)
        name = of_type["name"] if of_type else compared["name"] if compared else ""
        values |= _sizes(condition, local, global_)
        found, value = look_up(name, local, global_)
        if not found:
            continue
        if of_type:
            values[f"type({name})"] = type(value).__name__
        elif type(value) in _PLAIN:
            values[name] = repr(value)[:_LONGEST]
    return values


def _sizes(condition: str, local: Mapping[str, Any], global_: Mapping[str, Any]) -> dict[str, str]:
    """The sizes of tensors that a condition speaks of; a subclass may compute its own, and is not asked."""
    values = {}
    for match in _SIZE.finditer(condition):
        found, tensor = look_up(match["name"], local, global_)
        if found and (type(tensor).__module__, type(tensor).__name__) in _TENSORS and int(match["dimension"]) < tensor.dim():
            values[match[0]] = str(tensor.shape[int(match["dimension"])])
    return values


def look_up(expression: str, local: Mapping[str, Any], global_: Mapping[str, Any]) -> tuple[bool, Any]:
    """Follow names, attributes held in `__dict__`, and items of plain containers."""
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError):
        return False, None
    return _follow(tree, local, global_)


def _follow(node: ast.expr, local: Mapping[str, Any], global_: Mapping[str, Any]) -> tuple[bool, Any]:
    if isinstance(node, ast.Name):
        if node.id in ("L", "G") and node.id not in local:  # Dynamo's names for the locals and the globals
            return True, dict(local) if node.id == "L" else dict(global_)
        space = local if node.id in local else global_
        return node.id in space, space.get(node.id)
    if isinstance(node, ast.Attribute):
        found, owner = _follow(node.value, local, global_)
        held = _held(owner, node.attr) if found else None
        return (True, held[0]) if held else (False, None)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        found, owner = _follow(node.value, local, global_)
        if found and type(owner) in (dict, list, tuple):
            try:
                return True, owner[node.slice.value]
            except (KeyError, IndexError, TypeError):
                return False, None
    return False, None


def _held(owner: Any, name: str) -> tuple[Any] | None:
    """What an object holds under a name, wrapped to tell None from nothing."""
    try:
        attributes = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return None
    for space in (attributes, *(attributes.get(key, {}) for key in ("_modules", "_parameters", "_buffers"))):
        if type(space) is dict and name in space:
            return (space[name],)
    return None
