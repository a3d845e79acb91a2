"""Guards on numbers that change: guards that failed, and guards on numbers that a line of the program changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from compile_inspect.records import Inspection, Location
from compile_inspect.records.accidental_guards import AccidentalGuard, FailureEvidence, ValueOrigin

_NUMBER = re.compile(r"== (?P<value>-?\d[\d_.e+-]*|True|False)$")
_ON_VALUES = ("EQUALS_MATCH", "CONSTANT_MATCH", "ID_MATCH")
_LOCAL = re.compile(r"^L\['(?P<name>\w+)'\]$")
_ATTRIBUTE = re.compile(r"^L\['\w+'\](?:\.\w+|\._modules\['\w+'\])*\.(?P<name>\w+)$")
_GLOBAL = re.compile(r"^G\['(?P<name>\w+)'\](?:\.\w+)*$")


def accidental_guards(inspection: Inspection) -> tuple[AccidentalGuard, ...]:
    """Guards that look accidental, the most certain first."""
    failed_variables = {failure.variable for recompile in inspection.recompiles for failure in recompile.failures}
    accidents: dict[tuple[str, str], AccidentalGuard] = {}
    for guard in inspection.guards:
        number = _NUMBER.search(guard.condition)
        if guard.is_internal or number is None or guard.kind not in _ON_VALUES:
            continue
        for pattern, holder in (
            (_LOCAL, ValueOrigin.ARGUMENT),
            (_GLOBAL, ValueOrigin.GLOBAL),
            (_ATTRIBUTE, ValueOrigin.ATTRIBUTE),
        ):
            match = pattern.match(guard.source)
            if match is None:
                continue
            name = guard.source.rpartition(".")[2] if holder is ValueOrigin.GLOBAL and "." in guard.source else match["name"]
            line = next(_assignments(inspection.sources, name, holder), None)
            if guard.variable not in failed_variables and line is None:
                break  # nothing suggests that it is not a constant
            suspicion = FailureEvidence.FAILED_BEFORE if guard.variable in failed_variables else FailureEvidence.CHANGED_VALUE
            accident = AccidentalGuard(guard, number["value"], holder, suspicion, line)
            accidents.setdefault((guard.variable, number["value"]), accident)
            break
    order = list(FailureEvidence)
    return tuple(sorted(accidents.values(), key=lambda item: order.index(item.evidence)))


def _assignments(sources: Mapping[str, str], name: str, holder: ValueOrigin) -> Iterator[Location]:
    """Lines that change an attribute outside the constructor, or a global inside a function."""
    for file, text in sources.items():
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        for function in (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
            if function.name in ("__init__", "__post_init__"):
                continue
            declared = {item for node in ast.walk(function) if isinstance(node, ast.Global) for item in node.names}
            for node in ast.walk(function):
                if _changes(node, name, holder, declared):
                    code = text.split("\n")[node.lineno - 1].strip()  # type: ignore[attr-defined]
                    yield Location(file, node.lineno, function.name, code)  # type: ignore[attr-defined]


def _changes(node: ast.AST, name: str, holder: ValueOrigin, declared: set[str]) -> bool:
    if isinstance(node, ast.AugAssign):
        targets: list[ast.expr] = [node.target]
    elif isinstance(node, ast.Assign):
        targets = node.targets
    else:
        return False
    if holder is ValueOrigin.ATTRIBUTE:
        attribute_source = f"self.{name}"
        return any(isinstance(target, ast.Attribute) and ast.unparse(target) == attribute_source for target in targets)
    return holder is ValueOrigin.GLOBAL and name in declared and any(
        isinstance(target, ast.Name) and target.id == name for target in targets
    )  # fmt: skip
