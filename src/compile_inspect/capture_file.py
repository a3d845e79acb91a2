"""The capture file: versioned JSON in a zip archive, or the journal of an interrupted recording.

A finished capture is a zip archive of `manifest.json` (the format and the schema) and `inspection.json` (the records). While
a recording is running, the file at the same path is its journal, so that a killed program leaves a readable file. Loading
runs no code from the file. docs/reference/capture-file.md documents the schema.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from compile_inspect import __version__, journal
from compile_inspect.errors import CaptureError
from compile_inspect.records import OLDEST_READABLE_SCHEMA, SCHEMA_VERSION, Inspection
from compile_inspect.serialization import from_data, to_data

FORMAT = "compile-inspect capture"
SUFFIX = ".inspection"
# Captures of the largest models tested are about 50 MB; a file that claims to unpack to more than this limit is not a capture.
_MAX_MEMBER_BYTES = 2 * 1024**3


def refuse_to_overwrite(path: Path, *, force: bool) -> None:
    """Raise an error if `path` exists and may not be replaced, or cannot be written."""
    if path.exists() and not path.is_dir() and not path.is_file():
        raise CaptureError(f"{path} is a device or a pipe; choose a regular file")
    if path.is_dir():
        raise CaptureError(f"{path} is a directory; choose a file in it, for example {path / ('capture' + SUFFIX)}")
    if path.exists() and not force:
        raise CaptureError(f"{path} exists already; choose another name or allow overwriting it (--force, force=True)")
    if not path.absolute().parent.is_dir():
        raise CaptureError(f"the directory {path.parent} does not exist; create it first")


def replaceable(path: Path) -> bool:
    """Whether a file with a default name may be replaced: a capture to which no results were added later.

    A capture that a running process is still recording may not be replaced.
    """
    try:
        header = None if zipfile.is_zipfile(path) else journal.read_header(path)
        if header is not None:
            return not _is_alive(int(header.get("pid", 0)))
        inspection = load(path)
    except (OSError, ValueError, CaptureError):
        return False
    return not (inspection.timings or inspection.agreements or inspection.findings)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return pid > 0


def save(inspection: Inspection, path: str | Path, *, force: bool = False) -> None:
    """Write a capture atomically.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Inspection(notes=("hello",)), f"{folder}/a.inspection")
    ...     load(f"{folder}/a.inspection").notes
    ('hello',)
    """
    path = Path(path)
    refuse_to_overwrite(path, force=force)
    path = path.resolve()  # a link is kept, and its target is written
    manifest = {
        "format": FORMAT,
        "schema": SCHEMA_VERSION,
        "recorder": __version__,
        "torch": inspection.environment.torch,
        "complete": inspection.complete,
        "session": inspection.process.session,
        "pid": inspection.process.pid,
        "rank": inspection.process.rank,
    }
    temporary = path.with_name(f"{path.name}.{os.getpid()}.writing")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            archive.writestr("manifest.json", json.dumps(manifest, indent=1))
            archive.writestr("inspection.json", json.dumps(to_data(inspection), separators=(",", ":"), default=str))
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise CaptureError(f"{path} could not be written: {error.strerror or error}") from error


def load(path: str | Path) -> Inspection:
    """Read a capture, finished or partial.

    Raises `CaptureError` with one sentence if the file is missing, damaged, of an unsupported schema, or not a capture.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise CaptureError(f"{path} is a device or a pipe, not a capture file")
        if zipfile.is_zipfile(path):
            return _load_zip(path)
        header = journal.read_header(path)
        if header is not None:
            return _load_journal(path, header)
        start = _first_bytes(path)
    except FileNotFoundError:
        raise CaptureError(f"there is no file {path}; record one with: compile-inspect run -o {path} script.py") from None
    except IsADirectoryError:
        raise CaptureError(f"{path} is a directory, not a capture file") from None
    except OSError as error:
        raise CaptureError(f"{path} cannot be read: {error.strerror or error}") from error
    if not start:
        raise CaptureError(f"{path} is empty: it is not a capture")
    if start.startswith(b"PK"):
        raise CaptureError(f"{path} is truncated: the end of the capture is missing, so copy or record it again")
    raise CaptureError(f"{path} is not a capture of compile-inspect")


