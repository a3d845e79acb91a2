"""The pages about the method speak of the code as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nonsmooth.thresholds import meanings

ROOT = Path(__file__).resolve().parents[2]
EXPLANATION = ROOT / "docs" / "explanation"
LINKS = re.findall(r"\[`([\w.]+)`\]\((\.\./\.\./src/[\w/]+\.py)\)", (EXPLANATION / "how-the-solver-works.md").read_text())
SOURCES = sorted((ROOT / "src" / "nonsmooth").rglob("*.py"))


@pytest.mark.parametrize(("name", "path"), LINKS)
def test_every_step_of_the_algorithm_leads_to_its_function(name: str, path: str) -> None:
    source = (EXPLANATION / path).resolve().read_text()
    for part in name.split("."):
        assert re.search(rf"^\s*(?:def|class) {part}\b", source, re.MULTILINE), f"{path} has no {part}"


def test_all_steps_have_links() -> None:
    page = (EXPLANATION / "how-the-solver-works.md").read_text()
    steps = re.findall(r"^\d+\. .*(?:\n {3,}.*)*", page, re.MULTILINE)
    assert len(steps) == 12 and len(LINKS) >= 12
    assert all("../../src/nonsmooth/" in step for step in steps)


def test_thresholds_are_few_used_and_in_their_ranges() -> None:
    table = meanings()
    assert len(table) <= 60
    text = "".join(path.read_text() for path in SOURCES if path.name != "thresholds.py")
    for name, (value, (low, high), meaning) in table.items():
        assert f"THRESHOLDS.{name}" in text, name
        assert low <= value <= high and meaning.endswith(".")


def test_only_steering_writes_the_penalty_weight() -> None:
    writers = {path.stem for path in SOURCES if re.search(r"\bstate\.weight(?:, [\w.]+)* [*+]?= ", path.read_text())}
    assert writers == {"steering"}


def test_functions_are_short() -> None:
    """Docstrings not counted; in the loop and its steps."""
    import ast

    for path in SOURCES:
        if path.parent.name not in ("loop", "step", "kinks"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
                assert (node.end_lineno or 0) - first.lineno < 60, f"{path}: {node.name}"
