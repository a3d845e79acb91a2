"""Problems whose kinks are named: they run as if they had been read, smooth parts may be anything, and verdicts stay true."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nonsmooth import Options, Problem, ProblemError, Result, State, Status, minimize
from nonsmooth.terms import Abs, Hinge, Max, Norm2, Term
from programs_with_kinks import Program

GENERATOR = torch.Generator().manual_seed(0)


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=GENERATOR, dtype=torch.float64)


ROWS, TARGET = draw(60, 20), draw(60)
SIGNAL = draw(80)
COVARIANCE = (lambda data: data.T @ data / 60)(draw(60, 20))
CURVATURES, SLOPES = (lambda m: m @ m.transpose(1, 2) / 12)(draw(10, 12, 12)), draw(10, 12)
WEIGHTS = torch.rand(20, generator=GENERATOR, dtype=torch.float64) + 5
LABELS, POINTS = draw(60).sign(), draw(60, 8)


def start(size: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def squares(x: Tensor) -> Tensor:
    return 0.5 * (ROWS @ x - TARGET).square().sum()


def identity(x: Tensor) -> Tensor:
    return x


class _Hidden(torch.autograd.Function):
    """A function with the gradient that it has, of which autograd's graph says nothing."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            value = function(inner)
        ctx.save_for_backward(torch.autograd.grad(value, inner)[0])
        return value.detach()

    @staticmethod
    def backward(ctx: Any, *weights: Tensor) -> Any:
        return weights[0] * ctx.saved_tensors[0], None


