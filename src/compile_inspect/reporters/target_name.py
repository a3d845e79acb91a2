"""How the target of a capture is named on a command line, as far as the capture tells.

A capture that `inspect` made holds the name. One of a whole program holds the file, the function and what its inputs looked
like: that is enough where the file can be imported without running the program.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from compile_inspect.records import Compilation, Guard, Inspection, Node, Stage
from compile_inspect.records.compilations import first_compilation_id

_RESUMED = re.compile(r"^torch_dynamo_resume_in_(?P<name>.+)_at_\d+$")
_CONSTANT = re.compile(r"^(?P<name>\w+) == (?P<value>.+)$")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def target_words(inspection: Inspection) -> tuple[str, ...] | None:
    """What to write after a command to name the target with its inputs; None where that cannot be known.

    >>> from compile_inspect.records import NamedTarget
    >>> target_words(Inspection(target=NamedTarget("models:net", "models:inputs", no_grad=True)))
    ('models:net', '--inputs', 'models:inputs', '--no-grad')
    """
    named = inspection.target
    if named is None:
        return _from_evidence(inspection)
    places = [_from_here(text, named.folder) for text in (named.specification, named.inputs) if text is not None]
    if None in places:
        return None
    specification, *inputs = (str(place) for place in places)
    return (specification, *(["--inputs", *inputs] if inputs else []), *(["--no-grad"] if named.no_grad else []))


def _from_here(text: str, folder: str) -> str | None:
    """A specification as it is written in the current folder; None for a module that is found in another one only."""
    try:
        here = str(Path.cwd())
    except OSError:
        return None
    place, _, attribute = text.rpartition(":")
    if not folder or here == folder or "[" in text:
        return text
    return f"{_shown(str(Path(folder) / place), here)}:{attribute}" if place.endswith(".py") else None


def _shown(file: str, here: str) -> str:
    inside = here.rstrip(os.sep) + os.sep
    return file[len(inside) :] if file.startswith(inside) else file


def _from_evidence(inspection: Inspection) -> tuple[str, ...] | None:
    try:
        here = str(Path.cwd())
    except OSError:
        return None
    for compilation in _roots(inspection):
        tree = _parsed(inspection.sources.get(compilation.file, ""))
        if tree is None or not _can_be_imported(tree, compilation.file, _script(inspection)):
            continue
        found = _attribute(tree, compilation)
        if found is None:
            continue
        attribute, function = found
        inputs = _inputs(function, compilation, inspection, method=attribute != function.name)
        if inputs is not None:
            words = (f"{_shown(compilation.file, here)}:{attribute}",)
            return (*words, "--inputs", inputs) if inputs else words
    return None


def _roots(inspection: Inspection) -> Iterator[Compilation]:
    """The functions that matter most: those whose graphs broke first, then the others, in the order of compilation."""
    broken = [first_compilation_id(name) for item in inspection.breaks for name in item.compilations]
    first = [item for item in inspection.compilations if not item.is_recompile]
    seen = set()
    for compilation in sorted(first, key=lambda item: item.id not in broken):
        resumed = _RESUMED.match(compilation.function)
        name = compilation.function if resumed is None else resumed["name"]
        root = next((item for item in first if item.function == name and item.file == compilation.file), None)
        if root is not None and root.id not in seen:
            seen.add(root.id)
            yield root


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text) if text else None
    except (SyntaxError, ValueError):
        return None


def _can_be_imported(tree: ast.Module, file: str, script: str | None) -> bool:
    """Whether importing the file makes its functions and does nothing that the program as a whole does.

    That is so for a file which the program imported itself, from the folder of its script, and for a script whose work is
    behind `if __name__ == "__main__"`.
    """
    if any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree)):
        return False  # part of a package, whose root a capture does not tell
    if script is None or Path(file).parent != Path(script).parent:
        return False  # what it imports may be found beside the script only
    if script != file:
        return True
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    return all(_only_defines(node, classes) for node in tree.body)


def _script(inspection: Inspection) -> str | None:
    """The file of the program itself; None where the evidence does not lead into it."""
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
    """Whether an expression calls nothing but torch and classes of the file: it makes things, and trains nothing."""
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.partition(".")[0] != "torch" and called not in classes:
                return False
    return True


def _attribute(tree: ast.Module, compilation: Compilation) -> tuple[str, _Function] | None:
    """The name at the top of the file that stands for a frame: a function, or for `forward` a module that can be had."""
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
    """A module-level instance of a class, or the class itself where it needs no arguments."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=made)) if ast.unparse(made) == kind.name:
                return name
    for part in kind.body:
        if isinstance(part, _Function) and part.name == "__init__":
            arguments = part.args
            needed = len(arguments.posonlyargs) + len(arguments.args) - 1 - len(arguments.defaults)
            return None if needed > 0 or None in arguments.kw_defaults else kind.name
    return kind.name


def _inputs(function: _Function, compilation: Compilation, inspection: Inspection, *, method: bool) -> str | None:
    """The arguments as text; empty where there are none, None where one that is needed is not known."""
    arguments = function.args
    if arguments.vararg is not None or arguments.kwarg is not None:
        return None
    frames = _frames(function, compilation, inspection)
    rebound = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    positional = [item.arg for item in (*arguments.posonlyargs, *arguments.args)][1 if method else 0 :]
    optional = set(positional[len(positional) - len(arguments.defaults) :] if arguments.defaults else ())
    optional |= {item.arg for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default}
    unnamed = {item.arg for item in arguments.posonlyargs}
    words: list[str] = []
    by_name = False
    for name in (*positional, *(item.arg for item in arguments.kwonlyargs)):
        # What a name holds after a break is the argument only where nothing was assigned to it.
        value = _value(name, frames[:1] if name in rebound else frames, inspection)
        if value is None and name not in optional:
            return None
        by_name |= value is None or name not in positional
        if value is not None:
            if by_name and name in unnamed:
                return None
            words.append(f"{name}={value}" if by_name else value)
    return ", ".join(words)


def _frames(function: _Function, compilation: Compilation, inspection: Inspection) -> list[str]:
    """The first compilation of a function, and those of its rest after each break."""
    resumed = [
        item.id
        for item in inspection.compilations
        if item.file == compilation.file
        and not item.is_recompile
        and (match := _RESUMED.match(item.function)) is not None
        and match["name"] == function.name
    ]
    return [compilation.id, *resumed]


def _value(name: str, frames: Sequence[str], inspection: Inspection) -> str | None:
    for frame in frames:
        for node in _placeholders(frame, inspection):
            if node.target == f"L_{name}_" and len(node.value) == 1:
                tensor = node.value[0]
                if not all(isinstance(size, int) for size in tensor.shape):
                    return None  # symbolic: which number it had is not told
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
