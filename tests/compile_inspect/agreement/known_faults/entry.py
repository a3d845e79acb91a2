"""One entry of the gallery: a function that torch.compile gets wrong, and what is known about it."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from compile_inspect.records import BlameStage

TORCH = "2.13"
"""The version whose results are recorded here, on a CPU."""


@dataclass(frozen=True)
class KnownFault:
    """A wrong result, and what is really at fault.

    `stage`, `operations` and `lines` were determined without this project's blame: the stage by compiling with each of
    torch's backends, the operation by compiling it alone or from the issue's own diagnosis.
    """

    function: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]
    issue: int | None
    """Its number in pytorch/pytorch; None for one that differential testing found."""
    stage: BlameStage
    operations: tuple[str, ...]
    """Parts of the names of the operations at fault: one of them has to be blamed. Empty where it is no operation."""
    lines: tuple[str, ...]
    """Parts of the lines at fault. Where it takes two operations together there are two, and either is right."""
    eager: str
    compiled: str
    shown: str = "result"
    """Which value `eager` and `compiled` are: `result`, `strides`, `gradient of x`, or `x after the call`."""
    gradients: bool = False
    missed: str = ""
    """Why `verify` does not see it, where it does not."""

    @property
    def name(self) -> str:
        """The name of the function, with spaces."""
        return self.function.__name__.replace("_", " ")

    @property
    def title(self) -> str:
        """What goes wrong, in a sentence."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the lines at fault in the file of the function."""
        own, first = inspect.getsourcelines(self.function)
        begin = next(index for index, line in enumerate(own) if line.lstrip().startswith("def "))
        whole = inspect.getsource(inspect.getmodule(self.function)).splitlines()  # type: ignore[arg-type]
        numbers = []
        for text in self.lines:
            places = [first + index for index, line in enumerate(own) if text in line and index > begin]
            if not places:  # a line of something the function calls
                places = [number for number, line in enumerate(whole, 1) if text in line and "lines=" not in line]
            assert len(places) == 1, f"{self.name}: {text!r} is in {len(places)} lines"
            numbers += places
        return tuple(numbers)

    def outcome(self, function: Callable[..., Any]) -> str:
        """What a function with the signature of this one gives, as text."""
        torch.manual_seed(0)
        inputs = self.inputs()
        with _grad_mode(self.gradients):
            try:
                result = function(*inputs)
                if self.shown == "result":
                    return text_of(result)
                if self.shown == "strides":
                    return str(result.stride())
                name = self.shown.removeprefix("gradient of ").removesuffix(" after the call")
                value = inputs[list(inspect.signature(self.function).parameters).index(name)]
                if self.shown.startswith("gradient of "):
                    leaves = [leaf for leaf in _leaves(result) if leaf.requires_grad]
                    value = torch.autograd.grad([leaf.sum() for leaf in leaves], value)[0]
                return text_of(value)
            except Exception as error:
                return f"{type(error).__name__}: {str(error).strip().splitlines()[0].partition('.  (')[0]}"


GALLERY: list[KnownFault] = []


def known_fault(**facts: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function into the gallery."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        GALLERY.append(KnownFault(function, **facts))
        return function

    return decorate


def text_of(value: Any) -> str:
    """A result as it stands in the gallery: tensors as flat lists of up to eight numbers."""
    if isinstance(value, torch.Tensor):
        flat = value.detach().flatten()
        shown = [f"{item:.6g}" if isinstance(item, float) else str(item) for item in flat[:8].tolist()]
        more = ", …" if flat.numel() > 8 else ""
        return shown[0] if value.dim() == 0 else f"[{', '.join(shown)}{more}]"
    if isinstance(value, (tuple, list)):
        return "; ".join(map(text_of, value))
    return repr(value)


def _leaves(value: Any) -> list[torch.Tensor]:
    items = value if isinstance(value, (tuple, list)) else [value]
    return [item for item in items if isinstance(item, torch.Tensor)]


@contextlib.contextmanager
def _grad_mode(enabled: bool) -> Iterator[None]:
    with torch.set_grad_enabled(enabled):
        yield
