"""Check and call in one generated function."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from compile_inspect.tuning.fused import Body, calling, fused
from compile_inspect.tuning.guard import Guard
from compile_inspect.variants import Task
from compile_inspect.variants.functional import Functional

X, Y = torch.randn(4, 6), torch.randn(4, 6)
Pair = namedtuple("Pair", "first second")


def add(*tensors: Tensor) -> Tensor:
    return torch.stack(tensors).sum(0)


def check(task: Task) -> Callable[..., str]:
    """Says which of the two checks let a call pass: `quick`, `thorough`, or none."""
    guard = Guard(task)
    return fused(
        guard,
        Body(("return 'quick'",), {}),
        lambda args, kwargs: "thorough" if guard.matches(args, kwargs) else "no",
    )


@pytest.mark.parametrize(
    "other",
    [
        torch.randn(5, 6),
        torch.randn(4, 6).double(),
        torch.randn(6, 4).T,
        torch.randn(4, 6).requires_grad_(),
        torch.randn(4, 6, device="meta"),
        nn.Parameter(torch.randn(4, 6), requires_grad=False),
        torch.randn(4, 6).to_sparse(),
        3.0,
        None,
    ],
)
def test_other_inputs_do_not_pass(other: Any) -> None:
    assert check(Task(add, (X, Y)))(X, Y) == "quick"
    assert check(Task(add, (X, Y)))(X, other) == "no"


def test_structures_and_numbers() -> None:
    task = Task(lambda x, *, factor, names: x * factor, (X,), {"factor": 2.0, "names": ["a", {"b": Y}]})
    checked = check(task)
    assert checked(X, factor=2.0, names=["a", {"b": Y}]) == "quick"
    for args, kwargs in (
        ((X,), {"factor": 2.5, "names": ["a", {"b": X}]}),
        ((X,), {"factor": 2, "names": ["a", {"b": X}]}),
        ((X,), {"factor": 2.0, "names": ("a", {"b": X})}),
        ((X,), {"factor": 2.0, "names": ["a", {"c": X}]}),
        ((X,), {"factor": 2.0, "names": X}),
        ((X,), {"factor": 2.0}),
        ((X, X), {"factor": 2.0, "names": ["a", {"b": X}]}),
        ((), {}),
    ):
        assert checked(*args, **kwargs) == "no"


def test_what_the_function_reads_is_checked() -> None:
    factor, offset = 2.0, torch.ones(6)

    def function(x: Tensor) -> Tensor:
        return x * factor + offset

    checked = check(Task(function, (X,)))
    assert checked(X) == "quick"
    factor = 1.0 + float(len("a"))  # another object with the same value
    assert checked(X) == "thorough"
    factor = 3.0
    assert checked(X) == "no"
    factor = 2.0
    offset.data = torch.ones(6)  # the same tensor with other memory
    assert checked(X) == "no"


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


@contextmanager
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@contextmanager
def default_dtype() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("mode", "passes"),
    [
        (torch.no_grad, "quick"),
        (torch.enable_grad, "quick"),
        (torch.inference_mode, "quick"),
        (lambda: threads(torch.get_num_threads() + 1), "thorough"),
        (lambda: torch.autocast("cpu", torch.bfloat16), "no"),
        (lambda: torch.device("meta"), "no"),
        (TorchDispatchMode, "no"),
        (deterministic, "no"),
        (default_dtype, "no"),
    ],
)
def test_modes_of_torch(mode: Callable[[], Any], passes: str) -> None:
    checked = check(Task(add, (X, Y)))
    with mode():
        assert checked(X, Y) == passes
    assert checked(X, Y) == "quick"


def test_tensors_made_in_inference_mode() -> None:
    checked = check(Task(add, (X, Y)))
    with torch.inference_mode():
        inside = torch.randn(4, 6)
        assert checked(inside, torch.randn(4, 6)) == "quick"
        assert checked(X, inside) == "thorough"


def test_modules_that_get_other_parts_or_hooks() -> None:
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU()).requires_grad_(False)
    checked = check(Task(model, (X,)))
    assert checked(X) == "quick"
    handle = model[1].register_forward_hook(lambda *_: None)
    assert checked(X) == "no"
    handle.remove()
    assert checked(X) == "quick"
    kept, model[1] = model[1], nn.Tanh()
    assert checked(X) == "no"
    model[1] = kept
    assert checked(X) == "quick"
    model.append(nn.ReLU())
    assert checked(X) == "no"


def test_functions_and_modules_that_are_rebound() -> None:
    helper = lambda x: x * 2  # noqa: E731
    layer = nn.Linear(6, 3).requires_grad_(False)

    def function(x: Tensor) -> Tensor:
        return layer(helper(x))

    checked = check(Task(function, (X,)))
    assert checked(X) == "quick"
    helper, before = (lambda x: x * 3), helper
    assert checked(X) == "no"
    helper = before
    assert checked(X) == "quick"
    layer = nn.Linear(6, 3).requires_grad_(False)
    assert checked(X) == "no"


def test_two_closures_of_one_factory() -> None:
    def factory(factor: float) -> tuple[Callable[[Tensor], Tensor], Callable[[float], None]]:
        def change(value: float) -> None:
            nonlocal factor
            factor = value

        return (lambda x: x * factor), change

    first, _ = factory(2.0)
    second, change = factory(3.0)
    checked = check(Task(lambda x: first(x) + second(x), (X,)))
    assert checked(X) == "quick"
    change(4.0)
    assert checked(X) == "no"


def test_autocast_forward_mode_and_signs_kept_aside() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        checked = check(Task(add, (X, Y)))
    assert checked(X, Y) == "no"
    checked = check(Task(add, (X,)))
    with torch.autograd.forward_ad.dual_level():
        assert checked(torch.autograd.forward_ad.make_dual(X, Y)) == "no"
    complex_ = torch.randn(4, 6, dtype=torch.complex64)
    checked = check(Task(add, (complex_.imag,)))
    assert checked(complex_.imag) == "quick"
    assert checked(complex_.conj().imag) == "no"


def test_one_tensor_given_twice() -> None:
    checked = check(Task(add, (X, X)))
    assert checked(X, X) == checked(X, Y) == "quick"
    assert checked(X, torch.randn(4, 5)) == "no"
    assert check(Task(add, (X, Y)))(X, X) == "thorough"


def test_function_transforms_do_not_pass() -> None:
    checked = check(Task(add, (X,)))
    seen = []
    torch.func.vmap(lambda x: seen.append(checked(x)) or x)(torch.randn(3, 4, 6))
    torch.func.grad(lambda x: seen.append(checked(x)) or x.sum())(X)
    assert seen == ["no", "no"]


def test_gradients_that_are_wanted() -> None:
    model = nn.Linear(6, 3)
    checked = check(Task(model, (X,)))
    assert checked(X) == "no"
    with torch.no_grad():
        assert checked(X) == "quick"
    model.requires_grad_(False)
    assert checked(X) == "quick"
    checked = check(Task(model, (X.clone().requires_grad_(),), gradients=True))
    assert checked(X) == "no"
    assert checked(X.clone().requires_grad_()) == "quick"
    with torch.no_grad():
        assert checked(X.clone().requires_grad_()) == "no"


@pytest.mark.parametrize("failure", [ValueError, KeyError, TypeError, RuntimeError])
def test_errors_of_the_function_come_through_as_they_are(failure: type[Exception]) -> None:
    def raises(*_: Any) -> Any:
        raise failure("the user's")

    guard = Guard(Task(add, (X,)))
    inside = fused(guard, Body(("return call(*args)",), {"call": raises}), raises)
    for argument in (X, torch.zeros(1), None):
        with pytest.raises(failure, match="the user's") as caught:
            inside(argument)
        assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "form",
    [
        lambda a, b: a,
        lambda a, b: (a,),
        lambda a, b: [b, (a, {"x": b, 3: a}), None, 2.5],
        lambda a, b: Pair(b, [a]),
        lambda a, b: {("a", 1): a},
    ],
)
def test_results_have_their_own_form(form: Callable[[Any, Any], Any]) -> None:
    task = Task(lambda x: form(x + 1, x * 2), (X,))
    functional, guard = Functional(task), Guard(task)
    expected = task.function(X)
    functional.function(X)  # to see what the result looks like
    fast = fused(guard, calling(guard, lambda tensors: functional.function(*tensors), functional), lambda *_: pytest.fail())
    torch.testing.assert_close(fast(X), expected, rtol=0, atol=0)
    assert type(fast(X)) is type(expected)


def test_five_tensors_take_a_microsecond() -> None:
    tensors = tuple(torch.randn(4, 5) for _ in range(5))
    checked = check(Task(add, tensors))

    def once() -> float:
        started = perf_counter()
        for _ in range(200):
            checked(*tensors)
        return (perf_counter() - started) / 200

    assert min(once() for _ in range(20)) < 3e-6  # 0.9 µs were seen; 3 are allowed
