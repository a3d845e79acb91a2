"""The callable that `tune` returns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from compile_inspect.records.decision import Decision

if TYPE_CHECKING:
    from compile_inspect.variants.guard import Guard

FALLBACKS_BEFORE_WARNING = 10


class Tuned:
    """A function or module in the fastest form that agrees with eager.

    Call it like the original. Everything else (`state_dict`, `train`, `parameters`, …) is the original's own.
    `decision` has what was tried, measured and chosen; `fallbacks` counts the calls that ran the original because an
    input, or something else that the function reads, differed from the example.
    """

    def __new__(cls, *_: Any) -> Tuned:
        """An instance with a class of its own: Python looks up `__call__` on the class, and finds the function itself."""
        return object.__new__(type(cls.__name__, (cls,), {"__module__": cls.__module__}))

    def __init__(self, function: Callable[..., Any], fast: Callable[..., Any], decision: Decision) -> None:
        self.__dict__["_original"] = function
        self.__dict__["fallbacks"] = 0
        self.__dict__["__wrapped__"] = function
        self.replace(fast, decision)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the original for these inputs."""
        raise NotImplementedError("every instance replaces this method")

    def __getattr__(self, name: str) -> Any:
        if "_original" not in self.__dict__:  # while being copied or unpickled
            raise AttributeError(name)
        return getattr(self.__dict__["_original"], name)

    def __reduce__(self) -> Any:
        raise TypeError("a tuned callable belongs to its process; send the original and tune it there, with cache=True")

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_original"], name, value)

    def __repr__(self) -> str:
        return f"<tuned {self.decision.target}: {self.decision.chosen}>"

    def replace(self, fast: Callable[..., Any], decision: Decision) -> None:
        """Switch to another callable and the evidence for it."""
        self.__dict__["decision"] = decision
        type(self).__call__ = staticmethod(fast)  # type: ignore[method-assign]

    def fall_back(self, guard: Guard, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the original because a guard does not hold; count it, and warn once if it happens repeatedly."""
        self.__dict__["fallbacks"] += 1
        if self.fallbacks == FALLBACKS_BEFORE_WARNING:
            warnings.warn(
                f"{self.decision.target}, tuned as {self.decision.chosen}, ran eagerly {self.fallbacks} times, the last time "
                f"because {guard.failure_reason(args, kwargs)}. Tune it again if this change is permanent.",
                stacklevel=3,
            )
        return self.__dict__["_original"](*args, **kwargs)
