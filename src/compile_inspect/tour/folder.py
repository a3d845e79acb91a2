"""The folder of a tour: the models as editable files, and everything that the tour writes."""

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
MARKER_FILE = ".compile-inspect-tour"
_MARKER_TEXT = "compile-inspect tour writes into this folder. If you change the models, the next tour uses your versions.\n"
BREAKING = ("chatty", "branching", "peeking")


class TourFolder:
    """A folder with copies of the models, which are loaded from there.

    >>> folder = TourFolder.temporary()
    >>> type(folder.target("mlp").function).__name__
    'Perceptron'
    """

    def __init__(self, path: Path, *, permanent: bool = True) -> None:
        self.path = path
        self.permanent = permanent
        """Whether the folder remains after the tour."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            foreign_file = next((item for item in path.iterdir() if item.name != MARKER_FILE), None)
            if foreign_file is not None and not (path / MARKER_FILE).exists():
                raise InspectError(
                    f"{path} contains {foreign_file.name} and is not the folder of a tour: name a new folder with -o, "
                    "so that none of your files are overwritten"
                )
            (path / MARKER_FILE).write_text(_MARKER_TEXT, encoding="utf-8")
        except OSError as error:
            raise InspectError(f"{path} cannot be used as the tour's folder ({error}): name another one with -o") from error

    @classmethod
    def temporary(cls) -> TourFolder:
        """A folder that is removed when the process ends."""
        path = tempfile.mkdtemp(prefix="compile-inspect-tour-")
        atexit.register(shutil.rmtree, path, ignore_errors=True)
        return cls(Path(path), permanent=False)

    def specification(self, name: str) -> str:
        """A model as a command takes it: `tour/mlp.py:mlp`."""
        return f"{self._model_file(MODELS[name])}:{name}"

    def target(self, name: str, *, device: str = "cpu") -> Target:
        """A model with its inputs, on a device; generators and `sys.path` are left as they were."""
        import torch

        search_path = list(sys.path)
        # The model files set a seed, which applies to every device.
        devices = list(range(torch.cuda.device_count()))
        with torch.random.fork_rng(devices=devices):
            try:
                target = find_target(self.specification(name))
            except InspectError as error:
                raise InspectError(
                    f"{error}. It is in the tour's folder: remove {self.path} or name another with -o"
                ) from error
            finally:
                sys.path[:] = search_path
        return target if device == "cpu" else move_to_device(target, device)

    def write(self, name: str, text: str) -> Path:
        """Write a file of the tour; a version that the reader changed is renamed to `NAME.yours`."""
        path = self.path / name
        try:
            if path.exists() and path.read_text(encoding="utf-8") != text:
                path.replace(path.with_name(f"{name}.yours"))
            path.write_text(text, encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InspectError(f"{path} cannot be written ({error}): name another folder with -o") from error
        return path

    def _model_file(self, stem: str) -> Path:
        """The file of a model; an existing one, which the reader may have changed, is kept."""
        path = self.path / f"{stem}.py"
        if not path.exists():
            self.write(path.name, (files("compile_inspect.tour.models") / path.name).read_text("utf-8"))
        return path


def move_to_device(target: Target, device: str) -> Target:
    """A target and its inputs on another device."""
    from dataclasses import replace

    from compile_inspect import torch_private

    leaves, structure = torch_private.flatten((target.args, dict(target.kwargs)))
    copies = [leaf.to(device) if torch_private.is_tensor(leaf) else leaf for leaf in leaves]
    args, kwargs = torch_private.unflatten(copies, structure)
    to = getattr(target.function, "to", None)
    return replace(target, function=target.function if to is None else to(device), args=args, kwargs=kwargs)