def load_together(paths: Sequence[str | Path]) -> list[tuple[Path, Inspection]]:
    """Read captures, together with those of other processes of the same program."""
    loaded: dict[Path, Inspection] = {}
    known_paths: set[str] = set()
    for path in map(Path, paths):
        inspection = load(path)
        if os.path.realpath(path) in known_paths:
            continue
        known_paths.add(os.path.realpath(path))
        loaded[path] = inspection
        for sibling in _siblings(path):
            if os.path.realpath(sibling) not in known_paths:
                known_paths.add(os.path.realpath(sibling))
                other = _load_if_same_session(sibling, inspection.process.session)
                if other is not None:
                    loaded[sibling] = other
    return sorted(loaded.items(), key=lambda item: _process_order(item[1]))


def process_path(path: Path, *, rank: int | None, pid: int) -> Path:
    """The path for the capture of another process of the same program.

    >>> process_path(Path("step.inspection"), rank=1, pid=77).name
    'step.rank1.inspection'
    >>> process_path(Path("step.inspection"), rank=None, pid=77).name
    'step.pid77.inspection'
    """
    label = f"pid{pid}" if rank is None else f"rank{rank}"
    return path.with_name(f"{path.stem}.{label}{path.suffix}")


def _load_zip(path: Path) -> Inspection:
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = _read_member(archive, "manifest.json")
            _check_manifest(path, manifest)
            return from_data(Inspection, _read_member(archive, "inspection.json"))
    except KeyError as error:
        raise CaptureError(f"{path} is a zip file, but not a capture of compile-inspect ({error.args[0]})") from None
    except CaptureError:
        raise
    except Exception as error:
        # A damaged or malicious zip can raise in many places: zipfile, zlib, json, the recursion limit.
        raise CaptureError(f"{path} is damaged ({error}): copy or record it again") from error


def _read_member(archive: zipfile.ZipFile, name: str) -> Any:
    if archive.getinfo(name).file_size > _MAX_MEMBER_BYTES:
        raise ValueError(f"{name} is larger than any capture")
    return json.loads(archive.read(name))


def _check_manifest(path: Path, manifest: Any) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CaptureError(f"{path} is a zip file, but not a capture of compile-inspect")
    _check_schema(path, manifest.get("schema"))


def _check_schema(path: Path, schema: Any) -> None:
    if not isinstance(schema, int) or schema < 1:
        raise CaptureError(f"{path} does not specify its schema: it is damaged")
    if schema < OLDEST_READABLE_SCHEMA:
        raise CaptureError(f"{path} uses schema {schema}, which no released version wrote: record again")
    if schema > SCHEMA_VERSION:
        raise CaptureError(
            f"{path} uses schema {schema}, but this version reads schemas up to {SCHEMA_VERSION}: upgrade compile-inspect"
        )


def _load_journal(path: Path, header: dict[str, Any]) -> Inspection:
    # Imported here because finished captures do not need it.
    from compile_inspect.assemble import assemble

    _check_schema(path, header.get("schema"))
    try:
        inspection = assemble(journal.read_events(path), header, complete=False)
        # Apply the same checks as for a finished capture: a journal is not more trustworthy.
        return from_data(Inspection, to_data(inspection))
    except Exception as error:
        raise CaptureError(f"{path} is damaged ({error}): record again") from error


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def _siblings(path: Path) -> Iterable[Path]:
    pattern = f"{_glob_escape(path.stem)}.*{_glob_escape(path.suffix)}"
    return sorted(candidate for candidate in path.parent.glob(pattern) if candidate.is_file())


def _glob_escape(text: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in text)


def _load_if_same_session(path: Path, session: str) -> Inspection | None:
    try:
        inspection = load(path)
    except CaptureError:
        return None
    return inspection if session and inspection.process.session == session else None


def _process_order(inspection: Inspection) -> tuple[int, int]:
    process = inspection.process
    return (-1 if process.rank is None else process.rank, process.pid)
