"""Remedies: what is proposed for each cause, and what trials of them show."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch

import compile_inspect
from compile_inspect.recompiles import Call, find_remedies, predict, remedies_from_capture, temporary_attribute
from compile_inspect.recompiles.buckets import least_waste, multiples, powers_of_two, proposals
from compile_inspect.recompiles.causes import CauseKind, cause_of, decisive_cause
from compile_inspect.recompiles.proposals import explain, remedies_for
from compile_inspect.records import GuardFailure, Inspection, LimitHit, Recompile
from compile_inspect.records.forecast import Buckets, Remedy, RemedyKind, RemedyProof, Treatment
from compile_inspect.target import Target
from conftest import quick_first


def failure(variable: str, reason: str, expected: str | None = None, actual: str | None = None) -> GuardFailure:
    return GuardFailure("0/0", variable, reason, expected, actual)


SIZE = failure("x", "tensor 'x' size mismatch at index 1. expected 4, actual 5", "4", "5")
CAUSES = [
    (SIZE, CauseKind.SIZE, "x", 1),
    (failure("x", "tensor 'x' stride mismatch at index 0. expected 4, actual 1", "4", "1"), CauseKind.STRIDE, "x", 0),
    (failure("x", "tensor 'x' rank mismatch. expected 2, actual 1", "2", "1"), CauseKind.RANK, "x", None),
    (failure("x", "tensor 'x' dtype mismatch. expected Float, actual Half", "Float", "Half"), CauseKind.DTYPE, "x", None),
    (failure("x", "tensor 'x' requires_grad mismatch. expected requires_grad=1"), CauseKind.GRADIENT, "x", None),
    (failure("x.size()[0]", "2 <= x.size()[0] <= 10", "2 <= x.size()[0] <= 10", "11"), CauseKind.CONDITION, "x", 0),
    (failure("xs[0].size()[2]", "(xs[0].size()[2] % 8) == 0", None, "11"), CauseKind.CONDITION, "xs[0]", 2),
    (failure("k", "k == 2", "2", "3"), CauseKind.NUMBER, "k", None),
    (failure("k", "k == 0.5", "0.5", None), CauseKind.NUMBER, "k", None),
    (failure("k", "k == True", "True", "False"), CauseKind.VALUE, "k", None),
    (failure("k", "k == 'sum'", "'sum'", "'mean'"), CauseKind.VALUE, "k", None),
    (failure("k", "k is None", "None", None), CauseKind.VALUE, "k", None),
    (failure("self.k", "self.k == 2", "2", "3"), CauseKind.ATTRIBUTE, "self.k", None),
    (failure("global K", "global K == 2", "2", "3"), CauseKind.GLOBAL, "global K", None),
    (failure("len(xs)", "len(xs) == 1", "1"), CauseKind.LENGTH, "xs", None),
    (failure("k", "k is of type int", "int", "float"), CauseKind.TYPE, "k", None),
    (failure("f", "f is the same object (function)"), CauseKind.OBJECT, "f", None),
    (failure("grad_mode", "GLOBAL_STATE changed: grad_mode", "True", "False"), CauseKind.STATE, "grad_mode", None),
    (failure("", 'Duplicate tensors found: ["x", "y"]'), CauseKind.SHARED, "", None),
    (failure("", "something torch will say one day"), CauseKind.OTHER, "", None),
]


@pytest.mark.parametrize(("failed", "kind", "variable", "dimension"), CAUSES, ids=lambda item: getattr(item, "reason", ""))
def test_causes_are_told_apart_and_explained(
    failed: GuardFailure, kind: CauseKind, variable: str, dimension: int | None
) -> None:
    cause = cause_of(failed)
    assert (cause.kind, cause.variable, cause.dimension) == (kind, variable, dimension)
    assert explain(cause).endswith(".") and "None" not in explain(cause).replace("(None before", "")
    remedies = remedies_for(cause, sizes=[4, 5, 6, 7, 12])
    assert remedies or kind is CauseKind.OTHER
    for remedy in remedies:
        assert remedy.title and remedy.proof is None
        ast.parse(remedy.code.replace("…", "..."))


def test_two_sizes_that_were_equal_by_chance() -> None:
    cause = cause_of(failure("y.size()[0]", "y.size()[0] == x.size()[1]", None, "3"))
    assert cause.others == (("x", 1),)
    first = remedies_for(cause)[0]
    assert first.kind is RemedyKind.MARK_DYNAMIC and first.variables == (("y", 0), ("x", 1))
    assert first.code == "torch._dynamo.mark_dynamic(y, 0)\ntorch._dynamo.mark_dynamic(x, 1)"


def test_of_several_failed_guards_the_new_one_counts() -> None:
    number, flag = failure("k", "k == 3", "3", "2"), failure("flag", "flag == True", "True", "False")
    assert decisive_cause([number, flag], [cause_of(number)]) == cause_of(flag)
    assert decisive_cause([number, flag], []) == cause_of(number)
    assert decisive_cause([number], [cause_of(number)]) == cause_of(number)
    assert decisive_cause([], []) is None


def test_powers_of_two() -> None:
    assert powers_of_two([0, 1, 2, 3, 8, 9]).sizes == (2, 4, 8, 16)
    assert powers_of_two([4, 8]).waste_percent == 0


def test_least_padding_is_the_least() -> None:
    sizes = [3, 5, 5, 9, 10, 31, 32, 33, 64]
    for count in (1, 2, 3, 4, 9):
        found = least_waste(sizes, count)
        assert len(found.sizes) <= count and found.sizes[-1] == 64
        assert found.waste_percent == min(_waste(chosen, sizes) for chosen in _choices(sorted(set(sizes)), count))
    assert least_waste(sizes, 9).waste_percent == 0
    assert least_waste(list(range(1, 3000)), 4).sizes[-1] == 2999


def _choices(sizes: list[int], count: int) -> list[tuple[int, ...]]:
    from itertools import combinations

    return [(*chosen, sizes[-1]) for number in range(min(count, len(sizes))) for chosen in combinations(sizes[:-1], number)]


def _waste(chosen: tuple[int, ...], sizes: list[int]) -> float:
    padded = sum(next(item for item in chosen if item >= size) for size in sizes)
    return round(100 * (padded - sum(sizes)) / padded, 2)


def test_which_buckets_are_proposed() -> None:
    assert proposals([4, 4]) == () and proposals([]) == () and proposals([4, 8]) == ()
    found = proposals(list(range(1, 65)))
    assert {item.rule for item in found} == {"powers of two", "least padding"}
    assert found[0].waste_percent <= found[1].waste_percent
    assert multiples([1, 0, 17], 16).sizes == (16, 32)
    assert Buckets((8, 16), 0.0).bucket(17) == 17


def pointwise(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def looped(x: torch.Tensor, times: int) -> torch.Tensor:
    for _ in range(times):
        x = x.sin()
    return x


def shared(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * y


def aligned(x: torch.Tensor) -> torch.Tensor:
    return x.exp() if x.shape[0] % 8 == 0 else x.cos()


def unrolled(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([row.sum() for row in x])


class Stepping(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.steps


def rows(*sizes: int) -> list[Call]:
    return [Call((torch.ones(size, 4),)) for size in sizes]


def by_kind(treatment: Treatment, kind: RemedyKind) -> Remedy:
    return next(remedy for remedy in treatment.remedies if remedy.kind is kind)


def proof(treatment: Treatment, kind: RemedyKind) -> RemedyProof:
    proven = by_kind(treatment, kind).proof
    assert proven is not None
    return proven


def test_sizes_beyond_the_limit() -> None:
    calls = rows(*range(2, 9))
    (treatment,) = find_remedies(Target(pointwise), calls, dynamic=False, limit=4)
    assert treatment.function == "pointwise" and treatment.variable == "x" and treatment.calls == (1, 2, 3, 4)
    marked = proof(treatment, RemedyKind.MARK_DYNAMIC)
    assert marked.holds and marked.compilations == (4, 1) and marked.eager_calls == (3, 0)
    assert proof(treatment, RemedyKind.DYNAMIC).compilations == (4, 1)
    padded = by_kind(treatment, RemedyKind.BUCKETS)
    assert padded.buckets is not None and padded.proof is not None
    assert padded.proof.holds and padded.proof.compilations[1] == len(padded.buckets.sizes)
    assert f"{padded.buckets.waste_percent:g} %" in padded.behavior_change
    allowed = by_kind(treatment, RemedyKind.LIMIT)
    assert allowed.code == "torch._dynamo.config.recompile_limit = 7"
    assert allowed.proof is not None and allowed.proof.holds and allowed.proof.compilations == (4, 7)
    assert treatment.best_remedy is not None and treatment.best_remedy.kind is RemedyKind.MARK_DYNAMIC


def test_the_code_of_buckets_does_what_was_proven() -> None:
    calls = [Call((torch.ones(size, 4), torch.ones(size, 4))) for size in (2, 3, 4, 5, 9, 12)]
    (treatment,) = find_remedies(Target(shared), calls, dynamic=False, trials=False)
    padded = by_kind(treatment, RemedyKind.BUCKETS)
    assert padded.variables == (("x", 0), ("y", 0)) and padded.buckets is not None
    for call in calls:
        names: dict[str, Any] = {"torch": torch, "x": call.args[0], "y": call.args[1]}
        exec(padded.code, names)
        assert names["x"].shape == names["y"].shape == (padded.buckets.bucket(len(call.args[0])), 4)


def test_a_modulus_gives_multiples() -> None:
    treatments = find_remedies(Target(aligned), rows(8, 16, 24, 12, 9))
    condition = next(item for item in treatments if "%" in item.reason)
    best = condition.best_remedy
    assert best is not None and best.buckets is not None and best.buckets.rule == "multiples of 8"
    assert best.proof is not None and best.proof.compilations[1] < best.proof.compilations[0]


def test_marks_that_the_code_does_not_allow_are_not_proven() -> None:
    (treatment,) = find_remedies(Target(unrolled), rows(2, 3, 4))
    marked = proof(treatment, RemedyKind.MARK_DYNAMIC)
    assert not marked.holds and "raises" in marked.reason
    assert not proof(treatment, RemedyKind.MAYBE_MARK_DYNAMIC).holds


def test_a_tensor_in_place_of_a_number() -> None:
    def scaled(x: torch.Tensor, factor: int) -> torch.Tensor:
        return x * factor

    (treatment,) = find_remedies(Target(scaled), [Call((torch.ones(3), value)) for value in (2, 3, 4)])
    assert proof(treatment, RemedyKind.TENSOR).holds


def test_a_tensor_in_place_of_a_count_breaks_the_graph_and_is_no_remedy() -> None:
    (treatment,) = find_remedies(Target(looped), [Call((torch.ones(3), value)) for value in (2, 3, 4)])
    assert not proof(treatment, RemedyKind.TENSOR).holds
    assert treatment.best_remedy is None


def test_a_setting_for_numbers_that_modules_hold_is_tried_and_put_back() -> None:
    model = Stepping()
    calls = [
        Call((torch.ones(3),), around=lambda value=value: temporary_attribute(model, "steps", value)) for value in (2, 3, 4, 5)
    ]  # type: ignore[misc]
    (treatment,) = find_remedies(Target(model), calls)
    setting = by_kind(treatment, RemedyKind.SETTING)
    assert setting.proof is not None and setting.proof.holds and setting.proof.compilations == (4, 2)
    assert torch._dynamo.config.allow_unspec_int_on_nn_module is False
    buffer = by_kind(treatment, RemedyKind.TENSOR)
    assert buffer.code == 'self.register_buffer("steps", torch.tensor(2), persistent=False)  # its first value'
    assert buffer.proof is None


@pytest.mark.parametrize(
    "tensors",
    [
        (torch.ones(3, 4), torch.ones(3, 4, dtype=torch.float64), torch.ones(3, 4, dtype=torch.float16)),
        (torch.ones(3, 4), torch.ones(4, 3).t()),
    ],
)
def test_inputs_of_one_form(tensors: tuple[torch.Tensor, ...]) -> None:
    (treatment,) = find_remedies(Target(pointwise), [Call((tensor,)) for tensor in tensors])
    assert proof(treatment, RemedyKind.CONVERSION).compilations == (len(tensors), 1)


def test_what_follows_a_break_has_no_cause_of_its_own() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        torch._dynamo.graph_break()
        return y.sin()

    (treatment,) = find_remedies(Target(broken), rows(3, 4), trials=False)
    assert treatment.function == "broken" and treatment.variable == "x"


def test_no_recompiles_no_treatments() -> None:
    calls = rows(3, 3)
    assert find_remedies(Target(pointwise), calls, predict(Target(pointwise), calls)) == ()
    assert remedies_from_capture(Inspection()) == ()


def test_a_capture_alone() -> None:
    torch._dynamo.reset()
    target = Target(pointwise, (torch.ones(2, 4),), further=tuple(call.inputs for call in rows(3, 5, 9, 12)))
    inspection = compile_inspect.inspect(target, backend="eager", dynamic=False)
    (treatment,) = remedies_from_capture(inspection)
    assert treatment.times == 4 and treatment.variable == "x" and treatment.calls == ()
    marked = by_kind(treatment, RemedyKind.MARK_DYNAMIC)
    assert marked.code == "torch._dynamo.mark_dynamic(x, 0)" and marked.proof is None
    buckets = by_kind(treatment, RemedyKind.BUCKETS).buckets
    assert buckets is not None and buckets.sizes[-1] == 12
    assert treatment.best_remedy is marked


def test_a_capture_with_a_limit_that_was_hit() -> None:
    inspection = Inspection(
        recompiles=(Recompile("0/1", "f", "f.py", 1, (SIZE,)),),
        limits=(LimitHit("0/2", "f", "f.py", 1, "recompile_limit", 2),),
    )
    (treatment,) = remedies_from_capture(inspection)
    assert treatment.remedies[-1].kind is RemedyKind.LIMIT


class Keywords(torch.nn.Module):
    def forward(self, **kwargs: Any) -> torch.Tensor:
        return kwargs["ids"] * 2  # type: ignore[no-any-return]


def rest(x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    return x.sum() + others[0]


def nested(*, options: dict[str, Any]) -> torch.Tensor:
    return options["inner"]["w"] * 2  # type: ignore[no-any-return]


def listed(xs: list[torch.Tensor]) -> torch.Tensor:
    return xs[1] * 2


def keyword_only(*, mask: torch.Tensor) -> torch.Tensor:
    return mask * 2


def behind_a_break(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x.sum(0), torch._dynamo.graph_break() or x[0]]) * 2  # type: ignore[func-returns-value]


ROWS = torch.ones(4, 3)
SHAPES_OF_CALLS: dict[str, tuple[Any, Any, str]] = {
    "keywords": (Keywords(), lambda size: ((), {"ids": torch.ones(size, 3)}), "kwargs['ids']"),
    "rest": (rest, lambda size: ((ROWS, torch.ones(size, 3)), {}), "others[0]"),
    "nested": (nested, lambda size: ((), {"options": {"inner": {"w": torch.ones(size, 3)}}}), "options['inner']['w']"),
    "listed": (listed, lambda size: (([ROWS, torch.ones(size, 3)],), {}), "xs[1]"),
    "keyword only": (keyword_only, lambda size: ((), {"mask": torch.ones(size, 3)}), "mask"),
    "behind a break": (behind_a_break, lambda size: ((torch.ones(4, size),), {}), "x"),
}


@pytest.mark.parametrize("name", quick_first(SHAPES_OF_CALLS, 2))
def test_remedies_name_inputs_as_the_function_does_and_every_one_parses(name: str) -> None:
    function, inputs, variable = SHAPES_OF_CALLS[name]
    calls = [Call(*inputs(size), label=f"{size} rows") for size in (4, 5, 6)]
    target = Target(function, *inputs(4))
    treatments = find_remedies(target, calls, predict(target, calls))
    remedies = [remedy for treatment in treatments for remedy in treatment.remedies]
    assert any(variable in treatment.reason for treatment in treatments)
    assert any(f"mark_dynamic({variable}, " in remedy.code and remedy.proof for remedy in remedies)
    for remedy in remedies:
        ast.parse(remedy.code)
        assert "  " not in remedy.title and "of  " not in remedy.title


def test_what_has_no_name_in_the_program_is_not_written_as_code() -> None:
    cause = cause_of(failure("value 0 at the graph break", "value 0 at the graph break == 2", "2", "3"))
    codes = [remedy.code for remedy in remedies_for(cause)]
    assert "" in codes and not any("graph break" in code for code in codes)


def test_a_number_inside_a_container_is_no_buffer_of_a_module() -> None:
    """An optimizer has no buffers: the container takes a tensor as it took the number."""
    rate = failure("self.param_groups[0]['lr']", "self.param_groups[0]['lr'] == 0.001", "0.001", "0.0001")
    (remedy,) = remedies_for(cause_of(rate))
    assert remedy.code == "self.param_groups[0]['lr'] = torch.tensor(0.001)"
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.ones(2))])
    exec(remedy.code, {"self": optimizer, "torch": torch})
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"].item() == pytest.approx(1e-4)
