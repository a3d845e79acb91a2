from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from lesson_state import quiet_guide, unchanged

from compile_inspect import torch_private
from compile_inspect.target import Target
from compile_inspect.tour.guide import Guide
from compile_inspect.tour.topics.backend import NAME, BackendCalls, CustomBackend, ExplicitGelu, run_custom_backend
from conftest import fresh_function

unchanged = pytest.fixture(autouse=True)(unchanged)
guide = pytest.fixture(quiet_guide)


@pytest.fixture(scope="module")
def found() -> CustomBackend:
    return run_custom_backend(guide=quiet_guide())


def test_the_backend_is_called_once_for_each_graph(found: CustomBackend) -> None:
    whole, broken = found.models
    assert (whole.model, len(whole.graphs), whole.runs) == ("Perceptron", 1, 3)
    assert dict(whole.graphs[0]) == {"linear": 2, "gelu": 1, "softmax": 1}
    assert (broken.model, len(broken.graphs), broken.runs) == ("Chatty", 2, 6)


def test_what_it_replaces_gives_the_result_of_eager(found: CustomBackend) -> None:
    whole, broken = found.models
    assert whole.replaced == 1 and broken.replaced == 0
    assert 0 < whole.difference < 1e-6  # another formula, so not the very same bits
    assert broken.difference == 0


def test_it_is_registered_for_a_while_only(found: CustomBackend) -> None:
    assert found.listed and not found.listed_afterwards
    with torch_private.registered_backend(NAME, ExplicitGelu()):
        assert NAME in torch.compiler.list_backends()
    assert NAME not in torch.compiler.list_backends()
    with pytest.raises(ZeroDivisionError), torch_private.registered_backend(NAME, ExplicitGelu()):
        raise ZeroDivisionError
    assert NAME not in torch.compiler.list_backends()


def test_another_gelu_is_left_alone(guide: Guide) -> None:
    other = fresh_function("return torch.nn.functional.gelu(x, approximate='tanh')", torch=torch)
    found = run_custom_backend(Target(other, (torch.linspace(-3, 3, 9),)), guide=guide)
    assert found.models[0].replaced == 0 and found.models[0].difference == 0


def test_the_answer_is_made_of_the_results(found: CustomBackend) -> None:
    text = " ".join(found.answer())
    assert "Perceptron was called 3 times. The backend was called 1 time, with 4 operations in all" in text
    assert f"by {found.models[0].difference:.1g}." in text
    changed = replace(found.models[0], calls=8, runs=17, replaced=5, difference=0.25)
    text = " ".join(replace(found, models=(changed,), listed=False).answer())
    assert "called 8 times" in text and "ran 17 times" in text and "5 gelus" in text and "by 0.2" in text
    assert "list_backends" not in text


def test_random_and_stateful_models_are_compared_from_one_seed_and_state(guide: Guide) -> None:
    class Moving(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return torch.nn.functional.dropout(x * self.calls, 0.5)

    module = Moving()
    found = run_custom_backend(Target(module, (torch.ones(4, 8),)), guide=guide)
    assert found.models[0].difference == 0 and module.calls == 0
    assert "the result differs from eager by 0" in " ".join(found.answer())


def test_what_differs_from_itself_is_not_compared(guide: Guide) -> None:
    seen: list[int] = []

    def growing(x: torch.Tensor) -> torch.Tensor:
        seen.append(1)
        return x * len(seen)

    found = run_custom_backend(Target(growing, (torch.ones(3),)), guide=guide)
    assert found.models[0].difference is None
    assert "could not be compared" in " ".join(found.answer()) and "differs from eager" not in " ".join(found.answer())


def test_the_verdict_fits_every_model() -> None:
    def calls(graphs: int, captured: int) -> BackendCalls:
        return BackendCalls("f", 3, ((("sin", 1),),) * graphs, 0, 3 * graphs, 0.0, captured)

    assert CustomBackend((calls(3, 3),), True, False).correct_choice == 1  # three calls, three graphs, three operations
    assert CustomBackend((calls(3, 1),), True, False).correct_choice == 0
    assert CustomBackend((calls(2, 1),), True, False).correct_choice == 2
    assert CustomBackend((calls(0, 0),), True, False).correct_choice is None
    assert CustomBackend((calls(1, 1), calls(2, 2)), True, False).correct_choice == 1
