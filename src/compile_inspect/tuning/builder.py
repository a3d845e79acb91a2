"""Builds a package in a process of its own: `python -m compile_inspect.tuning.builder PROGRAM PACKAGE`.

It gets a traced graph, never the user's function: nothing of the program is run or imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from compile_inspect import torch_private


def main(arguments: Sequence[str]) -> int:
    """Compile the exported program in one file into the package in another."""
    program, package = arguments
    torch_private.package_program(program, package)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
