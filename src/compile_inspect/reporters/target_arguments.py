"""The command-line arguments that name the target of a capture, as far as the capture determines them.

A capture of `inspect` records the name. A capture of a whole program records the file, the function and a description of its
inputs, which is enough if the file can be imported without running the program.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from compile_inspect.records import Compilation, Guard, Inspection, Node, Stage
from compile_inspect.records.compilations import first_compilation_id

_RESUME_FUNCTION = re.compile(r"^torch_dynamo_resume_in_(?P<name>.+)_at_\d+$")
_CONSTANT = re.compile(r"^(?P<name>\w+) == (?P<value>.+)$")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def infer_target_arguments(inspection: Inspection) -> tuple[str, ...] | None:
    """The arguments that name the target and its inputs after a command; None if they cannot be determined.

    >>> from compile_inspect.records import NamedTarget
    >>> infer_target_arguments(Inspection(target=NamedTarget("models:net", "models:inputs", no_grad=True)))
    ('models:net', '--inputs', 'models:inputs', '--no-grad')
    """
    named = inspection.target
    if named is None:
        return _from_evidence(inspection)
    parts = [_relative_to_here(text, named.folder) for text in (named.specification, named.inputs) if text is not None]
    if None in parts:
        return None
    specification, *inputs = (str(part) for part in parts)
    return (specification, *(["--inputs", *inputs] if inputs else []), *(["--no-grad"] if named.no_grad else []))


def _relative_to_here(text: str, folder: str) -> str | None:
    """A specification relative to the current folder; None for a module that can only be imported from another folder."""
    try:
        current_folder = str(Path.cwd())
    except OSError:
        return None
    path, _, attribute = text.rpartition(":")
    if not folder or current_folder == folder or "[" in text:
        return text
    return f"{_short_path(str(Path(folder) / path), current_folder)}:{attribute}" if path.endswith(".py") else None


def _short_path(file: str, current_folder: str) -> str:
    prefix = current_folder.rstrip(os.sep) + os.sep
    return file[len(prefix) :] if file.startswith(prefix) else file


def _from_evidence(inspection: Inspection) -> tuple[str, ...] | None:
    try:
        current_folder = str(Path.cwd())
    except OSError:
        return None
    for compilation in _roots(inspection):
        tree = _parsed(inspection.sources.get(compilation.file, ""))
        if tree is None or not _can_be_imported(tree, compilation.file, _script(inspection)):
            continue
        match = _attribute(tree, compilation)
        if match is None:
            continue
        attribute, function = match
        inputs = _inputs(function, compilation, inspection, method=attribute != function.name)
        if inputs is not None:
            arguments = (f"{_short_path(compilation.file, current_folder)}:{attribute}",)
            return (*arguments, "--inputs", inputs) if inputs else arguments
    return None


def _roots(inspection: Inspection) -> Iterator[Compilation]:
    """The compiled functions in order of relevance: first those with graph breaks, then the others by time of compilation."""
    broken = [first_compilation_id(name) for item in inspection.breaks for name in item.compilations]
    first = [item for item in inspection.compilations if not item.is_recompile]
    yielded = set()
    for compilation in sorted(first, key=lambda item: item.id not in broken):
        resumed = _RESUME_FUNCTION.match(compilation.function)
        name = compilation.function if resumed is None else resumed["name"]
        root = next((item for item in first if item.function == name and item.file == compilation.file), None)
        if root is not None and root.id not in yielded:
            yielded.add(root.id)
            yield root


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text) if text else None
    except (SyntaxError, ValueError):
        return None


def _can_be_imported(tree: ast.Module, file: str, script: str | None) -> bool:
    """Whether importing the file defines its functions without running the program.

    This holds for a file that the program itself imported from the folder of its script, and for a script whose work is
    behind `if __name__ == "__main__"`.
    """
    if any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree)):
        return False  # part of a package, whose root the capture does not record
    if script is None or Path(file).parent != Path(script).parent:
        return False  # its imports may only work from the folder of the script
    if script != file:
        return True
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    return all(_only_defines(node, classes) for node in tree.body)


def _script(inspection: Inspection) -> str | None:
    """The file of the program itself; None if the capture does not determine it."""
    word = next((word for word in inspection.process.command[1:] if word.endswith(".py")), None)
    if word is None:
        return None
    parts = [part for part in Path(word).parts if part not in (".", "..")]
    return next((file for file in inspection.sources if list(Path(file).parts[-len(parts) :]) == parts), None)


def _only_defines(node: ast.stmt, classes: set[str]) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _calls_torch_only(node.value, set())
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return node.value is None or _calls_torch_only(node.value, classes)
    if isinstance(node, ast.If):
        return "__name__" in ast.unparse(node.test) and not node.orelse
    if isinstance(node, ast.Try):
        return all(_only_defines(item, classes) for item in (*node.body, *node.orelse, *node.finalbody))
    return False


def _calls_torch_only(value: ast.expr, classes: set[str]) -> bool:
    """Whether an expression calls only torch and classes of the file, so that it creates objects but trains nothing."""
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            callee = ast.unparse(node.func)
            if callee.partition(".")[0] != "torch" and callee not in classes:
                return False
    return True


def _attribute(tree: ast.Module, compilation: Compilation) -> tuple[str, _Function] | None:
    """The top-level name for a frame: a function, or for `forward` an instance of the module."""
    for node in tree.body:
        if isinstance(node, _Function) and _is_at(node, compilation):
            return node.name, node
        if isinstance(node, ast.ClassDef) and compilation.function.rpartition(".")[2] == "forward":
            for part in node.body:
                if isinstance(part, _Function) and part.name == "forward" and _is_at(part, compilation):
                    name = _instance(tree, node)
                    return None if name is None else (name, part)
    return None


def _is_at(node: _Function, compilation: Compilation) -> bool:
    first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
    return first <= compilation.line <= node.lineno and compilation.function.rpartition(".")[2] == node.name


def _instance(tree: ast.Module, kind: ast.ClassDef) -> str | None:
    """A module-level instance of a class, or the class itself if it needs no arguments."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=constructor)) if (
                ast.unparse(constructor) == kind.name
            ):
                return name
    for part in kind.body:
        if isinstance(part, _Function) and part.name == "__init__":
            arguments = part.args
            required = len(arguments.posonlyargs) + len(arguments.args) - 1 - len(arguments.defaults)
            return None if required > 0 or None in arguments.kw_defaults else kind.name
    return kind.name


