"""Saving a run and going on with it."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nonsmooth import ProblemError, Result, State, StateError, Status, minimize
from nonsmooth.loop.state import COLUMNS
from problems import ALL


def rosenbrock(x: Tensor) -> tuple[Tensor, Tensor, None]:
    value = 8 * (x[0] ** 2 - x[1]).abs() + (1 - x[0]) ** 2
    return value, torch.stack([2**0.5 * x[0] - 1, 2 * x[1] - 1]), None


START = torch.tensor([0.3, -0.7], dtype=torch.float64)


def kinky(x: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
    """Kinks in the objective, in an inequality and in an equality."""
    f = torch.stack([(x**2).sum(), 3 * x.abs().sum() - 2, (x - 1).norm() * 2]).max()
    return f, [(x[0] - 0.3).abs() + x[1] - 1.5, 0.4 - x.max()], x.sum() - 0.9 + 0.1 * x[2].abs()


KINKY_START = torch.tensor([1.4, -2.0, 0.7, 1.1], dtype=torch.float64)


def saved_at(path: Path, iteration: int, function: Callable[..., Any], start: Any, **options: Any) -> Result:
    """A whole run that was saved at one iteration on its way."""

    def callback(state: State) -> None:
        if state.iteration == iteration:
            state.save(path)

    return minimize(function, start, callback=callback, **options)


def assert_same(whole: Result, resumed: Result) -> None:
    assert resumed.status is whole.status and resumed.success == whole.success
    assert resumed.iterations == whole.iterations
    np.testing.assert_array_equal(resumed.point.flat, whole.point.flat)
    assert resumed.f == whole.f and resumed.violation == whole.violation
    for name in COLUMNS:
        if name not in ("seconds", "evaluations"):
            np.testing.assert_array_equal(getattr(resumed.history, name), getattr(whole.history, name), err_msg=name)
    assert resumed.penalty_parameter == whole.penalty_parameter
    assert resumed.updates == whole.updates
    assert resumed.certificate == whole.certificate
    assert (resumed.best is None) == (whole.best is None)
    if resumed.best is not None and whole.best is not None:
        np.testing.assert_array_equal(resumed.best.flat, whole.best.flat)


RUNS: dict[str, tuple[Callable[..., Any], Tensor, dict[str, Any]]] = {
    "smooth": (lambda x: ((x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x) ** 2).sum(), torch.zeros(4).double(), {}),
    "kinks": (ALL["maxquad"].function, ALL["maxquad"].initial(), {}),
    "constraints": (rosenbrock, START, {}),
    "constraints with kinks": (kinky, KINKY_START, {}),
    "limited memory": (ALL["maxquad"].function, ALL["maxquad"].initial(), {"memory": 4}),
    "limited memory with constraints": (kinky, KINKY_START, {"memory": 3}),
    "fixed scaling": (rosenbrock, START, {"memory": 3, "fixed_scaling": True}),
    "few samples": (kinky, KINKY_START, {"gradient_samples": 3, "max_null_steps": 2}),
    "random directions": (rosenbrock, START, {"first_fallback": 4, "max_iterations": 40, "seed": 3}),
    "regularized": (rosenbrock, START, {"regularization_threshold": 100.0}),
    "prescaled": (lambda x: (100 * rosenbrock(x)[0], 100 * rosenbrock(x)[1], None), START, {"prescaling_threshold": 10.0}),
    "prescaled and infeasible": (
        lambda x: (10 * kinky(x)[0], [1e3 * part for part in kinky(x)[1]], 1e3 * kinky(x)[2]),
        KINKY_START,
        {"prescaling_threshold": 1.0, "steering_model": "max"},
    ),
}


SAVED = (0, 1, 4, 9)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Result, Path]]:
    """`saved("kinks")`: a whole run, and the folder it was saved to on its way, in files named by the iteration."""

    @cache
    def run(name: str) -> tuple[Result, Path]:
        function, start, options = RUNS[name]
        folder = tmp_path_factory.mktemp("saved")

        def callback(state: State) -> None:
            if state.iteration in SAVED:
                state.save(folder / str(state.iteration))

        return minimize(function, start, callback=callback, **options), folder

    return run


@pytest.mark.parametrize("at", SAVED)
@pytest.mark.parametrize("name", RUNS)
def test_a_resumed_run_takes_the_same_steps(name: str, at: int, saved: Callable[[str], tuple[Result, Path]]) -> None:
    function, start, options = RUNS[name]
    whole, folder = saved(name)
    if not (folder / str(at)).exists():
        pytest.skip(f"the run took {whole.iterations} iterations only")
    resumed = minimize(function, start, state=State.load(folder / str(at)), **options)
    assert_same(whole, resumed)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_was_saved_at_its_end_is_over(name: str, tmp_path: Path) -> None:
    function, start, options = RUNS[name]
    whole = minimize(function, start, callback=lambda state: state.save(tmp_path / "run.state"), **options)
    resumed = minimize(function, start, state=State.load(tmp_path / "run.state"), **options)
    assert whole.status is Status.STATIONARY or whole.status is Status.ITERATION_LIMIT
    assert_same(whole, resumed)


@pytest.mark.parametrize("name", ["kinks", "constraints with kinks", "limited memory"])
def test_evaluations_are_counted_over_both_parts(name: str, tmp_path: Path) -> None:
    function, start, options = RUNS[name]
    path = tmp_path / "run.state"
    whole = saved_at(path, 5, function, start, **options)
    resumed = minimize(function, start, state=State.load(path), **options)
    assert resumed.evaluations == whole.evaluations
    assert (np.diff(resumed.history.seconds) >= 0).all()


def separable(size: int) -> tuple[Callable[[Tensor], Any], Tensor]:
    """A kink in every variable, and three constraints."""
    generator = torch.Generator().manual_seed(0)
    a, b, w, start, row = torch.randn(5, size, generator=generator, dtype=torch.float64).unbind()

    def function(x: Tensor) -> Any:
        f = (w.abs() * (x - a).abs()).sum() + 0.5 * ((x - b) ** 2).sum()
        return f, torch.stack([x @ x / size - 0.5, (row @ x).abs() / size**0.5 - 0.1]), x.sum() / size**0.5

    return function, start


@pytest.mark.parametrize("size, options", [(30, {}), (30, {"memory": 6}), (240, {}), (2500, {}), (2500, {"memory": 4})])
def test_a_resumed_run_takes_the_same_steps_with_many_gradients(size: int, options: dict[str, Any], tmp_path: Path) -> None:
    """What was learnt lies where it lay, and the first step is looked for from the same guess."""
    function, start = separable(size)
    path = tmp_path / "run.state"
    options = {**options, "structure": "off"}
    whole = saved_at(path, 24, function, start, max_iterations=34, **options)
    resumed = minimize(function, start, state=State.load(path), max_iterations=34, **options)
    assert_same(whole, resumed)
    assert whole.iterations == 34 and len(whole.state.bundle) == len(resumed.state.bundle) > 12


def chain(x: Tensor) -> Tensor:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def test_a_resumed_run_takes_the_same_steps_from_every_iterate(tmp_path: Path) -> None:
    """With so many gradients products of the last program are used again, unless the matrix was updated since."""
    start, points = 0.7 * torch.cos(torch.arange(70, dtype=torch.float64)), {}

    def save(state: State) -> None:
        points[state.iteration] = state.current.x
        state.save(tmp_path / str(state.iteration))

    minimize(chain, start, callback=save, max_iterations=120, compile="never")
    resumed: dict[int, Any] = {}

    def one(state: State) -> bool:
        resumed[state.iteration] = state.current.x
        return True

    for at in range(50, max(points)):
        minimize(chain, start, callback=one, max_iterations=120, compile="never", state=State.load(tmp_path / str(at)))
        np.testing.assert_array_equal(resumed[at + 1], points[at + 1], err_msg=str(at))


def test_a_resumed_run_goes_where_the_check_found_a_better_point(tmp_path: Path) -> None:
    """The check that denies a point hands over a better one, far away, and the state is saved before the run goes there."""
    start = torch.tensor([100.0, 0.0], dtype=torch.float64)

    def steep(x: Tensor) -> Tensor:
        return x[0] ** 4 + (x[1] - 1) ** 2

    whole = minimize(steep, start, callback=lambda state: state.save(tmp_path / str(state.iteration)), compile="never")
    better = [at for at in range(whole.iterations) if "better.x" in np.load(tmp_path / str(at))]
    assert better
    for at in better:
        assert_same(whole, minimize(steep, start, compile="never", state=State.load(tmp_path / str(at))))


def test_fewer_gradients_are_kept_than_were_saved(tmp_path: Path) -> None:
    path = tmp_path / "run.state"
    saved_at(path, 6, kinky, KINKY_START)
    before = np.load(path)
    assert len(before["bundle.weights"]) > 3
    for samples in (1, 3, 500):
        assert minimize(kinky, KINKY_START, state=State.load(path), gradient_samples=samples).status.name != "SOLVER_ERROR"


@pytest.mark.parametrize("value", [-1, 3, 10**12, 0.5, np.nan])
def test_a_cut_of_no_constraint(value: float, tmp_path: Path) -> None:
    """Compiled code believes these numbers."""
    path = tmp_path / "run.npz"
    saved_at(path, 6, kinky, KINKY_START)
    arrays = contents(path)
    count = len(arrays["current.c"])
    size = len(arrays["current.x"])
    arrays |= {
        "pieces.index": np.array([count if value == 3 else value]),
        "pieces.signs": np.ones(1),
        "pieces.values": np.ones(1),
    }
    arrays |= {"pieces.weights": np.zeros(1), "pieces.points": np.zeros((1, size)), "pieces.rows": np.ones((1, size))}
    np.savez(path, **arrays)
    with pytest.raises(StateError, match=r"pieces\.index"):
        State.load(path)


def test_numbers_of_another_type(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    whole = saved_at(path, 6, kinky, KINKY_START)
    arrays = contents(path)
    np.savez(path, **{name: value.astype(np.float32) if value.dtype == np.float64 else value for name, value in arrays.items()})
    result = minimize(kinky, KINKY_START, state=State.load(path))
    assert result.status is whole.status and result.f == pytest.approx(whole.f, rel=1e-5)


@pytest.mark.parametrize("damage", ["odd", "short", "gamma", "missing"])
def test_corrections_that_do_not_fit(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    function, start = separable(240)
    saved_at(path, 5, function, start, max_iterations=6)
    arrays = contents(path)
    rows = arrays["hessian.corrections"]
    assert rows.shape == (10, 240)
    changed = {"odd": {"hessian.corrections": rows[:-1]}, "short": {"hessian.corrections": rows[:, :-1]}}
    changed |= {"gamma": {"hessian.gamma": np.ones(3)}, "missing": {}}
    kept = {key: value for key, value in arrays.items() if damage != "missing" or key != "hessian.gamma"}
    np.savez(path, **(kept | changed[damage]))
    with pytest.raises(StateError, match="damaged"):
        State.load(path)


@pytest.mark.parametrize("name", ["hessian.steps", "hessian.order", "hessian.upper", "hessian.squares"])
def test_pairs_that_do_not_fit_together(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    saved_at(path, 5, *RUNS["limited memory"][:2], memory=4)
    arrays = contents(path)
    for damaged in (
        (arrays[name][:-1], None, np.zeros_like(arrays[name])) if name == "hessian.order" else (arrays[name][:-1], None)
    ):
        changed = {key: value for key, value in arrays.items() if key != name}
        np.savez(path, **(changed if damaged is None else changed | {name: damaged}))
        with pytest.raises(StateError):
            minimize(*RUNS["limited memory"][:2], memory=4, state=State.load(path))


def test_every_iterate_can_be_the_one_that_is_saved(tmp_path: Path) -> None:
    paths: list[Path] = []

    def callback(state: State) -> None:
        paths.append(tmp_path / f"{state.iteration}")
        state.save(paths[-1])

    whole = minimize(kinky, KINKY_START, callback=callback)
    assert whole.success and len(paths) == whole.iterations + 1
    for path in paths[:-1]:
        assert_same(whole, minimize(kinky, KINKY_START, state=State.load(path)))


def test_a_run_stopped_by_a_limit_is_continued_with_a_larger_one(tmp_path: Path) -> None:
    path = tmp_path / "run.state"
    whole = minimize(kinky, KINKY_START)
    first = minimize(kinky, KINKY_START, max_iterations=3)
    first.state.save(path)
    second = minimize(kinky, KINKY_START, state=State.load(path))
    np.testing.assert_array_equal(second.point.flat, whole.point.flat)
    assert len(second.history) == whole.iterations + 1


def test_a_module_and_a_dict_are_continued(tmp_path: Path) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Parameter(torch.ones(2).double()), nn.Parameter(torch.ones(1).double())

    def value(a: Tensor, b: Tensor) -> Tensor:
        return (a - 2).abs().sum() + 10 * (a.sum() - b).abs().sum() + (b**2).sum()

    for make, function in (
        (Model, lambda m: value(m.a, m.b)),
        (lambda: {"a": torch.ones(2).double(), "b": torch.ones(1).double()}, lambda v: value(v["a"], v["b"])),
    ):
        path = tmp_path / "run.state"
        whole = saved_at(path, 3, function, make())
        assert_same(whole, minimize(function, make(), state=State.load(path)))


def test_nothing_is_left_beside_the_file(tmp_path: Path) -> None:
    saved_at(tmp_path / "run.state", 2, rosenbrock, START)
    assert [path.name for path in tmp_path.iterdir()] == ["run.state"]


def test_a_saved_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.state"
    saved_at(path, 1, rosenbrock, START)
    before = path.read_bytes()
    saved_at(path, 3, rosenbrock, START)
    assert path.read_bytes() != before
    assert State.load(path).numbers["iteration"] == 3


@pytest.fixture
def good(saved: Callable[[str], tuple[Result, Path]], tmp_path: Path) -> Path:
    path = tmp_path / "good.state"
    shutil.copyfile(saved("constraints")[1] / "4", path)
    return path


def contents(path: Path) -> dict[str, Any]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"there is no file .*none: write one with result.state.save\(path\)"):
        State.load(tmp_path / "none")


def npy(array: Any, **more: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **more)
    return buffer.getvalue()


def archive(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    return buffer.getvalue()


DAMAGED: dict[str, bytes] = {
    "empty": b"",
    "text": b"not a state at all\n" * 10,
    "a pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94\x8c\x06system\x94\x93\x94.",
    "one array": npy(np.zeros(3)),
    "an archive without arrays": archive(readme=b"hello"),
    "an archive of something else": archive(**{"numbers.npy": npy(np.zeros(3))}),
    "numbers that are text": archive(**{"numbers.npy": npy(np.frombuffer(b"[1, 2", dtype=np.uint8))}),
    "numbers that are a list": archive(**{"numbers.npy": npy(np.frombuffer(b"[1, 2]", dtype=np.uint8))}),
    "objects": archive(**{"numbers.npy": npy(np.array([{"a": 1}], dtype=object), allow_pickle=True)}),
    "zeros": bytes(1000),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_files_that_are_no_states(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.state"
    path.write_bytes(data)
    with pytest.raises(StateError):
        State.load(path)


def test_a_file_that_was_cut_short(good: Path) -> None:
    data = good.read_bytes()
    for size in range(1, len(data), max(1, len(data) // 60)):
        good.write_bytes(data[:size])
        with pytest.raises(StateError):
            State.load(good)


def test_a_file_with_a_changed_byte_is_refused_or_harmless(good: Path) -> None:
    data = bytearray(good.read_bytes())
    generator = np.random.default_rng(0)
    for position in generator.integers(0, len(data), 150).tolist():
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        good.write_bytes(bytes(damaged))
        try:
            minimize(rosenbrock, START, state=State.load(good), max_iterations=5)
        except StateError:
            continue


class Trap:
    """Were it unpickled, it would say so."""

    def __reduce__(self) -> Any:
        return (_spring, ())


sprung: list[bool] = []


def _spring() -> None:
    sprung.append(True)


def test_pickles_in_a_file_are_not_read(good: Path) -> None:
    arrays = contents(good)
    for name in ("current.x", "numbers", "bundle.points", "extra"):
        changed = {**arrays, name: np.array([Trap()], dtype=object)}
        np.savez(good.with_suffix(".npz"), **changed)
        with pytest.raises(StateError):
            minimize(rosenbrock, START, state=State.load(good.with_suffix(".npz")))
    assert sprung == []


@pytest.mark.parametrize("name", ["current.x", "history", "bundle.points", "bundle.slopes", "hessian.matrix", "pieces.rows"])
def test_a_file_that_lacks_something(good: Path, name: str) -> None:
    arrays = contents(good)
    del arrays[name]
    np.savez(good.with_suffix(".npz"), **arrays)
    with pytest.raises(StateError):
        minimize(rosenbrock, START, state=State.load(good.with_suffix(".npz")))


@pytest.mark.parametrize(
    "name", ["weight", "seconds", "evaluations", "generator", "updates", "hessian", "iteration", "near_kink"]
)
def test_a_file_that_lacks_a_number(good: Path, name: str) -> None:
    arrays = contents(good)
    numbers = json.loads(arrays["numbers"].tobytes())
    del numbers[name]
    arrays["numbers"] = np.frombuffer(json.dumps(numbers).encode(), dtype=np.uint8)
    np.savez(good.with_suffix(".npz"), **arrays)
    with pytest.raises(StateError):
        minimize(rosenbrock, START, state=State.load(good.with_suffix(".npz")))


@pytest.mark.parametrize("name", ["bundle.points", "hessian.matrix", "current.jacobian", "current.gradient", "history"])
def test_a_file_whose_arrays_do_not_fit_together(good: Path, name: str) -> None:
    arrays = contents(good)
    arrays[name] = np.zeros((3, 5))
    np.savez(good.with_suffix(".npz"), **arrays)
    with pytest.raises(StateError):
        minimize(rosenbrock, START, state=State.load(good.with_suffix(".npz")))


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("multipliers", np.zeros((2, 0))),
        ("multipliers", np.zeros(5)),
        ("multipliers", np.array(1.0)),
        ("multipliers", np.ones(2) * 1j),
        ("current.x", np.zeros((2, 0))),
        ("current.c", np.zeros((2, 1))),
        ("incumbents.best.x", np.zeros(3)),
        ("incumbents.most_feasible.c", np.zeros((2, 0))),
    ],
)
def test_arrays_of_other_shapes_are_refused(good: Path, name: str, damaged: np.ndarray) -> None:
    """Compiled code reads as many numbers as there should be."""
    arrays = contents(good)
    assert name in arrays
    np.savez(good.with_suffix(".npz"), **(arrays | {name: damaged}))
    with pytest.raises(StateError, match=f"damaged: '{name}' should be numbers"):
        State.load(good.with_suffix(".npz"))


def test_another_format_is_named(good: Path) -> None:
    arrays = contents(good)
    numbers = json.loads(arrays["numbers"].tobytes()) | {"format": 99}
    arrays["numbers"] = np.frombuffer(json.dumps(numbers).encode(), dtype=np.uint8)
    np.savez(good.with_suffix(".npz"), **arrays)
    with pytest.raises(StateError, match=r"written by another version of nonsmooth \(format 99\)"):
        State.load(good.with_suffix(".npz"))


def test_a_state_of_another_problem(good: Path) -> None:
    with pytest.raises(StateError, match="the saved state has 2 variables and 2 constraints, this problem has 3 and 0"):
        minimize(lambda x: (x**2).sum(), torch.ones(3).double(), state=State.load(good))
    with pytest.raises(StateError, match="the saved state has 2 variables and 2 constraints, this problem has 2 and 1"):
        minimize(lambda x: ((x**2).sum(), x[0], None), START, state=State.load(good))


def test_a_state_with_another_memory(good: Path) -> None:
    with pytest.raises(
        StateError, match="the saved state uses FullMemory and these options LimitedMemory; use the same memory"
    ):
        minimize(rosenbrock, START, state=State.load(good), memory=5)


def test_a_state_must_be_loaded() -> None:
    with pytest.raises(ProblemError, match=r"state must come from State\.load"):
        minimize(rosenbrock, START, state="run.state")  # type: ignore[arg-type]


def test_what_a_state_shows() -> None:
    seen: list[tuple[Any, ...]] = []

    def callback(state: State) -> None:
        seen.append((state.iteration, state.x.clone(), state.f, state.violation, state.penalty_parameter, state.stationarity))

    result = minimize(rosenbrock, START, callback=callback)
    assert [row[0] for row in seen] == list(range(result.iterations + 1))
    np.testing.assert_array_equal([row[2] for row in seen], result.history.f)
    np.testing.assert_array_equal([row[3] for row in seen], result.history.violation)
    np.testing.assert_array_equal([row[4] for row in seen], result.history.penalty_parameter)
    np.testing.assert_array_equal([row[5] for row in seen], result.history.stationarity)
    assert torch.equal(seen[0][1], START)
    for _, x, f, *_ in seen:
        assert float(rosenbrock(x)[0]) == f


def test_a_resumed_run_with_other_units_still_finds_the_most_feasible_point(tmp_path: Path) -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor, None]:
        inequalities = torch.stack([1e4 * (torch.cosh(x[0] - 1) - 1 + 0.01), 1e4 * (x[1] ** 2 + 0.001)])
        return (x**2).sum(), inequalities, None  # which cannot be satisfied

    start, path = torch.tensor([3.0, 2.0], dtype=torch.float64), tmp_path / "run.state"
    options: dict[str, Any] = {"compile": "never", "prescaling_threshold": 1.0, "max_iterations": 40}
    whole = minimize(function, start, callback=lambda s: s.save(path) if s.iteration == 5 else None, **options)
    resumed = minimize(function, start, state=State.load(path), **options)
    assert resumed.most_feasible.violation == whole.most_feasible.violation == pytest.approx(100.0, rel=0.02)
