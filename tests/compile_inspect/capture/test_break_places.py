"""Where a graph break is said to be: inside compiled code, in torch's own line where torch is the cause, and once."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch._dynamo
from torch._dynamo.utils import counters

import compile_inspect
from compile_inspect.fixes.planning import advise_breaks
from compile_inspect.records import BreakEffect, GraphBreak, Inspection

HEAD = """
import torch, torch._dynamo
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(2, 4)
compiled = lambda function: torch.compile(function, backend="eager")
"""


def recorded(folder: Path, program: str, library: str = "") -> Inspection:
    """What is recorded of a script, and of a module that looks installed."""
    installed = folder / "site-packages" / "chatty"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text(library)
    script = folder / "script.py"
    script.write_text(HEAD + program)
    torch._dynamo.reset()
    counters.clear()
    with pytest.MonkeyPatch.context() as patch, compile_inspect.record() as recording:
        patch.syspath_prepend(str(installed.parent))
        patch.delitem(__import__("sys").modules, "chatty", raising=False)
        runpy.run_path(str(script), run_name="script")
    return recording.inspection


def own_code(cause: GraphBreak) -> str:
    return "" if cause.own_location is None else cause.own_location.code


def inner_file(cause: GraphBreak) -> str:
    return "" if cause.location is None else cause.location.file.replace("\\", "/").partition("site-packages/")[2]


def test_a_train_step_inside_print(tmp_path: Path) -> None:
    program = """
def step(x):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
step = compiled(step)
print("loss", step(x).item())
"""
    inspection = recorded(tmp_path, program)
    assert [own_code(cause) for cause in inspection.breaks] == ["optimizer.zero_grad()", "loss.backward()", "optimizer.step()"]
    assert len(inspection.breaks) == len(counters["graph_break"])
    last = inspection.breaks[-1]
    assert inner_file(last) == "torch/optim/optimizer.py"
    assert last.hits == 2, "the optimizer's function is compiled by itself as well, which torch calls a duplicate"
    proposals = [item for finding in advise_breaks(inspection) for item in finding.advice.proposals]
    changed = {line.start[0] for item in proposals for line in item.replacements}
    last_line = (tmp_path / "script.py").read_text().count("\n")
    assert last_line not in changed, "nothing outside the compiled function is rewritten"


@pytest.mark.parametrize(
    ("call", "file"),
    [
        ("print(compiled(optimizer.step)())", "torch/optim/optimizer.py"),
        ("print(compiled(torch.save)(x, __import__('io').BytesIO()))", "torch/"),
        ("print(compiled(chatty.forward)(x))", "chatty/__init__.py"),
        ("assert compiled(chatty.Block())(x) is not None", "chatty/__init__.py"),
        ("[print(compiled(chatty.forward)(item)) for item in (x, x)]", "chatty/__init__.py"),
    ],
)
def test_a_break_outside_the_users_code_blames_no_line_of_the_users(tmp_path: Path, call: str, file: str) -> None:
    library = """
import torch
def forward(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2
class Block(torch.nn.Module):
    def forward(self, x):
        return forward(x)
"""
    inspection = recorded(tmp_path, f"import chatty\nnet(x).sum().backward()\n{call}\n", library)
    assert inspection.breaks
    for cause in inspection.breaks:
        assert cause.own_location is None, cause
        assert inner_file(cause).startswith(file)
    assert not any(item.replacements for finding in advise_breaks(inspection) for item in finding.advice.proposals)


def test_a_break_inside_a_library_keeps_the_users_line_that_led_there(tmp_path: Path) -> None:
    library = "import torch\ndef tell(x):\n    torch._dynamo.graph_break()\n    return x\n"
    program = "import chatty\ndef f(x):\n    y = chatty.tell(x + 1)\n    return y * 2\nprint(compiled(f)(x))\n"
    (cause,) = recorded(tmp_path, program, library).root_breaks
    assert own_code(cause) == "y = chatty.tell(x + 1)"
    assert inner_file(cause) == "chatty/__init__.py"


def test_what_a_line_left_to_python_calls_is_no_further_work(tmp_path: Path) -> None:
    program = """
def deep(x):
    torch._dynamo.graph_break()
    return x + 1
@torch._dynamo.decorators.skip
def tell(x):
    return deep(x)
def f(x):
    y = tell(x * 2)
    return y * 3
compiled(f)(x)
"""
    inspection = recorded(tmp_path, program)
    assert [own_code(cause) for cause in inspection.breaks] == ["y = tell(x * 2)", "torch._dynamo.graph_break()"]
    assert [cause.parent for cause in inspection.breaks] == [None, 0]
    assert inspection.descendant_breaks(inspection.breaks[0]) == inspection.breaks[1:]
    assert [finding.cause for finding in advise_breaks(inspection)] == [inspection.breaks[0]]
    assert "1 graph break." in str(inspection)


def test_what_was_traced_before_a_frame_was_given_up_is_no_further_work(tmp_path: Path) -> None:
    # Traced as part of `f`, the iterator is known; `inner` by itself gets it as an input, which Dynamo does not support.
    program = """
def inner(x, names):
    count = 0
    for name in names:
        count = count + len(name)
    for _ in range(2):
        torch._dynamo.graph_break()
        x = x + count
    return x
def f(x):
    for names in [iter({"a": 1, "b": 2}.keys())]:
        x = inner(x, names)
    return x
compiled(f)(x)
"""
    inspection = recorded(tmp_path, program)
    assert own_code(inspection.breaks[0]) == "torch._dynamo.graph_break()"
    assert [cause.parent for cause in inspection.breaks] == [None, 0]
    assert inspection.breaks[1].own_location is not None
    assert inspection.breaks[1].own_location.function == "inner"


@pytest.mark.parametrize(
    "body",
    [
        "torch._dynamo.graph_break(); y = x + 1\n    torch._dynamo.graph_break()\n    return y",
        "y = torch.ones(()) if x.sum() > 0 else x\n    print(y)\n    return y",
        "y = helper(x)\n    print(y)\n    return helper(y)",
    ],
)
def test_breaks_one_after_another_are_work_each(tmp_path: Path, body: str) -> None:
    program = f"def helper(x):\n    z = x.sum().item()\n    return x + z\ndef f(x):\n    {body}\ncompiled(f)(x)\n"
    inspection = recorded(tmp_path, program)
    assert len(inspection.breaks) >= 2
    assert all(cause.parent is None for cause in inspection.breaks)


def test_one_line_that_is_met_in_many_frames_is_one_cause(tmp_path: Path) -> None:
    program = """
import logging
log = logging.getLogger("layers")
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
    def forward(self, x):
        y = self.linear(x)
        log.warning("seen")
        return y.relu()
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Block() for _ in range(3)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
print(compiled(Model())(x).shape)
"""
    (cause,) = recorded(tmp_path, program).root_breaks
    assert own_code(cause) == 'log.warning("seen")'
    assert cause.hits > 1


def split_or_given_up(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    if y.sum() > 0:
        y = y + 1
    return y.cos()


def in_a_loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = split_or_given_up(x) * 2
    return x


@pytest.mark.parametrize(("function", "effect"), [(split_or_given_up, BreakEffect.SPLIT), (in_a_loop, BreakEffect.MIXED)])
def test_a_line_that_was_split_in_one_frame_and_gave_up_another_says_both(
    function: Callable[..., torch.Tensor], effect: BreakEffect
) -> None:
    torch._dynamo.reset()
    (cause,) = compile_inspect.inspect(function, torch.ones(3), backend="eager").breaks
    assert cause.effect is effect
