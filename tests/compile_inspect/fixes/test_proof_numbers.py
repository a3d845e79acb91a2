"""A proof says what its numbers allow, and cannot be made otherwise."""

from __future__ import annotations

import itertools

import pytest

from compile_inspect.fixes import distinct
from compile_inspect.records.fixes import Proof, Proposal, Replacement, Setting, Standing
from compile_inspect.reporters.text.findings import proof_details
from compile_inspect.serialization import from_data, to_data

COUNTS = list(itertools.product((0, 1, 2), (0, 1, 2), (0, 1), (0, 1), (0, 1), (0, 3), (0, 2)))


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_gone_is_said_only_where_there_are_fewer_causes_and_results_were_compared(counts: tuple[int, ...]) -> None:
    before, after, remaining, arrived, revealed, inputs, values = counts
    numbers = {"remaining": remaining, "arrived": arrived, "revealed": revealed, "inputs": inputs, "values": values}
    proof = Proof.of(breaks=(before, after), graphs=(2, 1), **numbers)
    allowed = not remaining and not arrived and after - revealed < before and inputs > 0 and values > 0
    assert proof.holds == allowed
    assert ("is gone, and" in proof.standing.value) == allowed
    if allowed:
        assert f"Causes of breaks {before} → {after}" in proof_details(proof)
        assert f"compared at {inputs} inputs" in proof_details(proof)
    for standing in Standing:
        if standing is proof.standing:
            assert from_data(Proof, to_data(proof)) == proof
        else:
            with pytest.raises(ValueError, match=f"a proof is {proof.standing.name}, not {standing.name}"):
                Proof(standing, breaks=(before, after), graphs=(2, 1), **numbers)


def test_a_withdrawal_for_an_exception_or_a_difference_needs_its_reason() -> None:
    assert Proof.of(breaks=(1, 0), failure="ValueError").standing is Standing.FAILED
    assert Proof.of(breaks=(1, 0), difference="result").standing is Standing.DISAGREES
    for standing in (Standing.FAILED, Standing.DISAGREES):
        with pytest.raises(ValueError, match="a proof is UNTRIED"):
            Proof(standing, breaks=(1, 0))


def test_all_numbers_are_in_the_sentences() -> None:
    proof = Proof.of(
        breaks=(3, 2), graphs=(4, 3), inputs=4, values=2, gradients=1, largest_error=1.5e-7, unsteady=("result[1]",),
        unreached=(9,), seconds=(0.004, 0.002),
    )  # fmt: skip
    assert proof_details(proof) == (
        "Causes of breaks 3 → 2, graphs 4 → 3, a call 4.0 ms → 2.0 ms. 2 results and 1 gradient compared at 4 inputs, in eager "
        "mode and compiled, largest difference 1.5e-07. Not compared: result[1], which differs between two runs of the "
        "unchanged program. No input reaches line 9, so nothing is proven about it: add inputs that reach it."
    )


def test_what_leads_to_the_same_is_proposed_once() -> None:
    text = "y = x.item()\n"
    whole = Replacement("a.py", (1, 4), (1, 12), "x.item()", "x.detach()")
    part = Replacement("a.py", (1, 6), (1, 12), "item()", "detach()")
    nothing = Replacement("a.py", (1, 0), (1, 1), "y", "y")
    setting = Setting("s = 1")
    proposals = [
        Proposal("one", "Whole", (whole,)),
        Proposal("two", "Part", (part,)),
        Proposal("one", "Nothing", (nothing,)),
        Proposal("one", "Setting", (), (setting,)),
        Proposal("two", "Setting too", (nothing,), (setting,)),
        Proposal("two", "Both", (part,), (setting,)),
    ]
    assert [item.title for item in distinct(proposals, {"a.py": text})] == ["Whole", "Setting", "Both"]
    assert [item.title for item in distinct(proposals[:2], {})] == ["Whole", "Part"]  # the text is not known
