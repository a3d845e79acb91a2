"""Wheels with and without the native library, installed where there is no compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

pytestmark = [pytest.mark.exhaustive, pytest.mark.skipif(sys.platform == "win32", reason="the library is not built on Windows")]

ROOT = Path(__file__).resolve().parents[3]
RUN = """
import shutil, torch, nonsmooth
assert not any(shutil.which(name) for name in ("cc", "gcc", "clang", "g++", "c++"))
result = nonsmooth.minimize(lambda x: (abs(x).sum(), 1 - x[0], None), torch.zeros(3, dtype=torch.float64))
print(nonsmooth.__file__, result.method, round(result.f, 6))
"""


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NONSMOOTH_NATIVE", "CC")}
    return {**kept, **changes}


def build_wheel(folder: Path, **changes: str) -> tuple[Path, str]:
    """A wheel of a copy of this source tree without what was built in it, and what the build said."""
    source = folder / "source"
    left_out = shutil.ignore_patterns(".git", ".venv*", "node_modules", "site", "*.so", "__pycache__")
    shutil.copytree(ROOT / "src", source / "src", ignore=left_out)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--verbose", "--no-deps", "--wheel-dir", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(**changes), timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(source.rglob("*.so")), "only an editable build writes to the source tree"
    (wheel,) = folder.glob("*.whl")
    return wheel, done.stdout + done.stderr


def install(wheel: Path, folder: Path) -> Path:
    """The interpreter of an environment with the wheel, which sees the packages of this one behind its own."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=300)
    python = folder / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)], check=True, env=environment())
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(f"{Path(torch.__file__).parents[1]}\n")
    return python


def solve(python: Path, folder: Path) -> tuple[list[str], str]:
    """What a run prints, and what it warns of, where no compiler is found."""
    done = subprocess.run(
        [str(python), "-c", RUN],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(PATH=str(python.parent)),
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_wheel_brings_the_library(tmp_path: Path) -> None:
    wheel, _ = build_wheel(tmp_path)
    assert "-py3-none-" in wheel.name and not wheel.name.endswith("-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "nonsmooth/native/libnonsmooth.so" in names and not [name for name in names if name.endswith((".c", ".h"))]
    python = install(wheel, tmp_path / "environment")
    (place, method, f), warnings = solve(python, tmp_path)
    assert Path(place).is_relative_to(tmp_path) and (method, f) == ("native", "1.0") and "native library" not in warnings


@pytest.mark.parametrize("compiler", ["/bin/false", "no-such-compiler", "gcc '"])
def test_without_a_compiler_it_is_installed_without_the_library(compiler: str, tmp_path: Path) -> None:
    wheel, output = build_wheel(tmp_path, CC=compiler)
    assert wheel.name.endswith("-py3-none-any.whl") and "the native library of nonsmooth was not built" in output
    assert "nonsmooth/native/libnonsmooth.so" not in zipfile.ZipFile(wheel).namelist()
    if compiler == "/bin/false":
        python = install(wheel, tmp_path / "environment")
        (place, method, f), warnings = solve(python, tmp_path)
        assert Path(place).is_relative_to(tmp_path) and (method, f) == ("python", "1.0")
        assert "--force-reinstall" in warnings
