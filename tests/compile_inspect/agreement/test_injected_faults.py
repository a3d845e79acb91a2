"""Faults put into a correct variant: what share of them is caught, and that the variant without one is let pass."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from injected_faults import DTYPES, KINDS, PROGRAMS, Faulty, task_of

from compile_inspect.agreement import Comparison, Reference, compare, make_reference
from compile_inspect.records import DifferenceKind, Verdict

CASES = [(program, dtype) for program in PROGRAMS for dtype in DTYPES]
FEW = [("softmax", torch.bfloat16), ("layer norm", torch.float32), ("attention", torch.float16)]
LEAST_SHARE = 0.95


@cache
def reference_of(program: str, dtype: torch.dtype) -> Reference:
    return make_reference(task_of(program, dtype), layouts=True)


def compared(program: str, dtype: torch.dtype, fault: str) -> Comparison:
    reference = reference_of(program, dtype)
    return compare(reference.task, Faulty(fault).prepare(reference.task), reference=reference)


@pytest.mark.parametrize(("program", "dtype"), FEW, ids=str)
def test_without_a_fault_it_agrees(program: str, dtype: torch.dtype) -> None:
    found = compared(program, dtype, "")
    assert found.verdict is Verdict.AGREES, found.reason


@pytest.mark.parametrize("fault", KINDS)
def test_every_kind_of_fault_is_caught(fault: str) -> None:
    program, dtype = FEW[KINDS.index(fault) % len(FEW)]
    assert compared(program, dtype, fault).verdict is Verdict.DISAGREES


def test_what_a_few_faults_are_called() -> None:
    kinds = {
        "scaled by 1 %": DifferenceKind.BIAS,
        "smallest entry zeroed": DifferenceKind.VALUE,
        "wrong strides": DifferenceKind.STRIDES,
        "requires_grad lost": DifferenceKind.AUTOGRAD,
        "result is an input": DifferenceKind.ALIASING,
        "result overwritten by the next call": DifferenceKind.LATER_CALL,
        "wrong from the 100th call on": DifferenceKind.LATER_CALL,
        "raises for NaN": DifferenceKind.RAISED,
        "side effect missing": DifferenceKind.EFFECT,
    }
    for fault, kind in kinds.items():
        found = compared("softmax", torch.bfloat16, fault)
        assert found.differences[0].kind is kind, f"{fault}: {found.reason}"


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_the_complete_product_of_kinds_programs_and_dtypes() -> None:
    assert len(KINDS) >= 20 and len(PROGRAMS) >= 5 and len(DTYPES) == 3
    missed = []
    for program, dtype in CASES:
        assert compared(program, dtype, "").verdict is Verdict.AGREES
        missed += [(fault, program, dtype) for fault in KINDS if compared(program, dtype, fault).agrees]
    total = len(KINDS) * len(CASES)
    print(f"{total - len(missed)} of {total} faults were caught; missed: {missed or 'none'}")
    assert len(missed) <= (1 - LEAST_SHARE) * total, missed
