"""What a program prints in a trial is not what its user wants to read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """For a while, nothing that Python prints is seen.

    >>> with silence():
    ...     print("nobody reads this")
    """
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        yield
