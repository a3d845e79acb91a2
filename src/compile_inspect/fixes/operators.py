"""Register code that torch cannot trace as a custom operator."""

from __future__ import annotations

import ast
import builtins
import json
import re
from pathlib import Path

from compile_inspect.fixes.base import dotted, last_name
from compile_inspect.fixes.edits import (
    Function,
    free_name,
    full_name,
    functions_named,
    insert_after,
    module_name,
    top_level_statement,
)
from compile_inspect.fixes.source import SourceFile
from compile_inspect.records.fixes import Replacement

_TO_TENSOR = ("torch.from_numpy", "torch.as_tensor", "torch.tensor")
_CASTS = ("float", "double", "half", "to", "type_as", "clone", "contiguous")
_TYPES = {"torch.Tensor": "Tensor", "int": "int", "float": "float", "bool": "bool", "str": "str"}
_TENSOR_ATTRIBUTES = (
    "numpy",
    "data_ptr",
    "detach",
    "cpu",
    "contiguous",
    "numel",
    "shape",
    "dtype",
    "new_empty",
    "clone",
    "float",
)
_RESERVED = {"aten", "prim", "prims", "torch", "quantized", "inductor", "profiler"}


def expression_as_operator(source: SourceFile, statement: ast.stmt) -> list[Replacement]:
    """Move an expression that goes from tensors through numpy to a tensor into an operator; empty if there is none."""
    outer, expression = top_level_statement(source, statement), _round_trip(source, statement)
    if outer is None or expression is None:
        return []
    tensors = _tensors(source, expression)
    if not tensors:
        return []
    inner = [node for node in ast.walk(expression) if isinstance(node, ast.Call)]
    module_names = _module_names(source)
    foreign = [last_name(node.func) for node in inner if _is_foreign(source, node, module_names)]
    name = free_name(source, f"{foreign[0] if foreign else 'foreign'}_operator")
    torch, added = module_name(source, "torch")
    text = source.segment(expression)
    body = f"({text})" if "\n" in text else text
    names = ", ".join(tensors)
    lines = [
        *_operator_decorator(source, torch, name, ", ".join(f"Tensor {tensor}" for tensor in tensors)),
        f"def {name}({names}):",
        f"{source.indent_unit}return {body}",
        "",
        "",
        *_fake_implementation(source, torch, name, names, next(iter(tensors))),
        "",
        "",
    ]
    arguments = ", ".join(f"{tensor}.detach()" if detached else tensor for tensor, detached in tensors.items())
    changed = [source.insert_before(outer, lines), source.replace(expression, f"{name}({arguments})")]
    return [*changed, added] if added is not None else changed


def function_as_operator(source: SourceFile, function: Function) -> list[Replacement]:
    """Register a function from tensors to a tensor as an operator; empty if its signature does not allow that."""
    schema = _schema(source, function)
    if schema is None or not _is_pure(source, function):
        return []
    torch, added = module_name(source, "torch")
    name, parameters = function.name, [item.arg for item in function.args.args]
    first_parameter = source.segment(function.args.args[0]).partition(":")[0].strip()
    after = ["", "", *_fake_implementation(source, torch, name, ", ".join(_signature(source, function)), first_parameter)]
    if any(isinstance(node, ast.Call) and last_name(node.func) == "detach" for node in ast.walk(function)):
        nothing = ", ".join(["None"] * len(parameters))
        after += ["", "", f"{name}.register_autograd("]
        after += [f"{source.indent_unit}lambda context, gradient: {f'({nothing})' if len(parameters) > 1 else 'None'},"]
        after += [f"{source.indent_unit}setup_context=lambda ctx, inputs, output: ctx.mark_non_differentiable(output),", ")"]
    edits = [
        source.insert_before(function, _operator_decorator(source, torch, name, schema)),
        insert_after(source, function, after),
    ]
    return [*edits, added] if added is not None else edits


def _operator_decorator(source: SourceFile, torch: str, name: str, schema: str) -> list[str]:
    space = re.sub(r"\W", "_", Path(source.file).stem)
    space = f"{space}_operators" if space in _RESERVED or not space.isidentifier() else space
    quoted = json.dumps(f"({schema}) -> Tensor") if '"' not in schema else f"'({schema}) -> Tensor'"
    return [f'@{torch}.library.custom_op("{space}::{name}", mutates_args=(), schema={quoted})']


def _fake_implementation(source: SourceFile, torch: str, name: str, parameters: str, first: str) -> list[str]:
    return [f"@{name}.register_fake", f"def _({parameters}):", f"{source.indent_unit}return {torch}.empty_like({first})"]


