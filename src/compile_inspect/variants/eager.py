"""The function as it is."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.variants.base import Prepared, Variant
from compile_inspect.variants.task import Task


@dataclass(frozen=True)
class Eager(Variant):
    """No compilation at all: what everything else is compared with."""

    @property
    def name(self) -> str:
        """`eager`."""
        return "eager"

    @property
    def exact(self) -> bool:
        """It is eager."""
        return True

    def build(self, task: Task) -> Prepared:
        """Nothing to do; the first call is made all the same."""
        task.run(task.function, task.args, task.kwargs)
        return Prepared(self, lambda *args, **kwargs: task.run(task.function, args, kwargs), task.function, 0.0)
