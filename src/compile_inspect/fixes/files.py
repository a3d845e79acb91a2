"""Write changes to the user's files in a way that can be undone."""

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
    """Write files and return, for each, a sentence that explains how to undo the change.

    A file that git tracks and that has no local changes can be restored by git; any other file is backed up beside it.
    """
    messages = []
    for file, text in texts.items():
        path = Path(file).resolve()  # change the file that a link points to, not the link
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
        messages.append(f"Wrote {path}. To undo it, in {path.parent}: {undo}")
    return messages


def _free(path: Path) -> Path:
    """A name for the backup that no file has yet."""
    number, backup = 1, path.with_name(path.name + SUFFIX)
    while backup.exists():
        number += 1
        backup = path.with_name(f"{path.name}{SUFFIX}{number}")
    return backup


def _clean_in_git(path: Path) -> bool:
    """Whether git stores exactly this content of the file."""
    try:
        for arguments in (["ls-files", "--error-unmatch", path.name], ["diff", "--quiet", "HEAD", "--", path.name]):
            process = subprocess.run(["git", *arguments], cwd=path.parent, capture_output=True, timeout=20)
            if process.returncode:
                return False
    except (OSError, subprocess.SubprocessError):
        return False
    return True
