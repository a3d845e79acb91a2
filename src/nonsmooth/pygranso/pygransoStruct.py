"""The attribute container that PyGRANSO uses for options, variables, constraints and results."""  # noqa: N999

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch


class pygransoStruct:  # noqa: N801 (PyGRANSO's name)
    """A container of attributes, in the order of their first assignment.

    >>> options = pygransoStruct(maxit=50)
    >>> options.opt_tol = 1e-6
    >>> options
    pygransoStruct(maxit=50, opt_tol=1e-06)
    >>> list(options), "maxit" in options, options == pygransoStruct(maxit=50, opt_tol=1e-6)
    (['maxit', 'opt_tol'], True, True)
    """

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    if TYPE_CHECKING:  # any name may be assigned

        def __setattr__(self, name: str, value: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        # Called only if there is no such attribute.
        names = ", ".join(self.__dict__) or "none"
        raise AttributeError(f"pygransoStruct has no attribute {name!r}; its attributes are: {names}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def __len__(self) -> int:
        return len(self.__dict__)

    def __bool__(self) -> bool:
        return True  # an empty struct is true, like PyGRANSO's

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, pygransoStruct):
            return NotImplemented
        return _equal(self.__dict__, other.__dict__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"pygransoStruct({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


def _equal(one: Any, other: Any) -> bool:
    """Equality that compares tensors, arrays and containers of them by value."""
    if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
        return isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


__all__ = ["pygransoStruct"]
