"""Guards on numbers that are likely to change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from compile_inspect.records.guards import Guard
from compile_inspect.records.locations import Location


class FailureEvidence(Enum):
    """The evidence that a guard will fail."""

    FAILED_BEFORE = "it has already failed"
    CHANGED_VALUE = "the program changes the value"


class ValueOrigin(Enum):
    """Where a guarded number comes from."""

    ARGUMENT = "an argument of the function"
    ATTRIBUTE = "an attribute of an object"
    GLOBAL = "a global variable"


_REMEDY = {
    ValueOrigin.ARGUMENT: (
        "Pass it as a tensor, or leave it: torch recompiles once at the second value and treats it as a symbol from then on "
        "(a float too, if it is only used in tensor arithmetic)."
    ),
    ValueOrigin.ATTRIBUTE: (
        "Store it as a tensor (register_buffer) or outside the compiled function, or let integers of modules be symbols: "
        "torch._dynamo.config.allow_unspec_int_on_nn_module = True. Otherwise torch compiles for each value, up to the limit."
    ),
    ValueOrigin.GLOBAL: (
        "Pass it as an argument, or store it as a tensor: a global number is a constant in the compiled code, and torch "
        "compiles for each value, up to the limit."
    ),
}


@dataclass(frozen=True)
class AccidentalGuard:
    """A guard on a number that the function probably should not depend on."""

    guard: Guard
    value: str
    origin: ValueOrigin
    evidence: FailureEvidence
    change_location: Location | None = None
    """The line that changes the value, if one was found."""

    @property
    def remedy(self) -> str:
        """What you can do about it."""
        return _REMEDY[self.origin]
