"""Decisions and packages kept on disk for the next process.

An entry is a directory named by a digest of everything the decision depends on: code, inputs, held tensors, Python
values, torch, device. It is written aside and moved into place, and read with suspicion: a package whose digest is not
the one written down, or an entry that cannot be read, is removed.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import shutil
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compile_inspect import serialization
from compile_inspect.capture import torch_private
from compile_inspect.records.decision import Decision
from compile_inspect.variants.task import Task

PACKAGE = "package.pt2"
DECISION = "decision.json"
FORMAT = 2
MOST_DEPTH, MOST_ITEMS = 4, 1000


def default_directory() -> Path:
    """Where entries are kept if nothing else is said: `COMPILE_INSPECT_CACHE`, or the user's cache directory."""
    chosen = os.environ.get("COMPILE_INSPECT_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(chosen) if chosen else base / "compile-inspect" / "tune"


class Store:
    """Entries in a directory."""

    def __init__(self, directory: str | Path | None = None) -> None:
        self.directory = default_directory() if directory is None else Path(directory)

    def entry(self, task: Task) -> Path:
        """The directory of a task's entry, whether it exists or not."""
        return self.directory / digest(task)

    def load(self, task: Task) -> tuple[Decision, Path | None] | None:
        """The decision kept for a task and its package, if it has one; None where nothing usable is kept."""
        place = self.entry(task)
        try:
            data = json.loads((place / DECISION).read_text())
            package = place / PACKAGE
            if data["format"] != FORMAT or (data["package"] is not None and data["package"] != file_digest(package)):
                raise ValueError("stale or damaged")
            decision = serialization.from_data(Decision, data["decision"])
        except FileNotFoundError:
            return None
        except Exception:  # whatever is wrong with it, it is of no use
            self.drop(task)
            return None
        return decision, package if data["package"] is not None else None

    def save(self, task: Task, decision: Decision, package: str | None) -> None:
        """Keep a decision. A full disk or a lack of rights is no reason to fail."""
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
        except OSError:
            return
        finally:
            if aside is not None:
                shutil.rmtree(aside, ignore_errors=True)  # it is there only if it could not be moved

    def drop(self, task: Task) -> None:
        """Remove the entry of a task."""
        shutil.rmtree(self.entry(task), ignore_errors=True)


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digest(task: Task) -> str:
    """A name for everything that a decision about a task depends on."""
    import torch

    summary = hashlib.sha256()
    device = torch.cuda.get_device_name() if task.device == "cuda" else platform.processor() or platform.machine()
    parts: list[object] = [FORMAT, torch.__version__, platform.python_version(), device, torch.get_num_threads()]
    parts += [task.gradients, task.name, *_code(task)]
    leaves, structure = torch_private.flatten((task.args, dict(task.kwargs)))
    parts.append(str(structure))
    parts += [_describe(leaf) for leaf in leaves]
    parts += [(item.name, _describe(item.now())) for item in task.held]
    parts += [(item.name, repr(item.value)) for item in task.constants]
    parts += [(name, _content(value)) for name, value in task.reached]
    for part in parts:
        summary.update(repr(part).encode())
        summary.update(b"\0")
    return summary.hexdigest()[:40]


def _describe(value: Any) -> object:
    if not torch_private.is_tensor(value):
        return type(value).__name__, repr(value)
    return str(value.dtype), tuple(value.shape), value.stride(), str(value.device), bool(value.requires_grad)


def _content(value: Any, depth: int = 0) -> object:
    """What a value that a function reaches is, as far as a graph may have frozen it."""
    if torch_private.is_tensor(value):
        return _describe(value)
    if isinstance(value, functools.partial):
        return "partial", _content(value.func), _content(value.args), _content(value.keywords)
    if isinstance(value, (types.FunctionType, types.MethodType)):
        plain: Any = getattr(value, "__func__", value)
        return *_of(plain.__code__), _content(plain.__defaults__, depth + 1), _content(plain.__kwdefaults__, depth + 1)
    if depth < MOST_DEPTH and isinstance(value, (list, tuple, set, frozenset)):
        return type(value).__name__, [_content(item, depth + 1) for item in list(value)[:MOST_ITEMS]], len(value)
    if depth < MOST_DEPTH and isinstance(value, dict):
        return [(repr(key), _content(item, depth + 1)) for key, item in list(value.items())[:MOST_ITEMS]], len(value)
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return repr(value)
    if hasattr(value, "tobytes") and hasattr(value, "shape"):  # an array
        return str(value.dtype), tuple(value.shape), hashlib.sha256(value.tobytes()).hexdigest()
    call = getattr(vars(type(value)).get("__call__"), "__code__", None)
    return type(value).__module__, type(value).__qualname__, () if call is None else tuple(_of(call))


def _code(task: Task) -> Iterator[object]:
    """The code of the function, of those it calls and of every module it uses, as compiled by Python."""
    functions = [task.function, *task.functions]
    for module in task.modules:
        functions += [type(part).forward for part in module.modules()]
    seen: set[int] = set()
    for function in functions:
        plain: Any = getattr(function, "__func__", function)
        code = getattr(plain, "__code__", None)
        if code is not None and id(code) not in seen:
            seen.add(id(code))
            yield from _of(code)
        elif code is None:
            yield type(plain).__qualname__


def _of(code: types.CodeType) -> Iterator[object]:
    yield code.co_name, code.co_code, code.co_names, code.co_varnames
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _of(constant)
        else:
            yield constant
