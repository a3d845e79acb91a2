"""Add guards to Dynamo's where it treats values as equal that a frozen graph must distinguish.

Dynamo accepts another tensor with the same metadata, another object of the same class, `-0.0` for `0.0`, `(1.0,)` for
`(1,)` and another order of an `OrderedDict`, and does not check whether global module hooks were added.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_CONTAINERS = (tuple, list, set, frozenset, dict, slice, range)


def add_exact_guards(root: Any, reads: Iterable[Any], held: dict[str, Any]) -> set[str]:
    """Add guards for identity and exact equality; returns the sources of tensors that are now guarded by identity."""
    managers = _by_source(root)
    identified = set()
    for read in reads:
        manager, value = managers.get(read.name), read.value
        if manager is None:
            continue
        if hasattr(manager, "get_key_value_managers"):
            continue  # it checks kind, length and order by itself, and its entries have their own guards
        if read.name in held and value is held[read.name]:
            if read.name not in identified:
                manager.add_id_match_guard(id(value), [f"{read.name} is the same tensor"], None)
            identified.add(read.name)
        elif read.kind in ("EQUALS_MATCH", "CONSTANT_MATCH"):
            test = exact_equality_test(value)
            if test is not None:
                manager.add_lambda_guard(test, [f"{read.name} == {value!r:.80} (exactly)"], None)
        elif read.kind == "TYPE_MATCH":
            _tighten_object(manager, read)
    return identified


def _tighten_object(manager: Any, read: Any) -> None:
    value = read.value
    if isinstance(value, dict) and not value:
        manager.add_dict_length_check_guard(0, [f"not {read.name}"], None)
    elif isinstance(value, OrderedDict):
        keys = list(value)
        manager.add_lambda_guard(lambda other: list(other) == keys, [f"the order of {read.name}"], None)
    elif read.is_stable and not read.is_call_input and _is_object(value):
        # Otherwise `a is b` could change without a failing guard.
        manager.add_id_match_guard(id(value), [f"{read.name} is the same object"], None)


def _is_object(value: Any) -> bool:
    """Whether a value is an instance of a class written in Python, or a bare object."""
    return type(value) is object or (bool(type(value).__flags__ & (1 << 9)) and not isinstance(value, (dict, list, tuple, set)))


def guard_restored_attributes(root: Any, restored: list[tuple[dict[str, Any], str, Any]]) -> None:
    """Guard attributes that a call sets to their present value: with another value, the call would change them."""
    if restored:
        expected = [(owner, name, type(value), repr(value)) for owner, name, value in restored]
        words = ", ".join(sorted({name for _, name, _ in restored}))

        def unchanged(_: Any) -> bool:
            return all(type(owner.get(name)) is kind and repr(owner[name]) == text for owner, name, kind, text in expected)

        root.add_lambda_guard(unchanged, [f"attributes that the call sets ({words}) have the values it sets"], None)


def _by_source(root: Any) -> dict[str, Any]:
    result: dict[str, Any] = {}
    pending = [root]
    while pending:
        manager = pending.pop()
        result.setdefault(manager.get_source(), manager)
        pending += manager.get_child_managers()
        # Dictionaries whose order is guarded store their children elsewhere.
        pairs = manager.get_key_value_managers() if hasattr(manager, "get_key_value_managers") else {}
        pending += [child for pair in pairs.values() for child in pair if child is not None]
    return result


def exact_equality_test(value: Any) -> Callable[[Any], bool] | None:
    """A test for values that `==` treats as equal and arithmetic does not; None where `==` and the type suffice.

    >>> exact_equality_test(0.0)(-0.0), exact_equality_test((1, 2))((1.0, 2)), exact_equality_test(3)
    (False, False, None)
    """
    if type(value) is float and value == 0.0:
        sign = math.copysign(1.0, value)
        return lambda other: math.copysign(1.0, other) == sign
    if type(value) is complex and (value.real == 0.0 or value.imag == 0.0):
        text = repr(value)
        return lambda other: repr(other) == text
    if type(value) in _CONTAINERS and _is_plain(value):
        if type(value) in (set, frozenset):
            parts = sorted(map(repr, value))
            return lambda other: sorted(map(repr, other)) == parts
        text = repr(value)
        return lambda other: repr(other) == text
    return None


def _is_plain(value: Any) -> bool:
    """Whether a container has only scalars and such containers, so that its repr determines it."""
    if type(value) is dict:
        return all(_is_plain(item) for pair in value.items() for item in pair)
    if type(value) is slice:
        return all(type(item) in _SCALARS for item in (value.start, value.stop, value.step))
    if type(value) is range or type(value) in _SCALARS:
        return True
    return type(value) in _CONTAINERS and all(_is_plain(item) for item in value)


def first_failure(root: Any, scope: dict[str, Any]) -> str:
    """The first guard that does not hold, in Dynamo's words; empty if all hold."""
    result = root.check_verbose(scope)
    if result.result:
        return ""
    parts = [str(part).partition("  #")[0].strip() for part in result.verbose_code_parts]
    return parts[0] if parts else "a guard"
