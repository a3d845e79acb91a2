"""Load a target again with changed text for some of its files; nothing on disk is changed."""

from __future__ import annotations

import contextlib
import importlib.machinery
import linecache
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from compile_inspect.agreement.run_outcome import seed_generators
from compile_inspect.fixes.source_names import function_of
from compile_inspect.records.locations import is_library_file
from compile_inspect.target import Target, find_target

_PACKAGE_FOLDER = str(Path(__file__).resolve().parents[1])


@dataclass(frozen=True)
class Program:
    """A target and the modules it was loaded with, separate from the modules of this process."""

    specification: str
    inputs: str | None
    target: Target
    modules: dict[str, ModuleType]
    """The user's modules; modules imported while the target runs are added."""
    texts: Mapping[str, str]
    """Texts to use in place of some files."""
    path: tuple[str, ...]
    """The module search path: the target's own folder first, and no folder of another program."""
    no_grad: bool = False
    """Whether to run without gradients, regardless of the target."""
    example: Target | None = None
    """Inputs for the named callable, if they were passed as objects instead of by name."""

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
        example: Target | None = None,
    ) -> Program:
        """Load the target that a specification names, with `texts` in place of those files.

        All of the user's modules are loaded anew except the `shared` ones. The random seed is fixed, so that weights drawn
        during loading equal those of the original.
        """
        with source_overrides(texts or {}), fresh_user_modules(), _search_path(sys.path), seed_generators(seed):
            sys.modules.update(shared or {})
            if example is None:
                target = find_target(specification, inputs, no_grad=no_grad)
            else:
                target = replace(example, function=function_of(specification))
            modules, path = _user_modules(), tuple(sys.path)
        return cls(specification, inputs, target, modules, dict(texts or {}), path, no_grad, example)

    def with_texts(self, texts: Mapping[str, str]) -> Program:
        """Load the same program with other texts.

        Only modules that changed, that contain the target or its inputs, or that import one of these are loaded anew: torch
        recognizes some libraries by their function objects and would not recognize a second copy.
        """
        new = self._modules_to_reload(texts)
        shared = {name: module for name, module in self.modules.items() if name not in new}
        return Program.load(
            self.specification, self.inputs, texts=texts, shared=shared, no_grad=self.no_grad, example=self.example
        )

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Make this program's modules importable: torch looks some up by name while it compiles.

        Modules that a function imports only when it is called also belong to the program, and are removed on exit.
        """
        with source_overrides(self.texts), fresh_user_modules(), _search_path(self.path):
            sys.modules.update(self.modules)
            try:
                yield
            finally:
                self.modules.update(_user_modules())

    def _modules_to_reload(self, texts: Mapping[str, str]) -> set[str]:
        """Names of the modules that must be loaded anew."""
        files = {str(Path(file).resolve()) for file in texts}
        specified = [text.rpartition(":")[0] for text in (self.specification, self.inputs) if text is not None]
        files |= {str(Path(place).resolve()) for place in specified if place.endswith(".py")}
        names = {
            name
            for name, module in self.modules.items()
            if name in specified or str(Path(str(module.__file__)).resolve()) in files
        }
        while True:
            more = {name for name, module in self.modules.items() if name not in names and _imports(module, names)}
            if not more:
                return names
            names |= more


def _imports(module: ModuleType, names: set[str]) -> bool:
    """Whether a module contains one of the named modules, or an object defined in one."""
    for value in list(vars(module).values()):
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(home, str) and home in names:
            return True
    return False


def load_target(specification: str, inputs: str | None = None, texts: Mapping[str, str] | None = None, seed: int = 0) -> Target:
    """Load the target that a specification names in fresh modules, with `texts` in place of those files."""
    return Program.load(specification, inputs, texts=texts, seed=seed).target


@contextlib.contextmanager
def source_overrides(texts: Mapping[str, str]) -> Iterator[None]:
    """Make Python import these texts instead of reading these files."""
    overrides = {str(Path(file).resolve()): text for file, text in texts.items()}
    loader: Any = importlib.machinery.SourceFileLoader
    get_data, path_stats = loader.get_data, loader.path_stats

    def data(self: Any, path: str) -> bytes:
        text = overrides.get(str(Path(path).resolve()))
        content: bytes = get_data(self, path) if text is None else text.encode()
        return content

    def stats(self: Any, path: str) -> Any:
        if str(Path(path).resolve()) in overrides:
            raise OSError("bytecode compiled from the file itself does not apply to the replaced text")
        return path_stats(self, path)

    # Code that prints lines of the file (such as torch in its stacks) must print those that ran.
    cached_lines = {file: linecache.cache.get(file) for file in texts}
    loader.get_data, loader.path_stats = data, stats
    try:
        yield
    finally:
        loader.get_data, loader.path_stats = get_data, path_stats
        for file, entry in cached_lines.items():
            linecache.cache.pop(file, None)
            if entry is not None:
                linecache.cache[file] = entry


@contextlib.contextmanager
def fresh_user_modules() -> Iterator[None]:
    """Import the user's modules anew inside the block, and forget them afterward."""
    before = dict(sys.modules)
    for name, module in before.items():
        if _is_user_module(module):
            del sys.modules[name]
    try:
        yield
    finally:
        for name in [name for name, module in sys.modules.items() if _is_user_module(module)]:
            del sys.modules[name]
        for name, module in before.items():
            sys.modules.setdefault(name, module)


@contextlib.contextmanager
def _search_path(path: Iterable[str]) -> Iterator[None]:
    """Use this module search path inside the block; additions are forgotten afterward."""
    before = list(sys.path)
    sys.path[:] = path
    try:
        yield
    finally:
        sys.path[:] = before


def _user_modules() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if _is_user_module(module)}


def _is_user_module(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if not file or getattr(module, "__name__", "") == "__main__":
        return False
    return not is_library_file(file) and not str(Path(file).resolve()).startswith(_PACKAGE_FOLDER)
