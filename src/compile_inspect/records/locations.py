"""Locations in source code, and whose code they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

# Code that came with the interpreter or with an installed package. Torch is distinguished from other
# libraries because users never have to change its frames (nn.Module.__call__, F.linear), while a line
# of another library is often the cause to report.
_INSTALLED = re.compile(r"[/\\](site-packages|dist-packages)[/\\]")
_STANDARD_LIBRARY = re.compile(r"[/\\]lib(64)?[/\\]python\d(\.\d+)?[/\\]|[/\\]Lib[/\\](?!site-packages)")
_TORCH = re.compile(r"[/\\](site-packages|dist-packages)[/\\](torch|functorch|triton)[/\\]|^<eval_with_key")
# The recorder's own frames, which are between a user's call of `inspect` and the compiled function.
_RECORDER = re.compile(
    r"(?<!tests)[/\\]compile_inspect[/\\](capture|fixes|recompiles|agreement|timing|tour|tuning|variants)[/\\]"
)
_PHASES = "eager|basics|dynamo_capture|graph_breaks|inductor_codegen|benchmark|main"
_COMMAND = re.compile(rf"(?<!tests)[/\\]compile_inspect[/\\](commands[/\\](inspect|tour|__init__)|__main__|{_PHASES})\.py$")


@lru_cache(maxsize=4096)
def is_torch_file(file: str) -> bool:
    """Whether `file` is part of torch itself or of this recorder, which users never have to change.

    >>> is_torch_file("/usr/lib/python3/site-packages/torch/nn/modules/linear.py")
    True
    >>> is_torch_file("/home/me/model.py")
    False
    """
    return bool(_TORCH.search(file)) or is_recorder_file(file)


def is_recorder_file(file: str) -> bool:
    """Whether `file` is part of this package's code that calls targets."""
    return bool(_RECORDER.search(file)) or is_command_file(file)


def is_command_file(file: str) -> bool:
    """Whether `file` is part of this package's command line."""
    return bool(_COMMAND.search(file))


@lru_cache(maxsize=4096)
def is_library_file(file: str) -> bool:
    """Whether `file` came with Python or an installed package rather than from the user.

    >>> is_library_file("/venv/lib/python3.11/site-packages/transformers/modeling_utils.py")
    True
    >>> is_library_file("/home/me/model.py")
    False
    """
    return bool(_INSTALLED.search(file) or _STANDARD_LIBRARY.search(file)) or file.startswith("<frozen") or is_torch_file(file)


@dataclass(frozen=True)
class Location:
    """One line of source code in a stack."""

    file: str
    line: int
    function: str = ""
    code: str = ""

    @property
    def in_torch(self) -> bool:
        """Whether the line is torch's own."""
        return is_torch_file(self.file)

    @property
    def in_library(self) -> bool:
        """Whether the line belongs to an installed package or to Python itself."""
        return is_library_file(self.file)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Stack:
    """The stack of one operation, outermost line first.

    >>> stack = Stack((Location("/home/me/model.py", 7), Location("/venv/site-packages/torch/nn/linear.py", 1)))
    >>> str(stack.user_line)
    '/home/me/model.py:7'
    """

    locations: tuple[Location, ...]

    @property
    def innermost(self) -> Location | None:
        """The innermost line, in any code."""
        return self.locations[-1] if self.locations else None

    @property
    def user_line(self) -> Location | None:
        """The innermost line outside torch: in the user's code or in a library built on torch."""
        for location in reversed(self.locations):
            if not location.in_torch:
                return location
        return self.innermost

    @property
    def own_line(self) -> Location | None:
        """The innermost line outside all installed packages, if there is one."""
        for location in reversed(self.locations):
            if not location.in_library:
                return location
        return None
