"""Read the current value of a variable whose guard failed, without running any of the user's code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any

_REASON = re.compile(r"^(?:!?\d+/\d+(?:/\d+)?: )?(?P<condition>[^\n#]*)")
_CHECK_TYPE = re.compile(r"___check_type_id\((?P<name>.*), \d+\)")
_COMPARISON = re.compile(r"^(?P<name>.+?) (?:==|!=|is not|is|<=|>=|<|>) ")
_SIZE = re.compile(r"(?P<name>[^\W\d][\w.\[\]']*)\.size\(\)\[(?P<dimension>\d+)\]")
_TENSOR_TYPES = (("torch", "Tensor"), ("torch.nn.parameter", "Parameter"))
_PLAIN_TYPES = (bool, int, float, complex, str, type(None))
_MAX_CHARACTERS = 80


def actual_values(reasons: Iterable[str], local: Mapping[str, Any], global_: Mapping[str, Any]) -> dict[str, str]:
    """The current value of each variable that the reasons compare.

    Only plain values are read, and only through dictionaries: the user's properties and `__getattr__` are never called. The
    type of a variable is stored under `type(name)`.

    >>> actual_values(["0/0: flag == True"], {"flag": False}, {})
    {'flag': 'False'}
    """
    values: dict[str, str] = {}
    for reason in reasons:
        match = _REASON.match(reason)
        condition = match["condition"].strip() if match else ""
        type_check = _CHECK_TYPE.search(condition)
        comparison = _COMPARISON.match(condition)
        name = type_check["name"] if type_check else comparison["name"] if comparison else ""
        values |= _sizes(condition, local, global_)
        exists, value = look_up(name, local, global_)
        if not exists:
            continue
        if type_check:
            values[f"type({name})"] = type(value).__name__
        elif type(value) in _PLAIN_TYPES:
            values[name] = repr(value)[:_MAX_CHARACTERS]
    return values


def _sizes(condition: str, local: Mapping[str, Any], global_: Mapping[str, Any]) -> dict[str, str]:
    """The sizes of tensors in a condition. Subclasses are skipped, because they may run code to compute their sizes."""
    values = {}
    for match in _SIZE.finditer(condition):
        exists, tensor = look_up(match["name"], local, global_)
        if (
            exists
            and (type(tensor).__module__, type(tensor).__name__) in _TENSOR_TYPES
            and int(match["dimension"]) < tensor.dim()
        ):
            values[match[0]] = str(tensor.shape[int(match["dimension"])])
    return values


def look_up(expression: str, local: Mapping[str, Any], global_: Mapping[str, Any]) -> tuple[bool, Any]:
    """Evaluate names, attributes in `__dict__`, and items of plain containers: whether the value exists, and the value."""
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
        exists, owner = _follow(node.value, local, global_)
        attribute = _stored_attribute(owner, node.attr) if exists else None
        return (True, attribute[0]) if attribute else (False, None)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        exists, owner = _follow(node.value, local, global_)
        if exists and type(owner) in (dict, list, tuple):
            try:
                return True, owner[node.slice.value]
            except (KeyError, IndexError, TypeError):
                return False, None
    return False, None


def _stored_attribute(owner: Any, name: str) -> tuple[Any] | None:
    """The stored attribute of an object in a tuple; None if there is none."""
    try:
        attributes = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return None
    for space in (attributes, *(attributes.get(key, {}) for key in ("_modules", "_parameters", "_buffers"))):
        if type(space) is dict and name in space:
            return (space[name],)
    return None
