"""One change between calls, with every recompile that it led to."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.records.forecast import Remedy


@dataclass(frozen=True)
class RecompileCause:
    """Why some functions were compiled again, and what helps against it.

    A model is many functions: one batch of another size makes torch compile all of those again that depend on it. The cause
    is told of the function that met it first.
    """

    reason: str
    variable: str = ""
    """What changed, as the first function calls it; empty where torch does not name it."""
    values: tuple[str, ...] = ()
    """What it was at first, and what it became; empty where torch does not say."""
    recompiles: tuple[str, ...] = ()
    """Ids of the compilations, in the order they happened."""
    remedies: tuple[Remedy, ...] = ()
    """What to try, the least intrusive first; nothing was run, so none is proven."""
