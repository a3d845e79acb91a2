"""Kinks read from graphs: the model agrees with the function, or the reading says what hides."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from nonsmooth.structure import Arguments, Reading, read
from nonsmooth.structure.kink_reading import MAX_NODES
from nonsmooth.variables import Variables
from programs_with_kinks import Program

AT_KINK = 1e-12


def reading_of(function: Callable[[Any], Tensor], x0: Any, *, watched: bool = True) -> Reading:
    variables, arguments = Variables(x0), Arguments()
    argument, leaves = variables.place(variables.start)
    with arguments if watched else nullcontext():
        f = function(argument)
    return read(f, leaves, variables, arguments)


def one_sided_derivative(function: Callable[[Tensor], Tensor], x: Tensor, direction: Tensor) -> float:
    """From two small steps, without the part that grows with the step."""
    value = float(function(x))
    short, long = ((float(function(x + step * direction)) - value) / step for step in (5e-7, 1e-6))
    return 2.0 * short - long


@pytest.mark.parametrize(
    "seeds", [range(250), pytest.param(range(250, 1000), marks=pytest.mark.exhaustive)], ids=["250", "1000"]
)
def test_random_programs_are_read_rightly_or_declined(seeds: range) -> None:
    """Many of their kinks are met exactly."""
    told, kinked = 0, 0
    for seed in seeds:
        program = Program(seed)
        reading = reading_of(program, program.point)
        if reading.hidden or reading.is_nested(reading.terms.at_kink(AT_KINK)):
            continue
        told += 1
        kinked += bool(reading.terms.at_kink(AT_KINK).any())
        for direction in np.random.default_rng(seed).standard_normal((20, program.size)):
            true = one_sided_derivative(program, program.point, torch.from_numpy(direction))
            assert reading.slope(direction, tolerance=AT_KINK) == pytest.approx(true, rel=1e-4, abs=1e-4), seed
            step = 1e-6 * direction
            moved = float(program(program.point + torch.from_numpy(step)) - program(program.point))
            assert reading.change(step) == pytest.approx(moved, abs=1e-9), seed
    assert told > 0.3 * len(seeds) and kinked > 0.1 * len(seeds)


SHOWN: dict[str, tuple[Callable[[Tensor], Tensor], str, int]] = {
    "abs": (lambda x: x.abs().sum(), "abs", 4),
    "l1_loss": (lambda x: functional.l1_loss(x, torch.zeros_like(x)), "abs", 4),
    "relu": (lambda x: functional.relu(x).sum(), "relu", 4),
    "hinge": (lambda x: (1 - x).clamp(min=0).sum(), "clamp", 4),
    "both sides of a clamp": (lambda x: x.clamp(-1, 1).sum(), "clamp", 8),
    "margin": (lambda x: functional.margin_ranking_loss(x, -x, torch.ones(4)), "clamp", 4),
    "max": (lambda x: x.max(), "max", 3),
    "max of rows": (lambda x: x.reshape(2, 2).max(1).values.sum(), "max", 2),
    "amin": (lambda x: x.amin(), "amin", 3),
    "maximum": (lambda x: torch.maximum(x[:2], x[2:]).sum(), "maximum", 2),
    "maximum of two numbers": (lambda x: torch.max(x[0] ** 2, x[1]), "maximum", 1),
    "leaky_relu": (functional.leaky_relu, "leaky_relu", 4),
    "elu": (lambda x: functional.elu(x, 2.0), "elu", 4),
    "selu": (functional.selu, "elu", 4),
    "clip": (lambda x: x.clip(0.0, 1.0), "clamp", 8),
    "hardtanh": (functional.hardtanh, "hardtanh", 8),
    "relu6": (functional.relu6, "hardtanh", 8),
    "hardsigmoid": (functional.hardsigmoid, "hardsigmoid", 8),
    "softshrink": (functional.softshrink, "softshrink", 8),
    "minimum": (lambda x: torch.minimum(x[:2], x[2:]), "minimum", 2),
    "fmax": (lambda x: torch.fmax(x[:2], x[2:]), "maximum", 2),
    "fmin": (lambda x: torch.fmin(x[:2], x[2:]), "minimum", 2),
    "min": (lambda x: x.min(), "min", 3),
    "amax": (lambda x: x.amax(), "amax", 3),
    "norm 1": (lambda x: torch.linalg.vector_norm(x, 1), "norm", 4),
    "norm 2": (lambda x: torch.linalg.vector_norm(x), "norm", 4),
    "norm inf": (lambda x: x.norm(torch.inf), "norm", 3),
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown(name: str) -> None:
    function, kind, terms = SHOWN[name]
    reading = reading_of(lambda x: function(x).sum(), torch.tensor([1.0, -2.0, 3.0, 0.5], dtype=torch.float64))
    assert (reading.kinds, len(reading.terms), reading.hidden) == ((kind,), terms, ())


class Add(torch.autograd.Function):
    """Named like a smooth operation, and with a kink."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        """The absolute value."""
        context.save_for_backward(x)
        return x.abs()

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:
        """Its slope."""
        (x,) = context.saved_tensors
        return slope * x.sign()


def long_chain(x: Tensor) -> Tensor:
    for _ in range(MAX_NODES):
        x = x + 1.0
    return x.abs().sum()


CONSTANT = torch.tensor([1.0, 2.0, 3.0, 4.0])
HARMLESS: dict[str, Callable[[Tensor], Tensor]] = {
    "a constant of its type": lambda x: (CONSTANT.to(x) * x).abs().sum(),
    "a constant of its shape": lambda x: (torch.ones_like(x) * x).abs().sum() + x.new_zeros(4).sum(),
    "its size": lambda x: x.abs().sum() / x.numel() / len(x) / x.shape[0],
    "an expanded constant": lambda x: (torch.tensor(1.0, dtype=x.dtype).expand_as(x) * x).abs().sum(),
    "a range": lambda x: (torch.arange(len(x), dtype=x.dtype, device=x.device) * x).abs().sum(),
    "an index": lambda x: x[[0, 2]].abs().sum() + x[1:].abs().sum() + x[torch.tensor([True, False, True, False])].abs().sum(),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_takes_no_values_out_of_the_graph(name: str) -> None:
    reading = reading_of(HARMLESS[name], torch.tensor([1.0, -2.0, 3.0, 0.5], dtype=torch.float64))
    assert reading.hidden == () and len(reading.terms) >= 4


LEAVES_GRAPH: dict[str, Callable[[Tensor], object]] = {
    "gt": lambda x: x > 0,
    "argmax": lambda x: x.argmax(),
    "item": lambda x: x.sum().item(),
    "detach": lambda x: x.detach(),
    "__float__": lambda x: float(x[0]),
    "tolist": lambda x: x.tolist(),
    "argsort": lambda x: x.argsort(),
}


@pytest.mark.parametrize("name", LEAVES_GRAPH)
def test_what_takes_values_out_of_the_graph(name: str) -> None:
    def function(x: Tensor) -> Tensor:
        LEAVES_GRAPH[name](x)
        return x.abs().sum()

    reading = reading_of(function, torch.tensor([1.0, -2.0, 3.0, 0.5], dtype=torch.float64))
    assert len(reading.hidden) == 1 and reading.hidden[0].endswith("which takes values out of the graph")


HIDDEN: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "hinge": (lambda x: functional.hinge_embedding_loss(x, torch.ones(4)), "where"),
    "sort": (lambda x: x.sort().values[0], "sort"),
    "median": (lambda x: x.abs().median(), "median"),
    "where": (lambda x: torch.where(x > 0, x, -x).sum(), "where"),
    "sign": (lambda x: (x * x.sign()).sum(), "sign"),
    "largest eigenvalue": (lambda x: torch.linalg.eigvalsh(torch.outer(x, x))[-1], "eigenvalues"),
    "long norm of 0": (lambda x: (x - x.detach()).repeat(6).norm(), "norm of 0"),
    "root of 0": (lambda x: (x - x.detach()).square().sum().sqrt(), "sqrt of 0"),
    "power of 0": (lambda x: (x - x.detach()).abs().pow(1.5).sum(), "PowBackward0"),
    "the user's own": (lambda x: Add.apply(x).sum(), "AddBackward"),
    "relu in place": (lambda x: (2.0 * x).relu_().sum(), "relu (argument not recorded)"),
    "a long program": (long_chain, f"more than {MAX_NODES} operations"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_hides(name: str) -> None:
    function, reason = HIDDEN[name]
    reading = reading_of(lambda x: function(x) + x.abs().sum(), torch.tensor([1.0, -2.0, 3.0, 0.5], dtype=torch.float64))
    assert reading.hidden[0].startswith(reason) and len(reading.hidden) == 1


def test_a_compiled_function_hides_its_kinks() -> None:
    compiled = torch.compile(lambda x: x.abs().sum(), backend="aot_eager")
    assert reading_of(compiled, torch.tensor([1.0, 0.0]), watched=False).hidden == ("CompiledFunctionBackward",)


class Unbatched(torch.autograd.Function):
    """Doubles; its backward cannot be batched."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        """Twice the argument."""
        return 2.0 * x

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:
        """Twice the slope, by way of numbers."""
        return torch.tensor([2.0 * value for value in slope.tolist()], dtype=slope.dtype)


def test_gradients_of_arguments_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nonsmooth.structure.kink_reading.is_smooth", lambda node: True)
    reading = reading_of(
        lambda x: Unbatched.apply(x).abs().sum(), torch.tensor([1.0, -1.0], dtype=torch.float64), watched=False
    )
    np.testing.assert_allclose(reading.terms.rows, 2 * np.eye(2))


def test_kinks_in_arguments_of_kinks() -> None:
    def function(x: Tensor) -> Tensor:
        return (x.abs() - 1).relu().sum()

    outside, on_one, on_both = ([2.0, -0.5], [0.0, 3.0], [1.0, 0.0])
    for point, nested in ((outside, False), (on_one, False), (on_both, True)):
        reading = reading_of(function, torch.tensor(point, dtype=torch.float64))
        assert reading.is_nested(reading.terms.at_kink(AT_KINK)) is nested


def test_slopes_between_those_of_the_sides() -> None:
    reading = reading_of(lambda x: 3 * x.abs().sum() + x.max(), torch.zeros(2, dtype=torch.float64))
    terms = reading.terms
    assert sorted(reading.kinds) == ["abs", "max"] and terms.shape == (3, 1)
    shares = np.full(4, np.nan)
    shares[terms.places[terms.groups < 0]] = [0.5, 1.0]  # slopes 0 and 3
    shares[terms.places[terms.groups == 0]] = 1.0  # all of it to the entry that is not the first
    shares[terms.largest] = 0.0
    np.testing.assert_allclose(reading.gradient_with(shares), [0.0, 4.0])


def test_other_units() -> None:
    reading = reading_of(lambda x: (x - 1).abs().sum(), torch.tensor([1.0, 3.0], dtype=torch.float64))
    scaled = reading.scaled(10.0, np.array([2.0, 0.5]), np.zeros(0))
    np.testing.assert_allclose(scaled.gradient, [0.0, 5.0])
    np.testing.assert_allclose(scaled.terms.rows, [[2.0, 0.0], [0.0, 0.5]])
    assert scaled.slope(np.array([-1.0, 0.0])) == pytest.approx(20.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_several_variables(dtype: torch.dtype) -> None:
    x0 = {"a": torch.tensor([1.0, -2.0], dtype=dtype), "b": torch.tensor([[3.0]], dtype=dtype)}
    reading = reading_of(lambda v: (v["a"] * v["b"]).abs().sum(), x0)
    np.testing.assert_allclose(reading.terms.values, [3.0, -6.0])
    np.testing.assert_allclose(reading.terms.rows, [[3.0, 0.0, 1.0], [0.0, 3.0, -2.0]])


def test_a_function_without_a_graph() -> None:
    assert not reading_of(lambda x: x.detach().abs().sum(), torch.ones(2)).terms.values.size
