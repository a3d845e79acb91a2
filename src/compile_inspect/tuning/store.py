"""Decisions and packages cached on disk for the next process.

An entry is a directory named by the key of the program that the decision is about. It is written to a temporary directory
and moved into place. Entries are checked when they are read: a package with the wrong digest, or an entry that cannot be
read, is removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from compile_inspect import serialization
from compile_inspect.records.decision import Decision
from compile_inspect.tuning.key import program_key
from compile_inspect.variants.base import Refused
from compile_inspect.variants.task import Task

PACKAGE = "package.pt2"
DECISION = "decision.json"
FORMAT = 3


def default_directory() -> Path:
    """The default directory for entries: `COMPILE_INSPECT_CACHE`, or the user's cache directory."""
    chosen = os.environ.get("COMPILE_INSPECT_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(chosen) if chosen else base / "compile-inspect" / "tune"


class Store:
    """Cached decisions in a directory."""

    def __init__(self, directory: str | Path | None = None) -> None:
        self.directory = default_directory() if directory is None else Path(directory)

    def entry(self, task: Task) -> Path:
        """The directory of a task's entry, whether or not it exists."""
        return self.directory / program_key(task)

    def load(self, task: Task) -> tuple[Decision, Path | None] | None:
        """The cached decision for a task and its package, if it has one; None if there is no usable entry."""
        try:
            place = self.entry(task)
        except Refused:  # what is not one graph has no key
            return None
        try:
            data = json.loads((place / DECISION).read_text())
            package = place / PACKAGE
            if data["format"] != FORMAT or (data["package"] is not None and data["package"] != file_digest(package)):
                raise ValueError("stale or damaged")
            decision = serialization.from_data(Decision, data["decision"])
        except FileNotFoundError:
            return None
        except Exception:  # for any reason, the entry is unusable
            self.drop(task)
            return None
        return decision, package if data["package"] is not None else None

    def save(self, task: Task, decision: Decision, package: str | None) -> None:
        """Store a decision. A full disk, missing permissions or a function without a key is not an error."""
        aside: Path | None = None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            aside = Path(tempfile.mkdtemp(prefix=".new-", dir=self.directory))
            if package is not None:
                shutil.copyfile(package, aside / PACKAGE)
            data = {
                "format": FORMAT,
                "decision": serialization.to_data(decision),
                "package": None if package is None else file_digest(aside / PACKAGE),
            }
            (aside / DECISION).write_text(json.dumps(data))
            self.drop(task)
            aside.rename(self.entry(task))
        except (OSError, Refused):
            return
        finally:
            if aside is not None:
                shutil.rmtree(aside, ignore_errors=True)  # it exists only if it could not be moved

    def drop(self, task: Task) -> None:
        """Remove the entry of a task."""
        shutil.rmtree(self.entry(task), ignore_errors=True)


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