def _inputs(function: _Function, compilation: Compilation, inspection: Inspection, *, method: bool) -> str | None:
    """The arguments as text; empty if there are none, None if a required one is unknown."""
    arguments = function.args
    if arguments.vararg is not None or arguments.kwarg is not None:
        return None
    frames = _frames(function, compilation, inspection)
    rebound = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    positional = [item.arg for item in (*arguments.posonlyargs, *arguments.args)][1 if method else 0 :]
    optional = set(positional[len(positional) - len(arguments.defaults) :] if arguments.defaults else ())
    optional |= {item.arg for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default}
    unnamed = {item.arg for item in arguments.posonlyargs}
    values: list[str] = []
    by_name = False
    for name in (*positional, *(item.arg for item in arguments.kwonlyargs)):
        # After a break, a name still refers to the argument only if it was never reassigned.
        value = _value(name, frames[:1] if name in rebound else frames, inspection)
        if value is None and name not in optional:
            return None
        by_name |= value is None or name not in positional
        if value is not None:
            if by_name and name in unnamed:
                return None
            values.append(f"{name}={value}" if by_name else value)
    return ", ".join(values)


def _frames(function: _Function, compilation: Compilation, inspection: Inspection) -> list[str]:
    """The first compilation of a function, and those of its continuation after each break."""
    resumed = [
        item.id
        for item in inspection.compilations
        if item.file == compilation.file
        and not item.is_recompile
        and (match := _RESUME_FUNCTION.match(item.function)) is not None
        and match["name"] == function.name
    ]
    return [compilation.id, *resumed]


def _value(name: str, frames: Sequence[str], inspection: Inspection) -> str | None:
    for frame in frames:
        for node in _placeholders(frame, inspection):
            if node.target == f"L_{name}_" and len(node.value) == 1:
                tensor = node.value[0]
                if not all(isinstance(size, int) for size in tensor.shape):
                    return None  # symbolic: the number is not recorded
                device = tensor.device.partition(":")[0]
                return f"{tensor}" + (f" @ {device}" if device not in ("", "cpu") else "")
        for guard in _guards(frame, inspection):
            match = _CONSTANT.match(guard.condition)
            if match is not None and match["name"] == name and guard.source == f"L['{name}']":
                return match["value"] if _is_literal(match["value"]) else None
    return None


def _placeholders(frame: str, inspection: Inspection) -> Iterator[Node]:
    for graph in inspection.graphs:
        if graph.compilation == frame and graph.stage is Stage.DYNAMO:
            yield from (node for node in graph.nodes if node.operation == "placeholder")


def _guards(frame: str, inspection: Inspection) -> Iterator[Guard]:
    return (guard for guard in inspection.guards if guard.compilation == frame)


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True
