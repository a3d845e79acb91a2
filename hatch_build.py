"""Build the native library of nonsmooth with the package.

The library is plain C without Python's headers and is loaded with ctypes, so the build is one compiler call, for which a hook
of hatchling is enough: setuptools tags wheels with extensions for one Python, scikit-build-core and meson-python bring CMake
or Meson, and all of them fail without a compiler. The wheel is tagged `py3-none-<platform>`. Without a compiler the build
warns and makes a wheel without the library, tagged `py3-none-any`; quadratic programs are then solved in Python.

An editable build leaves the library in `src/nonsmooth/native`. `CC` names the compiler.
"""

from __future__ import annotations

import os
import platform
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

NATIVE = Path("nonsmooth", "native")
NAME = "libnonsmooth.so"
FLAGS = ("-O3", "-fPIC", "-ffp-contract=off")
"""A product and a sum are rounded one after the other, so that all processors compute the same numbers."""
MAX_SECONDS = 300.0


class NativeLibrary(BuildHookInterface[Any]):
    """Adds the library to wheels."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are collected; `version` is "standard" or "editable"."""
        sources = Path(self.root, "src") / NATIVE
        self._folder = tempfile.TemporaryDirectory()
        library = Path(self._folder.name) / NAME
        try:
            build(sources, library)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.app.display_warning(
                f"the native library of nonsmooth was not built, so that quadratic programs will be solved in Python: {error}"
            )
            return
        if version == "editable":
            _replace(library, sources / NAME)
        else:
            build_data["force_include"][str(library)] = str(NATIVE / NAME)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is written."""
        self._folder.cleanup()


def build(sources: Path, library: Path) -> None:
    """Compile the sources in a folder and link them to a library; OSError says why that failed."""
    compiler = _compiler()
    digest = runpy.run_path(str(sources / "sources.py"))["source_digest"](sources)
    with tempfile.TemporaryDirectory() as folder:

        def compile_object(source: str, name: str, *flags: str) -> str:
            path = str(Path(folder) / name)
            _run([*compiler, *FLAGS, *flags, "-c", "-o", path, str(sources / source)])
            return path

        objects = [compile_object("step.c", "step.o")]
        avx2: tuple[str, ...] = ()
        if platform.machine().lower() in ("x86_64", "amd64"):
            try:
                objects.append(compile_object("step.c", "step-avx2.o", "-mavx2", "-DNONSMOOTH_AVX2"))
                avx2 = ("-DWITH_AVX2",)
            except OSError:  # the compiler is for another processor; the library works without
                pass
        objects.append(compile_object("library.c", "library.o", f'-DSOURCE_DIGEST="{digest}"', *avx2))
        _run([*compiler, "-shared", "-o", str(library), *objects, "-lm"])


def _run(command: list[str]) -> None:
    completed = subprocess.run(command, capture_output=True, errors="replace", timeout=MAX_SECONDS)
    if completed.returncode:
        output = completed.stderr.strip()[-300:]
        raise OSError(f"{command[0]} failed with exit status {completed.returncode}{': ' if output else ''}{output}")


def _compiler() -> list[str]:
    """The command of the compiler: the one CC names, or else Python's own or one of the usual names."""
    if sys.platform == "win32":
        raise OSError("it is not supported on Windows")
    if "CC" in os.environ:
        candidates = [os.environ["CC"]]
    elif sys.platform == "darwin" and subprocess.run(["xcode-select", "-p"], capture_output=True).returncode:
        raise OSError("Apple's command line tools are not installed")  # cc exists, but opens a window
    else:
        candidates = [sysconfig.get_config_var("CC") or "cc", "cc", "gcc", "clang"]
    for candidate in candidates:
        words = shlex.split(candidate)
        path = shutil.which(words[0]) if words else None
        if path:
            return [path, *words[1:]]
    raise OSError(f"there is no C compiler ({', '.join(candidates)})")


def _platform() -> str:
    """The platform tag of what a compiler makes here; a manylinux tag is for `auditwheel` to give."""
    return next(tag for tag in platform_tags() if not tag.startswith(("manylinux", "musllinux")))


def _replace(fresh: Path, library: Path) -> None:
    """Replace the library unless it is the same: processes may have it loaded, and uv looks at its date."""
    if library.exists() and library.read_bytes() == fresh.read_bytes():
        return
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        copy = Path(folder) / NAME
        shutil.copyfile(fresh, copy)
        copy.chmod(0o755)
        copy.replace(library)
