"""The files in benchmarks/results: one JSON file for each measurement, in a common envelope.

    measurement = Measurement("guard_cost", packages=("torch", "transformers"))
    ...
    measurement.write(samples)

The envelope says what was measured, when, by which command, on which machine, and with which versions and commit. What it does
not know is null. `samples` are the measurements in the form that the benchmark chooses; `summary` are statistics, stored where
the samples are not. `make results` makes tables of these files. benchmarks/README.md describes the format.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SCHEMA_VERSION = 1
MAX_LINE_CHARACTERS = 160
PACKAGES = ("torch", "numpy", "scipy")
ENVELOPE: dict[str, tuple[type, ...]] = {
    "schema": (int,),
    "name": (str,),
    "script": (str,),
    "command": (str,),
    "date": (str,),
    "machine": (dict,),
    "versions": (dict,),
    "commit": (str, type(None)),
    "dirty": (bool, type(None)),
    "load": (dict, type(None)),
    "transcribed": (bool,),
    "from_git_log": (list,),
    "notes": (list,),
    "samples": (dict, list, type(None)),
    "summary": (dict, list, type(None)),
}
"""Every key of a file, and the types its value may have."""
MACHINE = ("processor", "cores", "memory_gib", "gpu", "system")
"""The keys of `machine`; a value that is not known is null."""

Document = dict[str, Any]


class Measurement:
    """A measurement that is about to begin: the commit and the load of the machine are those of this moment."""

    def __init__(self, name: str, *, packages: Sequence[str] = (), versions: Mapping[str, str] | None = None) -> None:
        self._document: Document = {
            "schema": SCHEMA_VERSION,
            "name": name,
            "script": Path(sys.argv[0]).name,
            "command": command_line(sys.argv),
            "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"),
            "machine": machine(),
            "versions": installed_versions((*PACKAGES, *packages)) | dict(versions or {}),
            "commit": _git("rev-parse", "--short", "HEAD"),
            "dirty": _is_dirty(),
            "load": {"before": _load()},
        }

    def about(self) -> Document:
        """What the envelope says of this measurement."""
        return dict(self._document)

    def write(
        self,
        samples: dict[str, Any] | list[Any] | None,
        *,
        summary: dict[str, Any] | list[Any] | None = None,
        notes: Sequence[str] = (),
        path: Path | None = None,
        versions: Mapping[str, str] | None = None,
    ) -> Path:
        """Store what was measured so far, and return the path: that of the results unless another one is given."""
        document = self._document | {
            "versions": self._document["versions"] | dict(versions or {}),
            "load": {**self._document["load"], "after": _load()},
            "transcribed": False,
            "from_git_log": [],
            "notes": list(notes),
            "samples": samples,
            "summary": summary,
        }
        path = path or path_of(document["name"])
        save(document, path)
        return path


def path_of(name: str) -> Path:
    """Where the results of this name are stored."""
    return RESULTS / f"{name}.json"


def load(source: str | Path) -> Document:
    """Read a file of results by its name or path.

    Raises:
        ValueError: If the file is not a complete envelope.
    """
    path = path_of(source) if isinstance(source, str) else source
    document: Document = json.loads(path.read_text(encoding="utf-8"))
    problems = envelope_problems(document)
    if problems:
        raise ValueError(f"{path.name}: {problems[0]}")
    return document


def save(document: Document, path: Path) -> None:
    """Write a document, in one step so that no reader finds half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(_text(document) + "\n", encoding="utf-8")
    partial.replace(path)


def envelope_problems(document: Document) -> list[str]:
    """What is wrong with an envelope; nothing if it is complete."""
    problems = [f"{key!r} is missing" for key in ENVELOPE if key not in document]
    problems += [f"{key!r} is not a key of the envelope" for key in document if key not in ENVELOPE]
    for key, types in ENVELOPE.items():
        if key in document and not isinstance(document[key], types):
            problems.append(f"{key!r} is a {type(document[key]).__name__}")
    if problems:
        return problems
    if document["schema"] != SCHEMA_VERSION:
        problems.append(f"schema {document['schema']} is not {SCHEMA_VERSION}")
    if set(document["machine"]) != set(MACHINE):
        problems.append(f"'machine' must have exactly the keys {', '.join(MACHINE)}")
    if document["samples"] is None and document["summary"] is None:
        problems.append("there are neither samples nor a summary")
    if document["transcribed"] and document["samples"] is not None:
        problems.append("transcribed results have no samples")
    try:
        datetime.fromisoformat(document["date"])
    except ValueError:
        problems.append(f"the date {document['date']!r} is not in ISO format")
    return problems


def add_output_argument(parser: argparse.ArgumentParser, name: str) -> None:
    """The option --output, which every benchmark has."""
    default = path_of(name).relative_to(ROOT)
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"where to store the results ({default})")


def machine() -> dict[str, Any]:
    """This machine."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "gpu": _gpu(),
        "system": f"{platform.system()} {platform.release()}",
    }


def installed_versions(packages: Sequence[str]) -> dict[str, str]:
    """The versions of Python and of those packages that are installed."""
    versions = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def command_line(arguments: Sequence[str]) -> str:
    """The command to repeat a measurement; absolute paths are those of one machine and become PATH."""
    words = ["PATH" if Path(word).is_absolute() else word for word in arguments[1:]]
    return shlex.join(["python", f"benchmarks/{Path(arguments[0]).name}", *words])


def pack(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Records of the same fields, with each field named once.

    >>> pack([{"size": 5, "seconds": 0.5}, {"size": 9, "seconds": 0.7}])
    {'fields': ['size', 'seconds'], 'rows': [[5, 0.5], [9, 0.7]]}
    """
    fields = list(records[0]) if records else []
    return {"fields": fields, "rows": [[record[field] for field in fields] for record in records]}


def unpack(packed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records that were packed.

    >>> unpack({"fields": ["size", "seconds"], "rows": [[5, 0.5]]})
    [{'size': 5, 'seconds': 0.5}]
    """
    return [dict(zip(packed["fields"], row, strict=True)) for row in packed["rows"]]


def _text(value: Any, depth: int = 0) -> str:
    """JSON in which whatever fits into one line stands in one, so that a diff shows single measurements."""
    line = json.dumps(value, ensure_ascii=False)
    if depth and (len(line) <= MAX_LINE_CHARACTERS or not isinstance(value, dict | list)):
        return line
    margin = " " * (depth + 1)
    if isinstance(value, dict):
        entries = [f"{margin}{json.dumps(key, ensure_ascii=False)}: {_text(item, depth + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(entries) + "\n" + " " * depth + "}"
    return "[\n" + ",\n".join(margin + _text(item, depth + 1) for item in value) + "\n" + " " * depth + "]"


def _processor() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or None)


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError):
        return None


def _gpu() -> str | None:
    """The first GPU's name, without importing torch."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    query = [program, "--query-gpu=name", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    return next(iter(done.stdout.splitlines()), None) if done.returncode == 0 else None


def _load() -> float | None:
    """Processes that wanted to run, on average over the last minute."""
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _is_dirty() -> bool | None:
    """Whether tracked files differ from the commit; results do not count, for a measurement may write them as it goes."""
    status = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!benchmarks/results")
    return None if status is None else bool(status)