def _round_trip(source: SourceFile, statement: ast.stmt) -> ast.expr | None:
    """The expression in a statement that converts tensors to numpy and back."""
    for call in (node for node in source.head(statement) if isinstance(node, ast.Call)):
        if full_name(source, call.func) in _TO_TENSOR and any(
            isinstance(node, ast.Call) and last_name(node.func) == "numpy" for node in ast.walk(call)
        ):
            expression: ast.expr = call
            while True:
                attribute = source.parents[expression]
                outer = source.parents.get(attribute)
                cast = isinstance(attribute, ast.Attribute) and attribute.attr in _CASTS
                if not (cast and isinstance(outer, ast.Call) and outer.func is attribute):
                    return expression
                expression = outer
    return None


def _tensors(source: SourceFile, expression: ast.expr) -> dict[str, bool]:
    """The tensors that an expression uses, and whether each is detached; empty if it uses any other local name."""
    detached: dict[str, bool] = {}
    module_names = _module_names(source)
    for node in ast.walk(expression):
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr, ast.Await)):
            return {}
        if not isinstance(node, ast.Name) or node.id in module_names:
            continue
        attribute = source.parents[node]
        if not isinstance(attribute, ast.Attribute) or node.id == "self":
            return {}
        detached[node.id] = detached.get(node.id, False) or attribute.attr == "detach"
    return detached


def _module_names(source: SourceFile) -> set[str]:
    names = set(dir(builtins))
    for node in source.tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _is_foreign(source: SourceFile, call: ast.Call, module_names: set[str]) -> bool:
    """Whether the called function is a name of the module and does not belong to torch."""
    return dotted(call.func).partition(".")[0] in module_names and not full_name(source, call.func).startswith("torch.")


def _schema(source: SourceFile, function: Function) -> str | None:
    """The parameters of a function as an operator schema; None if a schema cannot express them."""
    arguments = function.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs or not arguments.args:
        return None
    if function.returns is not None and full_name(source, function.returns) != "torch.Tensor":
        return None
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
    parts = []
    for item, default in zip(arguments.args, defaults, strict=True):
        value = _literal(default)
        kind = "Tensor" if default is None else _TYPES.get(type(value).__name__)
        if item.annotation is not None:
            kind = _TYPES.get(full_name(source, item.annotation))
        if kind is None or (default is not None and (value is None or kind == "Tensor")):
            return None
        default_text = json.dumps(value) if isinstance(value, str) else repr(value)
        parts.append(f"{kind} {item.arg}" + ("" if default is None else f"={default_text}"))
    return ", ".join(parts) if parts[0].startswith("Tensor") else None


def _literal(node: ast.expr | None) -> object:
    """The value of a default that is a literal; None for any other default."""
    try:
        return None if node is None else ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None


def _signature(source: SourceFile, function: Function) -> list[str]:
    names = [item.arg for item in function.args.args]
    defaults = [source.segment(item) for item in function.args.defaults]
    plain = len(names) - len(defaults)
    return names[:plain] + [f"{name}={value}" for name, value in zip(names[plain:], defaults, strict=True)]


def _is_pure(source: SourceFile, function: Function) -> bool:
    """Whether a module-level function is called elsewhere in the file, returns one value and changes no argument."""
    if (
        isinstance(function, ast.AsyncFunctionDef)
        or function.decorator_list
        or len(functions_named(source, function.name)) != 1
    ):
        return False
    if not isinstance(source.parents.get(function), ast.Module):
        return False
    inside = set(ast.walk(function))
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and last_name(node.func) == function.name]
    plain = {
        item.arg for item in function.args.args[: len(function.args.args) - len(function.args.defaults)] if not item.annotation
    }
    if not any(node not in inside for node in calls) or plain - {_base(node) for node in inside if _is_tensor_attribute(node)}:
        return False
    names = {item.arg for item in function.args.args}
    for node in inside:
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)):
            return False
        if isinstance(node, ast.Return) and (node.value is None or isinstance(node.value, (ast.Tuple, ast.Constant))):
            return False
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store) and _base(node) in names:
            return False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            if method.endswith("_") and not method.endswith("__") and _base(node.func) in names:
                return False
    return any(isinstance(node, ast.Return) for node in inside)


def _is_tensor_attribute(node: ast.AST) -> bool:
    """Whether a node reads an attribute that suggests a tensor."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _TENSOR_ATTRIBUTES


def _base(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
