"""A tuned callable notices every change of what its function reads: mutations of 37 programs, none silently wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tuning_state.frozen import FrozenGraph
from tuning_state.mutations import Mutation, mutations
from tuning_state.programs import PROGRAMS

from compile_inspect.agreement.run_outcome import same_value
from compile_inspect.tuning.callables import make_callable
from compile_inspect.tuning.selection import decide
from compile_inspect.tuning.tuned import Tuned
from compile_inspect.variants import Task, Variant, variant

pytestmark = pytest.mark.usefixtures("always_shortcuts")

LARGE = ("GPT-2", "BERT")
SMALL = tuple(name for name in PROGRAMS if name not in LARGE)
FEWEST = {"keywords": 0, "numpy array": 0}
"""Programs that read nothing but their arguments, or nothing that the generator can change."""


def tuned_as(function: Callable[..., Any], args: Any, kwargs: Any, chosen: Variant) -> Tuned:
    """A tuned callable that uses a variant whatever its speed."""
    task = Task(function, args, kwargs)
    tuned = Tuned(function, function, decide(task, chosen.name, "", 0.0, {}))
    tuned.replace(make_callable(task, chosen.prepare(task), tuned.fall_back), tuned.decision)
    return tuned


def outcome(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The leaves of a result, or the type of what was raised."""
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            result = function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    return torch.utils._pytree.tree_flatten(result)[0]


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return len(one) == len(other) and all(map(_close, one, other))


def _close(one: Any, other: Any) -> bool:
    if same_value(one, other):
        return True
    both = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    if not both or one.dtype != other.dtype or one.shape != other.shape or not one.is_floating_point():
        return False
    return torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)


def changes_noticed(name: str, chosen: Variant, most: int | None = None, device: str = "cpu") -> tuple[int, list[str]]:
    """How many changes make a difference to eager, and the ones after which the tuned callable is silently wrong."""
    with torch.device(device):
        function, args, kwargs = PROGRAMS[name]()
    tuned = tuned_as(function, args, kwargs, chosen)
    before = outcome(function, args, kwargs)
    assert equal(outcome(tuned, args, kwargs), before)
    assert tuned.fallbacks == 0
    found = mutations(function)
    step = 1 if most is None else max(1, len(found) // most)
    wrong, different = [], 0
    for mutation in found[::step]:
        changed, right = _try(mutation, tuned, function, args, kwargs, before)
        different += changed
        if not right:
            wrong.append(mutation.name)
    fallbacks = tuned.fallbacks
    assert equal(outcome(tuned, args, kwargs), before)
    assert tuned.fallbacks == fallbacks, "everything is as it was, and the fast way is taken again"
    return different, wrong


def _try(mutation: Mutation, tuned: Tuned, function: Any, args: Any, kwargs: Any, before: Any) -> tuple[bool, bool]:
    try:
        mutation.apply()
    except Exception:  # not every value can be put everywhere
        return False, True
    try:
        fallbacks = tuned.fallbacks
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, eager = outcome(tuned, args, kwargs), outcome(function, args, kwargs)
        return not equal(eager, before), tuned.fallbacks > fallbacks or equal(ours, eager)
    finally:
        mutation.undo()


@pytest.mark.parametrize("name", SMALL)
def test_every_change_is_noticed(name: str) -> None:
    different, wrong = changes_noticed(name, FrozenGraph())
    assert wrong == []
    assert different >= FEWEST.get(name, 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_changes_of_transformers_models_are_noticed(name: str) -> None:
    different, wrong = changes_noticed(name, FrozenGraph(), most=40)
    assert wrong == []
    assert different >= 5


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", LARGE)
def test_all_changes_of_transformers_models_are_noticed(name: str) -> None:
    different, wrong = changes_noticed(name, FrozenGraph())
    assert wrong == []
    assert different >= 50


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["private attribute", "dataclass config", "residual", "closures"])
@pytest.mark.parametrize("chosen", ["aot-inductor", "inductor-callable", "torchscript/trace"])
def test_changes_are_noticed_by_compiled_variants(name: str, chosen: str) -> None:
    if (name, chosen) == ("residual", "torchscript/trace"):
        pytest.skip("TorchScript cannot trace a module that stores a function")
    different, wrong = changes_noticed(name, variant(chosen))
    assert wrong == []
    assert different >= 10


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", ["private attribute", "dataclass config", "residual", "closures", "blocks", "hooks", "GPT-2"])
@pytest.mark.parametrize("chosen", ["cuda-graph/eager", "cuda-graph/inductor"])
def test_changes_are_noticed_by_recordings(name: str, chosen: str) -> None:
    different, wrong = changes_noticed(name, variant(chosen), most=60, device="cuda")
    assert wrong == []
    assert different >= 5
