"""A selection that is assigned to a name, `selected = x[mask]`, and later summed, averaged or counted."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compile_inspect.fixes.base import BreakSite, dotted
from compile_inspect.fixes.expressions import embedded, grouped
from compile_inspect.fixes.masks import Rewrite, Selection, length_of, selections
from compile_inspect.fixes.source import SourceFile
from compile_inspect.records.fixes import Replacement


def named_selections(site: BreakSite) -> Iterator[Rewrite]:
    """Assign all values, with zeros where the mask is false; keep sums, and rewrite means and counts."""
    source, statement = site.source, site.statement
    function = None if source is None else source.function_at(site.line)
    if source is None or function is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target = statement.targets[0]
    selection = next((item for item in selections(site) if item.node is statement.value), None)
    if selection is None or not isinstance(target, ast.Name):
        return
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    stored = [node.id for node in names if isinstance(node.ctx, ast.Store) and node.lineno >= site.line]
    selected = set(ast.walk(statement.value))
    uses = [node for node in names if node.id == target.id and isinstance(node.ctx, ast.Load) and node not in selected]
    before = [node for node in names if node.id == target.id and node.lineno < site.line]
    # A second assignment to the name or to the mask would change the meaning of the uses.
    masking = {node.id for node in ast.walk(selection.mask) if isinstance(node, ast.Name)}
    if stored.count(target.id) != 1 or masking & set(stored) or before or not uses:
        return
    changes = [_use(source, node, selection) for node in uses]
    values = f"torch.where({source.segment(selection.mask)}, {source.segment(selection.values)}, 0)"
    first = embedded(source, statement.value, values)
    if first is None or any(change is None for change in changes):
        return
    note = f"`{target.id}` has the shape of the mask, with zeros where the mask is false."
    others = [item for change in changes if change is not None for item in change]
    yield Rewrite("Keep all values, with zeros where the mask is false", note, (first, *others))


def _use(source: SourceFile, node: ast.Name, selection: Selection) -> list[Replacement] | None:
    """The edits where the name is used; None if the use needs the selection itself."""
    mask = selection.mask
    length = length_of(source, node, any_numel=True)
    if length is not None:
        change = embedded(source, length, f"torch.count_nonzero({source.segment(mask)})")
        return None if change is None else [change]
    parent = source.parents.get(node)
    call = source.parents.get(parent) if isinstance(parent, ast.Attribute) else parent
    if not isinstance(call, ast.Call) or call.keywords:
        return None
    method = isinstance(parent, ast.Attribute) and call.func is parent and not call.args
    function = parent is call and len(call.args) == 1 and dotted(call.func) in ("torch.sum", "torch.mean")
    name = parent.attr if method and isinstance(parent, ast.Attribute) else dotted(call.func).removeprefix("torch.")
    if not (method or function) or name not in ("sum", "mean"):
        return None
    if name == "sum":
        return []
    change = embedded(source, call, f"{grouped(source, node)}.sum() / {grouped(source, mask)}.sum()")
    return None if change is None else [change]
