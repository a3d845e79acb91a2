"""Runs that go by the kinks that can be seen: fewer evaluations, the same answers, true verdicts."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nonsmooth import OptionError, Options, Result, State, Status, minimize
from programs_with_kinks import Program

GENERATOR = torch.Generator().manual_seed(0)


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=GENERATOR, dtype=torch.float64)


ROWS, TARGET = draw(60, 20), draw(60)
SIGNAL = draw(80)
COVARIANCE = (lambda data: data.T @ data / 60)(draw(60, 20))
CURVATURES, SLOPES = (lambda m: m @ m.transpose(1, 2) / 12)(draw(10, 12, 12)), draw(10, 12)
LABELS, POINTS = draw(60).sign(), draw(60, 8)


def lasso(x: Tensor) -> Tensor:
    return 0.5 * (ROWS @ x - TARGET).square().sum() + 10 * x.abs().sum()


def robust(x: Tensor) -> Tensor:
    return (ROWS @ x - TARGET).abs().sum() + x.abs().sum()


def total_variation(x: Tensor) -> Tensor:
    return 0.5 * (x - SIGNAL).square().sum() + (x[1:] - x[:-1]).abs().sum()


def quantile(x: Tensor) -> Tensor:
    residual = TARGET - ROWS @ x
    return torch.maximum(0.9 * residual, -0.1 * residual).sum() + 0.01 * x @ x


def vector_machine(x: Tensor) -> Tensor:
    return 0.5 * x @ x + torch.relu(1 - LABELS * (POINTS @ x)).sum()


def minimax(x: Tensor) -> Tensor:
    return (0.5 * torch.einsum("i,kij,j->k", x, CURVATURES, x) + SLOPES @ x).max()


def sparse_component(x: Tensor) -> tuple[Tensor, Tensor, None]:
    return -x @ COVARIANCE @ x + 0.3 * x.abs().sum(), x @ x - 1, None


def curved(x: Tensor) -> tuple[Tensor, None, Tensor]:
    return (x[:10] ** 2 - x[10:]).abs().sum() + (x - 1).square().sum(), None, x.sum() - 15


PROBLEMS: dict[str, tuple[Callable[[Tensor], Any], int, int]] = {
    # the function, its variables, and the evaluations that are allowed
    "lasso": (lasso, 20, 30),
    "robust": (robust, 20, 25),
    "total variation": (total_variation, 80, 30),
    "quantile": (quantile, 20, 30),
    "vector machine": (vector_machine, 8, 30),
    "minimax": (minimax, 12, 40),
    "sparse component": (sparse_component, 20, 60),
    "curved": (curved, 20, 60),
}


def start(size: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("name", PROBLEMS)
def test_known_structure_takes_few_evaluations(name: str) -> None:
    function, size, most = PROBLEMS[name]
    stepped = minimize(function, start(size), structure="off", max_evaluations=3000, scaling="none")
    result = minimize(function, start(size), scaling="none")
    assert result.status is Status.STATIONARY and result.evaluations <= most
    assert 3 * result.evaluations < stepped.evaluations
    if name not in ("sparse component", "curved"):  # those have other local minima
        assert result.f <= stepped.f + 1e-5 * (1 + abs(stepped.f))
    assert result.structure.followed and result.structure.active > 0
    assert result.check().stationary


def test_the_result_says_what_was_seen_and_where() -> None:
    result = minimize(lasso, start(20))
    found = result.structure
    (source,) = found.sources
    zeros, exact = int((result.x.abs() < 1e-9).sum()), int((result.x == 0).sum())
    assert (source.kind, source.terms, source.active, source.exact) == ("abs", 20, zeros, exact) and zeros > 2
    assert source.line.startswith("test_structured_runs.py:")
    summary = f"20 visible kinks, used by the model; {zeros} active at the solution ({exact} exactly)"
    assert str(found).startswith(f"{summary}\n  abs at test_structured_runs.py:")
    assert pickle.loads(pickle.dumps(result)).structure == found


def test_what_was_not_seen_is_said() -> None:
    hidden = minimize(lambda x: x.sort().values @ torch.arange(3.0, dtype=torch.float64) + x @ x, start(3))
    assert str(hidden.structure) == "kinks detected at trial points, because not all are visible: sort"
    smooth = minimize(lambda x: x @ x, start(3))
    assert str(smooth.structure) == "no kinks in the program"
    masked = minimize(lambda x: (x * (x > 0)).sum() + x @ x, start(3))
    assert str(masked.structure).endswith("are visible: gt, which takes values out of the graph")
    off = minimize(lasso, start(20), structure="off")
    assert str(off.structure).startswith("20 visible kinks, not used by the model")
    assert not off.structure.followed


@pytest.mark.parametrize("seeds", [range(80), pytest.param(range(80, 600), marks=pytest.mark.exhaustive)], ids=["80", "600"])
def test_no_false_verdict_on_random_programs(seeds: range) -> None:
    by_kinks = 0
    for seed in seeds:
        program = Program(seed, growth=1.0)
        result = minimize(program, program.point + start(3), compile="never", max_evaluations=2000)
        if not result.success or "read from the program" not in result.certificate.reason:
            continue
        by_kinks += 1
        x = torch.as_tensor(result.x)
        for direction in torch.randn(100, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64):
            slope = float(program(x + 1e-5 * direction) - program(x)) / 1e-5
            assert slope >= -1e-3 * float(direction.norm()), (seed, result.structure)
    assert by_kinks > 0.05 * len(seeds)


HIDING: dict[str, Callable[[Tensor], Tensor]] = {
    "an index": lambda x: x[x.argmax()],
    "a branch": lambda x: x[0] if x[0] >= x[1] else x[1],
    "the other branch": lambda x: x[0] if x[0] > x[1] else x[1],
}


MASKED: dict[str, tuple[Callable[[Tensor], Tensor], list[float]]] = {
    # no stationary points, although slopes of the visible kinks cancel the gradients on one side of the hidden ones
    "a mask": (lambda x: (x.abs() - 3 * (x * (x > 0)) + 1e-3 * x**4).sum(), [0.0]),
    "a mask on the other side": (lambda x: ((-x).abs() + 3 * (x * (x < 0)) + 1e-3 * x**4).sum(), [0.0]),
    "a branch": (lambda x: (-x[0]).abs() + (0 * x[0] if float(x[0]) <= 0 else -3 * x[0]) + 1e-3 * (x**4).sum(), [0.0]),
    "where": (lambda x: (x.abs() - 3 * torch.where(x > 0, x, 0 * x)).sum() + 1e-3 * (x**4).sum(), [0.0]),
    "a filled mask": (lambda x: (x.abs() - 3 * x.masked_fill(x < 0, 0.0)).sum() + 1e-3 * (x**4).sum(), [0.0]),
    "one of two sides of each": (
        lambda v: (
            (-v[0]).abs()
            + v[1].abs()
            - 0.5 * v[0]
            - 0.5 * v[1]
            + (-2 * torch.minimum(v[0], v[1]) if float(v[0]) > 0 and float(v[1]) > 0 else 0 * v[0])
            + 5e-4 * v @ v
        ),
        [0.0, 0.0],
    ),
    "an argument that was written over": (lambda x: written_over_after_relu(x) - 1.5 * x.sum() + 1e-3 * (x**4).sum(), [1.0]),
    "bounds the wrong way round": (lambda x: ((-x).clamp(min=2.0, max=1.0) - 0.5 * x).sum() + 1e-3 * (x**4).sum(), [-2.0]),
    "in place on a part": (lambda x: relu_on_a_part(x) + 0.0 * x[0].abs(), [1.0, 0.0]),
}


def written_over_after_relu(x: Tensor) -> Tensor:
    moved = 1.0 * x
    positive = torch.relu(moved)
    moved -= 1.0
    return positive.sum() + 0 * moved.sum()


def relu_on_a_part(x: Tensor) -> Tensor:
    """Slope −2 to the right of 0 in the second variable."""
    moved = 1.0 * x
    moved[1:].relu_()
    return -3 * moved.sum() + x[1] + 1e-3 * (x**4).sum()


@pytest.mark.parametrize("name", MASKED)
def test_values_that_leave_the_graph_prove_nothing(name: str) -> None:
    function, point = MASKED[name]
    x0 = torch.tensor(point, dtype=torch.float64)
    assert not minimize(function, x0, max_iterations=0).check().stationary
    result, stepped = minimize(function, x0), minimize(function, x0, structure="off")
    assert result.status is stepped.status is Status.STATIONARY and result.f == pytest.approx(stepped.f, abs=1e-5)
    assert result.f < float(function(x0)) - 0.1


def test_a_cell_of_a_network_is_no_relu() -> None:
    """Its node is that of a relu, and what it is called with is not the argument of one."""
    torch.manual_seed(15)
    cell = nn.RNNCell(4, 4, nonlinearity="relu").double().requires_grad_(False)
    state, center, weights = torch.randn(1, 4).double(), torch.randn(4).double(), 3 * torch.rand(4).double()

    def function(x: Tensor) -> Tensor:
        return (cell(x[None], state)[0] * weights).sum() + 0.3 * ((x - center) ** 2).sum()

    result = minimize(function, torch.zeros(4, dtype=torch.float64))
    stepped = minimize(function, torch.zeros(4, dtype=torch.float64), structure="off")
    assert result.success and result.f == pytest.approx(stepped.f, abs=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x - 1).abs().sum() + (x[1:] - x[:-1]).abs().sum(),
        lambda x: (x - 1).abs().sum() + x.max() + x.square().sum(),
        lambda x: (x - 1).abs().sum() + x.reshape(1, 1).amax(1).sum(),
        lambda x: (x - 1).abs().sum() + torch.amax(x[0]),
    ],
)
def test_arguments_without_numbers(function: Callable[[Tensor], Tensor]) -> None:
    result = minimize(function, torch.tensor([2.0], dtype=torch.float64))
    assert result.status is Status.STATIONARY and result.structure.followed
    assert result.f == pytest.approx(minimize(function, torch.tensor([2.0], dtype=torch.float64), structure="off").f, abs=1e-6)


def test_far_more_kinks_than_are_worth_it() -> None:
    network = nn.Sequential(nn.Linear(20, 300), nn.ReLU(), nn.Linear(300, 1)).double()
    inputs, targets = draw(2000, 20), draw(2000, 1)
    result = minimize(lambda m: (m(inputs) - targets).square().mean(), network, max_iterations=3, compile="never")
    assert result.status is Status.ITERATION_LIMIT
    assert result.structure.hidden == ("600000 kinks, too many for 6601 variables",)


def test_callers_without_gradients() -> None:
    expected = minimize(robust, start(20))
    for mode in (torch.inference_mode, torch.no_grad):
        with mode():
            result = minimize(robust, start(20))
            assert result.structure == expected.structure
        assert (result.f, result.evaluations) == (expected.f, expected.evaluations)


def test_what_must_not_be_watched() -> None:
    """Dynamo refuses to trace under a mode: the run goes on without what would be seen."""
    inner = torch.compile(lambda x: torch.sin(ROWS @ x - TARGET), fullgraph=True, backend=lambda graph, inputs: graph.forward)
    result = minimize(lambda x: torch.relu(inner(x)).sum() + x @ x, start(20), max_iterations=5, compile="never")
    assert result.status in (Status.STATIONARY, Status.ITERATION_LIMIT) and result.structure.hidden


def test_what_is_printed_of_the_result_has_no_part_in_it() -> None:
    values = []

    def logged(x: Tensor) -> Tensor:
        f = robust(x)
        values.append(f.item())
        return f

    result = minimize(logged, start(20))
    assert result.structure.followed and result.evaluations == minimize(robust, start(20)).evaluations
    assert result.f in values


CHOSEN: dict[str, Callable[[Tensor], Tensor]] = {
    "for its sign": lambda y: y if y.item() > 0 else 0 * y,
    "instead of a constant": lambda y: y if float(y) > 0 else (y - y),
    "instead of its opposite": lambda y: y if y >= 0 else -y,
}


@pytest.mark.parametrize("name", CHOSEN)
def test_a_result_that_is_chosen_for_its_value(name: str) -> None:
    """At 0 there is a kink that is not in the graph of either choice."""

    def function(x: Tensor) -> Tensor:
        return CHOSEN[name]((x - 1).abs().sum() - 0.5)

    result, stepped = (
        minimize(function, torch.tensor([3.0]).double()),
        minimize(function, torch.tensor([3.0]).double(), structure="off"),
    )
    assert result.f == pytest.approx(stepped.f, abs=1e-6)
    assert not minimize(function, torch.tensor([1.2]).double(), max_iterations=0).check().stationary or result.f == 0.0


def test_numbers_too_large_to_be_combined() -> None:
    result = minimize(lambda x: -torch.exp((2 * x).abs()).sum() + torch.cat([x, x]).amax(), torch.ones(1, dtype=torch.float64))
    assert result.status is Status.UNBOUNDED and not result.check().stationary


@pytest.mark.parametrize("name", HIDING)
def test_a_hidden_kink_beside_a_visible_one_proves_nothing(name: str) -> None:
    """With the gradient on one side of the hidden kink, some slope of the visible one makes the gradients at 0 cancel."""

    def function(x: Tensor) -> Tensor:
        return -HIDING[name](x) + 2 * (x[0] - x[1]).abs() + 3 * x[0] - 2 * x[1] + x @ x

    result = minimize(function, torch.zeros(2, dtype=torch.float64), scaling="none")
    assert result.f == pytest.approx(-0.5) and result.status is Status.STATIONARY
    here = minimize(function, torch.zeros(2, dtype=torch.float64), scaling="none", max_iterations=0)
    assert not here.success and not here.check().stationary


def test_downward_kinks_are_not_certified_by_sight() -> None:
    """−|x| + x² at 0: a local maximum whose gradients of both sides cancel, and descent on either."""
    result = minimize(lambda x: (-x.abs() + x**2).sum(), torch.full((2,), 1e-3, dtype=torch.float64))
    assert result.status is Status.STATIONARY and result.f == pytest.approx(-0.5)


def test_kinks_that_appear_on_the_way() -> None:
    """Where a norm of many entries vanishes, its kink is not seen; the run goes on without those that are."""
    result = minimize(lambda x: x.repeat(8).norm() / 8**0.5 + (x[:1] - 1e-3).abs().sum() + 0.1 * x.abs().sum(), start(3))
    assert result.success and result.f == pytest.approx(1e-3, abs=1e-6)


@pytest.mark.parametrize("name", ["lasso", "minimax", "sparse component", "curved"])
def test_a_resumed_run_takes_the_same_steps(name: str, tmp_path: Path) -> None:
    function, size, _ = PROBLEMS[name]
    path = tmp_path / "run.state"
    whole = minimize(function, start(size), callback=lambda state: state.save(path) if state.iteration == 2 else None)
    resumed = minimize(function, start(size), state=State.load(path))
    assert whole.iterations > 2 and whole.structure.followed
    assert (resumed.iterations, resumed.evaluations, resumed.f) == (whole.iterations, whole.evaluations, whole.f)
    np.testing.assert_array_equal(np.asarray(resumed.x), np.asarray(whole.x))


FORMS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "dict": (
        lambda v: (ROWS @ torch.cat([v["a"], v["b"].reshape(-1)]) - TARGET).abs().sum(),
        {"a": torch.zeros(10, dtype=torch.float64), "b": torch.zeros(2, 5, dtype=torch.float64)},
        {},
    ),
    "array": (robust, np.zeros(20), {}),
    "single precision": (lambda x: (ROWS.float() @ x - TARGET.float()).abs().mean() + 0.1 * x @ x, torch.zeros(20), {}),
    "a box": (robust, start(20), {"bounds": (-0.05, 0.05)}),
    "bounds as constraints": (robust, start(20), {"bounds": (-0.05, 0.05), "soft_bounds": True}),
    "constraints": (lambda x: (robust(x), x.sum() - 1, ROWS[:3] @ x - 1), start(20), {}),
    "constraints with kinks": (lambda x: (robust(x), x.abs().sum() - 0.5, None), torch.zeros(20, dtype=torch.float64), {}),
    "limited memory": (robust, start(20), {"memory": 5}),
    "another solver of programs": (robust, start(20), {"qp_solver": "daqp"}),
    "compiled": (robust, start(20), {"compile": "always"}),
    "other units": (lambda x: 1e4 * robust(1e-3 * x), 1e3 * start(20), {}),
}


@pytest.mark.parametrize("name", FORMS)
def test_all_forms_of_problems(name: str) -> None:
    if name == "another solver of programs":
        pytest.importorskip("daqp")
    function, x0, options = FORMS[name]
    stepped = minimize(function, x0, structure="off", **{**options, "compile": "never"})
    result = minimize(function, x0, **options)
    assert result.success and stepped.success and result.structure.followed
    assert result.f == pytest.approx(stepped.f, rel=1e-3 if name == "single precision" else 1e-6)
    assert result.evaluations < stepped.evaluations


class Network(nn.Module):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(20, dtype=torch.float64))


def test_a_module_takes_the_way_of_a_tensor() -> None:
    module = minimize(lambda network: robust(network.weight), Network())
    tensor = minimize(robust, torch.zeros(20, dtype=torch.float64))
    assert module.success and module.f == tensor.f and torch.equal(module.x.weight.detach(), tensor.x)
    assert module.structure.active == tensor.structure.active


CHANGING: dict[str, Callable[[Tensor], Tensor]] = {
    "how many": lambda x: x[x > -0.5].abs().sum() + (x - 1).square().sum(),
    "which": lambda x: (x.abs().sum() if float(x.detach()[0]) > 0.7 else 2 * torch.relu(x).sum()) + (x - 1).square().sum(),
    "whether": lambda x: (x.sort().values if float(x.detach()[0]) > 0.7 else x).abs().sum() + (x - 0.6).square().sum(),
}


@pytest.mark.parametrize("name", CHANGING)
def test_kinks_that_change_from_point_to_point(name: str) -> None:
    function = CHANGING[name]
    result = minimize(function, start(6), max_evaluations=3000)
    stepped = minimize(function, start(6), structure="off", max_evaluations=3000)
    assert result.status not in (Status.SOLVER_ERROR, Status.FUNCTION_ERROR)
    assert result.f <= stepped.f + 1e-6


def test_own_gradients_hide_the_program() -> None:
    result = minimize(lambda x: (x.abs().sum(), x.sign()), start(3), gradients=True, max_iterations=20)
    assert result.structure.hidden == ("the function computes its own gradients",)


def test_a_box_of_many_kinks_at_once() -> None:
    """Far more kinks vanish at the solution than there are variables."""
    result = minimize(lambda x: torch.cat([ROWS @ x, ROWS @ x, x]).abs().sum(), start(20))
    assert result.success and result.f == pytest.approx(0.0, abs=1e-6)


def test_functions_are_called_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    """Looking at the program changes nothing in it: hooks, modes and randomness of its own go on."""
    calls = []

    def function(x: Tensor) -> Tensor:
        hooked = x.abs()
        hooked.register_hook(lambda gradient: calls.append(float(gradient[0])))
        with torch.no_grad():
            assert not (x * 2).requires_grad
        return hooked.sum() + 0.5 * x @ x

    result = minimize(function, start(3))
    assert result.success and calls and set(calls) == {1.0}


def test_errors_of_a_backward_are_those_of_the_function() -> None:
    def written_over(x: Tensor) -> Tensor:
        y = 2.0 * x
        kinked = y.abs()
        y.add_(1.0)
        return kinked.sum()

    for choice in ("auto", "off"):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            minimize(written_over, start(3), structure=choice)


def test_the_option() -> None:
    assert Options().structure == "auto"
    with pytest.raises(OptionError, match="structure must be 'auto' or 'off', not 'on'"):
        Options(structure="on")  # type: ignore[arg-type]


def result_of(function: Callable[[Tensor], Tensor]) -> Result:
    return minimize(function, start(20), normalize_direction=True, max_iterations=5)


def test_steps_of_another_length_are_not_structured() -> None:
    assert not result_of(robust).structure.followed
