"""docs/reference/known-wrong-results.md says what the gallery and its measurements say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_of_known_wrong_results_is_current() -> None:
    script = str(DOCS / "generate_known_wrong_results.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    page = (DOCS / "reference" / "known-wrong-results.md").read_text(encoding="utf-8")
    assert page == done.stdout, "run: python docs/generate_known_wrong_results.py --update"
