"""Selections with a mask, `x[mask]`, and equivalent code with a fixed shape."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from compile_inspect.fixes.base import BreakSite, dotted, last_name
from compile_inspect.fixes.expressions import argument, checked, embedded, grouped, is_parameter, last_value
from compile_inspect.fixes.source import SourceFile
from compile_inspect.records.fixes import Replacement

_NEUTRAL = {"sum": "0", "mean": "0", "prod": "1", "any": "0", "all": "1", "norm": "0"}
_EXTREME = {"max": 'float("-inf")', "amax": 'float("-inf")', "min": 'float("inf")', "amin": 'float("inf")'}
_COUNTS = ("nonzero", "argwhere")
# Losses that are zero where both arguments are zero.
_DISTANCES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_CLASS_LOSSES = ("cross_entropy", "nll_loss")


@dataclass(frozen=True)
class Selection:
    """`values[mask]`, or `masked_select(values, mask)`."""

    node: ast.expr
    values: ast.expr
    mask: ast.expr


@dataclass(frozen=True)
class Rewrite:
    """A rewrite that avoids a shape that depends on data."""

    title: str
    changes: str
    replacements: tuple[Replacement, ...]


def selections(site: BreakSite, root: ast.AST | None = None) -> list[Selection]:
    """The selections in the statement, or inside one of its nodes, outer ones first."""
    if site.source is None or site.statement is None:
        return []
    nodes = ast.walk(root) if root is not None else site.source.head(site.statement)
    matches = []
    for node in nodes:
        if isinstance(node, ast.Subscript) and is_mask(site, node.slice):
            matches.append(Selection(node, node.value, node.slice))
        elif isinstance(node, ast.Call) and last_name(node.func) == "masked_select" and isinstance(node.func, ast.Attribute):
            values = argument(node, 0, "input") if dotted(node.func) == "torch.masked_select" else node.func.value
            mask = argument(node, 1 if dotted(node.func) == "torch.masked_select" else 0, "mask")
            if values is not None and mask is not None:
                matches.append(Selection(node, values, mask))
    return matches


def is_mask(site: BreakSite, node: ast.expr) -> bool:
    """Whether an index is a mask, judged by its text: a comparison, or the only index that torch's message can refer to."""
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.Invert, ast.Not))
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)) and is_mask(site, node.left)
    if isinstance(node, ast.Call):
        return last_name(node.func) in ("bool", "isnan", "isfinite", "isinf", "eq", "ne", "gt", "ge", "lt", "le")
    if isinstance(node, ast.Name) and site.source is not None:
        value = last_value(site.source, node.id, site.line)
        if value is not None and not isinstance(value, ast.Name) and is_mask(site, value):
            return True
    # torch calls nonzero only if the index is a mask.
    searches = site.calls("nonzero", "where", "argwhere", "flatnonzero")
    return isinstance(node, (ast.Name, ast.Attribute)) and "aten.nonzero" in site.cause.context and not searches


def reductions(site: BreakSite) -> Iterator[Rewrite]:
    """Replace a sum, mean or similar reduction of a selection by one of all values, with neutral ones outside the mask."""
    source = site.source
    if source is None:
        return
    edits_by_title: dict[str, list[Replacement]] = {}
    notes: dict[Replacement, str] = {}
    for item in selections(site):
        call, name, rest = _reduction(source, item)
        if call is None:
            continue
        values, mask = source.segment(item.values), source.segment(item.mask)
        fill = _NEUTRAL.get(name) or _EXTREME.get(name)
        rows = f"{grouped(source, item.mask)}.unsqueeze(-1)"
        total = "sum" if name == "mean" else name
        count = f"{grouped(source, item.mask)}.sum()"
        empty = "If the mask is false everywhere, the result is infinite instead of an error." if name in _EXTREME else ""
        forms = [("", mask)] if not rest else []
        if not (name == "mean" and not rest):
            forms.append((", row by row", rows))
        for words, condition in forms:
            new = f"torch.where({condition}, {values}, {fill}).{total}({rest})"
            change = embedded(source, call, f"{new} / {count}" if name == "mean" else new)
            if change is not None:
                edits_by_title.setdefault(f"Put neutral values where the mask is false{words}", []).append(change)
                notes[change] = empty
    for title, changes in edits_by_title.items():
        # All selections of the statement: one that stays would still break the graph.
        inner = [
            one for one in changes for other in changes if other.start <= one.start and one.end <= other.end and one != other
        ]
        if not inner:
            yield Rewrite(title, " ".join(dict.fromkeys(filter(None, map(notes.get, changes)))), tuple(changes))


def _reduction(source: SourceFile, item: Selection) -> tuple[ast.Call | None, str, str]:
    """The call that reduces a selection, its name, and the text of its arguments."""
    parent = source.parents.get(item.node)
    fill_values = {**_NEUTRAL, **_EXTREME}
    if isinstance(parent, ast.Attribute) and parent.attr in fill_values:
        call = source.parents.get(parent)
        if isinstance(call, ast.Call) and call.func is parent:
            arguments = ", ".join(source.segment(node) for node in [*call.args, *call.keywords])
            plain = not arguments or (arguments in ("0", "dim=0") and parent.attr not in ("max", "min", "norm"))
            return (call if plain else None), parent.attr, arguments
    if (
        isinstance(parent, ast.Call)
        and dotted(parent.func) in {f"torch.{name}" for name in fill_values}
        and len(parent.args) == 1
    ):
        return (None if parent.keywords else parent), last_name(parent.func), ""
    return None, "", ""


