"""Read generated modules: where each kernel is defined and where it is called."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from compile_inspect.records import Direction, KernelKind

_AOT_ID = re.compile(r"^# AOT ID: \['\d+_(?P<direction>forward|backward|inference)'\]", re.MULTILINE)
_SOURCE_NODES = re.compile(
    r"^\s*# Topologically Sorted Source Nodes: \[(?P<nodes>[^\]]*)\], Original ATen: \[(?P<operations>[^\]]*)\]"
)
_KERNEL_KINDS = {
    "cpp_pybinding": KernelKind.CPP,
    "cpp": KernelKind.CPP,
    "triton": KernelKind.TRITON,
    "cutlass": KernelKind.TEMPLATE,
    "cuda": KernelKind.TEMPLATE,
}
# Functions of a generated module that are only used to benchmark it.
_BENCHMARK_FUNCTIONS = ("get_args", "benchmark_compiled_module", "recursively_apply_fns", "__init__")
_NON_KERNEL_CALLS = (
    "assert_size_stride",
    "assert_alignment",
    "empty_strided",
    "reinterpret_tensor",
    "get_raw_stream",
    "alloc_from_pool",
)


@dataclass(frozen=True)
class Definition:
    """The source of a kernel in a generated module."""

    kind: KernelKind
    first_line: int
    last_line: int


@dataclass(frozen=True)
class Call:
    """One launch in a generated module, with the facts from the comment before it."""

    name: str
    line: int
    source_nodes: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()


@dataclass(frozen=True)
class GeneratedCode:
    """The parts of a generated module."""

    direction: Direction
    definitions: dict[str, Definition] = field(default_factory=dict)
    calls: tuple[Call, ...] = ()


def read_code(text: str) -> GeneratedCode:
    """Find kernels and their calls; for a module that is not Python (the C++ wrapper), find only the direction."""
    match = _AOT_ID.search(text)
    direction = Direction[match["direction"].upper()] if match else Direction.UNKNOWN
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return GeneratedCode(direction)
    definitions = dict(_definitions(tree))
    lines = text.splitlines()
    calls: list[Call] = []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name not in _BENCHMARK_FUNCTIONS:
            calls += _calls(function, definitions, lines)
    return GeneratedCode(direction, definitions, tuple(sorted(calls, key=lambda call: call.line)))


def _definitions(tree: ast.Module) -> list[tuple[str, Definition]]:
    definitions = []
    for statement in tree.body:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
            continue
        value = statement.value
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and ast.unparse(value.func.value) == "async_compile"
        ):
            kind = _KERNEL_KINDS.get(value.func.attr, KernelKind.OTHER)
            definitions.append(
                (statement.targets[0].id, Definition(kind, statement.lineno, statement.end_lineno or statement.lineno))
            )
    return definitions


def _calls(function: ast.FunctionDef, definitions: dict[str, Definition], lines: list[str]) -> list[Call]:
    calls = []
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        kernel = name.removesuffix(".run")
        known = kernel in definitions
        if not known and not name.startswith(("extern_kernels.", "torch.ops.", "aten.", "inductor_ops.")):
            continue
        if any(word in name for word in _NON_KERNEL_CALLS):
            continue
        comment = _SOURCE_NODES.match(lines[node.lineno - 2]) if node.lineno >= 2 else None
        names = _split(comment["nodes"]) if comment else ()
        operations = _split(comment["operations"]) if comment else ()
        calls.append(Call(kernel if known else name, node.lineno, names, operations))
    return calls


def _split(text: str) -> tuple[str, ...]:
    return tuple(piece.strip() for piece in text.split(",") if piece.strip())
