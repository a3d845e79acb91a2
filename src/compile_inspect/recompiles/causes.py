"""Classify failed guards by what changed between two calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from compile_inspect.records import GuardFailure


class CauseKind(Enum):
    """What changed between two calls."""

    SIZE = "size"
    CONDITION = "condition on a size"
    STRIDE = "strides"
    RANK = "number of dimensions"
    DTYPE = "dtype"
    DEVICE = "device"
    GRADIENT = "gradient requirement"
    STATE = "state of torch"
    NUMBER = "number"
    VALUE = "value"
    ATTRIBUTE = "attribute"
    GLOBAL = "global variable"
    LENGTH = "length"
    TYPE = "type"
    OBJECT = "identity of an object"
    SHARED = "one tensor passed twice"
    OTHER = "something else"


@dataclass(frozen=True)
class Cause:
    """A parsed failed guard: its kind, the variable and dimension, the expected and the actual value."""

    kind: CauseKind
    variable: str
    dimension: int | None = None
    others: tuple[tuple[str, int], ...] = ()
    """Further sizes in a condition."""
    expected: str | None = None
    actual: str | None = None
    reason: str = ""

    @property
    def key(self) -> tuple[CauseKind, str, int | None]:
        """Recompiles with the same key have one cause."""
        return self.kind, self.variable, self.dimension

    @property
    def small(self) -> bool:
        """Whether it is about a size or number of 0 or 1, for which Dynamo always compiles separately."""
        return self.actual in ("0", "1") or (self.kind is CauseKind.SIZE and self.expected in ("0", "1"))


_INDEX = re.compile(r"(?:size|stride) mismatch at index (\d+)")
_SIZE = re.compile(r"(?P<name>[^\W\d][\w.\[\]' ]*?)\.size\(\)\[(?P<dimension>\d+)\]")
_TENSOR_KINDS = (
    ("size mismatch", CauseKind.SIZE),
    ("stride mismatch", CauseKind.STRIDE),
    ("rank mismatch", CauseKind.RANK),
    ("dtype mismatch", CauseKind.DTYPE),
    ("device mismatch", CauseKind.DEVICE),
    ("device index mismatch", CauseKind.DEVICE),
    ("requires_grad mismatch", CauseKind.GRADIENT),
    ("dispatch key set mismatch", CauseKind.GRADIENT),
)
_LENGTH = re.compile(r"^len\((?P<name>.+)\)$")


def cause_of(failure: GuardFailure) -> Cause:
    """What changed, according to a failed guard.

    >>> cause = cause_of(GuardFailure("0/0", "x", "tensor 'x' size mismatch at index 1. expected 4, actual 5", "4", "5"))
    >>> cause.kind, cause.variable, cause.dimension
    (<CauseKind.SIZE: 'size'>, 'x', 1)
    >>> cause_of(GuardFailure("0/0", "self.k", "self.k == 2", "2", "3")).kind
    <CauseKind.ATTRIBUTE: 'attribute'>
    """
    reason, variable = failure.reason, failure.variable
    details = {"expected": failure.expected, "actual": failure.actual, "reason": reason}
    if reason.startswith("tensor '"):
        for words, kind in _TENSOR_KINDS:
            if words in reason:
                index = _INDEX.search(reason)
                return Cause(kind, variable, int(index[1]) if index else None, **details)  # type: ignore[arg-type]
    sizes = list(dict.fromkeys((match["name"].strip(), int(match["dimension"])) for match in _SIZE.finditer(reason)))
    if sizes:
        return Cause(CauseKind.CONDITION, sizes[0][0], sizes[0][1], tuple(sizes[1:]), **details)  # type: ignore[arg-type]
    length = _LENGTH.match(variable)
    if length is not None:
        return Cause(CauseKind.LENGTH, length["name"], **details)  # type: ignore[arg-type]
    return Cause(_other_kind(failure), variable, **details)  # type: ignore[arg-type]


def _other_kind(failure: GuardFailure) -> CauseKind:
    reason, variable = failure.reason, failure.variable
    if reason.startswith("GLOBAL_STATE"):
        return CauseKind.STATE
    if reason.startswith("Duplicate tensors"):
        return CauseKind.SHARED
    if "is of type" in reason:
        return CauseKind.TYPE
    if "is the same object" in reason:
        return CauseKind.OBJECT
    if not variable:
        return CauseKind.OTHER
    if variable.startswith("global "):
        return CauseKind.GLOBAL
    if "." in variable:
        return CauseKind.ATTRIBUTE
    return CauseKind.NUMBER if _is_number(failure.expected) and _is_number(failure.actual, True) else CauseKind.VALUE


def _is_number(text: str | None, unknown: bool = False) -> bool:
    if text is None:
        return unknown
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def decisive_cause(failures: Sequence[GuardFailure], earlier: Iterable[Cause]) -> Cause | None:
    """Of the failed guards, one per earlier version, the one that shows what is new.

    A version that fails for an earlier cause may differ in other ways too. If another version failed for a cause that has not
    occurred before, that cause is the decisive one.
    """
    known_keys = {cause.key for cause in earlier}
    causes = [cause_of(failure) for failure in failures]
    new_causes = [cause for cause in causes if cause.key not in known_keys]
    return next(iter(new_causes or causes), None)
