"""What is written in the place of backward passes and optimizer steps."""

from __future__ import annotations

import pytest
from changes import changed, place_in

from compile_inspect.fixes.training import Training

PROXY = "Failed to convert args/kwargs to proxy"


def test_a_jacobian_is_written_with_torch_func() -> None:
    text = (
        "import torch\nfrom torch.autograd.functional import jacobian\n\ndef f(x):\n"
        '    s = "é"; j = jacobian(lambda v: v * 2, x[0], vectorize=True)  # here\n    return j\n'
    )
    wanted = text.replace(
        "jacobian(lambda v: v * 2, x[0], vectorize=True)", "torch.func.jacrev(lambda v: v * 2)(x[0]).detach()"
    )
    assert changed(Training(), text, PROXY) == {"Use torch.func.jacrev": wanted}


def test_a_jacobian_of_several_inputs_is_left() -> None:
    text = "import torch\ndef f(x):\n    return torch.autograd.functional.jacobian(g, (x, x))  # here\n"
    assert changed(Training(), text, PROXY) == {}


def test_a_kept_gradient_is_guarded() -> None:
    text = "def f(x):\n\ty = x * 2\n\ty.retain_grad()  # here\n\treturn y\n"
    guarded = "if not torch.compiler.is_compiling():\n\t\ty.retain_grad()"
    wanted = "import torch\n" + text.replace("y.retain_grad()", guarded)
    found = changed(Training(), text, "Tensor.retain_grad() with AOTDispatcher")
    assert found == {"Retain the gradient only in eager mode": wanted}


def test_gradients_are_forgotten_by_the_only_model() -> None:
    text = "def f(self, x):\n    self.optimizer.zero_grad()  # here\n    return self.model(x)\n"
    wanted = text.replace("self.optimizer.zero_grad()", "self.model.zero_grad()")
    assert changed(Training(), text, "Attempted to inline function marked as skipped") == {
        "Reset the gradients with the model": wanted
    }
    two = text.replace("self.model(x)", "self.model(x) + other.model(x)")
    assert changed(Training(), two, "Attempted to inline function marked as skipped") == {}


def test_a_backward_pass_gets_a_setting_and_hints() -> None:
    place = place_in("def f(x):\n    x.sum().backward()  # here\n", "Unsupported Tensor.backward() call")
    (proposal,) = Training().proposals(place)
    assert [item.code for item in proposal.settings] == ["torch._dynamo.config.trace_autograd_ops = True"]
    assert not proposal.is_rewrite
    assert Training().hints(place)


@pytest.mark.parametrize("line", ["sched.step()", "warm_up.step()", "averaged.update(net)"])
def test_what_torch_keeps_out_is_not_called_a_gradient(line: str) -> None:
    """Whatever the user calls it: torch says in which of its files the function lies."""
    said = "Dynamo developers have intentionally marked that the function `step` in file `torch/optim/lr_scheduler.py`"
    place = place_in(f"def f(x):\n    {line}  # here\n", "Attempted to call function marked as skipped", said)
    assert Training().matches(place)
    assert Training().why(place).startswith("The optimizer (or its scaler or scheduler)")
