"""What a source archive and wheels of this repository must contain; `.ci/try-wheel` runs this file.

python tests/archive_contents.py REPOSITORY SOURCE_ARCHIVE WHEEL WHEEL_BUILT_FROM_THE_ARCHIVE
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

LIBRARY = "nonsmooth/native/libnonsmooth.so"
PACKAGES = ("compile_inspect", "nonsmooth")


def repository_files(repository: Path, *options: str) -> set[str]:
    """The files that git tracks, or lists with `options`, without those deleted in the working tree."""
    command = ["git", "-C", str(repository), "ls-files", "-z", *options]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return {name for name in listed if name and (repository / name).is_file()}


def archive_problems(archive: Path, tracked: set[str], untracked: set[str]) -> list[str]:
    """What is missing from a source archive, and what should not be in it."""
    with tarfile.open(archive) as members:
        names = {member.name.partition("/")[2] for member in members if member.isfile()}
    return [
        *(f"{archive.name} lacks {name}" for name in sorted(tracked - names)),
        *(f"{archive.name} contains {name}" for name in sorted(names - tracked - untracked - {"PKG-INFO"})),
    ]


def wheel_problems(wheel: Path, tracked: set[str]) -> list[str]:
    """What is missing from a wheel, and what should not be in it."""
    sources = {name.removeprefix("src/") for name in tracked if name.startswith("src/") and not name.endswith((".c", ".h"))}
    with zipfile.ZipFile(wheel) as members:
        names = set(members.namelist())
    allowed = tuple(f"{package}/" for package in PACKAGES)
    problems = [f"{wheel.name} lacks {name}" for name in sorted({*sources, LIBRARY} - names)]
    for name in sorted(names):
        if name.endswith((".c", ".h", ".pyc")) or not (name.startswith(allowed) or ".dist-info/" in name):
            problems.append(f"{wheel.name} contains {name}")
    if "-py3-none-" not in wheel.name or wheel.name.endswith("-any.whl"):
        problems.append(f"{wheel.name} must be tagged py3-none and with a platform, because it contains a native library")
    return problems


def wheel_differences(wheel: Path, other: Path) -> list[str]:
    """Files that only one wheel contains or whose content differs; the compiled library and its record are not compared."""

    def checksums(path: Path) -> dict[str, int]:
        with zipfile.ZipFile(path) as members:
            return {
                item.filename: 0 if item.filename == LIBRARY or item.filename.endswith("/RECORD") else item.CRC
                for item in members.infolist()
            }

    first, second = checksums(wheel), checksums(other)
    return [
        f"{name} differs between the wheels" for name in sorted(first.keys() | second) if first.get(name) != second.get(name)
    ]


def main() -> None:
    """Check the archives named on the command line."""
    repository, archive, wheel, rebuilt = map(Path, sys.argv[1:])
    tracked = repository_files(repository)
    untracked = repository_files(repository, "--others", "--exclude-standard")
    problems = [
        *archive_problems(archive, tracked, untracked),
        *wheel_problems(wheel, tracked),
        *wheel_differences(wheel, rebuilt),
    ]
    sys.exit("\n".join(problems) or None)


if __name__ == "__main__":
    main()
