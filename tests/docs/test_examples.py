"""The examples of the solver run as they are. (Those of compile_inspect compile, and take longer.)"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OF_THE_SOLVER = [path for path in sorted(EXAMPLES.glob("*.py")) if "from nonsmooth" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", OF_THE_SOLVER, ids=lambda path: path.stem)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "STATIONARY" in done.stdout


def test_every_example_is_in_the_table() -> None:
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert OF_THE_SOLVER
    for path in EXAMPLES.glob("*.py"):
        assert f"| `{path.name}` |" in table
