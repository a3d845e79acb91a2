"""Every page and picture that shows measurements is what the stored results give."""

from __future__ import annotations

from pathlib import Path

import pytest
import render_results
import stored_results
from ablation.mechanisms import MECHANISMS
from rendering.readme import FIGURES
from rendering.sections import PARTS
from stored_results import load

from nonsmooth.thresholds import meanings

SECTIONS = [section for _, sections in PARTS for section in sections]
RENDERED_ELSEWHERE = {"solver_ablation", "solver_thresholds"}
"""Results that only docs/explanation/solver-mechanisms.md shows."""


def test_every_page_and_picture_is_current() -> None:
    assert render_results.outdated() == [], "run `make results`"


def test_pages_depend_on_the_results_alone() -> None:
    assert render_results.texts() == render_results.texts()


def test_all_results_are_shown() -> None:
    stored = {path.stem for path in stored_results.RESULTS.glob("*.json")}
    assert stored <= {section.result for section in SECTIONS} | RENDERED_ELSEWHERE


def test_the_readme_has_five_figures() -> None:
    assert len(FIGURES) == 5


def test_a_figure_changed_by_hand_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (render_results.ROOT / "README.md").read_text(encoding="utf-8")
    blocks = render_results.readme.blocks()
    assert render_results.replace_blocks(text, blocks) == text
    for block in blocks.values():
        changed = text.replace(block, block.replace("|", "| 1", 1))
        assert changed != text
        assert render_results.replace_blocks(changed, blocks) == text


def test_a_page_without_its_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match="no block 'figures'"):
        render_results.replace_blocks("# A page\n", {"figures": "| a |"})


def test_transcribed_results_are_marked() -> None:
    page = render_results.texts()[render_results.RESULTS_PAGE]
    for section in SECTIONS:
        if stored_results.path_of(section.result).exists():
            text = page.split(f"\n### {section.title}\n", 1)[1].split("\n### ", 1)[0]
            assert ("raw samples not stored" in text) == load(section.result)["transcribed"], section.result


def test_the_same_data_give_the_same_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    digest, draw = render_results.pictures()[render_results.IMAGES / "solver-scale.svg"]
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    draw(first)
    draw(second)
    assert first.read_bytes() == second.read_bytes()
    assert render_results.drawn_from(first) == digest


def test_stored_mechanisms_and_thresholds_exist() -> None:
    assert set(load("solver_ablation")["samples"]) <= set(MECHANISMS)
    names = {name.partition("=")[0] for name in load("solver_thresholds")["samples"]}
    assert names <= {"none", *meanings()}
