"""Programs that break the graph, each with one cause found in real code: what is said of it, and what was proven.

A program defines `target`, `inputs` and `EXPECTED`: the kind of fix, the titles of proposals that must be proven, and those
that must be withdrawn when they are tried; `since` names the torch from which on it breaks so. The lines of its graph breaks
end with `# <- break`.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

from compile_inspect.fixes import FIXERS, advise
from compile_inspect.fixes.base import Place
from compile_inspect.fixes.proving import Laboratory
from compile_inspect.records.fixes import Standing

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


def expected(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = runpy.run_path(str(path))["EXPECTED"]
    return found


def _version(text: str) -> list[int]:
    return [int(part) for part in text.split("+")[0].split(".")[:2]]


def marked(path: Path) -> set[int]:
    return {number for number, line in enumerate(path.read_text().split("\n"), 1) if "# <- break" in line}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_cause_is_named_and_the_fix_is_proven(path: Path) -> None:
    wanted = expected(path)
    if "since" in wanted and _version(torch.__version__) < _version(wanted["since"]):
        pytest.skip(f"before torch {wanted['since']} it broke in another way")
    laboratory = Laboratory(f"{path}:target", f"{path}:inputs", backend="eager", samples=1, seconds=0.0)
    causes = laboratory.inspection.breaks
    places = {cause.own_location.line for cause in causes if cause.own_location and cause.own_location.file == str(path)}
    assert places == marked(path), [(cause.kind, str(cause.own_location)) for cause in causes]
    tried = {}
    for cause in causes:
        advice = advise(cause, laboratory.inspection.sources)
        assert advice.why and not advice.why.startswith("GB")
        assert advice.proposals or advice.hints, "neither a fix nor an honest word"
        place = Place.of(cause, laboratory.inspection.sources)
        fixers = [fixer for fixer in FIXERS if fixer.name == wanted["fixer"] and fixer.concerns(place)]
        # Another kind may propose the same under another title: then the advice has it once.
        for proposal in (proposal for fixer in fixers for proposal in fixer.proposals(place)):
            known = tried.get(proposal.title)
            if known is None or not known.holds:
                tried[proposal.title] = laboratory.prove(cause, proposal)
    for title in wanted.get("proven", ()):
        assert title in tried, f"{title!r} was not proposed, only {list(tried)}"
        assert tried[title].standing is Standing.PROVEN, (title, tried[title])
        assert tried[title].breaks[1] < tried[title].breaks[0]
    for title in wanted.get("withdrawn", ()):
        assert title in tried, f"{title!r} was not proposed, only {list(tried)}"
        assert not tried[title].holds, (title, tried[title])


def test_there_are_many_and_most_have_a_rewrite() -> None:
    settings = ("Let torch", "Let graphs", "Compile the backward", "Let the graph")
    proven = [title for path in PROGRAMS for title in expected(path).get("proven", ())]
    rewritten = [path for path in PROGRAMS if any(not title.startswith(settings) for title in expected(path).get("proven", ()))]
    assert len(PROGRAMS) >= 100 and len(rewritten) >= 80 and len(set(proven)) >= 40
