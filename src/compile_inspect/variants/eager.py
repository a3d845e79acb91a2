"""The function itself, without compilation."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.variants.base import Prepared, Variant
from compile_inspect.variants.task import Task


@dataclass(frozen=True)
class Eager(Variant):
    """No compilation: the baseline for all other variants."""

    @property
    def name(self) -> str:
        """`eager`."""
        return "eager"

    @property
    def exact(self) -> bool:
        """It is eager."""
        return True

    def build(self, task: Task) -> Prepared:
        """Make the first call; there is nothing to build."""
        task.run(task.function, task.args, task.kwargs)
        return Prepared(self, lambda *args, **kwargs: task.run(task.function, args, kwargs), task.function, 0.0)
