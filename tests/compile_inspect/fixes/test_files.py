"""Files that are written, and how that is undone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from compile_inspect.errors import InspectError
from compile_inspect.fixes.files import write


def test_a_copy_is_kept_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(b"old = 1\r\n")
    path.chmod(0o754)
    (said,) = write({str(path): "new = 1\r\n"})
    assert path.read_bytes() == b"new = 1\r\n" and path.stat().st_mode & 0o777 == 0o754
    assert (tmp_path / "model.py.before-fix").read_bytes() == b"old = 1\r\n"
    assert said == f"Wrote {path}. To undo it, in {tmp_path}: mv model.py.before-fix model.py"
    write({str(path): "newer = 1\n"})
    assert (tmp_path / "model.py.before-fix2").read_bytes() == b"new = 1\r\n"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["model.py", "model.py.before-fix", "model.py.before-fix2"]


def test_git_undoes_what_it_knows(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("old = 1\n")
    settings = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    for arguments in (["init", "-q"], ["add", "."], [*settings, "commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    (said,) = write({str(path): "new = 1\n"})
    assert said.endswith("git checkout -- model.py")
    (said,) = write({str(path): "newer = 1\n"})  # which has changes that git does not know
    assert said.endswith("mv model.py.before-fix model.py")
    subprocess.run(["git", "checkout", "-q", "--", "model.py"], cwd=tmp_path, check=True)
    assert path.read_text() == "old = 1\n"


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InspectError, match="cannot be written"):
        write({str(tmp_path / "missing" / "model.py"): ""})


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text("old = 1\n")
    (tmp_path / "link.py").symlink_to("real.py")
    (said,) = write({str(tmp_path / "link.py"): "new = 1\n"})
    assert (tmp_path / "link.py").is_symlink() and (tmp_path / "real.py").read_text() == "new = 1\n"
    assert said.endswith("mv real.py.before-fix real.py")


def test_a_read_only_file_and_files_of_others_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("old = 1\n")
    (tmp_path / "model.py.partial").write_text("my notes")
    path.chmod(0o444)
    with pytest.raises(InspectError, match="is read-only"):
        write({str(path): "new = 1\n"})
    path.chmod(0o644)
    write({str(path): "new = 1\n"})
    assert (tmp_path / "model.py.partial").read_text() == "my notes"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["model.py", "model.py.before-fix", "model.py.partial"]
