"""The names, forms and types of PyGRANSO's calls and results."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import nonsmooth
from nonsmooth.errors import ProblemError
from nonsmooth.pygranso import pygranso, pygransoStruct
from nonsmooth.pygranso.private.getNvar import getNvarTorch
from nonsmooth.pygranso.private.tensor2vec import getCiGradVec

X1X2 = {"x1": [1], "x2": [1]}
START = torch.tensor([[0.3], [-0.7]], dtype=torch.float64)
OPTIMUM = 0.08578643762690492


def rosenbrock(X: Any) -> list[Any]:  # noqa: N803
    ci = pygransoStruct()
    ci.c1 = 2**0.5 * X.x1 - 1
    ci.c2 = 2 * X.x2 - 1
    return [(8 * abs(X.x1**2 - X.x2) + (1 - X.x1) ** 2).squeeze(), ci, None]


def quiet(**options: Any) -> pygransoStruct:
    return pygransoStruct(print_level=0, **options)


@pytest.mark.parametrize(
    "statement",
    [
        "from nonsmooth.pygranso import pygranso, pygransoStruct",
        pytest.param(
            "from nonsmooth.pygranso.pygranso import pygranso; from nonsmooth.pygranso.pygransoStruct import pygransoStruct",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "import nonsmooth.pygranso.pygranso, nonsmooth.pygranso.pygransoStruct; "
            "from nonsmooth.pygranso import pygranso, pygransoStruct",
            marks=pytest.mark.slow,
        ),
        "from nonsmooth.pygranso.private.getNvar import getNvarTorch; from nonsmooth.pygranso.pygransoStruct import *; "
        "from nonsmooth.pygranso.pygranso import *; from nonsmooth.pygranso import *",
    ],
)
def test_imports_bring_the_function_and_the_class(statement: str) -> None:
    code = (
        f"{statement}\nimport types\nassert type(pygranso) is types.FunctionType, pygranso\nassert type(pygransoStruct) is type"
    )
    process = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert process.stdout == ""


def test_the_function_stays_after_the_submodule_was_imported() -> None:
    import nonsmooth.pygranso.pygranso
    import nonsmooth.pygranso.pygransoStruct

    assert nonsmooth.pygranso.pygranso is pygranso
    assert nonsmooth.pygranso.pygransoStruct is pygransoStruct


def test_numpy_two() -> None:
    assert int(np.__version__.split(".")[0]) >= 2  # PyGRANSO 1.2.0 does not import with it
    assert pygranso(X1X2, rosenbrock, quiet(x0=START)).termination_code == 0


def test_struct() -> None:
    struct = pygransoStruct(b=1)
    struct.a = torch.ones(2)
    assert list(struct) == ["b", "a"] and len(struct) == 2 and "a" in struct
    assert struct == pygransoStruct(b=1, a=torch.ones(2))
    assert struct != pygransoStruct(b=1, a=torch.zeros(2))
    assert struct != pygransoStruct(b=1)
    assert struct == copy.deepcopy(struct) == pickle.loads(pickle.dumps(struct))
    assert repr(pygransoStruct(b=1, c="x")) == "pygransoStruct(b=1, c='x')"
    with pytest.raises(AttributeError, match="no attribute 'f'; its attributes are: b, a"):
        _ = struct.f
    assert not hasattr(struct, "f")


def test_result() -> None:
    answer = pygranso(X1X2, rosenbrock, quiet(x0=START, torch_device=torch.device("cpu")))
    for name in ("final", "best", "most_feasible"):
        point = getattr(answer, name)
        assert list(point) == ["x", "f", "ci", "ce", "tvi", "tve", "tv", "feasible_to_tol", "mu"]
        assert point.x.shape == (2, 1) and point.ci.shape == (2, 1) and point.ce.shape == (0, 1)
        assert point.x.dtype == point.ci.dtype == torch.float64
        assert isinstance(point.f, float) and point.feasible_to_tol is True
    assert answer.final.f == pytest.approx(OPTIMUM, abs=1e-9)
    assert answer.H_final.shape == (2, 2)
    assert answer.termination_code == 0 and answer.stat_value <= 1e-8
    assert list(answer.BFGS_updates) == [
        "requests", "updates", "damped_requests", "damped_updates", "scaling_skips", "sty_fails", "infnan_fails",
    ]  # fmt: skip
    assert answer.iters == answer.result.iterations and answer.fn_evals == answer.result.evaluations
    assert answer.quadprog_failure_rate == 0.0
    assert not hasattr(answer, "error") and not hasattr(answer, "scalings") and not hasattr(answer, "mu_lowest")
    assert isinstance(answer.result, nonsmooth.Result)


def test_unconstrained_and_without_options(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    answer = pygranso({"x": [3, 1]}, lambda at: [abs(at.x - 1).sum() + (at.x**2).sum(), None, None])
    assert answer.final.f == pytest.approx(2.25, abs=1e-6)
    assert answer.termination_code == 0
    assert not hasattr(answer, "most_feasible") and answer.final.mu == 1
    assert "termination code: 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    "form",
    [
        lambda c: pygransoStruct(a=c[:1], b=c[1:]),
        lambda c: c,
        lambda c: c.reshape(2, 1),
        lambda c: [c[0], c[1]],
        lambda c: {"a": c[0], "b": c[1:]},
        lambda c: SimpleNamespace(a=c),
        lambda c: pygransoStruct(a=c, none=None),
    ],
)
def test_forms_of_constraints(form: Any) -> None:
    def function(X: Any) -> list[Any]:  # noqa: N803
        return [(X.x**2).sum(), form(1 - X.x.reshape(-1)), pygransoStruct()]

    answer = pygranso({"x": [2, 1]}, function, quiet(x0=torch.tensor([3.0, 2.0])))
    assert answer.final.f == pytest.approx(2, abs=1e-6)
    assert answer.final.ci.shape == (2, 1) and answer.final.ce.shape == (0, 1)


def test_shapes_and_order_of_variables_and_constraints() -> None:
    seen: list[Any] = []

    def function(X: Any) -> list[Any]:  # noqa: N803
        seen.append(X)
        return [(X.V**2).sum() + (X.w**2).sum(), pygransoStruct(b=X.V - 5, a=X.w.sum() - 9), None]

    start = torch.arange(8.0).reshape(8, 1)
    answer = pygranso({"V": [2, 3], "w": 2}, function, quiet(x0=start, maxit=0))
    assert list(seen[0]) == ["V", "w"] and isinstance(seen[0], pygransoStruct)
    assert seen[0].V.shape == (2, 3) and seen[0].w.shape == (2,) and seen[0].V.dtype == torch.float64
    assert answer.termination_code == 4
    assert answer.final.x.flatten().tolist() == list(range(8))
    assert answer.final.ci.flatten().tolist() == [-5, -4, -3, -2, -1, 0, 4]
    assert answer.final.tvi == 4 and answer.final.tve == 0 and not answer.final.feasible_to_tol


@pytest.mark.parametrize("start", [START, START.flatten(), START.float(), START.numpy(), [0.3, -0.7], START.T])
def test_forms_of_the_start(start: Any) -> None:
    answer = pygranso(X1X2, rosenbrock, quiet(x0=start))
    assert answer.final.f == pytest.approx(OPTIMUM, abs=1e-8) and answer.final.x.dtype == torch.float64


def test_single_precision() -> None:
    answer = pygranso(X1X2, rosenbrock, quiet(x0=START, double_precision=False))
    assert answer.final.x.dtype == torch.float32 == answer.H_final.dtype
    assert answer.final.f == pytest.approx(OPTIMUM, abs=1e-3)
    assert answer.termination_code == 0


def test_module() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    inputs, targets = torch.randn(20, 2).double(), torch.randn(20, 1).double()

    def function(network: nn.Module) -> list[Any]:
        assert network is module
        weights = torch.cat([parameter.reshape(-1) for parameter in network.parameters()])
        return [abs(network(inputs) - targets).mean(), pygransoStruct(size=weights @ weights - 4), None]

    size = getNvarTorch(module.parameters())
    start = nn.utils.parameters_to_vector(module.parameters()).detach().reshape(size, 1).double()
    first = abs(copy.deepcopy(module).double()(inputs) - targets).mean().item()
    answer = pygranso(module, function, quiet(x0=start, maxit=60, maxclocktime=5))
    assert size == 17 == answer.final.x.numel()
    assert answer.best.f < first and answer.best.feasible_to_tol
    nn.utils.vector_to_parameters(answer.final.x, module.parameters())
    assert abs(module(inputs) - targets).mean().item() == pytest.approx(answer.final.f)


def test_a_module_starts_from_its_parameters() -> None:
    module = nn.Linear(2, 1).double()
    start = nn.utils.parameters_to_vector(module.parameters()).detach().clone()
    answer = pygranso(module, lambda network: [abs(network.weight).sum(), None, None], quiet(maxit=0))
    assert torch.equal(answer.final.x.flatten(), start)


def manual(X: Any) -> list[Any]:  # noqa: N803
    x = torch.cat([X.x1, X.x2]).reshape(2, 1)
    a, b = x.flatten().tolist()
    sign = 1.0 if a**2 - b >= 0 else -1.0
    gradient = torch.tensor([[16 * a * sign - 2 * (1 - a)], [-8 * sign]], dtype=torch.float64)
    ci = torch.tensor([[2**0.5 * a - 1], [2 * b - 1]], dtype=torch.float64)
    columns = torch.tensor([[2**0.5, 0.0], [0.0, 2.0]], dtype=torch.float64)
    return [8 * abs(a**2 - b) + (1 - a) ** 2, gradient, ci, columns, None, None]


def test_own_gradients() -> None:
    def function(X: Any) -> list[Any]:  # noqa: N803
        assert not X.x1.requires_grad
        return manual(X)

    answer = pygranso(X1X2, function, quiet(x0=START, globalAD=False))
    same = pygranso(X1X2, rosenbrock, quiet(x0=START))
    assert answer.termination_code == 0
    # What is differentiated by hand does not show its kinks.
    assert same.termination_code == 0 and answer.fn_evals > same.fn_evals
    assert torch.allclose(answer.final.x, same.final.x, atol=1e-6)


def test_own_gradients_as_arrays_and_by_autograd_inside() -> None:
    def function(X: Any) -> list[Any]:  # noqa: N803
        x = X.x.clone().requires_grad_()
        f = abs(x).sum() + (x**2).sum()
        (gradient,) = torch.autograd.grad(f, x)
        return [f.item(), gradient, None, None, np.array([[float(X.x[0]) - 1]]), np.array([[1.0], [0.0], [0.0]])]

    answer = pygranso({"x": [3, 1]}, function, quiet(x0=torch.tensor([2.0, 1.0, -1.0]), globalAD=False))
    assert answer.final.f == pytest.approx(2, abs=1e-6) and answer.final.ce.shape == (1, 1)


def test_own_gradients_of_the_wrong_shape_are_refused() -> None:
    def function(X: Any) -> list[Any]:  # noqa: N803
        f, gradient, ci, _, _, _ = manual(X)
        return [f, gradient, ci, torch.zeros(3, 2), None, None]

    with pytest.raises(ProblemError, match=r"ci_grad must have shape \(2, 2\), one column per constraint"):
        pygranso(X1X2, function, quiet(x0=START, globalAD=False))
    with pytest.raises(ProblemError, match="globalAD=False"):
        pygranso(X1X2, manual, quiet(x0=START))


def test_prescaling_reports_both() -> None:
    def function(X: Any) -> list[Any]:  # noqa: N803
        return [1000 * abs(X.x - 2).sum(), pygransoStruct(c=100 * (X.x[0] - 1)), None]

    answer = pygranso({"x": [2]}, function, quiet(x0=torch.tensor([0.5, 0.1]), prescaling_threshold=10.0))
    assert answer.final_unscaled.f == pytest.approx(1000, rel=1e-6)
    assert answer.scalings.f == pytest.approx(10 / (1000 * 2**0.5))
    assert answer.scalings.ci.flatten().tolist() == pytest.approx([0.1])
    assert answer.final.f == pytest.approx(answer.final_unscaled.f * answer.scalings.f)
    assert torch.equal(answer.final.x, answer.final_unscaled.x)
    assert {"best_unscaled", "most_feasible_unscaled"} <= set(answer)


def test_variables_that_make_no_sense() -> None:
    for spec, message in ((["x"], "a dict of shapes"), ({}, "no variables"), ({"x": "ab"}, "whole numbers")):
        with pytest.raises(ProblemError, match=message):
            pygranso(spec, rosenbrock)  # type: ignore[arg-type]


def test_tensors_keep_to_the_device_of_the_start() -> None:
    def function(X: Any) -> Tensor:  # noqa: N803
        assert X.x.device.type == "cpu"
        return abs(X.x).sum()

    assert pygranso({"x": [1]}, function, quiet(x0=torch.ones(1))).final.x.device.type == "cpu"


def test_constraints_are_differentiated_for_functions_with_gradients() -> None:
    """The call of PyGRANSO's documentation of dictionary learning."""
    torch.manual_seed(0)
    n, data = 5, torch.randn(5, 200, dtype=torch.double)
    shapes = {"q": [n, 1]}

    def function(X: Any) -> list[Any]:  # noqa: N803
        q = X.q
        q.requires_grad_(True)
        fixed = q.detach().clone()
        f = torch.norm(fixed.T @ data, p=1).item() / 200
        ce = q.T @ q - 1
        ce_grad = getCiGradVec(
            nvar=n, nconstr_ci_total=1, var_dim_map=shapes, X=X, ci_vec_torch=ce, torch_device=torch.device("cpu"),
            double_precision=torch.double,
        )  # fmt: skip
        return [f, data @ torch.sign(data.T @ fixed) / 200, None, None, ce.detach(), ce_grad]

    start = torch.nn.functional.normalize(torch.ones(n, 1, dtype=torch.double), dim=0)
    answer = pygranso(shapes, function, quiet(x0=start, globalAD=False, opt_tol=1e-6))
    q = answer.final.x
    assert answer.termination_code == 0 and answer.final.f == pytest.approx(float((q.T @ data).abs().sum()) / 200)
    assert float(q.T @ q) == pytest.approx(1.0) and answer.final.f < 0.9 * float((start.T @ data).abs().sum()) / 200
    other = pygranso(shapes, lambda x: [(x.q.T @ data).abs().sum() / 200, None, x.q.T @ x.q - 1], quiet(x0=start, opt_tol=1e-6))
    assert other.termination_code == 0 and other.final.f == pytest.approx(answer.final.f, rel=1e-2)  # another local minimum


def test_gradients_of_constraints_are_columns_over_all_variables() -> None:
    X = pygransoStruct(  # noqa: N806
        a=torch.arange(4.0).reshape(2, 2).requires_grad_(), b=torch.ones(1), c=torch.tensor([3.0], requires_grad=True)
    )
    constraints = torch.stack([X.a.sum() * X.b[0], X.a[0, 1] ** 2 + X.c[0] ** 2])
    shapes = {"a": [2, 2], "b": [1], "c": [1]}
    columns = getCiGradVec(6, 2, shapes, X, constraints, "cpu", False)
    assert columns.dtype is torch.float and columns.T.tolist() == [[1, 1, 1, 1, 0, 0], [0, 2, 0, 0, 0, 6]]
    for arguments, message in (((5, 2, shapes), "nvar is 5"), ((6, 3, shapes), "nconstr_ci_total is 3")):
        with pytest.raises(ProblemError, match=message):
            getCiGradVec(*arguments, X, constraints, "cpu", True)
    with pytest.raises(ProblemError, match="requires_grad_"):
        getCiGradVec(1, 1, {"b": [1]}, X, X.b * 2, "cpu", True)
