"""What is done to tensors and modules themselves, rather than computed with them."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import Fixer, Place, dotted, last_name
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.writing import (
    arguments_of,
    bracketed,
    delete,
    full_name,
    function_of,
    insert_after,
    is_alone,
    uses,
    without_keyword,
)
from compile_inspect.records.fixes import Proposal, Replacement

_GRADIENT = (
    *("Unsupported Tensor.requires_grad_() call", "setattr() on Tensor.requires_grad", "requires_grad_() intermediate leaked"),
    *("returning intermediate with requires_grad_()", "Attempted to use tensor creation function with requires_grad=True"),
)
_PARAMETER = ("Attempted to use `torch.nn.Parameter()`", "`torch.nn.Parameter")
_DATA, _GRAD_FN, _COPY = (
    "Failed to mutate tensor data attribute",
    "Tensor with grad_fn()",
    "Attempted to copy.deepcopy a tensor",
)
_SCRIPTED = "torch.jit.script/freeze modules unsupported"
_HOOKS = ("Storing Tensor hook handle in globals", "Attempted to represent unregistered RemovableHandle")
_OTHERS = (*_HOOKS, "Unhandled args for method", "Encountered tensor.is_inference", "Encountered torch.is_inference")
_SCRIPTS = ("torch.jit.script", "torch.jit.trace", "torch.jit.freeze", "torch.jit.optimize_for_inference")


class Attributes(Fixer):
    """Flags, data, parameters and copies of tensors; modules of an older compiler."""

    name = "attributes"

    def concerns(self, place: Place) -> bool:
        """Whether the line changes what a tensor or a module is."""
        kinds = (*_GRADIENT, *_PARAMETER, _DATA, _GRAD_FN, _COPY, _SCRIPTED, *_OTHERS)
        return place.cause.kind.startswith(kinds) or place.says("torch/jit/_script.py", "RemovableHandle")

    def why(self, place: Place) -> str:
        """The reason."""
        kind = place.cause.kind
        if kind.startswith(_GRADIENT):
            return (
                "The line changes whether a tensor gathers a gradient. A graph is compiled for tensors that do or do not, and "
                "cannot change that in the middle of itself."
            )
        if kind.startswith(_PARAMETER):
            return "A Parameter is made inside the function; torch has to know all parameters before it compiles a graph."
        if kind == _GRAD_FN:
            return "The line asks for the node that computes a tensor's gradient; inside a graph there is none yet."
        if kind == _COPY:
            return "The line copies a tensor as a Python object, with all that hangs on it; a graph can only copy its values."
        if kind == _SCRIPTED or place.says("torch/jit/_script.py"):
            return (
                "A module was compiled by TorchScript before; torch.compile can neither look into it nor join it with the rest."
            )
        if kind.startswith(_DATA):
            return "The line puts other memory behind a tensor that was made in the graph; a graph only computes new tensors."
        return place.cause.explanation or "The line does something to a tensor or a module that cannot be part of a graph."

    def hints(self, place: Place) -> tuple[str, ...]:
        """What to do by hand."""
        kind = place.cause.kind
        if kind.startswith(_GRADIENT):
            return (
                "Call requires_grad_() on a tensor before it is passed to the compiled function, and freeze parameters once, "
                "where the model is built.",
                "Where the gradient is needed inside, torch.func.grad and torch.func.vjp need no flag on the tensor.",
            )
        if kind.startswith(_PARAMETER):
            return ("Make the Parameter, or the layer that has it, in __init__; a lazy one by calling the model once before.",)
        if place.says("hook", "Hook", "RemovableHandle"):
            return ("Register hooks before the compiled function is called, and keep their handles outside of it.",)
        if place.says("is_inference"):
            return ("Decide outside the compiled function, or ask torch.is_grad_enabled(), which is traced.",)
        if place.says("share_memory_"):
            return ("Share the memory of a tensor before or after the compiled function.",)
        return place.cause.hints or ("Do it before or after the compiled function.",)

    def proposals(self, place: Place) -> list[Proposal]:
        """What is traced instead."""
        source, statement, kind = place.source, place.statement, place.cause.kind
        if source is None or statement is None:
            return []
        if kind.startswith(_GRADIENT):
            return [*self._frozen(source, statement), *self._unflagged(place, source, statement)]
        if kind.startswith(_PARAMETER):
            return self._plain(place, source, statement)
        if kind.startswith(_DATA):
            return self._filled(source, statement)
        if kind == _GRAD_FN:
            return self._asked(source, statement)
        if kind == _COPY:
            return self._copied(place, source)
        return self._unscripted(place, source)

    def _frozen(self, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        """A flag of the module's own parameters, set where the module is built."""
        whole: ast.stmt = statement
        above = source.parents.get(statement)
        if isinstance(above, ast.For) and len(above.body) == 1 and not above.orelse:
            whole = above
        forward, owner = _flagged(statement), source.parents.get(whole)
        if forward is None or not isinstance(owner, ast.FunctionDef) or not isinstance(source.parents.get(owner), ast.ClassDef):
            return []
        builds = [item for item in source.parents[owner].body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]  # type: ignore[attr-defined]
        names = {node.id for node in ast.walk(whole) if isinstance(node, ast.Name)}
        local = {whole.target.id} if isinstance(whole, ast.For) and isinstance(whole.target, ast.Name) else set()
        if not builds or names - local != {"self"} or (local and len(uses(owner, *local)) != 2) or owner is builds[0]:
            return []
        last = builds[0].body[-1]
        if not is_alone(source, last) or isinstance(last, ast.Return) or not is_alone(source, whole):
            return []
        (line, _), (end, _) = source.span(whole)
        if source.indent(last) != source.indent(whole) or len(owner.body) == 1:
            return []
        width = len(source.indent(whole))
        moved = [text.rstrip("\r")[width:] for text in source.lines[line - 1 : end]]
        gone = Replacement(source.file, (line, 0), (end + 1, 0), source.between((line, 0), (end + 1, 0)), "")
        told = "It is so from the beginning, not only from the first call on."
        return [self.rewrite("Set it once, where the module is built", insert_after(source, last, moved), gone, changes=told)]

    def _unflagged(self, place: Place, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        """A gradient that nobody reads, of a tensor that the function makes, left out."""
        function = function_of(source, statement)
        if function is None or any(_reads_gradients(node) for node in ast.walk(function)):
            return []
        inputs = arguments_of(function)
        change: Replacement | None = None
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad" and _is_true(statement.value):
                change = delete(source, statement) if _is_local(target.value, inputs) else None
        for call in place.calls("requires_grad_"):
            if not isinstance(call.func, ast.Attribute) or not (not call.args or _is_true(call.args[0])) or call.keywords:
                continue
            if isinstance(statement, ast.Expr) and statement.value is call:
                change = delete(source, statement) if _is_local(call.func.value, inputs) else None
            elif isinstance(call.func.value, ast.Call):
                change = source.replace(call, source.segment(call.func.value))
        for call in place.calls():
            if full_name(source, call.func).startswith("torch.") and _is_true(_keyword(call, "requires_grad")):
                change = change or without_keyword(source, call, "requires_grad")
        if change is None:
            return []
        told = "The tensor gathers no gradient any more; nothing in the function reads it."
        where = "Right where the tensor is only a beginning, such as a first hidden state, and nobody trains it."
        return [self.rewrite("Leave the tensor without a gradient of its own", change, changes=told, where=where)]

    def _plain(self, place: Place, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        if not isinstance(statement, ast.Assign) or not all(isinstance(target, ast.Name) for target in statement.targets):
            return []
        for call in place.calls("Parameter"):
            named = [keyword.arg for keyword in call.keywords]
            if full_name(source, call.func) in ("torch.nn.Parameter", "torch.nn.parameter.Parameter") and len(call.args) == 1:
                if set(named) - {"requires_grad"} or isinstance(call.args[0], ast.Starred):
                    continue
                told = "The tensor is no Parameter and gathers no gradient of its own; no optimizer could have known it."
                change = source.replace(call, f"{bracketed(source, call.args[0])}.detach()")
                return [self.rewrite("Use a plain tensor", change, changes=told)]
        return []

    def _filled(self, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if not isinstance(target, ast.Attribute) or target.attr != "data" or not isinstance(statement, ast.Assign):
            return []
        told = "The values are copied into the tensor, which keeps its shape and type, instead of shared with the other one."
        text = f"{source.segment(target)}.copy_({source.segment(statement.value)})"
        return [self.rewrite("Copy the values into the tensor", source.replace(statement, text), changes=told)]

    def _asked(self, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        for node in source.head(statement):
            if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Attribute) or node.left.attr != "grad_fn":
                continue
            against, owner = node.comparators[0], node.left.value
            # Compiled code does not notice when an argument is a leaf in one call and none in the next.
            if not isinstance(owner, ast.Call) and not _is_local(owner, arguments_of(function_of(source, statement))):
                continue
            if len(node.ops) == 1 and isinstance(against, ast.Constant) and against.value is None:
                text = f"{source.segment(node.left.value)}.is_leaf"
                if isinstance(node.ops[0], (ast.IsNot, ast.NotEq)):
                    plain = isinstance(
                        source.parents[node], (ast.If, ast.While, ast.Assert, ast.BoolOp, ast.Assign, ast.Return)
                    )
                    text = f"not {text}" if plain else f"(not {text})"
                return [self.rewrite("Ask whether the tensor is a leaf", source.replace(node, text))]
        return []

    def _copied(self, place: Place, source: SourceFile) -> list[Proposal]:
        for call in place.calls("deepcopy"):
            if full_name(source, call.func) == "copy.deepcopy" and len(call.args) == 1 and not call.keywords:
                text = f"{bracketed(source, call.args[0])}.detach().clone()"
                told = "Only the values are copied, not the flag for gradients or attributes of the tensor."
                return [self.rewrite("Copy the values only", source.replace(call, text), changes=told)]
        return []

    def _unscripted(self, place: Place, source: SourceFile) -> list[Proposal]:
        called = {dotted(call.func) for call in place.calls()} - {""}
        changes = []
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Assign) or not any(dotted(target) in called for target in node.targets):
                continue
            inner = node.value
            while isinstance(inner, ast.Call) and full_name(source, inner.func) in _SCRIPTS and inner.args:
                inner = inner.args[0]
            if inner is not node.value:
                changes.append(source.replace(node.value, source.segment(inner)))
        if not changes:
            return []
        told = "Without torch.compile the module runs as Python code, not as TorchScript."
        return [self.rewrite("Leave the module to torch.compile", *changes, changes=told)]


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((item.value for item in call.keywords if item.arg == name), None)


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_local(node: ast.expr, inputs: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id not in inputs


def _reads_gradients(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "grad") or (
        isinstance(node, ast.Call) and last_name(node.func) in ("backward", "grad")
    )


def _flagged(statement: ast.stmt) -> ast.expr | None:
    """What a statement gives a constant flag for gradients, and does nothing else."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.value, ast.Constant):
        target = statement.targets[0]
        return target.value if isinstance(target, ast.Attribute) and target.attr == "requires_grad" else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
        return call.func.value if all(isinstance(item, ast.Constant) for item in call.args) and not call.keywords else None
    return None
