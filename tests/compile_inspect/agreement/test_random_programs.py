"""Programs that nobody wrote, compiled by backends known to be right: no alarm, no crash."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from other_arithmetic import Reordered
from random_programs import BLOCKS, EXPRESSIONS, Program, programs

from compile_inspect import verify
from compile_inspect.agreement import compare
from compile_inspect.agreement.inputs import clone_inputs
from compile_inspect.records import Verdict
from compile_inspect.variants import Prepared, Task, Variant, variant

quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
once = [Phase.explicit, Phase.generate]  # a program that fails is printed whole; making it smaller takes an hour


DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def assert_no_alarm(program: Program, variants: list[str] | list[Variant]) -> None:
    torch.compiler.reset()  # otherwise what earlier programs left behind slows every guard down
    found = verify(program.function(), *program.inputs(), variants=variants, blame=False)
    for item in found.variants:
        assert item.verdict in (Verdict.AGREES, Verdict.ASSUMES) or may_refuse(item.name, item.reason), (
            f"{program.source}\n{item}"
        )


def may_refuse(name: str, reason: str) -> bool:
    """A branch on data, or a change in place, cannot be traced; torch.compile must take everything."""
    traced = name in ("inductor-callable", "aot-inductor")
    return traced and ("data-dependent" in reason or "in place" in reason or "trac" in reason)


def test_there_are_sixty_operations() -> None:
    assert len(EXPRESSIONS) + len(BLOCKS) >= 60


@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=quiet, database=None, phases=once)
@given(programs())
def test_no_false_alarm_with_eager_kernels(program: Program) -> None:
    assert_no_alarm(program, ["eager-backend", "aot_eager"])


@pytest.mark.exhaustive
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=quiet, database=None, phases=once)
@given(programs())
def test_no_false_alarm_with_eager_kernels_in_forty_programs(program: Program) -> None:
    assert_no_alarm(program, ["eager-backend", "aot_eager"])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=quiet, database=None, phases=once)
@given(program=programs())
def test_no_false_alarm_in_another_order(dtype: torch.dtype, program: Program) -> None:
    assert_no_alarm(replace(program, dtype=dtype), [Reordered()])


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(max_examples=334, deadline=None, derandomize=True, suppress_health_check=quiet, database=None, phases=once)
@given(program=programs())
def test_no_false_alarm_in_a_thousand_programs(dtype: torch.dtype, program: Program) -> None:
    assert_no_alarm(replace(program, dtype=dtype), [Reordered()])


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=quiet, database=None, phases=once)
@given(program=programs())
def test_no_false_alarm_with_inductor_in_16_bits(dtype: torch.dtype, program: Program) -> None:
    assert_no_alarm(replace(program, dtype=dtype), ["inductor"])


@pytest.mark.exhaustive
@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=quiet, database=None, phases=once)
@given(programs())
def test_no_false_alarm_with_inductor(program: Program) -> None:
    assert_no_alarm(program, ["inductor", "inductor-callable"])


def leaves(value: Any) -> list[torch.Tensor]:
    found = torch.utils._pytree.tree_leaves(value)
    return [item.detach() for item in found if isinstance(item, torch.Tensor) and item.is_floating_point()]


def plainly_different(one: Any, other: Any) -> bool:
    """Whether a value differs by a hundredth of the largest in its tensor, which no rounding explains."""
    return any(
        bool((mine - theirs).abs().max() > 0.01 * (mine.abs().max() + 1e-3))
        for mine, theirs in zip(leaves(one), leaves(other), strict=True)
        if mine.isfinite().all() and theirs.isfinite().all()
    )


CHANGES = (
    (".sin()", ".cos()"),
    (" + ", " - "),
    ("mean", "sum"),
    ("> ", "< "),
    (" * ", " + "),
    ("amax", "amin"),
    ("0.5", "0.4"),
)


def assert_told_apart(program: Program, place: int) -> None:
    """A program and the same with one thing changed do not agree."""
    changes = [change for change in CHANGES if change[0] in program.source]
    assume(changes)
    old, new = changes[place % len(changes)]
    head, found, tail = program.source.rpartition(old)
    changed = replace(program, source=head + new + tail)
    right, wrong = program.function(), changed.function()
    assume(
        found
        and plainly_different(right(*clone_inputs((program.inputs(), {}))[0]), wrong(*clone_inputs((program.inputs(), {}))[0]))
    )
    task = Task(right, program.inputs(), {}, False)
    claimed = Prepared(variant("aot_eager"), lambda *args: task.run(wrong, args, {}), None, 0.0)
    assert not compare(task, claimed).agrees, f"{program.source}\nagrees with\n{changed.source}"


@pytest.mark.slow
@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=quiet, database=None, phases=once)
@given(programs(), st.integers(0, 100))
def test_a_program_with_one_thing_changed_is_told_apart(program: Program, place: int) -> None:
    assert_told_apart(program, place)


@pytest.mark.exhaustive
@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=quiet, database=None, phases=once)
@given(programs(), st.integers(0, 100))
def test_a_hundred_programs_with_one_thing_changed_are_told_apart(program: Program, place: int) -> None:
    assert_told_apart(program, place)
