"""Locations in source code: short file names, lines of stacks, lines that a kernel computes."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from compile_inspect.records import Inspection, Kernel, Location, Stack
from compile_inspect.wording.plain import one_line

_PACKAGES = re.compile(r"^.*[/\\](?:site-packages|dist-packages)[/\\]")
_STANDARD_LIBRARY = re.compile(r"^.*[/\\]lib(?:64)?[/\\]python\d(?:\.\d+)?[/\\]")


def short_path(file: str) -> str:
    """A file relative to the current directory, or starting at its package.

    >>> short_path("/venv/lib/python3.11/site-packages/torch/nn/functional.py")
    'torch/nn/functional.py'
    """
    try:
        directory = str(Path.cwd())
    except OSError:  # the directory was deleted
        directory = ""
    return _short_path(file, directory)


@lru_cache(maxsize=4096)
def _short_path(file: str, directory: str) -> str:
    if "/" in file or "\\" in file:
        file = os.path.normpath(file)  # ./model.py and sub/../model.py are the same file
    # Check the package first: a virtual environment is often in the current directory.
    for prefix in (_PACKAGES, _STANDARD_LIBRARY):
        match = prefix.match(file)
        if match:
            return one_line(file[match.end() :])
    inside = directory.rstrip("/\\") + os.sep
    if directory and file.startswith(inside):
        file = file[len(inside) :]
    return one_line(file)


def place(file: str, line: int) -> str:
    """File and line as editors and terminals understand them.

    >>> place("/venv/lib/python3.11/site-packages/torch/nn/functional.py", 7)
    'torch/nn/functional.py:7'
    """
    return f"{short_path(file)}:{line}" if file else "-"


def where(location: Location | None) -> str:
    """A location as file and line, or a dash."""
    return "-" if location is None else place(location.file, location.line)


def stack_at(inspection: Inspection, index: int | None) -> Stack | None:
    """The stack with this number; None also if a damaged capture refers to no stack."""
    if index is None or not 0 <= index < len(inspection.stacks):
        return None
    return inspection.stacks[index]


def user_line(inspection: Inspection, index: int | None) -> Location | None:
    """The innermost line outside torch of the stack with this number."""
    stack = stack_at(inspection, index)
    return None if stack is None else stack.user_line


def kernel_places(inspection: Inspection, kernel: Kernel, limit: int | None = None) -> str:
    """The distinct user lines a kernel computes, each file named once."""
    lines = [line for index in kernel.stacks if (line := user_line(inspection, index)) is not None]
    distinct = list(dict.fromkeys((line.file, line.line) for line in lines))
    listed = distinct if limit is None else distinct[:limit]
    parts = []
    for file, run in groupby(listed, key=lambda item: item[0]):
        parts.append(f"{short_path(file)}:{', '.join(str(line) for _, line in run)}")
    if len(listed) < len(distinct):
        parts.append(f"+ {len(distinct) - len(listed)}")
    return "; ".join(parts) or "-"
