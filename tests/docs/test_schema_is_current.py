"""The tables of docs/reference/capture-file.md say what the dataclasses say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "reference" / "capture-file.md").read_text(encoding="utf-8")
BEGIN, END = "<!-- tables: begin (docs/generate_schema.py) -->\n", "<!-- tables: end -->"


def test_schema_is_current() -> None:
    done = subprocess.run([sys.executable, str(DOCS / "generate_schema.py")], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    _, begin, rest = PAGE.partition(BEGIN)
    written, end, _ = rest.partition(END)
    assert begin and end, "docs/reference/capture-file.md has lost the lines around its tables"
    assert written == done.stdout, "run: python docs/generate_schema.py --update"


def test_schema_version_is_named() -> None:
    from compile_inspect.records import SCHEMA_VERSION

    assert f"The schema is version {SCHEMA_VERSION}." in PAGE
    assert f'manifest["schema"] == {SCHEMA_VERSION}' in PAGE


def test_every_record_is_in_the_tables() -> None:
    from compile_inspect import records

    for name in records.__all__:
        inside = not name.isupper() and getattr(records, name).__module__ != "compile_inspect.records.agreement"
        assert not inside or f"\n### {name}\n" in PAGE, name  # what `verify` gives is not part of a capture
