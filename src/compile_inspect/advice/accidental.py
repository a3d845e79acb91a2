"""Guards on values that will change: a number in the signature, a counter in a module, a global."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from compile_inspect.records import Guard, Inspection, Location

_NUMBER = re.compile(r"== (?P<value>-?\d[\d_.e+-]*|True|False)$")
_LOCAL = re.compile(r"^L\['(?P<name>\w+)'\]$")
_ATTRIBUTE = re.compile(r"^L\['\w+'\](?:\.\w+|\._modules\['\w+'\])*\.(?P<name>\w+)$")
_GLOBAL = re.compile(r"^G\['(?P<name>\w+)'\](?:\.\w+)*$")


class Suspicion(Enum):
    """How sure it is that a guard will fail."""

    SEEN = "it has failed already"
    CHANGED = "the program changes the value"
    NUMBER = "it is a number, which may change"


class Holder(Enum):
    """Where a guarded number comes from."""

    ARGUMENT = "an argument of the function"
    ATTRIBUTE = "an attribute of an object"
    GLOBAL = "a global variable"


_REMEDY = {
    Holder.ARGUMENT: (
        "Give it as a tensor, or leave it: torch compiles once more at the second value and takes it as a symbol from then on "
        "(a float too, if it only enters tensor arithmetic)."
    ),
    Holder.ATTRIBUTE: (
        "Keep it as a tensor (register_buffer) or outside the compiled function; or let numbers of modules be symbols: "
        "torch._dynamo.config.allow_unspec_int_on_nn_module = True. Else every value is compiled for, until the limit."
    ),
    Holder.GLOBAL: (
        "Pass it as an argument, or keep it as a tensor: a global number is a constant of the compiled code, and every value "
        "is compiled for, until the limit."
    ),
}


@dataclass(frozen=True)
class Accident:
    """A guard on a number that the function probably did not mean to depend on."""

    guard: Guard
    value: str
    holder: Holder
    suspicion: Suspicion
    changed_at: Location | None = None
    """The line that changes the value, where one was found."""

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return _REMEDY[self.holder]


def accidental(inspection: Inspection) -> tuple[Accident, ...]:
    """Guards that look accidental, the surest first."""
    failed = {failure.variable for recompile in inspection.recompiles for failure in recompile.failures}
    found: dict[tuple[str, str], Accident] = {}
    for guard in inspection.guards:
        number = _NUMBER.search(guard.condition)
        if guard.noise or number is None:
            continue
        for pattern, holder in ((_LOCAL, Holder.ARGUMENT), (_GLOBAL, Holder.GLOBAL), (_ATTRIBUTE, Holder.ATTRIBUTE)):
            match = pattern.match(guard.source)
            if match is None:
                continue
            name = guard.source.rpartition(".")[2] if holder is Holder.GLOBAL and "." in guard.source else match["name"]
            line = next(_assignments(inspection.sources, name, holder), None)
            suspicion = Suspicion.SEEN if guard.variable in failed else Suspicion.CHANGED if line else Suspicion.NUMBER
            accident = Accident(guard, number["value"], holder, suspicion, line)
            found.setdefault((guard.variable, number["value"]), accident)
            break
    order = list(Suspicion)
    return tuple(sorted(found.values(), key=lambda item: order.index(item.suspicion)))


def _assignments(sources: Mapping[str, str], name: str, holder: Holder) -> Iterator[Location]:
    """Lines that change an attribute outside the making of its object, or a global inside a function."""
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


def _changes(node: ast.AST, name: str, holder: Holder, declared: set[str]) -> bool:
    if isinstance(node, ast.AugAssign):
        targets: list[ast.expr] = [node.target]
    elif isinstance(node, ast.Assign):
        targets = node.targets
    else:
        return False
    if holder is Holder.ATTRIBUTE:
        return any(isinstance(target, ast.Attribute) and target.attr == name for target in targets)
    return holder is Holder.GLOBAL and name in declared and any(
        isinstance(target, ast.Name) and target.id == name for target in targets
    )  # fmt: skip
