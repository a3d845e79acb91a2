"""Functions with state of their own are refused by every variant that freezes, each with a reason."""

from __future__ import annotations

import pytest
import torch
from tuning_state.frozen import FrozenGraph
from tuning_state.stateful import STATEFUL

from compile_inspect.variants import RefusalError, Task

REASONS = (
    "it has side effects",
    "Dynamo cannot capture it as one graph",
    "it changes its inputs, parameters or buffers in place",
    "it draws random numbers",
    "it reads the value of a tensor",
)


@pytest.mark.parametrize("name", STATEFUL)
def test_functions_with_state_are_refused(name: str) -> None:
    with pytest.raises(RefusalError) as caught:
        FrozenGraph().prepare(Task(STATEFUL[name], (torch.randn(4, 6),)))
    assert str(caught.value).startswith(REASONS), str(caught.value)
    assert "\n" not in str(caught.value)


def test_there_are_forty() -> None:
    assert len(STATEFUL) >= 40
