"""Results travel: through pickle, to other processes, and as deep copies."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nonsmooth import ProblemError, Result, State, Status, minimize
from nonsmooth.hessian.device import DevicePairs
from nonsmooth.hessian.pairs import HostPairs

START = torch.tensor([-1.0, 2.0], dtype=torch.float64)


def valley(x: torch.Tensor) -> Any:
    return 8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2, {"disk": x.square().sum() - 1}, None


def run_valley(seed: int) -> Result:
    return minimize(valley, START + 0.1 * seed, bounds=(-3.0, 3.0))


def run_lambda(seed: int) -> Result:
    return minimize(lambda x: (x - seed).abs().sum(), START)


class AwkwardError(Exception):
    """Can be pickled, and then not be unpickled."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def assert_same(one: Result, other: Result) -> None:
    assert (one.status, one.f, one.iterations, one.certificate) == (other.status, other.f, other.iterations, other.certificate)
    for name in vars(one.history):
        np.testing.assert_array_equal(getattr(one.history, name), getattr(other.history, name))
    np.testing.assert_array_equal(one.state.current.jacobian, other.state.current.jacobian)
    assert str(one) == str(other)


def test_a_result_of_a_function_with_a_name_comes_back_whole() -> None:
    result = run_valley(0)
    again = pickle.loads(pickle.dumps(result))
    assert_same(result, again)
    assert torch.equal(again.x, result.x) and torch.equal(again.multipliers.lower, result.multipliers.lower)
    assert again.check() == result.check()
    assert_same(result, pickle.loads(pickle.dumps(again)))  # once more, its check still packed or not


def test_a_lambda_travels_without_its_check() -> None:
    result = run_lambda(3)
    again = pickle.loads(pickle.dumps(result))
    assert_same(result, again)
    with pytest.raises(ProblemError, match=r"could not be pickled with the result .*lambda.*top level of a module"):
        again.check()
    with pytest.raises(ProblemError, match="could not be pickled"):
        pickle.loads(pickle.dumps(again)).check()
    assert result.check().stationary  # the original still can


def test_a_process_pool_returns_results() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        named, unnamed = pool.submit(run_valley, 1), pool.submit(run_lambda, 1)
        assert named.result().check().stationary
        assert unnamed.result().success


def test_a_function_of_another_main_program_is_explained(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import pickle, sys, torch\nfrom nonsmooth import minimize\n"
        "def only_here(x): return x.abs().sum()\n"
        "pickle.dump(minimize(only_here, torch.ones(2).double()), open(sys.argv[1], 'wb'))\n"
    )
    subprocess.run([sys.executable, script, tmp_path / "result"], check=True)
    result = pickle.loads((tmp_path / "result").read_bytes())
    assert result.success
    with pytest.raises(ProblemError, match=r"could not be pickled.*only_here"):
        result.check()


def unpickled(result: Result) -> Any:
    return pickle.loads(pickle.dumps(result))


@pytest.mark.parametrize("copier", [copy.deepcopy, unpickled])
@pytest.mark.parametrize("size", [2, 150, 300, 2100], ids=["whole", "triangle", "corrections", "limited"])
def test_the_state_of_a_copy_continues_exactly(copier: Any, size: int, tmp_path: Path) -> None:
    start = torch.linspace(-1.0, 2.0, size, dtype=torch.float64)

    def chained(x: torch.Tensor) -> torch.Tensor:
        return 8 * (x[:-1] ** 2 - x[1:]).abs().sum() + (1 - x[0]) ** 2

    first = minimize(chained, start, max_iterations=8)
    copied = copier(first)
    first.state.save(tmp_path / "original")
    copied.state.save(tmp_path / "copy")
    assert torch.equal(copied.state.x, first.state.x)
    one, other = (
        minimize(chained, start, state=State.load(tmp_path / name), max_iterations=12) for name in ("original", "copy")
    )
    assert torch.equal(one.x, other.x) and one.f == other.f


def test_a_deep_copy_shares_no_memory_and_can_be_checked() -> None:
    result = run_lambda(3)
    copied = copy.deepcopy(result)
    assert copied.check() == result.check()
    x = result.x.clone()
    copied.x.fill_(7.0)
    copied.state.current.x.fill(7.0)
    copied.point.flat.fill(7.0)
    assert torch.equal(result.x, x) and torch.equal(result.state.x, x) and result.check().stationary


def test_copies_do_not_take_memory_that_belongs_to_others() -> None:
    result = run_valley(0)
    current = result.state.current
    _ = current.addresses
    copied = pickle.loads(pickle.dumps(current))
    assert copied.serial != current.serial and set(copied.addresses).isdisjoint(current.addresses)
    bundle = result.state.bundle
    lines, others = (each._linearizations.table for each in (bundle, pickle.loads(pickle.dumps(bundle))))
    assert lines is not None and others is not None
    assert others.addresses[0] == others.points.ctypes.data and set(lines.keys).isdisjoint(others.keys)


@pytest.mark.parametrize("local", [False, True])
def test_a_module_travels_or_leaves_its_parameters(local: bool) -> None:
    class Local(torch.nn.Linear):
        pass

    torch.manual_seed(0)
    model = (Local if local else torch.nn.Linear)(2, 1, dtype=torch.float64)
    result = minimize(lambda m: m.weight.abs().sum() + (m.bias - 1).abs().sum(), model)
    again = pickle.loads(pickle.dumps(result))
    weight = again.x["weight"] if local else again.x.weight
    assert torch.equal(weight, model.weight) and again.state.x["bias"].shape == (1,)
    copied = copy.deepcopy(result)
    assert copied.x is not model and copied.check().stationary and torch.equal(copied.x.weight, model.weight)


@pytest.mark.parametrize("error", [AwkwardError(1, 2), ValueError("no")])
def test_exceptions_do_not_stop_a_result(error: Exception) -> None:
    def failing(x: torch.Tensor) -> torch.Tensor:
        if x[0] != START[0]:
            raise error
        return x.square().sum()

    result = minimize(failing, START)
    assert result.status is Status.FUNCTION_ERROR
    again = pickle.loads(pickle.dumps(result))
    assert str(error) in str(again.exception) and again.f == result.f
    assert copy.deepcopy(result).exception is error


def test_pairs_on_a_device_travel_to_the_host() -> None:
    pairs = DevicePairs(3, 2, torch.device("cpu"))
    pairs.put(0, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    again = pickle.loads(pickle.dumps(pairs))
    assert isinstance(again, HostPairs)
    np.testing.assert_array_equal(again.project(np.array([1.0, 1.0]))[1], [7.0])
