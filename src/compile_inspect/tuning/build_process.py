"""Build a package in a separate process: `python -m compile_inspect.tuning.build_process PROGRAM PACKAGE`.

It receives a traced graph, never the user's function: it runs and imports nothing of the program.
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
