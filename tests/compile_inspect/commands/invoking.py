"""Commands typed within this process: torch is imported once for all of them."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import runpy
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import torch

import compile_inspect
from compile_inspect import torch_private
from compile_inspect.capture_file import save
from compile_inspect.commands import main


@dataclass(frozen=True)
class Done:
    """What a command left behind, with the names that `subprocess` gives them."""

    returncode: int
    stdout: str
    stderr: str


def invoke(*arguments: str, cwd: Path) -> Done:
    """Type a command in a folder."""
    output, errors = io.StringIO(), io.StringIO()
    status = 0
    argv = mock.patch.object(sys, "argv", ["compile-inspect", *arguments])
    with _at(cwd), argv, contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return Done(status, output.getvalue(), errors.getvalue())


def recorded_here(script: Path, output: Path) -> None:
    """Run a script as `compile-inspect run` does, within this process, and write the capture."""
    with _at(script.parent), contextlib.redirect_stdout(None):
        sys.path.insert(0, str(script.parent))
        with compile_inspect.record() as recording:
            runpy.run_path(str(script), run_name="__main__")
    save(recording.inspection, output)


@contextlib.contextmanager
def _at(folder: Path) -> Iterator[None]:
    """In a folder, with nothing compiled before; what is imported from it is forgotten, what it sets in torch put back."""
    before, path, known, threads = Path.cwd(), list(sys.path), set(sys.modules), torch.get_num_threads()
    # Modules that other tests left behind under the names of files here.
    aside = {name: sys.modules.pop(name) for name in {file.stem for file in folder.glob("*.py")} & known}
    torch_private.forget_compiled_code()
    linecache.clearcache()  # files are written anew between two commands
    os.chdir(folder)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads)
        os.chdir(before)
        sys.path[:] = path
        for name in set(sys.modules) - (known - set(aside)):
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]
        sys.modules.update(aside)
