"""Programs that break the graph, each with one cause found in real code: what is said of it, and what was proven.

A program defines `target`, `inputs` and `EXPECTED`: the kind of fix, the titles of proposals that must be proven, and those
that must be withdrawn when they are tried; `since` names the torch from which on it breaks so. The lines of its graph breaks
end with `# <- break`.
"""

from __future__ import annotations

import gc
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from compile_inspect.fixes import FIXERS, advise
from compile_inspect.fixes.base import BreakSite
from compile_inspect.fixes.trial_runner import TrialRunner
from compile_inspect.records import GraphBreak
from compile_inspect.records.fixes import Proof, ProofStatus, Proposal

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


ALIKE = {
    "attributes_hidden_state", "branch_allclose", "branch_clip_norm", "branch_nan_guard", "branch_several_names",
    "branch_while_training", "float_as_constant_weight", "foreign_timer_class", "mask_mean_loss", "math_of_item",
    "max_of_item_and_one", "training_adversarial", "while_with_counter",
}  # fmt: skip
"""Programs whose fixes, of the same kind and with the same titles, are proven for others too: tried in long runs."""


@cache
def expected(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = runpy.run_path(str(path))["EXPECTED"]
    return found


def first_of_each_kind(count: int) -> set[Path]:
    """The first programs of each kind of fix."""
    kinds: dict[str, list[Path]] = {}
    for path in PROGRAMS:
        if path.stem not in ALIKE:
            kinds.setdefault(expected(path)["fixer"], []).append(path)
    return {path for paths in kinds.values() for path in paths[:count]}


QUICK = first_of_each_kind(2)
"""Programs that are tried in every run of the tests."""


def _version(text: str) -> list[int]:
    return [int(part) for part in text.split("+")[0].split(".")[:2]]


def marked(path: Path) -> set[int]:
    return {number for number, line in enumerate(path.read_text().split("\n"), 1) if "# <- break" in line}


def titles(path: Path) -> set[tuple[str, str, str]]:
    """What is proven or withdrawn for a program, with the kind of fix."""
    found = expected(path)
    return {(found["fixer"], standing, title) for standing in ("proven", "withdrawn") for title in found.get(standing, ())}


def runner(path: Path) -> TrialRunner:
    wanted = expected(path)
    if "since" in wanted and _version(torch.__version__) < _version(wanted["since"]):
        pytest.skip(f"before torch {wanted['since']} it broke in another way")
    if "gc.collect()" in path.read_text():  # in every run: not all that torch holds needs to be walked through each time
        gc.collect()
        gc.freeze()
    return TrialRunner(f"{path}:target", f"{path}:inputs", backend="eager", samples=1, seconds=0.0)


def proposals(path: Path, runner: TrialRunner) -> Iterator[tuple[GraphBreak, Proposal]]:
    """What fixes of the kind that is expected propose: another kind may propose the same, then the advice has it once."""
    for cause in runner.inspection.breaks:
        place = BreakSite.of(cause, runner.inspection.sources)
        for fixer in FIXERS:
            if fixer.name == expected(path)["fixer"] and fixer.matches(place):
                yield from ((cause, proposal) for proposal in fixer.proposals(place))


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path not in QUICK)) for path in PROGRAMS]
)
def test_the_cause_is_named_and_the_fix_is_proven(path: Path) -> None:
    wanted, found = expected(path), runner(path)
    causes = found.inspection.breaks
    places = {cause.own_location.line for cause in causes if cause.own_location and cause.own_location.file == str(path)}
    assert places == marked(path), [(cause.kind, str(cause.own_location)) for cause in causes]
    for cause in causes:
        advice = advise(cause, found.inspection.sources)
        assert advice.reason and not advice.reason.startswith("GB")
        assert advice.proposals or advice.hints, "neither a fix nor an honest word"
    tried: dict[str, Proof] = {}
    named = {*wanted.get("proven", ()), *wanted.get("withdrawn", ())}
    for cause, proposal in proposals(path, found):
        known = tried.get(proposal.title)
        if proposal.title in named and (known is None or not known.holds):
            tried[proposal.title] = found.prove(cause, proposal)
    offered = [proposal.title for _, proposal in proposals(path, found)]
    for title in wanted.get("proven", ()):
        assert title in tried, f"{title!r} was not proposed, only {offered}"
        assert tried[title].status is ProofStatus.PROVEN, (title, tried[title])
        assert tried[title].breaks[1] < tried[title].breaks[0]
    for title in wanted.get("withdrawn", ()):
        assert title in tried, f"{title!r} was not proposed, only {offered}"
        assert not tried[title].holds, (title, tried[title])


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_proposals_that_are_not_named_can_be_tried(path: Path) -> None:
    found = runner(path)
    named = {title for _, _, title in titles(path)}
    for cause, proposal in proposals(path, found):
        if proposal.title not in named:
            assert found.prove(cause, proposal).status in ProofStatus


def test_what_is_left_to_long_runs_is_proven_for_others() -> None:
    others = set().union(*(titles(path) for path in PROGRAMS if path.stem not in ALIKE))
    for path in PROGRAMS:
        if path.stem in ALIKE:
            assert titles(path) and titles(path) <= others, path.stem
    assert {path.stem for path in PROGRAMS} >= ALIKE


def test_there_are_many_and_most_have_a_rewrite() -> None:
    settings = ("Let torch", "Let graphs", "Compile the backward", "Let the graph")
    proven = [title for path in PROGRAMS for title in expected(path).get("proven", ())]
    rewritten = [path for path in PROGRAMS if any(not title.startswith(settings) for title in expected(path).get("proven", ()))]
    assert len(PROGRAMS) >= 100 and len(rewritten) >= 80 and len(set(proven)) >= 40
