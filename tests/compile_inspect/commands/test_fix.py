"""`compile-inspect fix` where nothing can be written."""

from __future__ import annotations

from pathlib import Path

import pytest
from invoking import invoke

UNREACHED = "def function(x):\n    if x.isnan().any():\n        raise ValueError('bad')\n    return x + 1\n"
BY_HAND = "def function(x):\n    return x + len(open(__file__).read())\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "told"),
    [
        (UNREACHED, "Nothing was written: the fixes that hold change lines that no input reaches."),
        (BY_HAND, "No fix was proven for any of 2 causes."),
    ],
    ids=["unreached", "by hand"],
)
def test_what_is_said_where_no_fix_is_taken(tmp_path: Path, program: str, told: str) -> None:
    (tmp_path / "model.py").write_text(program)
    options = ("--inputs", "float32[4]", "--backend", "eager", "--seconds", "0")
    done = invoke("fix", "model.py:function", *options, cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    assert done.stdout.startswith(told)
    assert ("add --unreached" in done.stdout) is (program is UNREACHED)
