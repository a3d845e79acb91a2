"""A hundred and fifty ways to fool a guard: none leaves a tuned callable silently wrong."""

from __future__ import annotations

import builtins
import math
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from test_state_changes import equal, tuned_as
from tuning_state import attacks, settings
from tuning_state.frozen import FrozenGraph

from compile_inspect.variants import RefusalError

pytestmark = pytest.mark.usefixtures("always_shortcuts")

PATCHED: tuple[tuple[Any, str], ...] = (
    (builtins, "abs"),
    (math, "sqrt"),
    (torch, "relu"),
    (torch.nn.functional, "silu"),
    (torch.Tensor, "tanh"),
    (torch.backends.cudnn, "deterministic"),
    (torch._dynamo.config, "recompile_limit"),
    (settings, "SHIFT"),
    (sys.modules["tuning_state"], "settings"),
)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Everything that attacks change outside of themselves, as it was."""
    before = [(owner, name, getattr(owner, name)) for owner, name in PATCHED]
    environment, arguments, threads = dict(os.environ), list(sys.argv), torch.get_num_threads()
    modules = set(sys.modules)
    torch.set_grad_enabled(False)
    yield
    while attacks.ENDING:
        attacks.ENDING.pop()()
    vars(math).pop("NOPE_ATTRIBUTE", None)
    for owner, name, value in before:
        setattr(owner, name, value)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = arguments
    for name in set(sys.modules) - modules:
        if "yes_module" in name or "nope_module" in name:
            del sys.modules[name]
    vars(settings).pop("NOPE", None)
    torch.set_grad_enabled(True)
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.use_deterministic_algorithms(False)
    torch.set_autocast_enabled("cpu", False)
    torch.set_float32_matmul_precision("highest")
    torch.backends.mkldnn.enabled = True
    torch.backends.cuda.enable_flash_sdp(True)
    torch.autograd.set_detect_anomaly(False)


def outcome(function: Callable[..., Any]) -> Any:
    try:
        return torch.utils._pytree.tree_flatten(function(attacks.x))[0]
    except Exception as error:
        return type(error).__name__


def attack(name: str) -> str:
    """What came of an attack: refused, noticed or harmless, or wrong."""
    function, change = attacks.ATTACKS[name]()
    try:
        tuned = tuned_as(function, (attacks.x,), {}, FrozenGraph())
    except RefusalError:
        return "refused"
    assert equal(outcome(tuned), outcome(function)) and tuned.fallbacks == 0
    change()
    ours, eager = outcome(tuned), outcome(function)
    return "right" if equal(ours, eager) else "wrong"


@pytest.mark.parametrize("name", attacks.ATTACKS)
def test_no_attack_succeeds(name: str) -> None:
    assert attack(name) in ("refused", "right")
