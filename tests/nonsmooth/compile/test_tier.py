"""Compiled functions: when they take over, and that no answer rests on them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from black_box import minimize
from nonsmooth.compile import CompileOutcome, Tier, reuse, tier
from nonsmooth.compile.cache_index import add_entry, has_entry
from nonsmooth.compile.compiled import Compiled, Packages
from nonsmooth.compile.flat import flat_form
from nonsmooth.errors import OptionError
from nonsmooth.evaluate import Evaluator
from nonsmooth.problem import Problem
from nonsmooth.report.clock import Clock
from nonsmooth.result import Result
from nonsmooth.variables import Variables

torch.manual_seed(0)
DATA = torch.randn(6, 40, dtype=torch.float64)
START = torch.nn.functional.normalize(torch.randn(6, dtype=torch.float64), dim=0)
MATRIX = (lambda a: a + a.T)(torch.randn(8, 8, dtype=torch.float64))


def dictionary(q: Tensor) -> Any:
    return (q @ DATA).abs().sum() / 40, None, q @ q - 1


def trace(variables: dict[str, Tensor]) -> Any:
    v = variables["v"]
    return -torch.trace(v.T @ MATRIX @ v), {"a": v[0, 0] - 2, "b": -v[1] - 3}, v.T @ v - torch.eye(3, dtype=torch.float64)


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPILE_INSPECT_CACHE", str(tmp_path))
    for memory in (tier._spent, tier._pending, tier._refused):
        memory.clear()
    for function in (dictionary, trace):
        vars(function).pop(reuse.NAME, None)


def _look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOOKUP_AFTER_SECONDS", "LOOKUP_AFTER_SECONDS_WITH_IMPORT"):
        monkeypatch.setattr(tier, name, 0.0)


def eagerly(packages: Packages) -> Compiled:
    """The compiled form with functions that are not compiled, behind the real guard."""
    captured = packages.captured
    flats = {"rows": lambda inputs: captured.rows(*inputs), "penalty": lambda inputs: captured.penalty(*inputs)}
    return packages._assemble({name: flats[name] for name in packages._inputs})


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if packages were kept that run the flat functions eagerly: all but the compiler is real."""

    def kept(self: Packages) -> Compiled:
        self.from_disk = True
        return eagerly(self)

    monkeypatch.setattr(Packages, "load_saved", kept)
    monkeypatch.setattr(tier, "has_entry", lambda *sizes: True)
    _look_at_once(monkeypatch)
    # What runs eagerly is not faster.
    monkeypatch.setattr(Tier, "_prove", _without_asking_for_speed(Tier._prove))
    yield


def _without_asking_for_speed(prove: Callable[..., bool]) -> Callable[..., bool]:
    def proven(self: Tier, compiled: Compiled, *, proven: bool = False) -> bool:
        prove(self, compiled, proven=proven)
        return True

    return proven


