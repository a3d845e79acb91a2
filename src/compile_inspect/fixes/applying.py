"""Writing changes to the user's files, so that they can be undone."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from compile_inspect.errors import InspectError

SUFFIX = ".before-fix"


def write(texts: Mapping[str, str]) -> list[str]:
    """Write files; for each a sentence that says how to undo it.

    A file that git knows and that has no changes of its own is undone by git; of any other a copy is kept beside it.
    """
    said = []
    for file, text in texts.items():
        path = Path(file).resolve()  # what a link leads to is changed, not the link
        if (path.exists() and not os.access(path, os.W_OK)) or (path.exists() and not path.stat().st_mode & 0o222):
            raise InspectError(f"{path} is read-only: make it writable, or change a copy of it")
        try:
            if _clean_in_git(path):
                undo = f"git checkout -- {path.name}"
            else:
                backup = _free(path)
                shutil.copy2(path, backup)
                undo = f"mv {backup.name} {path.name}"
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="", dir=path.parent, delete=False) as partial:
                partial.write(text)
            try:
                shutil.copymode(path, partial.name)
                Path(partial.name).replace(path)
            except OSError:
                Path(partial.name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise InspectError(f"{file} cannot be written: {error.strerror or error}") from error
        said.append(f"Wrote {path}. To undo it, in {path.parent}: {undo}")
    return said


def _free(path: Path) -> Path:
    """A name for a backup that is not taken."""
    number, found = 1, path.with_name(path.name + SUFFIX)
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}{SUFFIX}{number}")
    return found


def _clean_in_git(path: Path) -> bool:
    """Whether git has this very content of the file."""
    try:
        for arguments in (["ls-files", "--error-unmatch", path.name], ["diff", "--quiet", "HEAD", "--", path.name]):
            done = subprocess.run(["git", *arguments], cwd=path.parent, capture_output=True, timeout=20)
            if done.returncode:
                return False
    except (OSError, subprocess.SubprocessError):
        return False
    return True