def counts(site: BreakSite) -> Iterator[Rewrite]:
    """Replace the number of selected values by the number of true values in the mask."""
    source = site.source
    if source is None or site.statement is None:
        return
    masks = {item.node: item.mask for item in selections(site)}
    for call in site.calls(*_COUNTS):
        mask_expression = argument(call, 0, "input") if dotted(call.func).startswith("torch.") else None
        if mask_expression is None and isinstance(call.func, ast.Attribute) and not call.args:
            mask_expression = call.func.value
        if mask_expression is not None and not any(keyword.arg == "as_tuple" for keyword in call.keywords):
            masks[call] = mask_expression
    changes = []
    for node, mask in masks.items():
        length = length_of(source, node)
        change = None if length is None else embedded(source, length, f"torch.count_nonzero({source.segment(mask)})")
        if change is not None:
            changes.append(change)
    if changes:
        note = "The count is a zero-dimensional tensor instead of a Python number."
        yield Rewrite("Count the true values of the mask", note, tuple(changes))


def length_of(source: SourceFile, node: ast.AST, *, any_numel: bool = False) -> ast.expr | None:
    """`len(node)`, `node.shape[0]`, `node.size(0)` around a node; also `node.numel()` of a subscript, or of any node."""
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
        is_numel = parent.attr == "numel" and not first and (any_numel or isinstance(node, ast.Subscript))
        if is_numel or (parent.attr == "size" and first == [0]):
            return above
    return None


def losses(site: BreakSite) -> Iterator[Rewrite]:
    """Replace a loss of a selection by a loss of all values that ignores those outside the mask."""
    source = site.source
    for call in site.calls(*_DISTANCES, *_CLASS_LOSSES):
        if source is None or len(call.args) != 2 or call.keywords:
            continue
        pair = [item for argument_ in call.args for item in selections(site, argument_) if item.node is argument_]
        if len(pair) != 2 or source.segment(pair[0].mask) != source.segment(pair[1].mask):
            continue
        function, mask = source.segment(call.func), source.segment(pair[0].mask)
        first, second = (source.segment(item.values) for item in pair)
        if last_name(call.func) in _CLASS_LOSSES:
            new = f"{function}({first}, torch.where({mask}, {second}, -100))"
            title = "Mark the targets outside the mask as ignored"
        else:
            both = ", ".join(f"torch.where({mask}, {values}, 0)" for values in (first, second))
            new = f'{function}({both}, reduction="sum") / {grouped(source, pair[0].mask)}.sum()'
            title = "Put zeros in both arguments where the mask is false"
        change = embedded(source, call, new)
        if change is not None:
            yield Rewrite(title, "", (change,))


def assignments(site: BreakSite) -> Iterator[Rewrite]:
    """Replace `y[mask] = …`, whose right side uses the same mask, by `y = torch.where(mask, …, y)`."""
    source, statement = site.source, site.statement
    if source is None or not isinstance(statement, (ast.Assign, ast.AugAssign)):
        return
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    target = statement.target if isinstance(statement, ast.AugAssign) else target
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name) or not is_mask(site, target.slice):
        return
    name, mask = target.value.id, source.segment(target.slice)
    right = _without_selections(site, statement.value, mask)
    if right is None:
        return
    if isinstance(statement, ast.AugAssign):
        operator = source.between(source.span(target)[1], source.span(statement.value)[0]).strip().removesuffix("=")
        loose = not isinstance(statement.value, (ast.Name, ast.Subscript, ast.Call, ast.Constant, ast.Attribute))
        right = f"{name} {operator} {f'({right})' if loose else right}"
    elif right == source.segment(statement.value):
        return
    computed = (
        "The right side is computed for all elements, not only for those in the mask; "
        "if it is not finite outside the mask, gradients become NaN."
    )
    for words, condition in (("", mask), (", row by row", f"{grouped(source, target.slice)}.unsqueeze(-1)")):
        new = f"torch.where({condition}, {right}, {name})"
        is_argument = is_parameter(source, name, site.line)
        change = checked(source, source.replace(statement, f"{name}.copy_({new})" if is_argument else f"{name} = {new}"))
        if change is not None:
            note = (
                computed if is_argument else f"`{name}` is a new tensor; aliases of the old one keep the old values. {computed}"
            )
            yield Rewrite(f"Choose between new and old values with torch.where{words}", note, (change,))


def _without_selections(site: BreakSite, node: ast.expr, mask: str) -> str | None:
    """The text of an expression with `x` in place of each `x[mask]`; None if the mask is also used in another way."""
    source = site.source
    if source is None:
        return None
    matches = [item for item in selections(site, node) if source.segment(item.mask) == mask]
    start, end = source.span(node)
    text, position = "", start
    for item in sorted(matches, key=lambda item: source.span(item.node)):
        first, last = source.span(item.node)
        if first < position:
            return None
        text += source.between(position, first) + source.segment(item.values)
        position = last
    masks = {part for item in matches for part in ast.walk(item.mask)}
    others = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part not in masks and part.id == mask]
    return None if others else text + source.between(position, end)
