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
from compile_inspect.tuning.cache_key import program_key
from compile_inspect.variants.base import RefusalError
from compile_inspect.variants.task import Task

PACKAGE_FILE = "package.pt2"
DECISION_FILE = "decision.json"
ENTRY_FORMAT = 3


def default_directory() -> Path:
    """The default directory for entries: `COMPILE_INSPECT_CACHE`, or the user's cache directory."""
    configured = os.environ.get("COMPILE_INSPECT_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(configured) if configured else base / "compile-inspect" / "tune"


class DecisionCache:
    """Cached decisions in a directory."""

    def __init__(self, directory: str | Path | None = None) -> None:
        self.directory = default_directory() if directory is None else Path(directory)

    def entry(self, task: Task) -> Path:
        """The directory of a task's entry, whether or not it exists."""
        return self.directory / program_key(task)

    def load(self, task: Task) -> tuple[Decision, Path | None] | None:
        """The cached decision for a task and its package, if it has one; None if there is no usable entry."""
        try:
            directory = self.entry(task)
        except RefusalError:  # what is not one graph has no key
            return None
        try:
            data = json.loads((directory / DECISION_FILE).read_text())
            package = directory / PACKAGE_FILE
            if data["format"] != ENTRY_FORMAT or (data["package"] is not None and data["package"] != file_digest(package)):
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
        staging: Path | None = None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            staging = Path(tempfile.mkdtemp(prefix=".new-", dir=self.directory))
            if package is not None:
                shutil.copyfile(package, staging / PACKAGE_FILE)
            data = {
                "format": ENTRY_FORMAT,
                "decision": serialization.to_data(decision),
                "package": None if package is None else file_digest(staging / PACKAGE_FILE),
            }
            (staging / DECISION_FILE).write_text(json.dumps(data))
            self.drop(task)
            staging.rename(self.entry(task))
        except (OSError, RefusalError):
            return
        finally:
            if staging is not None:
                shutil.rmtree(staging, ignore_errors=True)  # it exists only if it could not be moved

    def drop(self, task: Task) -> None:
        """Remove the entry of a task."""
        shutil.rmtree(self.entry(task), ignore_errors=True)


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
