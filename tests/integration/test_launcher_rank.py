"""`compile-inspect run` behind a launcher: each rank has a file of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from compile_inspect.capture_file import load
from conftest import environment


def test_ranks_given_the_same_name_do_not_overwrite_each_other(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os; print(os.environ['RANK'])")
    for rank in ("0", "1"):
        command = [sys.executable, "-m", "compile_inspect", "run", "-o", "job.inspection", "train.py"]
        done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path, RANK=rank), capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, f"{rank}\n"), done.stderr
    assert sorted(path.name for path in tmp_path.glob("*.inspection")) == ["job.rank0.inspection", "job.rank1.inspection"]
    assert load(tmp_path / "job.rank1.inspection").process.rank == 1
