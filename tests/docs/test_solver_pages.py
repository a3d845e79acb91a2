"""The tables about the solver say what the code says, and figures are those of the last measurement."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

from nonsmooth import Certificate, Options, Result, Status
from nonsmooth.options import Tolerances

ROOT = Path(__file__).resolve().parents[2]
QUALITY = "docs/explanation/solver-quality.md"
PAGE = (ROOT / "docs" / "reference" / "solver-options.md").read_text(encoding="utf-8")
DEFAULTS = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \| ", PAGE, re.MULTILINE))


def value(text: str) -> object:
    """A default as the page writes it."""
    return {"inf": math.inf, "-inf": -math.inf}[text] if text.endswith("inf") else eval(text)


def test_every_option_is_listed_with_its_default() -> None:
    tolerances = {
        name: [getattr(Tolerances.of(Options(), single=single), attribute) for single in (False, True)]
        for name, attribute in (
            ("stationarity_tolerance", "stationarity"),
            ("inequality_tolerance", "inequality"),
            ("equality_tolerance", "equality"),
            ("sampling_radius", "radius"),
            ("step_tolerance", "step"),
        )
    }
    for field in dataclasses.fields(Options):
        assert field.name in DEFAULTS, f"docs/reference/solver-options.md does not list the option {field.name}"
        text = DEFAULTS[field.name]
        if field.name in tolerances:
            double, single = text.split("; float32: ")
            assert [float(double), float(single)] == tolerances[field.name], field.name
        else:
            assert value(text) == field.default, field.name


def test_every_status_is_listed_with_its_sentence() -> None:
    for status in Status:
        assert f"| `{status.name}` | {status.value} |" in PAGE


def test_every_field_of_results_and_certificates_is_mentioned() -> None:
    for kind in (Result, Certificate):
        for field in dataclasses.fields(kind):
            assert field.name == "recheck" or f"`{field.name}`" in PAGE, f"{kind.__name__}.{field.name}"


def rows(page: str, title: str) -> list[list[str]]:
    """The cells of the first table after a line."""
    text = (ROOT / page).read_text(encoding="utf-8").split(title, 1)[1].lstrip("\n")
    table = text[text.index("\n|") + 1 :].split("\n\n", 1)[0]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_figures_of_the_readme_are_those_measured() -> None:
    measured = {
        title: {row[0]: row[1:] for row in rows(QUALITY, f"## {title}")}
        for title in re.findall(r"^## ((?:All|The) \d+ .*)$", (ROOT / QUALITY).read_text(encoding="utf-8"), re.MULTILINE)
    }
    readme = rows("README.md", "<!-- results:begin solvers -->")
    assert len(readme) >= 4
    for solver, *solved, mistaken in readme:
        for cell, table in zip(solved, measured.values(), strict=True):
            row = table.get(solver)
            expected = f"{row[1]} of {row[0]}, median {row[6]}" if row else "—"
            assert cell == expected, f"README.md: {solver} is {expected} in docs/explanation/solver-quality.md"
        assert mistaken == next(table[solver][7] for table in measured.values() if solver in table), f"README.md: {solver}"
