"""The check of built archives reports what is missing, what should not be there, and what differs."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

from archive_contents import LIBRARY, archive_problems, wheel_differences, wheel_problems

TRACKED = {"src/nonsmooth/__init__.py", "src/nonsmooth/native/step.c", "README.md"}


def wheel(path: Path, **contents: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in contents.items():
            archive.writestr(name, text)
    return path


def test_a_source_archive(tmp_path: Path) -> None:
    archive = tmp_path / "a-1.tar.gz"
    (tmp_path / "README.md").write_text("a")
    with tarfile.open(archive, "w:gz") as members:
        for name in ("README.md", "PKG-INFO", "new.txt", "build.log"):
            members.add(tmp_path / "README.md", f"a-1/{name}")
    assert archive_problems(archive, TRACKED, {"new.txt"}) == [
        "a-1.tar.gz lacks src/nonsmooth/__init__.py",
        "a-1.tar.gz lacks src/nonsmooth/native/step.c",
        "a-1.tar.gz contains build.log",
    ]


def test_a_wheel(tmp_path: Path) -> None:
    good = {"nonsmooth/__init__.py": "", LIBRARY: "", "a-1.dist-info/RECORD": ""}
    assert wheel_problems(wheel(tmp_path / "a-1-py3-none-linux_x86_64.whl", **good), TRACKED) == []
    bad = wheel(tmp_path / "a-1-py3-none-any.whl", **{"nonsmooth/native/step.c": "", "tests/a.py": ""})
    problems = wheel_problems(bad, TRACKED)
    assert problems[:-1] == [
        f"{bad.name} lacks nonsmooth/__init__.py",
        f"{bad.name} lacks {LIBRARY}",
        f"{bad.name} contains nonsmooth/native/step.c",
        f"{bad.name} contains tests/a.py",
    ]
    assert "must be tagged" in problems[-1]


def test_two_wheels(tmp_path: Path) -> None:
    first = wheel(tmp_path / "first.whl", **{"a.py": "1", "b.py": "1", LIBRARY: "1"})
    second = wheel(tmp_path / "second.whl", **{"a.py": "2", "c.py": "1", LIBRARY: "2"})
    assert wheel_differences(first, second) == [f"{name} differs between the wheels" for name in ("a.py", "b.py", "c.py")]
