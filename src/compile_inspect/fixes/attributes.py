"""Changes to attributes of tensors and modules: flags, data, parameters, copies, hooks."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import BreakSite, Fixer, dotted, last_name
from compile_inspect.fixes.edits import (
    argument_names,
    delete,
    full_name,
    function_of,
    insert_after,
    is_alone,
    parenthesized,
    uses,
    without_keyword,
)
from compile_inspect.fixes.source import SourceFile
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
_OTHER_KINDS = (*_HOOKS, "Unhandled args for method", "Encountered tensor.is_inference", "Encountered torch.is_inference")
_SCRIPTING_CALLS = ("torch.jit.script", "torch.jit.trace", "torch.jit.freeze", "torch.jit.optimize_for_inference")


class Attributes(Fixer):
    """Flags, data, parameters and copies of tensors, and TorchScript modules."""

    name = "attributes"

    def matches(self, site: BreakSite) -> bool:
        """Whether the line changes a tensor or a module itself."""
        kinds = (*_GRADIENT, *_PARAMETER, _DATA, _GRAD_FN, _COPY, _SCRIPTED, *_OTHER_KINDS)
        return site.cause.kind.startswith(kinds) or site.mentions("torch/jit/_script.py", "RemovableHandle")

    def why(self, site: BreakSite) -> str:
        """Why the graph breaks."""
        kind = site.cause.kind
        if kind.startswith(_GRADIENT):
            return (
                "The line changes whether a tensor requires a gradient. A graph is compiled for one setting of this flag and "
                "cannot change it halfway."
            )
        if kind.startswith(_PARAMETER):
            return (
                "The line creates a Parameter inside the function; torch must know all parameters before it compiles a graph."
            )
        if kind == _GRAD_FN:
            return "The line reads the grad_fn of a tensor, which does not exist while the graph is traced."
        if kind == _COPY:
            return "The line copies a tensor as a Python object with all its attributes; a graph can only copy its values."
        if kind == _SCRIPTED or site.mentions("torch/jit/_script.py"):
            return "The line calls a TorchScript module; torch.compile can neither trace into it nor fuse it with other code."
        if kind.startswith(_DATA):
            return "The line replaces the memory of a tensor that the graph created; a graph only computes new tensors."
        return site.cause.explanation or "The line changes a tensor or a module in a way that cannot be part of a graph."

    def hints(self, site: BreakSite) -> tuple[str, ...]:
        """What you can do by hand."""
        kind = site.cause.kind
        if kind.startswith(_GRADIENT):
            return (
                "Call requires_grad_() on a tensor before you pass it to the compiled function, and freeze parameters once, "
                "where the model is built.",
                "If you need the gradient inside, use torch.func.grad or torch.func.vjp, which need no flag on the tensor.",
            )
        if kind.startswith(_PARAMETER):
            return (
                "Create the Parameter, or the layer that owns it, in __init__; initialize a lazy one by calling the model "
                "once first.",
            )
        if site.mentions("hook", "Hook", "RemovableHandle"):
            return ("Register hooks before you call the compiled function, and store their handles outside it.",)
        if site.mentions("is_inference"):
            return ("Decide outside the compiled function, or test torch.is_grad_enabled(), which torch traces.",)
        if site.mentions("share_memory_"):
            return ("Call share_memory_() before or after the compiled function.",)
        return site.cause.hints or ("Do it before or after the compiled function.",)

    def proposals(self, site: BreakSite) -> list[Proposal]:
        """Replace the line with code that torch can trace."""
        source, statement, kind = site.source, site.statement, site.cause.kind
        if source is None or statement is None:
            return []
        if kind.startswith(_GRADIENT):
            return [*self._set_flag_in_init(source, statement), *self._drop_gradient(site, source, statement)]
        if kind.startswith(_PARAMETER):
            return self._use_plain_tensor(site, source, statement)
        if kind.startswith(_DATA):
            return self._copy_values_into(source, statement)
        if kind == _GRAD_FN:
            return self._test_is_leaf(source, statement)
        if kind == _COPY:
            return self._clone_values(site, source)
        return self._remove_scripting(site, source)

    def _set_flag_in_init(self, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        """Move a flag on the module's own parameters to `__init__`."""
        block: ast.stmt = statement
        above = source.parents.get(statement)
        if isinstance(above, ast.For) and len(above.body) == 1 and not above.orelse:
            block = above
        forward, owner = _flag_owner(statement), source.parents.get(block)
        if forward is None or not isinstance(owner, ast.FunctionDef) or not isinstance(source.parents.get(owner), ast.ClassDef):
            return []
        constructors = [
            item
            for item in source.parents[owner].body  # type: ignore[attr-defined]
            if isinstance(item, ast.FunctionDef) and item.name == "__init__"
        ]
        names = {node.id for node in ast.walk(block) if isinstance(node, ast.Name)}
        local = {block.target.id} if isinstance(block, ast.For) and isinstance(block.target, ast.Name) else set()
        if (
            not constructors
            or names - local != {"self"}
            or (local and len(uses(owner, *local)) != 2)
            or owner is constructors[0]
        ):
            return []
        last = constructors[0].body[-1]
        if not is_alone(source, last) or isinstance(last, ast.Return) or not is_alone(source, block):
            return []
        (line, _), (end, _) = source.span(block)
        if source.indent(last) != source.indent(block) or len(owner.body) == 1:
            return []
        width = len(source.indent(block))
        lines = [text.rstrip("\r")[width:] for text in source.lines[line - 1 : end]]
        removal = Replacement(source.file, (line, 0), (end + 1, 0), source.between((line, 0), (end + 1, 0)), "")
        note = "The flag applies from construction on, not only from the first call."
        return [self.rewrite("Set it once, in __init__", insert_after(source, last, lines), removal, changes=note)]

    def _drop_gradient(self, site: BreakSite, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        """Drop the gradient of a local tensor that nothing in the function reads."""
        function = function_of(source, statement)
        if function is None or any(_reads_gradients(node) for node in ast.walk(function)):
            return []
        inputs = argument_names(function)
        change: Replacement | None = None
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad" and _is_true(statement.value):
                change = delete(source, statement) if _is_local(target.value, inputs) else None
        for call in site.calls("requires_grad_"):
            if not isinstance(call.func, ast.Attribute) or not (not call.args or _is_true(call.args[0])) or call.keywords:
                continue
            if isinstance(statement, ast.Expr) and statement.value is call:
                change = delete(source, statement) if _is_local(call.func.value, inputs) else None
            elif isinstance(call.func.value, ast.Call):
                change = source.replace(call, source.segment(call.func.value))
        for call in site.calls():
            if full_name(source, call.func).startswith("torch.") and _is_true(_keyword(call, "requires_grad")):
                change = change or without_keyword(source, call, "requires_grad")
        if change is None:
            return []
        note = "The tensor no longer accumulates a gradient; nothing in the function reads it."
        where = "The tensor is only an initial value, such as a first hidden state, and is not trained."
        return [self.rewrite("Create the tensor without requires_grad", change, changes=note, where=where)]

    def _use_plain_tensor(self, site: BreakSite, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        if not isinstance(statement, ast.Assign) or not all(isinstance(target, ast.Name) for target in statement.targets):
            return []
        for call in site.calls("Parameter"):
            named = [keyword.arg for keyword in call.keywords]
            if full_name(source, call.func) in ("torch.nn.Parameter", "torch.nn.parameter.Parameter") and len(call.args) == 1:
                if set(named) - {"requires_grad"} or isinstance(call.args[0], ast.Starred):
                    continue
                note = "The tensor is not a Parameter and accumulates no gradient; no optimizer could have updated it."
                change = source.replace(call, f"{parenthesized(source, call.args[0])}.detach()")
                return [self.rewrite("Use a plain tensor", change, changes=note)]
        return []

    def _copy_values_into(self, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if not isinstance(target, ast.Attribute) or target.attr != "data" or not isinstance(statement, ast.Assign):
            return []
        note = (
            "The values are copied into the tensor, which keeps its shape and dtype, instead of being shared with the other "
            "one."
        )
        text = f"{source.segment(target)}.copy_({source.segment(statement.value)})"
        return [self.rewrite("Copy the values into the tensor", source.replace(statement, text), changes=note)]

    def _test_is_leaf(self, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        for node in source.head(statement):
            if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Attribute) or node.left.attr != "grad_fn":
                continue
            against, owner = node.comparators[0], node.left.value
            # Compiled code does not notice that an argument is a leaf in one call and not in the next.
            if not isinstance(owner, ast.Call) and not _is_local(owner, argument_names(function_of(source, statement))):
                continue
            if len(node.ops) == 1 and isinstance(against, ast.Constant) and against.value is None:
                text = f"{source.segment(node.left.value)}.is_leaf"
                if isinstance(node.ops[0], (ast.IsNot, ast.NotEq)):
                    plain = isinstance(
                        source.parents[node], (ast.If, ast.While, ast.Assert, ast.BoolOp, ast.Assign, ast.Return)
                    )
                    text = f"not {text}" if plain else f"(not {text})"
                return [self.rewrite("Test whether the tensor is a leaf", source.replace(node, text))]
        return []

    def _clone_values(self, site: BreakSite, source: SourceFile) -> list[Proposal]:
        for call in site.calls("deepcopy"):
            if full_name(source, call.func) == "copy.deepcopy" and len(call.args) == 1 and not call.keywords:
                text = f"{parenthesized(source, call.args[0])}.detach().clone()"
                note = "Only the values are copied, not requires_grad or other attributes of the tensor."
                return [self.rewrite("Copy only the values", source.replace(call, text), changes=note)]
        return []

    def _remove_scripting(self, site: BreakSite, source: SourceFile) -> list[Proposal]:
        called = {dotted(call.func) for call in site.calls()} - {""}
        changes = []
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Assign) or not any(dotted(target) in called for target in node.targets):
                continue
            inner = node.value
            while isinstance(inner, ast.Call) and full_name(source, inner.func) in _SCRIPTING_CALLS and inner.args:
                inner = inner.args[0]
            if inner is not node.value:
                changes.append(source.replace(node.value, source.segment(inner)))
        if not changes:
            return []
        note = "Without torch.compile, the module runs as Python code, not as TorchScript."
        return [self.rewrite("Remove TorchScript, so that torch.compile traces the module", *changes, changes=note)]


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


def _flag_owner(statement: ast.stmt) -> ast.expr | None:
    """The object whose gradient flag a statement sets to a constant; None if the statement does anything else."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.value, ast.Constant):
        target = statement.targets[0]
        return target.value if isinstance(target, ast.Attribute) and target.attr == "requires_grad" else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
        return call.func.value if all(isinstance(item, ast.Constant) for item in call.args) and not call.keywords else None
    return None
