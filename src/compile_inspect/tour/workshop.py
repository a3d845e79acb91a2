"""The folder of a tour: the models as files of the reader's own, and whatever the tour writes."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from compile_inspect.errors import InspectError
from compile_inspect.target import Target, find_target

MODELS = {
    "mlp": "mlp",
    "chatty": "breaking",
    "branching": "breaking",
    "peeking": "breaking",
    "information": "scorers",
    "salience": "scorers",
    "query_content": "scorers",
    "block": "transformer",
}
"""Every model of the tour, and the file that defines it."""
MARK = ".compile-inspect-tour"
_MARKED = (
    "The folder of a guided tour: compile-inspect tour writes here. What you change in the models is used by the next one.\n"
)
BREAKING = ("chatty", "branching", "peeking")


class Workshop:
    """Models copied into a folder, and loaded from there.

    >>> workshop = Workshop.temporary()
    >>> type(workshop.target("mlp").function).__name__
    'Perceptron'
    """

    def __init__(self, folder: Path, *, lasting: bool = True) -> None:
        self.folder = folder
        self.lasting = lasting
        """Whether the folder is there after the tour."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            strange = next((item for item in folder.iterdir() if item.name != MARK), None)
            if strange is not None and not (folder / MARK).exists():
                raise InspectError(
                    f"{folder} holds {strange.name} and is not the folder of a tour: name a new one with -o, "
                    "so that nothing of yours is overwritten"
                )
            (folder / MARK).write_text(_MARKED, encoding="utf-8")
        except OSError as error:
            raise InspectError(f"{folder} cannot be a folder for the tour ({error}): name another one with -o") from error

    @classmethod
    def temporary(cls) -> Workshop:
        """A folder that is gone when the process ends."""
        folder = tempfile.mkdtemp(prefix="compile-inspect-tour-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return cls(Path(folder), lasting=False)

    def specification(self, name: str) -> str:
        """How a command names a model: `tour/mlp.py:mlp`."""
        return f"{self._written(MODELS[name])}:{name}"

    def target(self, name: str, *, device: str = "cpu") -> Target:
        """A model with its inputs, on a device; generators and `sys.path` are left as they were."""
        import torch

        path = list(sys.path)
        devices = list(range(torch.cuda.device_count()))  # a seed of the file would be theirs too
        with torch.random.fork_rng(devices=devices):  # the files begin with a seed
            try:
                found = find_target(self.specification(name))
            except InspectError as error:
                raise InspectError(
                    f"{error}. It is in the tour's folder: remove {self.folder}, or name another with -o"
                ) from error
            finally:
                sys.path[:] = path
        return found if device == "cpu" else moved(found, device)

    def write(self, name: str, text: str) -> Path:
        """Write a file of the tour; one that the reader has changed is kept beside it, as `NAME.yours`."""
        path = self.folder / name
        try:
            if path.exists() and path.read_text(encoding="utf-8") != text:
                path.replace(path.with_name(f"{name}.yours"))
            path.write_text(text, encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InspectError(f"{path} cannot be written ({error}): name another folder with -o") from error
        return path

    def _written(self, stem: str) -> Path:
        """The file of a model; one that the reader has changed stays as it is."""
        path = self.folder / f"{stem}.py"
        if not path.exists():
            self.write(path.name, (files("compile_inspect.tour.models") / path.name).read_text("utf-8"))
        return path


def moved(target: Target, device: str) -> Target:
    """A target and its inputs on another device."""
    from dataclasses import replace

    from compile_inspect import torch_private

    leaves, structure = torch_private.flatten((target.args, dict(target.kwargs)))
    there = [leaf.to(device) if torch_private.is_tensor(leaf) else leaf for leaf in leaves]
    args, kwargs = torch_private.unflatten(there, structure)
    to = getattr(target.function, "to", None)
    return replace(target, function=target.function if to is None else to(device), args=args, kwargs=kwargs)
