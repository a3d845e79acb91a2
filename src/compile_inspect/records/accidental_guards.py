"""Guards on numbers that will change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from compile_inspect.records.guards import Guard
from compile_inspect.records.locations import Location


class FailureEvidence(Enum):
    """How sure it is that a guard will fail."""

    FAILED_BEFORE = "it has failed already"
    CHANGED_VALUE = "the program changes the value"


class ValueOrigin(Enum):
    """Where a guarded number comes from."""

    ARGUMENT = "an argument of the function"
    ATTRIBUTE = "an attribute of an object"
    GLOBAL = "a global variable"


_REMEDY = {
    ValueOrigin.ARGUMENT: (
        "Give it as a tensor, or leave it: torch compiles once more at the second value and takes it as a symbol from then on "
        "(a float too, if it only enters tensor arithmetic)."
    ),
    ValueOrigin.ATTRIBUTE: (
        "Keep it as a tensor (register_buffer) or outside the compiled function; or let numbers of modules be symbols: "
        "torch._dynamo.config.allow_unspec_int_on_nn_module = True. Else every value is compiled for, until the limit."
    ),
    ValueOrigin.GLOBAL: (
        "Pass it as an argument, or keep it as a tensor: a global number is a constant of the compiled code, and every value "
        "is compiled for, until the limit."
    ),
}


@dataclass(frozen=True)
class AccidentalGuard:
    """A guard on a number that the function probably did not mean to depend on."""

    guard: Guard
    value: str
    origin: ValueOrigin
    evidence: FailureEvidence
    change_location: Location | None = None
    """The line that changes the value, where one was found."""

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return _REMEDY[self.origin]