@pytest.mark.parametrize(("function", "start"), [(dictionary, START), (trace, {"v": torch.randn(8, 3, dtype=torch.float64)})])
def test_flat_functions_give_values_and_gradients(function: Callable[..., Any], start: Any) -> None:
    evaluator = Evaluator(Problem(function), Variables(start))
    trial = evaluator(evaluator.variables.start)
    assert evaluator.forms is not None
    form = flat_form(evaluator.problem, evaluator.variables, evaluator.forms)
    compiled = eagerly(Packages(form, evaluator.variables.size, trial.x))
    assert form.has_penalty == (function is trace)
    f, c, derivatives = compiled(trial.x, evaluator.costs)
    assert f == pytest.approx(trial.f, rel=1e-14)
    np.testing.assert_allclose(c, trial.c, rtol=1e-13)
    gradient, jacobian = derivatives.full()
    np.testing.assert_allclose(gradient, trial.gradient, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(jacobian, trial.jacobian, rtol=1e-12, atol=1e-13)
    # The second time the sum is the expected one, and comes with the values.
    for weight in (2.5, 2.5, 0.3):
        f, c, derivatives = compiled(trial.x, evaluator.costs)
        found = derivatives.combination(1.0, weight * trial.signs())
        np.testing.assert_allclose(found, trial.penalty_gradient(weight), rtol=1e-12, atol=1e-12)


def test_arguments_with_tensors_and_numbers() -> None:
    def scaled(x: Tensor, data: Tensor, *, factor: float) -> Tensor:
        return factor * (data @ x).abs().sum()

    problem = Problem(scaled, arguments=(DATA.T.float(),), keywords={"factor": 3.0})
    evaluator = Evaluator(problem, Variables(START.float()))
    trial = evaluator(evaluator.variables.start)
    assert evaluator.forms is not None
    form = flat_form(problem, evaluator.variables, evaluator.forms)
    assert [tensor.shape for tensor in form.tensors] == [(40, 6)]
    out = eagerly(Packages(form, evaluator.variables.size, trial.x)).rows(trial.x)
    assert out[0] == pytest.approx(trial.f, rel=1e-6)
    np.testing.assert_allclose(out[1:], trial.gradient, rtol=1e-5)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("function", "start"), [(dictionary, START), (trace, {"v": torch.randn(8, 3, dtype=torch.float64)})])
def test_runs_end_at_the_same_point(function: Callable[..., Any], start: Any) -> None:
    plain = minimize(function, start, compile="never")
    result = minimize(function, start)
    assert plain.compilation.outcome is CompileOutcome.NOT_WANTED
    assert result.compilation.outcome is CompileOutcome.USED and result.compilation.evaluations > 10
    assert result.compilation.checks > 2 and result.compilation.from_disk
    assert result.success and result.f == pytest.approx(plain.f, abs=1e-8)
    assert result.check().stationary
    assert "compiled functions were used" in str(result)


def test_short_runs_stay_eager() -> None:
    result = minimize(dictionary, START)
    assert result.compilation.outcome is CompileOutcome.NOT_WORTH_IT and result.time["build"] < 1.0


@pytest.mark.usefixtures("at_once")
def test_scaled_problems_and_bounds() -> None:
    plain = minimize(dictionary, START, bounds=(-0.9, 0.9), prescaling_threshold=0.01, compile="never")
    result = minimize(dictionary, START, bounds=(-0.9, 0.9), prescaling_threshold=0.01)
    assert result.compilation.outcome is CompileOutcome.USED
    assert result.success and result.f == pytest.approx(plain.f, abs=1e-7)


