"""A target loaded once more, with some of its files written otherwise; nothing on disk is touched."""

from __future__ import annotations

import contextlib
import importlib.machinery
import linecache
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from compile_inspect.agreement.run_outcome import seed_generators
from compile_inspect.records.locations import is_library_file
from compile_inspect.target import Target, find_target

_OWN = str(Path(__file__).resolve().parents[1])


@dataclass(frozen=True)
class Program:
    """A target, and the modules it was loaded with, which are apart from those of this process."""

    specification: str
    inputs: str | None
    target: Target
    modules: dict[str, ModuleType]
    """Those of the user's; what is imported while it runs joins them."""
    texts: Mapping[str, str]
    """What stands in the place of some files."""
    path: tuple[str, ...]
    """Where it finds modules: its own folder first, and none of another program."""
    no_grad: bool = False
    """Whether it runs without gradients, whatever the target says."""

    @classmethod
    def load(
        cls,
        specification: str,
        inputs: str | None = None,
        *,
        texts: Mapping[str, str] | None = None,
        shared: Mapping[str, ModuleType] | None = None,
        seed: int = 0,
        no_grad: bool = False,
    ) -> Program:
        """The target that a specification names, with `texts` in the place of what is in those files.

        All modules of the user's are new but the `shared` ones. Random numbers begin at the same seed, so that weights that
        are drawn while loading are those of the original.
        """
        with replaced_sources(texts or {}), own_modules(), _own_path(sys.path), seed_generators(seed):
            sys.modules.update(shared or {})
            target = find_target(specification, inputs, no_grad=no_grad)
            modules, path = _modules_of_the_user(), tuple(sys.path)
        return cls(specification, inputs, target, modules, dict(texts or {}), path, no_grad)

    def changed(self, texts: Mapping[str, str]) -> Program:
        """The same program with other texts.

        Only those modules are new that are written otherwise, that hold the target or its inputs, or that import one of
        these: torch knows some libraries by their functions, and would not know a second copy of them.
        """
        new = self._affected(texts)
        shared = {name: module for name, module in self.modules.items() if name not in new}
        return Program.load(self.specification, self.inputs, texts=texts, shared=shared, no_grad=self.no_grad)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Meanwhile Python finds the modules of this program: torch asks for some by their names while it compiles.

        A function may import some only when it is called: these belong to the program too, and are gone afterwards.
        """
        with replaced_sources(self.texts), own_modules(), _own_path(self.path):
            sys.modules.update(self.modules)
            try:
                yield
            finally:
                self.modules.update(_modules_of_the_user())

    def _affected(self, texts: Mapping[str, str]) -> set[str]:
        """Names of the modules that are to be new."""
        files = {str(Path(file).resolve()) for file in texts}
        named = [text.rpartition(":")[0] for text in (self.specification, self.inputs) if text is not None]
        files |= {str(Path(place).resolve()) for place in named if place.endswith(".py")}
        found = {
            name for name, module in self.modules.items() if name in named or str(Path(str(module.__file__)).resolve()) in files
        }
        while True:
            more = {name for name, module in self.modules.items() if name not in found and _imports(module, found)}
            if not more:
                return found
            found |= more


def _imports(module: ModuleType, names: set[str]) -> bool:
    """Whether a module holds one of the named modules, or something that is defined there."""
    for value in list(vars(module).values()):
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(home, str) and home in names:
            return True
    return False


def load_target(specification: str, inputs: str | None = None, texts: Mapping[str, str] | None = None, seed: int = 0) -> Target:
    """The target that a specification names, in modules of its own, with `texts` in the place of what is in those files."""
    return Program.load(specification, inputs, texts=texts, seed=seed).target


@contextlib.contextmanager
def replaced_sources(texts: Mapping[str, str]) -> Iterator[None]:
    """Meanwhile Python imports these texts where it would read these files."""
    known = {str(Path(file).resolve()): text for file, text in texts.items()}
    loader: Any = importlib.machinery.SourceFileLoader
    get_data, path_stats = loader.get_data, loader.path_stats

    def data(self: Any, path: str) -> bytes:
        text = known.get(str(Path(path).resolve()))
        found: bytes = get_data(self, path) if text is None else text.encode()
        return found

    def stats(self: Any, path: str) -> Any:
        if str(Path(path).resolve()) in known:
            raise OSError("what was compiled from the file itself is of no use here")
        return path_stats(self, path)

    # Whoever shows lines of the file (torch in its stacks) shows those that ran.
    shown = {file: linecache.cache.get(file) for file in texts}
    loader.get_data, loader.path_stats = data, stats
    try:
        yield
    finally:
        loader.get_data, loader.path_stats = get_data, path_stats
        for file, entry in shown.items():
            linecache.cache.pop(file, None)
            if entry is not None:
                linecache.cache[file] = entry


@contextlib.contextmanager
def own_modules() -> Iterator[None]:
    """Modules of the user's that are imported meanwhile are new ones, and forgotten afterwards."""
    before = dict(sys.modules)
    for name, module in before.items():
        if _is_the_users(module):
            del sys.modules[name]
    try:
        yield
    finally:
        for name in [name for name, module in sys.modules.items() if _is_the_users(module)]:
            del sys.modules[name]
        for name, module in before.items():
            sys.modules.setdefault(name, module)


@contextlib.contextmanager
def _own_path(path: Iterable[str]) -> Iterator[None]:
    """Meanwhile modules are looked for there; what is added is forgotten afterwards."""
    before = list(sys.path)
    sys.path[:] = path
    try:
        yield
    finally:
        sys.path[:] = before


def _modules_of_the_user() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if _is_the_users(module)}


def _is_the_users(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if not file or getattr(module, "__name__", "") == "__main__":
        return False
    return not is_library_file(file) and not str(Path(file).resolve()).startswith(_OWN)
