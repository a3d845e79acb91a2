"""Faults put into a correct variant: what share of them is caught, and that the variant without one is let pass."""

from __future__ import annotations

from functools import cache

import torch
from injected_faults import DTYPES, PROGRAMS, Faulty, task_of

from compile_inspect.agreement import Reference, compare, make_reference
from compile_inspect.records import Verdict

CASES = [(program, dtype) for program in PROGRAMS for dtype in DTYPES]
BELOW_ROUNDING: dict[str, str] = {}


@cache
def reference_of(program: str, dtype: torch.dtype) -> Reference:
    return make_reference(task_of(program, dtype), layouts=True)


def is_caught(program: str, dtype: torch.dtype, fault: str) -> bool:
    reference = reference_of(program, dtype)
    return compare(reference.task, Faulty(fault).prepare(reference.task), reference=reference).verdict is Verdict.DISAGREES