@pytest.mark.usefixtures("at_once")
def test_results_that_go_wrong_are_noticed_and_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """From some point on the compiled functions lie: the run goes back and ends where it would have ended."""
    honest, calls = Compiled.__call__, 0

    def lying(self: Compiled, x: Any, costs: Any) -> Any:
        nonlocal calls
        calls += 1
        f, c, derivatives = honest(self, x, costs)
        return (f, c, derivatives) if calls < 25 else (f - 0.5, c, derivatives)

    monkeypatch.setattr(Compiled, "__call__", lying)
    result = minimize(dictionary, START)
    assert (
        result.compilation.outcome is CompileOutcome.DISAGREED
        and "the objective differed by 5.0e-01" in result.compilation.reason
    )
    assert result.success and result.check().stationary
    x = result.x
    assert result.f == pytest.approx(float(dictionary(x)[0]), rel=1e-12)
    assert result.best is not None and result.best.f >= result.f - 1e-6


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("position", [15, 16, 17, 18, 20, 30])
def test_one_lie_is_not_kept_as_the_best_point(position: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single wrong value may pass unnoticed for long: in the end every point handed out is looked at again."""
    honest, calls = Compiled.__call__, 0

    def lying(self: Compiled, x: Any, costs: Any) -> Any:
        nonlocal calls
        calls += 1
        f, c, derivatives = honest(self, x, costs)
        return f - 100.0 * (calls == position), c, derivatives

    monkeypatch.setattr(Compiled, "__call__", lying)
    result = minimize(dictionary, START, max_iterations=8)
    assert calls >= position
    for point in (result.point, result.best, result.final, result.most_feasible):
        if point is not None:
            assert point.f == pytest.approx(float(dictionary(point.x)[0]), rel=1e-9)


@pytest.mark.usefixtures("at_once")
def test_the_user_stops_the_run_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, calls = Compiled.__call__, 0

    def lying(self: Compiled, x: Any, costs: Any) -> Any:
        nonlocal calls
        calls += 1
        f, c, derivatives = honest(self, x, costs)
        return f - 0.5 * (calls > 12), c, derivatives

    monkeypatch.setattr(Compiled, "__call__", lying)
    result = minimize(dictionary, START, callback=lambda state: state.iteration >= 6)
    assert result.status.name == "USER_STOP" and result.iterations == 6 and result.f > 0


@pytest.mark.usefixtures("at_once")
def test_a_target_is_reached_by_the_functions_themselves() -> None:
    result = minimize(dictionary, START, target_value=0.9 * float(dictionary(START)[0]))
    assert result.status.name == "TARGET_REACHED" and result.success


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {}


def _change(function: Callable[..., Any]) -> Callable[..., Any]:
    CHANGES[function.__name__] = function()
    return function


GLOBAL_FACTOR = 1.0


@_change
def a_closure() -> Any:
    factor = 1.0

    def change(value: float) -> None:
        nonlocal factor
        factor = value

    return (lambda q: (factor * (q @ DATA).abs().sum(), None, None)), change


@_change
def a_global() -> Any:
    def change(value: float) -> None:
        globals()["GLOBAL_FACTOR"] = value

    return (lambda q: (GLOBAL_FACTOR * (q @ DATA).abs().sum(), None, None)), change


@_change
def an_attribute() -> Any:
    class Data:
        _factor = 1.0

        def __call__(self, q: Tensor) -> Any:
            return self._factor * (q @ DATA).abs().sum(), None, None

    data = Data()
    return data, lambda value: setattr(data, "_factor", value)


@_change
def a_helper() -> Any:
    table = {"scale": [1.0]}

    def helper(q: Tensor) -> Tensor:
        return (q @ DATA).abs().sum() * table["scale"][0]

    return (lambda q: (helper(q), None, None)), lambda value: table["scale"].__setitem__(0, value)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_during_a_run_or_between_runs_is_noticed(name: str) -> None:
    function, change = CHANGES[name]
    try:
        change(1.0)
        first = minimize(function, START, max_iterations=6, scaling="none")
        assert first.compilation.outcome is CompileOutcome.USED

        def callback(state: Any) -> None:
            if state.iteration == 4:
                change(3.0)

        during = minimize(function, START, max_iterations=8, scaling="none", callback=callback)
        assert during.compilation.outcome is CompileOutcome.CHANGED
        after = minimize(function, START, max_iterations=6, scaling="none")
        assert after.f == pytest.approx(3 * first.f, rel=1e-9)
    finally:
        change(1.0)


@pytest.mark.usefixtures("at_once")
def test_a_function_with_state_of_its_own_is_refused() -> None:
    class Hidden:
        factor = 1.0

        def __call__(self, q: Tensor) -> Any:
            self.factor = 2.0 if self.factor == 1.0 else 1.0  # another function at every call
            return self.factor * (q @ DATA).abs().sum(), None, None

    result = minimize(Hidden(), START, max_iterations=5)
    assert result.compilation.outcome is CompileOutcome.REFUSED
    assert result.compilation.reason.startswith("it has side effects: it sets factor")
    assert result.compilation.evaluations == 0


@pytest.mark.parametrize(
    ("function", "start", "choices", "reason"),
    [
        (lambda model: model.weight.square().sum(), torch.nn.Linear(2, 1).double(), {}, "a module"),
        (lambda x: (x.square().sum(), 2 * x), START, {"gradients": True}, "their own gradients"),
    ],
)
def test_what_is_not_compiled(function: Callable[..., Any], start: Any, choices: dict[str, Any], reason: str) -> None:
    result = minimize(function, start, **choices)
    assert result.success
    assert result.compilation.outcome is CompileOutcome.REFUSED and reason in result.compilation.reason


def test_a_wrong_choice_is_refused() -> None:
    with pytest.raises(OptionError, match="compile"):
        minimize(dictionary, START, compile="sometimes")


def test_a_function_that_branches_on_values_is_refused_by_the_compiler() -> None:
    def branching(x: Tensor) -> Tensor:
        return x.square().sum() if x[0] > 0.3 else (x - 0.5).abs().sum()

    result = minimize(branching, START, compile="always")
    assert result.compilation.outcome is CompileOutcome.REFUSED, result.compilation
    assert result.time["build"] > 0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Result]]:
    """One run with real packages, and where they are kept."""
    place = tmp_path_factory.mktemp("packages")
    patch = pytest.MonkeyPatch()
    patch.setenv("COMPILE_INSPECT_CACHE", str(place))
    result = minimize(dictionary, START, compile="always")
    yield place, result
    patch.undo()


@pytest.mark.exhaustive
def test_packages_are_built_used_and_kept(built: tuple[Path, Result], monkeypatch: pytest.MonkeyPatch) -> None:
    place, first = built
    assert first.compilation.outcome is CompileOutcome.USED and not first.compilation.from_disk, first.compilation
    assert first.success and first.compilation.build_seconds > 1
    monkeypatch.setenv("COMPILE_INSPECT_CACHE", str(place))
    _look_at_once(monkeypatch)
    again = minimize(dictionary, START)
    assert again.compilation.outcome is CompileOutcome.USED and again.compilation.from_disk, again.compilation
    assert again.success and again.f == pytest.approx(first.f, abs=1e-9)


@pytest.mark.exhaustive
def test_what_the_function_reads_changes(built: tuple[Path, Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """A closure tensor that is replaced is noticed at the next call; one that changes in place is read as it is."""
    place, _ = built
    monkeypatch.setenv("COMPILE_INSPECT_CACHE", str(place))
    _look_at_once(monkeypatch)
    before = DATA.clone()
    seen = 0

    def replace(state: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == 5:
            globals()["DATA"] = before + 0.0

    try:
        result = minimize(dictionary, START, callback=replace)
    finally:
        globals()["DATA"] = before
    assert result.compilation.outcome is CompileOutcome.CHANGED and "another tensor" in result.compilation.reason
    assert result.success and result.check().stationary


@pytest.mark.exhaustive
def test_a_damaged_package_is_dropped(built: tuple[Path, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(built[0], copy)
    for package in copy.rglob("package.pt2"):
        package.write_bytes(package.read_bytes()[:1000])
    monkeypatch.setenv("COMPILE_INSPECT_CACHE", str(copy))
    _look_at_once(monkeypatch)
    result = minimize(dictionary, START)
    assert result.success and result.compilation.outcome is CompileOutcome.NOT_WORTH_IT
    assert not list(copy.rglob("package.pt2"))


def test_the_report_says_when_the_run_was_over_first(monkeypatch: pytest.MonkeyPatch) -> None:
    _look_at_once(monkeypatch)
    monkeypatch.setattr(tier, "BUILD_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(tier, "BUILD_AFTER_SECONDS_ON_ONE_CORE", 0.0)
    result = minimize(dictionary, START, max_iterations=3)
    assert result.compilation.outcome is CompileOutcome.NOT_READY
    (packages,) = tier._pending.values()
    packages.stop()


@pytest.mark.exhaustive
def test_runs_that_follow_each_other_share_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tier, "BUILD_AFTER_SECONDS", 0.05)
    monkeypatch.setattr(tier, "BUILD_AFTER_SECONDS_ON_ONE_CORE", 0.05)
    outcomes = [minimize(dictionary, START).compilation.outcome for _ in range(3)]
    assert outcomes[-1] in (CompileOutcome.NOT_READY, CompileOutcome.USED)
    for packages in tier._pending.values():
        packages.wait()
    result = minimize(dictionary, START)
    assert result.compilation.outcome is CompileOutcome.USED and result.compilation.from_disk, result.compilation
    assert not tier._pending


def test_a_tier_without_an_evaluator_that_suits_it() -> None:
    evaluator = Evaluator(Problem(lambda x: x.sum()), Variables(torch.nn.Linear(1, 1).double()), Clock())
    assert Tier(evaluator, always=False)(np.zeros(2)) is None


def test_what_was_refused_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Packages, **how: Any) -> None:
        raise ValueError("not today")

    monkeypatch.setattr(Packages, "begin", refuse)
    _look_at_once(monkeypatch)
    monkeypatch.setattr(tier, "_build_after_seconds", lambda: 0.0)
    assert minimize(dictionary, START).compilation.reason == "ValueError: not today"
    monkeypatch.setattr(Packages, "begin", lambda self, **how: pytest.fail("it was tried again"))
    result = minimize(dictionary, START)
    assert result.compilation.outcome is CompileOutcome.REFUSED and result.success


@pytest.mark.usefixtures("at_once")
def test_the_next_run_of_the_same_function_begins_with_them() -> None:
    factor = torch.ones(1, dtype=torch.float64)

    def function(q: Tensor) -> Any:
        return factor[0] * (q @ DATA).abs().sum() / 40, None, q @ q - 1

    first = minimize(function, START)
    assert first.compilation.outcome is CompileOutcome.USED
    second = minimize(function, START)
    assert second.compilation.outcome is CompileOutcome.USED
    assert first.compilation.from_disk and not second.compilation.from_disk
    assert second.success and second.f == pytest.approx(first.f, abs=1e-9)
    factor = 2.0 * factor  # another tensor: what was compiled is not for it
    third = minimize(function, START)
    assert third.success and third.f == pytest.approx(float(2.0 * (third.x @ DATA).abs().sum() / 40), abs=1e-12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Packages, "load_saved", lambda self: None)
        patch.setattr(tier, "_build_after_seconds", lambda: float("inf"))
        other = minimize(lambda q: function(q), START)  # another function, though it calls the same
    assert other.compilation.outcome is CompileOutcome.NOT_WORTH_IT


def test_nothing_is_looked_for_where_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _look_at_once(monkeypatch)
    monkeypatch.setattr(Packages, "load_saved", lambda self: pytest.fail("it was looked for"))
    monkeypatch.setattr(tier, "_build_after_seconds", lambda: float("inf"))
    monkeypatch.setenv("COMPILE_INSPECT_CACHE", str(tmp_path))
    for name in ("kernels", "0123"):  # of other programs
        (tmp_path / name).mkdir()
    add_entry(len(START) + 1, 1, 1)
    add_entry(len(START), 1, 0)
    assert minimize(dictionary, START).success
    add_entry(len(START), 1, 1)
    looked: list[Packages] = []
    monkeypatch.setattr(Packages, "load_saved", lambda self: looked.append(self))
    assert minimize(dictionary, START).success
    assert len(looked) == 1


@pytest.mark.usefixtures("at_once")
def test_a_function_that_was_compiled_can_still_be_sent_elsewhere() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    scale = 2.0

    def function(q: Tensor) -> Any:
        return scale * (q - 0.3).abs().sum(), None, None

    assert minimize(function, START).compilation.outcome is CompileOutcome.USED
    assert reuse.NAME in vars(function)
    there = cloudpickle.loads(cloudpickle.dumps(function))
    assert vars(there)[reuse.NAME] is None
    assert minimize(there, START).success and copy.deepcopy(function) is function


@pytest.mark.usefixtures("at_once")
def test_a_certificate_is_drafted_by_compiled_functions_and_proven_by_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search for gradients takes more evaluations than the proof that those it found are enough."""
    eagerly, calls = Evaluator._evaluate, 0

    def counted(self: Evaluator, x: Any) -> Any:
        nonlocal calls
        calls += 1
        return eagerly(self, x)

    monkeypatch.setattr(Evaluator, "_evaluate", counted)
    plain = minimize(dictionary, START, compile="never")
    without, calls = calls, 0
    result = minimize(dictionary, START)
    assert plain.success and result.success and result.certificate.radius > 0
    assert result.compilation.outcome is CompileOutcome.USED
    # Those before it took over, the proof of its being right, and one proof that the point is stationary.
    assert calls < 0.6 * without
    assert calls >= result.certificate.samples


@pytest.mark.usefixtures("at_once")
def test_a_draft_that_is_wrong_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """From some point on all compiled gradients are zero, as they are at a stationary point, while the values are right."""
    from nonsmooth.evaluate.differentiation import ExplicitDerivatives

    honest, calls = Compiled.__call__, 0

    def lying(self: Compiled, x: Any, costs: Any) -> Any:
        nonlocal calls
        calls += 1
        f, c, derivatives = honest(self, x, costs)
        if calls < 20:
            return f, c, derivatives
        return f, c, ExplicitDerivatives(np.zeros(len(x)), np.zeros((len(c), len(x))), costs)

    monkeypatch.setattr(Compiled, "__call__", lying)
    result = minimize(dictionary, START)
    assert calls > 20
    assert result.success and result.check().stationary
    assert result.f == pytest.approx(minimize(dictionary, START, compile="never").f, abs=1e-4)


def test_what_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPILE_INSPECT_CACHE", str(tmp_path / "cache"))
    assert not has_entry(3, 2, 1)
    add_entry(3, 2, 1)
    assert has_entry(3, 2, 1) and not has_entry(3, 2, 0) and not has_entry(32, 1, 0)
    monkeypatch.setenv("COMPILE_INSPECT_CACHE", str(tmp_path / "cache" / "of-the-solver" / "3-2-1"))  # a file
    add_entry(3, 2, 1)
    assert not has_entry(3, 2, 1)


def positive_definite(x: Tensor) -> Any:
    """log det is defined where Cholesky's factor exists; elsewhere torch raises."""
    matrix = torch.diag(x[:3]) + x[3] * (torch.ones(3, 3, dtype=torch.float64) - torch.eye(3, dtype=torch.float64))
    return 10 * x[:3].sum() + x[3].abs() - 2 * torch.linalg.cholesky(matrix).diagonal().log().sum(), None, None


@pytest.mark.usefixtures("at_once")
def test_exceptions_are_skipped_with_compiled_functions_in_use() -> None:
    start = torch.tensor([2.0, 4.0, 3.0, 0.01], dtype=torch.float64)
    result = minimize(positive_definite, start, on_error="skip")
    assert result.compilation.outcome is CompileOutcome.USED and result.compilation.evaluations
    assert result.skipped_errors.count and isinstance(result.skipped_errors.last, torch.linalg.LinAlgError)
    assert result.success and result.f == pytest.approx(3 + 3 * np.log(10))


@pytest.mark.usefixtures("at_once")
def test_compiled_functions_that_are_finite_where_the_functions_raise_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    original, threshold = Evaluator._with_autograd, 0.5

    def raising(self: Evaluator, x: Any, argument: Any, leaves: Any) -> Any:
        if self.forms is not None and float(x[0]) < threshold:
            raise ArithmeticError("only the functions themselves see this")
        return original(self, x, argument, leaves)

    monkeypatch.setattr(Evaluator, "_with_autograd", raising)
    result = minimize(lambda x: (x - torch.tensor([0.0, 1.0])).abs().sum(), torch.tensor([2.0, 3.0]).double(), on_error="skip")
    assert result.compilation.outcome is CompileOutcome.DISAGREED
    assert float(result.x[0]) >= threshold