def hidden(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The same function, opaque."""
    return lambda x: _Hidden.apply(x, function)


Function = Callable[[Tensor], Tensor]

PLAIN: dict[str, tuple[Function | None, list[Term], Function, Any, dict[str, Any]]] = {
    # the smooth part, the terms, the same as one function, the start, and what else belongs to the problem
    "lasso": (squares, [Abs(identity, weight=10)], lambda x: squares(x) + 10 * x.abs().sum(), start(20), {}),
    "weights": (squares, [Abs(identity, weight=WEIGHTS)], lambda x: squares(x) + (WEIGHTS * x.abs()).sum(), start(20), {}),
    "no smooth part": (
        None,
        [Abs(lambda x: ROWS @ x - TARGET), Abs(identity)],
        lambda x: (ROWS @ x - TARGET).abs().sum() + x.abs().sum(),
        start(20),
        {},
    ),
    "total variation": (
        lambda x: 0.5 * (x - SIGNAL).square().sum(),
        [Abs(lambda x: x[1:] - x[:-1])],
        lambda x: 0.5 * (x - SIGNAL).square().sum() + (x[1:] - x[:-1]).abs().sum(),
        start(80),
        {},
    ),
    "vector machine": (
        lambda x: 0.5 * x @ x,
        [Hinge(lambda x: 1 - LABELS * (POINTS @ x), weight=2.0)],
        lambda x: 0.5 * x @ x + 2 * torch.relu(1 - LABELS * (POINTS @ x)).sum(),
        start(8),
        {},
    ),
    "minimax": (
        None,
        [Max(lambda x: 0.5 * torch.einsum("i,kij,j->k", x, CURVATURES, x) + SLOPES @ x)],
        lambda x: (0.5 * torch.einsum("i,kij,j->k", x, CURVATURES, x) + SLOPES @ x).max(),
        start(12),
        {},
    ),
    "a norm": (
        squares,
        [Norm2(lambda x: x - 1, weight=3.0), Abs(identity, weight=5)],
        lambda x: squares(x) + 3 * torch.linalg.vector_norm(x - 1) + 5 * x.abs().sum(),
        start(20),
        {},
    ),
    "an inequality": (
        lambda x: -x @ COVARIANCE @ x,
        [Abs(identity, weight=0.3)],
        lambda x: -x @ COVARIANCE @ x + 0.3 * x.abs().sum(),
        start(20),
        {"inequalities": lambda x: x @ x - 1},
    ),
    "an equality": (
        lambda x: (x - 1).square().sum(),
        [Abs(lambda x: x[:10] ** 2 - x[10:])],
        lambda x: (x - 1).square().sum() + (x[:10] ** 2 - x[10:]).abs().sum(),
        start(20),
        {"equalities": lambda x: x.sum() - 15},
    ),
    "a box": (
        squares, [Abs(identity, weight=2)], lambda x: squares(x) + 2 * x.abs().sum(), start(20), {"bounds": (-0.05, 0.1)},
    ),
    "soft bounds": (
        squares, [Abs(identity, weight=2)], lambda x: squares(x) + 2 * x.abs().sum(), start(20),
        {"bounds": (-0.05, 0.1), "soft_bounds": True},
    ),
    "arguments": (
        lambda x, rows, shift=0.0: (rows @ x - TARGET).square().sum(),
        [Abs(lambda x, rows, shift=0.0: x - shift, weight=8)],
        lambda x, rows, shift=0.0: (rows @ x - TARGET).square().sum() + 8 * (x - shift).abs().sum(),
        start(20),
        {"arguments": (ROWS,), "keywords": {"shift": 0.1}},
    ),
    "an array": (squares, [Abs(identity, weight=10)], lambda x: squares(x) + 10 * x.abs().sum(), np.zeros(20), {}),
    "a dict": (
        lambda v: squares(torch.cat([v["a"], v["b"].reshape(-1)])),
        [Abs(lambda v: v["a"], weight=9), Hinge(lambda v: v["b"], weight=torch.tensor([[3.0], [4.0]]))],
        lambda v: squares(torch.cat([v["a"], v["b"].reshape(-1)])) + 9 * v["a"].abs().sum()
        + (torch.tensor([[3.0], [4.0]]) * torch.relu(v["b"])).sum(),
        {"a": start(10), "b": torch.zeros(2, 5, dtype=torch.float64)},
        {},
    ),
    "downwards": (
        lambda x: 0.1 * (x**4).sum(),
        [Abs(lambda x: x - 1, weight=-1), Abs(lambda x: x[:1] - x[1:], weight=2), Max(identity, weight=-0.5)],
        lambda x: 0.1 * (x**4).sum() - (x - 1).abs().sum() + 2 * (x[:1] - x[1:]).abs().sum() - 0.5 * x.max(),
        start(4),
        {},
    ),
}  # fmt: skip


def both(name: str, **options: Any) -> tuple[Result, Result]:
    """The run of the explicit problem, and that of the same function."""
    smooth, terms, objective, x0, more = PLAIN[name]
    explicit = Problem(smooth=smooth, terms=terms, **more)
    return minimize(explicit, x0, **options), minimize(Problem(objective=objective, **more), x0, **options)


@pytest.mark.parametrize("options", [{}, {"scaling": "none"}, {"memory": 5}], ids=["full", "own units", "limited memory"])
@pytest.mark.parametrize("name", PLAIN)
def test_what_is_named_runs_like_what_is_read(name: str, options: dict[str, Any]) -> None:
    explicit, plain = both(name, **options)
    assert explicit.status is plain.status is Status.STATIONARY
    assert explicit.f == pytest.approx(plain.f, rel=1e-7, abs=1e-9)
    assert explicit.structure.followed == plain.structure.followed and explicit.structure.assumptions == ()
    assert explicit.structure.followed or name == "soft bounds"
    assert explicit.evaluations == pytest.approx(plain.evaluations, rel=0.3, abs=3)
    assert (explicit.structure.terms, explicit.structure.active) == (plain.structure.terms, plain.structure.active)
    assert sorted(one.kind for one in explicit.structure.sources) == sorted(one.kind for one in plain.structure.sources)
    assert explicit.certificate.reason == plain.certificate.reason and explicit.check().stationary


@pytest.mark.parametrize("name", ["lasso", "minimax", "an inequality"])
def test_a_problem_may_still_be_a_black_box(name: str) -> None:
    explicit, plain = both(name, structure="off")
    assert not explicit.structure.followed and explicit.f == pytest.approx(plain.f, abs=1e-6)
    assert explicit.status is plain.status and explicit.structure.assumptions == ()


def test_the_result_says_what_was_named_and_where() -> None:
    terms = [Abs(identity, weight=10), Hinge(lambda x: x - 1), Max(nn.Identity()), Norm2(lambda x: x + 5)]
    found = minimize(Problem(smooth=squares, terms=terms), start(20)).structure
    assert [(one.kind, one.terms) for one in found.sources] == [("abs", 20), ("relu", 20), ("max", 19), ("norm", 1)]
    line = identity.__code__.co_firstlineno
    assert found.sources[0].line == f"test_explicit_terms.py:{line}" and found.sources[2].line == ""
    assert str(found).startswith(
        f"60 visible kinks, used by the model; {found.active} active at the solution ({found.exact} exactly)\n"
        f"  abs at test_explicit_terms.py:{line}: 20, "
    )


def branching(x: Tensor) -> Tensor:
    """Smooth, although a number decides."""
    value = squares(x)
    return value if value.item() > 20.0 else 1.0 * value


OPAQUE: dict[str, tuple[Function, Function, str]] = {
    # a smooth function of which this cannot be seen, the same where it can, and what hides it
    "a function of one's own": (hidden(squares), squares, "_HiddenBackward"),
    "a number": (branching, squares, "item, which takes values out of the graph"),
    "a mask": (
        lambda x: squares(x) + (x.square() * (x > 0) + x.square() * (x <= 0)).sum(),
        lambda x: squares(x) + x.square().sum(),
        "gt, which takes values out of the graph",
    ),
    "where": (lambda x: torch.where(x > 0, x * x, x**2).sum() + squares(x), lambda x: squares(x) + x @ x, "where"),
    "sort": (lambda x: squares(x) + x.sort().values.square().sum(), lambda x: squares(x) + x @ x, "sort"),
    "eigenvalues": (
        lambda x: squares(x) + torch.linalg.eigvalsh(torch.outer(x, x) + torch.diag(torch.arange(20.0).double())).sum(),
        lambda x: squares(x) + x @ x + 190.0,
        "eigenvalues",
    ),
    "kinks that cancel": (lambda x: squares(x) + x.abs().square().sum(), lambda x: squares(x) + x @ x, "abs"),
}


@pytest.mark.parametrize("name", OPAQUE)
def test_smooth_parts_may_be_anything(name: str) -> None:
    opaque, smooth, reason = OPAQUE[name]
    terms = [Abs(identity, weight=5), Hinge(lambda x: ROWS[:20] @ x - TARGET[:20], weight=2.0)]
    result = minimize(Problem(smooth=opaque, terms=terms), start(20))
    plain = minimize(lambda x: smooth(x) + 5 * x.abs().sum() + 2 * torch.relu(ROWS[:20] @ x - TARGET[:20]).sum(), start(20))
    stepped = minimize(Problem(smooth=opaque, terms=terms), start(20), structure="off")
    assert result.status is plain.status is Status.STATIONARY and result.check().stationary
    assert result.f == pytest.approx(plain.f, rel=1e-9)
    assert result.structure.followed and result.structure.assumptions == (reason,)
    assert str(result.structure).endswith(f"  declared smooth, but not known to be: {reason}")
    assert result.structure.active == plain.structure.active > 0
    assert result.evaluations < 0.5 * stepped.evaluations
    assert result.certificate.reason == "stationary within the radius"  # not by sight: a promise proves nothing


def test_arguments_may_be_anything() -> None:
    residual = hidden(lambda x: (ROWS[0] @ x - TARGET[0]) ** 2)
    terms = [Abs(lambda x: torch.stack([residual(x) - 1, x[0]]), weight=3.0), Abs(identity)]
    result = minimize(Problem(smooth=squares, terms=terms), start(20))
    plain = minimize(
        lambda x: squares(x) + 3 * ((ROWS[0] @ x - TARGET[0]) ** 2 - 1).abs() + 3 * x[0].abs() + x.abs().sum(), start(20)
    )
    assert result.status is Status.STATIONARY and result.f == pytest.approx(plain.f, rel=1e-8)
    assert result.structure.followed and result.structure.assumptions == ("_HiddenBackward",)


def test_what_must_not_be_watched_is_followed_all_the_same() -> None:
    """Dynamo refuses to trace under a mode."""
    inner = torch.compile(lambda x: torch.sin(ROWS @ x - TARGET), fullgraph=True, backend=lambda graph, inputs: graph.forward)
    problem = Problem(smooth=lambda x: inner(x).sum() + x @ x, terms=[Abs(identity, weight=2.0)])
    result = minimize(problem, start(20), compile="never")
    plain = minimize(lambda x: torch.sin(ROWS @ x - TARGET).sum() + x @ x + 2 * x.abs().sum(), start(20))
    assert result.status is Status.STATIONARY and result.f == pytest.approx(plain.f, rel=1e-8)
    assert result.structure.followed and result.structure.assumptions == ("a function that cannot be inspected",)
    assert result.check().stationary


class Network(nn.Module):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(20, dtype=torch.float64))


@pytest.mark.parametrize("smooth", [squares, hidden(squares)], ids=["seen", "hidden"])
def test_a_module_takes_the_way_of_a_tensor(smooth: Function) -> None:
    terms: list[Term] = [Abs(lambda network: network.weight, weight=WEIGHTS)]
    module = minimize(Problem(smooth=lambda network: smooth(network.weight), terms=terms), Network())
    tensor = minimize(Problem(smooth=smooth, terms=[Abs(identity, weight=WEIGHTS)]), torch.zeros(20, dtype=torch.float64))
    assert module.success and module.f == tensor.f and torch.equal(module.x.weight.detach(), tensor.x)
    assert module.structure.active == tensor.structure.active > 0 and module.check().stationary


@pytest.mark.parametrize("weight", [10.0, 10 * torch.ones(20, dtype=torch.float64)], ids=["number", "double precision"])
def test_single_precision(weight: Any) -> None:
    def smooth(x: Tensor) -> Tensor:
        return 0.5 * (ROWS.float() @ x - TARGET.float()).square().sum()

    problem = Problem(smooth=hidden(smooth), terms=[Abs(identity, weight=weight)])
    f = problem.values(torch.ones(20))[0]
    assert f.dtype == torch.float32
    result, exact = minimize(problem, torch.zeros(20)), both("lasso")[0]
    assert result.success and result.structure.followed and result.f == pytest.approx(exact.f, rel=1e-5)


def test_many_variables() -> None:
    target = torch.linspace(-2.0, 2.0, 2500, dtype=torch.float64)
    problem = Problem(
        smooth=lambda x: 0.5 * (x - target).square().sum() + 0.1 * (x[1:] - x[:-1]).square().sum(),
        terms=[Abs(lambda x: x[::5])],
    )
    result = minimize(problem, torch.zeros(2500, dtype=torch.float64), compile="never")
    assert result.status is Status.STATIONARY and result.structure.followed
    assert (result.structure.terms, result.evaluations < 60) == (500, True)


def test_more_kinks_than_are_worth_it_are_stepped_over() -> None:
    problem = Problem(smooth=lambda x: x @ x, terms=[Abs(lambda x: draw(2000, 1) @ x[:1])])
    result = minimize(problem, start(5), max_iterations=3)
    assert result.structure.hidden == ("2000 kinks, too many for 5 variables",)


@pytest.mark.parametrize("name", ["lasso", "minimax", "an inequality"])
@pytest.mark.parametrize("hide", [False, True], ids=["seen", "hidden"])
def test_a_resumed_run_takes_the_same_steps(name: str, hide: bool, tmp_path: Path) -> None:
    smooth, terms, _, x0, more = PLAIN[name]
    smooth = (lambda x: 0.0 * x.sum()) if smooth is None else smooth
    problem = Problem(smooth=hidden(smooth) if hide else smooth, terms=terms, **more)
    path = tmp_path / "run.state"
    whole = minimize(problem, x0, callback=lambda state: state.save(path) if state.iteration == 2 else None)
    resumed = minimize(problem, x0, state=State.load(path))
    assert whole.success and whole.iterations > 2 and whole.structure.followed
    assert (resumed.iterations, resumed.evaluations, resumed.f) == (whole.iterations, whole.evaluations, whole.f)
    assert torch.equal(resumed.x, whole.x)


def test_a_result_travels() -> None:
    result = minimize(Problem(smooth=squares, terms=[Abs(identity, weight=WEIGHTS)]), start(20))
    copied = pickle.loads(pickle.dumps(result))
    assert copied.structure == result.structure and copied.check() == result.check()


@pytest.mark.slow
def test_compiled_functions_take_over_where_kinks_are_stepped_over() -> None:
    smooth, terms, _, x0, more = PLAIN["weights"]
    terms = [*terms, Hinge(lambda x: x - 1), Max(identity), Norm2(lambda x: x + 1)]
    problem = Problem(smooth=smooth, terms=terms, **more)
    result = minimize(problem, x0, structure="off", compile="always")
    assert result.compilation.evaluations > 0 and result.compilation.checks > 0
    assert result.f == pytest.approx(minimize(problem, x0).f, abs=1e-6)


def test_terms_without_kinks() -> None:
    constant = Problem(
        smooth=lambda x: (x - 1).square().sum(), terms=[Abs(lambda x: torch.ones(3)), Norm2(lambda x: torch.tensor([3, 4]))]
    )
    result = minimize(constant, start(3))
    assert result.success and result.f == pytest.approx(8.0) and result.structure.sources == ()
    none = minimize(Problem(smooth=lambda x: (x - 1).square().sum()), start(3))
    assert none.success and str(none.structure) == "no kinks in the program"
    nothing = minimize(Problem(smooth=lambda x: (x - 1).square().sum(), terms=[Abs(identity, weight=0)]), start(3))
    assert nothing.success and nothing.f == pytest.approx(0.0, abs=1e-9)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a tensor as argument": (lambda: Abs(torch.ones(2)), r"Abs must be a function of x, not tensor.*Abs\(lambda x: x\)"),
    "a word as weight": (lambda: Hinge(identity, weight="2"), "weight of Hinge must be a number or a tensor, not '2'"),
    "a truth value as weight": (lambda: Abs(identity, weight=True), "must be a number or a tensor, not True"),
    "weights of a maximum": (lambda: Max(identity, weight=torch.ones(2)), r"a number, not a tensor of shape \(2,\)"),
    "weights of a norm": (lambda: Norm2(identity, weight=torch.ones(2)), "weight of Norm2 must be a number, not a"),
    "no finite weight": (lambda: Abs(identity, weight=float("nan")), "weight of Abs must be finite, not nan"),
    "no finite weights": (lambda: Abs(identity, weight=torch.tensor([1.0, torch.inf])), "finite real numbers, not tensor"),
    "complex weights": (lambda: Abs(identity, weight=torch.tensor([1j])), "finite real numbers, not tensor"),
    "weights to be found": (lambda: Abs(identity, weight=torch.ones(2, requires_grad=True)), r"pass weight\.detach\(\)"),
    "one term": (lambda: Problem(smooth=squares, terms=Abs(identity)), r"terms must be a list.*not Abs.*wrap it in \[ \]"),
    "a function": (lambda: Problem(terms=[identity]), "must be an Abs, Hinge, Max or Norm2, not <function identity"),
    "nothing": (lambda: Problem(terms=[]), r"you can replace objective=… with smooth=… and terms=\[…\]"),
    "beside a function": (lambda: Problem(squares, terms=[Abs(identity)]), "give either one function"),
    "beside an objective": (
        lambda: Problem(objective=squares, terms=[Abs(identity)]),
        "are the whole objective; give <function squares.* as smooth=…, not objective=…",
    ),
    "smooth beside an objective": (lambda: Problem(objective=squares, smooth=squares), "are the whole objective"),
    "no function as smooth part": (lambda: Problem(smooth=3.0, terms=[Abs(identity)]), "smooth must be callable, not float"),
    "own gradients": (lambda: Problem(smooth=squares, gradients=True), "gradients=True needs one function"),
    "no tensor": (lambda: minimize(Problem(terms=[Abs(lambda x: [x])]), start(2)), "Abs must return one real tensor, not list"),
    "complex": (lambda: minimize(Problem(terms=[Max(lambda x: x + 1j)]), start(2)), "one real tensor, not torch.complex128"),
    "weights that do not fit": (
        lambda: minimize(Problem(terms=[Abs(identity, weight=torch.ones(3))]), start(2)),
        r"weight of Abs has shape \(3,\) and its argument \(2,\)",
    ),
    "more weights than numbers": (
        lambda: minimize(Problem(terms=[Abs(identity, weight=torch.ones(3, 2))]), start(2)),
        r"weight of Abs has shape \(3, 2\) and its argument \(2,\)",
    ),
    "a maximum of nothing": (lambda: minimize(Problem(terms=[Max(lambda x: x[:0])]), start(2)), "has no numbers"),
    "many numbers": (lambda: minimize(Problem(smooth=identity, terms=[Abs(identity)]), start(2)), "must have one element"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_named_at_once(name: str) -> None:
    make, message = WRONG[name]
    with pytest.raises(ProblemError, match=message):
        make()


BROKEN: dict[str, tuple[Function, list[Term], list[float]]] = {
    # what is given as smooth and is not, the terms, and a point that is not stationary although slopes of the terms cancel the
    # gradient that autograd has there
    "one side": (lambda x: -3 * torch.relu(x).sum() + 1e-3 * (x**4).sum(), [Abs(identity)], [0.0]),
    "the other side": (lambda x: -3 * torch.relu(-x).sum() + 1e-3 * (x**4).sum(), [Abs(identity)], [0.0]),
    "both sides": (lambda x: -2 * x.abs().sum() + 1e-3 * (x**4).sum(), [Abs(identity)], [0.0]),
    "beside a hinge": (lambda x: -2 * x.abs().sum() + 1e-3 * (x**4).sum(), [Hinge(identity)], [0.0, 0.0]),
    "beside a maximum": (
        lambda x: -2 * torch.relu(x).sum() + 1e-3 * (x**4).sum(),
        [Max(lambda x: torch.cat([x, -x]))],
        [0.0, 0.0],
    ),
    "one quadrant": (
        lambda v: -0.5 * v.sum() - 2 * torch.relu(torch.minimum(v[0], v[1])) + 5e-4 * v @ v,
        [Abs(identity)],
        [0.0, 0.0],
    ),
    "one of eight octants": (
        lambda v: -0.5 * v.sum() - 3 * torch.relu(v.min()) + 5e-4 * v @ v,
        [Abs(identity)],
        [0.0, 0.0, 0.0],
    ),
    "across": (lambda v: -2 * (v[0] - v[1]).abs() + 5e-3 * v @ v, [Abs(lambda v: v[0] + v[1])], [0.0, 0.0]),
    "a peak beside the kink": (
        lambda x: -0.5 * x.sum() - torch.relu(x - 0.1).sum() + 1e-3 * (x**4).sum(),
        [Abs(identity)],
        [0.1],
    ),
}
HOW: dict[str, Callable[[Function], Function]] = {"in the open": lambda function: function, "hidden": hidden}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_proves_nothing(name: str, how: str) -> None:
    kinked, terms, point = BROKEN[name]
    problem, x0 = Problem(smooth=HOW[how](kinked), terms=terms), torch.tensor(point, dtype=torch.float64)
    assert not minimize(problem, x0, max_iterations=0).check().stationary
    result, stepped = minimize(problem, x0), minimize(problem, x0, structure="off")
    assert result.status is stepped.status is Status.STATIONARY
    assert result.f < float(problem.values(x0)[0]) - 0.01
    assert result.f == pytest.approx(stepped.f, abs=1e-5) or result.f < stepped.f


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 400), marks=pytest.mark.exhaustive)], ids=["40", "400"])
def test_verdicts_of_broken_promises_are_those_of_a_black_box(seeds: range) -> None:
    """Random programs with kinks are given as smooth, and the point lies on many of these and of the terms."""
    proven = 0
    for seed in seeds:
        program, generator = Program(seed, growth=1.0), torch.Generator().manual_seed(seed)
        rows = torch.randn(3, 3, generator=generator, dtype=torch.float64)
        point, weight = program.point, 5 * float(torch.rand(1, generator=generator))
        terms = [Abs(lambda x, at=point: x - at, weight=weight), Hinge(lambda x, at=point, rows=rows: rows @ (x - at))]
        problem = Problem(smooth=hidden(program), terms=terms)
        own, box = (minimize(problem, point, structure=how, max_iterations=0).check() for how in ("auto", "off"))
        assert own == box or (not own.stationary and own.descent), seed
        proven += own.stationary
        result = minimize(problem, point + start(3), compile="never", max_evaluations=2000)
        if result.success:
            blind = copy.deepcopy(result.recheck)
            vars(blind)["_structured"] = False
            assert blind is not None and blind() == result.certificate, seed
    assert proven > 0.05 * len(seeds)


def test_options_and_callers_are_the_same() -> None:
    problem = Problem(smooth=squares, terms=[Abs(identity, weight=10)])
    expected = minimize(problem, start(20))
    for mode in (torch.inference_mode, torch.no_grad):
        with mode():
            result = minimize(problem, start(20), options=Options())
        assert (result.f, result.evaluations, result.structure) == (expected.f, expected.evaluations, expected.structure)
    with pytest.raises(ProblemError, match="fn is a Problem"):
        minimize(problem, start(20), objective=squares)
