"""Parse the printed form of a graph, for when a cache had the result and no graph was built."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from compile_inspect.assemble.stacks import StackTable, original_function_name
from compile_inspect.records import Location, Node, TensorType

_LOCATION = re.compile(r"^\s*# File: (?P<file>.*):(?P<line>\d+) in (?P<function>.*?), code: (?P<code>.*)$")
_NO_LOCATION = re.compile(r"^\s*# No stacktrace found")
_TYPE = re.compile(r"^(?P<dtype>[a-z]+\d*\w*)\[(?P<shape>[^\]]*)\](?:\[(?P<strides>[^\]]*)\])?(?P<device>[\w:]*)")
_DTYPES = {"f": "float", "bf": "bfloat", "i": "int", "u": "uint", "c": "complex", "b": "bool"}


def parse_graph(text: str, stacks: StackTable) -> tuple[Node, ...]:
    """The nodes of a graph printed by `print_readable`; empty if the text is not Python.

    >>> text = 'def forward(self, x: "f32[2]"):\\n    y: "f32[2]" = torch.ops.aten.relu.default(x)'
    >>> parse_graph(text, StackTable())[1].target
    'aten.relu.default'
    """
    try:
        # A graph without a name is printed as a class called <lambda>, which is not Python.
        tree = ast.parse(text.replace("class <lambda>(", "class _lambda_(", 1))
    except SyntaxError:
        return ()
    function = next((item for item in ast.walk(tree) if isinstance(item, ast.FunctionDef) and item.name == "forward"), None)
    if function is None:
        return ()
    line_stacks = _line_stacks(text, stacks)
    nodes = [_placeholder(argument) for argument in function.args.args if argument.arg != "self"]
    known = {node.name for node in nodes}
    for statement in function.body:
        node = _node(statement, known, line_stacks)
        if node is not None:
            known.add(node.name)
            nodes.append(node)
    return tuple(nodes)


def parse_type(annotation: str) -> tuple[TensorType, ...]:
    """Parse a type in the format of printed graphs.

    >>> parse_type("f32[4, s0][8, 1]cpu")
    (TensorType(shape=(4, 's0'), dtype='float32', device='cpu', strides=(8, 1)),)
    """
    match = _TYPE.match(annotation)
    if match is None:
        return ()
    return (TensorType(_sizes(match["shape"]), _dtype(match["dtype"]), match["device"] or "", _sizes(match["strides"] or "")),)


def _dtype(short: str) -> str:
    match = re.match(r"^([a-z]+)(\d+)$", short)
    if match is None or match[1] not in _DTYPES:
        return short
    return "bool" if match[1] == "b" else _DTYPES[match[1]] + match[2]


def _sizes(text: str) -> tuple[int | str, ...]:
    pieces = [piece.strip() for piece in text.split(",") if piece.strip()]
    return tuple(int(piece) if piece.isdigit() else piece for piece in pieces)


def _line_stacks(text: str, stacks: StackTable) -> list[int | None]:
    """For each line of the text (from 1), the stack that the comments before it name."""
    line_stacks: list[int | None] = [None]
    current: int | None = None
    for line in text.splitlines():
        match = _LOCATION.match(line)
        if match is not None:
            location = Location(
                match["file"], int(match["line"]), original_function_name(match["function"]), match["code"].strip()
            )
            current = stacks.add((location,))
        elif _NO_LOCATION.match(line):
            current = None
        line_stacks.append(current)
    return line_stacks


def _placeholder(argument: ast.arg) -> Node:
    annotation = argument.annotation
    text = annotation.value if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str) else ""
    return Node(argument.arg, "placeholder", argument.arg, value=parse_type(text))


def _node(statement: ast.stmt, known: set[str], line_stacks: list[int | None]) -> Node | None:
    stack = line_stacks[statement.lineno] if statement.lineno < len(line_stacks) else None
    if isinstance(statement, ast.Return):
        return Node("output", "output", "output", _names(statement.value, known), stack=None)
    annotation = ""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
        name, value = statement.target.id, statement.value
        if isinstance(statement.annotation, ast.Constant):
            annotation = str(statement.annotation.value)
    elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        name, value = statement.targets[0].id, statement.value
    else:
        return None
    if isinstance(value, ast.Constant) and value.value is None:  # `x = None` only frees x
        return None
    operation, target, arguments = _expression(value, known)
    return Node(name, operation, target, _names(value, known), arguments, parse_type(annotation), stack)


def _expression(value: ast.expr, known: set[str]) -> tuple[str, str, str]:
    if isinstance(value, ast.Call):
        pieces = [ast.unparse(item) for item in value.args] + [
            f"{item.arg}={ast.unparse(item.value)}" for item in value.keywords
        ]
        arguments = ", ".join(pieces)
        function = value.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id in known:
            return "call_method", f"Tensor.{function.attr}", arguments
        return "call_function", ast.unparse(function).removeprefix("torch.ops."), arguments
    if isinstance(value, ast.Subscript):
        return "call_function", "operator.getitem", ast.unparse(value)
    if isinstance(value, ast.Attribute):
        return "get_attr", ast.unparse(value).removeprefix("self."), ""
    if isinstance(value, ast.BinOp):
        return "call_function", f"operator.{type(value.op).__name__.lower()}", ast.unparse(value)
    return "call_function", type(value).__name__.lower(), ast.unparse(value)


def _names(value: ast.expr | None, known: set[str]) -> tuple[str, ...]:
    if value is None:
        return ()
    names = (item.id for item in ast.walk(value) if isinstance(item, ast.Name) and item.id in known)
    return tuple(dict.fromkeys(names))


def widen_stacks(nodes: tuple[Node, ...], stacks: StackTable, known: Mapping[Location, Collection[int]]) -> tuple[Node, ...]:
    """The nodes with the complete stack of their line, if only one stack of the compilation ends there.

    A printed graph has only the innermost line of each node, which is often torch's own; `known` has the stacks of the captured
    graph by their innermost line.
    """
    nodes_with_stacks = []
    for node in nodes:
        stack = stacks.stack(node.stack)
        candidates = known.get(stack.innermost, ()) if stack is not None and stack.innermost is not None else ()
        nodes_with_stacks.append(replace(node, stack=next(iter(candidates))) if len(candidates) == 1 else node)
    return tuple(nodes_with_stacks)
