"""One change between calls, with all recompiles that it caused."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.records.forecast import Remedy


@dataclass(frozen=True)
class RecompileCause:
    """Why some functions were recompiled, and possible remedies.

    A model has many functions: one batch of a different size makes torch recompile all functions that depend on it. The
    cause is described for the first function that was affected.
    """

    reason: str
    variable: str = ""
    """What changed, by its name in the first function; empty if torch does not name it."""
    values: tuple[str, ...] = ()
    """The first value and the values it changed to; empty if torch does not report them."""
    recompiles: tuple[str, ...] = ()
    """Ids of the compilations, in order."""
    remedies: tuple[Remedy, ...] = ()
    """Remedies to try, the least intrusive first. None was run, so none is proven."""
