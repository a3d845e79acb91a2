"""Selections with a mask, `x[mask]`, and what can be written in their place without selecting."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from compile_inspect.fixes.base import Place, dotted, last_name
from compile_inspect.fixes.expressions import argument, checked, embedded, grouped, is_parameter, last_value
from compile_inspect.fixes.source import SourceFile
from compile_inspect.records.fixes import Replacement

_NEUTRAL = {"sum": "0", "mean": "0", "prod": "1", "any": "0", "all": "1", "norm": "0"}
_EXTREME = {"max": 'float("-inf")', "amax": 'float("-inf")', "min": 'float("inf")', "amin": 'float("inf")'}
_COUNTS = ("nonzero", "argwhere")
# Losses that are zero where both sides are.
_DISTANCES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_CLASS_LOSSES = ("cross_entropy", "nll_loss")


@dataclass(frozen=True)
class Selection:
    """`values[mask]`, or masked_select of the two."""

    node: ast.expr
    values: ast.expr
    mask: ast.expr


@dataclass(frozen=True)
class Rewritten:
    """A way to do without a selection."""

    title: str
    changes: str
    replacements: tuple[Replacement, ...]


def selections(place: Place, root: ast.AST | None = None) -> list[Selection]:
    """The selections in the statement, or below a node of it, outer ones first."""
    if place.source is None or place.statement is None:
        return []
    nodes = ast.walk(root) if root is not None else place.source.head(place.statement)
    found = []
    for node in nodes:
        if isinstance(node, ast.Subscript) and is_mask(place, node.slice):
            found.append(Selection(node, node.value, node.slice))
        elif isinstance(node, ast.Call) and last_name(node.func) == "masked_select" and isinstance(node.func, ast.Attribute):
            values = argument(node, 0, "input") if dotted(node.func) == "torch.masked_select" else node.func.value
            mask = argument(node, 1 if dotted(node.func) == "torch.masked_select" else 0, "mask")
            if values is not None and mask is not None:
                found.append(Selection(node, values, mask))
    return found


def is_mask(place: Place, node: ast.expr) -> bool:
    """Whether an index is a mask as far as can be seen: a comparison, or the only thing that torch can mean."""
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.Invert, ast.Not))
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)) and is_mask(place, node.left)
    if isinstance(node, ast.Call):
        return last_name(node.func) in ("bool", "isnan", "isfinite", "isinf", "eq", "ne", "gt", "ge", "lt", "le")
    if isinstance(node, ast.Name) and place.source is not None:
        value = last_value(place.source, node.id, place.line)
        if value is not None and not isinstance(value, ast.Name) and is_mask(place, value):
            return True
    # torch looks for the places that are true only where the index is a mask.
    searched = place.calls("nonzero", "where", "argwhere", "flatnonzero")
    return isinstance(node, (ast.Name, ast.Attribute)) and "aten.nonzero" in place.cause.context and not searched


def reductions(place: Place) -> Iterator[Rewritten]:
    """A sum, mean or the like of a selection: the same of all values, with neutral ones where the mask is false."""
    source = place.source
    if source is None:
        return
    found: dict[str, list[Replacement]] = {}
    told: dict[Replacement, str] = {}
    for item in selections(place):
        call, name, rest = _reduction(source, item)
        if call is None:
            continue
        values, mask = source.segment(item.values), source.segment(item.mask)
        fill = _NEUTRAL.get(name) or _EXTREME.get(name)
        rows = f"{grouped(source, item.mask)}.unsqueeze(-1)"
        total = "sum" if name == "mean" else name
        count = f"{grouped(source, item.mask)}.sum()"
        empty = "Where the mask is false everywhere, the result is infinite instead of an error." if name in _EXTREME else ""
        forms = [("", mask)] if not rest else []
        if not (name == "mean" and not rest):
            forms.append((", row by row", rows))
        for words, condition in forms:
            new = f"torch.where({condition}, {values}, {fill}).{total}({rest})"
            change = embedded(source, call, f"{new} / {count}" if name == "mean" else new)
            if change is not None:
                found.setdefault(f"Put neutral values where the mask is false{words}", []).append(change)
                told[change] = empty
    for title, changes in found.items():
        # All selections of the statement, since one that stays is a break that stays.
        inner = [
            one for one in changes for other in changes if other.start <= one.start and one.end <= other.end and one != other
        ]
        if not inner:
            yield Rewritten(title, " ".join(dict.fromkeys(filter(None, map(told.get, changes)))), tuple(changes))


def _reduction(source: SourceFile, item: Selection) -> tuple[ast.Call | None, str, str]:
    """The call that reduces a selection, its name, and its arguments."""
    parent = source.parents.get(item.node)
    known = {**_NEUTRAL, **_EXTREME}
    if isinstance(parent, ast.Attribute) and parent.attr in known:
        call = source.parents.get(parent)
        if isinstance(call, ast.Call) and call.func is parent:
            given = ", ".join(source.segment(node) for node in [*call.args, *call.keywords])
            plain = not given or (given in ("0", "dim=0") and parent.attr not in ("max", "min", "norm"))
            return (call if plain else None), parent.attr, given
    if isinstance(parent, ast.Call) and dotted(parent.func) in {f"torch.{name}" for name in known} and len(parent.args) == 1:
        return (None if parent.keywords else parent), last_name(parent.func), ""
    return None, "", ""


def counts(place: Place) -> Iterator[Rewritten]:
    """The number of selected values: what the mask counts itself."""
    source = place.source
    if source is None or place.statement is None:
        return
    masks = {item.node: item.mask for item in selections(place)}
    for call in place.calls(*_COUNTS):
        searched = argument(call, 0, "input") if dotted(call.func).startswith("torch.") else None
        if searched is None and isinstance(call.func, ast.Attribute) and not call.args:
            searched = call.func.value
        if searched is not None and not any(keyword.arg == "as_tuple" for keyword in call.keywords):
            masks[call] = searched
    changes = []
    for node, mask in masks.items():
        length = length_of(source, node)
        change = None if length is None else embedded(source, length, f"torch.count_nonzero({source.segment(mask)})")
        if change is not None:
            changes.append(change)
    if changes:
        told = "The count is a tensor without dimensions instead of a Python number."
        yield Rewritten("Count in the mask itself", told, tuple(changes))


def length_of(source: SourceFile, node: ast.AST, *, any_numel: bool = False) -> ast.expr | None:
    """`len(node)`, `node.shape[0]`, `node.size(0)` around a node, or `node.numel()` of a subscript or of anything."""
    parent = source.parents.get(node)
    if isinstance(parent, ast.Call) and dotted(parent.func) == "len" and len(parent.args) == 1:
        return parent
    above = source.parents.get(parent) if parent is not None else None
    if not isinstance(parent, ast.Attribute):
        return None
    if parent.attr == "shape" and isinstance(above, ast.Subscript):
        return above if isinstance(above.slice, ast.Constant) and above.slice.value == 0 else None
    if isinstance(above, ast.Call) and above.func is parent and not above.keywords:
        first = [item.value if isinstance(item, ast.Constant) else None for item in above.args]
        counted = parent.attr == "numel" and not first and (any_numel or isinstance(node, ast.Subscript))
        if counted or (parent.attr == "size" and first == [0]):
            return above
    return None


def losses(place: Place) -> Iterator[Rewritten]:
    """A loss of a selection: the loss of everything, without what the mask leaves out."""
    source = place.source
    for call in place.calls(*_DISTANCES, *_CLASS_LOSSES):
        if source is None or len(call.args) != 2 or call.keywords:
            continue
        chosen = [item for argument_ in call.args for item in selections(place, argument_) if item.node is argument_]
        if len(chosen) != 2 or source.segment(chosen[0].mask) != source.segment(chosen[1].mask):
            continue
        function, mask = source.segment(call.func), source.segment(chosen[0].mask)
        first, second = (source.segment(item.values) for item in chosen)
        if last_name(call.func) in _CLASS_LOSSES:
            new = f"{function}({first}, torch.where({mask}, {second}, -100))"
            title = "Mark the targets that do not count as ignored"
        else:
            both = ", ".join(f"torch.where({mask}, {values}, 0)" for values in (first, second))
            new = f'{function}({both}, reduction="sum") / {grouped(source, chosen[0].mask)}.sum()'
            title = "Put zeros on both sides where the mask is false"
        change = embedded(source, call, new)
        if change is not None:
            yield Rewritten(title, "", (change,))


def assignments(place: Place) -> Iterator[Rewritten]:
    """`y[mask] = …` with a right side that is a selection of the same mask: `y = torch.where(mask, …, y)`."""
    source, statement = place.source, place.statement
    if source is None or not isinstance(statement, (ast.Assign, ast.AugAssign)):
        return
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    target = statement.target if isinstance(statement, ast.AugAssign) else target
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name) or not is_mask(place, target.slice):
        return
    name, mask = target.value.id, source.segment(target.slice)
    right = _without_selections(place, statement.value, mask)
    if right is None:
        return
    if isinstance(statement, ast.AugAssign):
        operator = source.between(source.span(target)[1], source.span(statement.value)[0]).strip().removesuffix("=")
        loose = not isinstance(statement.value, (ast.Name, ast.Subscript, ast.Call, ast.Constant, ast.Attribute))
        right = f"{name} {operator} {f'({right})' if loose else right}"
    elif right == source.segment(statement.value):
        return
    computed = (
        "The right side is computed for all places, not only for those that are kept; "
        "where it is not finite at the others, gradients become nan."
    )
    for words, condition in (("", mask), (", row by row", f"{grouped(source, target.slice)}.unsqueeze(-1)")):
        new = f"torch.where({condition}, {right}, {name})"
        kept = is_parameter(source, name, place.line)
        change = checked(source, source.replace(statement, f"{name}.copy_({new})" if kept else f"{name} = {new}"))
        if change is not None:
            told = (
                computed if kept else f"`{name}` is a new tensor; other names for the old one keep the old values. {computed}"
            )
            yield Rewritten(f"Choose between new and old values with torch.where{words}", told, (change,))


def _without_selections(place: Place, node: ast.expr, mask: str) -> str | None:
    """The text of an expression with `x` in the place of each `x[mask]`; None where the mask is used otherwise too."""
    source = place.source
    if source is None:
        return None
    chosen = [item for item in selections(place, node) if source.segment(item.mask) == mask]
    start, end = source.span(node)
    text, position = "", start
    for item in sorted(chosen, key=lambda item: source.span(item.node)):
        first, last = source.span(item.node)
        if first < position:
            return None
        text += source.between(position, first) + source.segment(item.values)
        position = last
    masks = {part for item in chosen for part in ast.walk(item.mask)}
    others = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part not in masks and part.id == mask]
    return None if others else text + source.between(position, end)
