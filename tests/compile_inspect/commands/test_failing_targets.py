"""Targets that fail, that cannot be compiled, or of which nothing is compiled: no command calls them clean."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from invoking import Done, invoke

HEAD = "import torch\nfrom torch.nn import functional as F\n\nx = torch.ones(3, 4)\n\n\n"

FAILS_IN_EAGER = {
    "width": ("layer = torch.nn.Linear(5, 2)\n\n\ndef target():\n    return layer(x)\n", "mat1 and mat2", 11),
    "lookup": ("names = {}\n\n\ndef target():\n    return x * names['scale']\n", "KeyError: 'scale'", 11),
    "assertion": ("def target():\n    assert x.shape[0] == 7, 'seven rows'\n    return x\n", "AssertionError: seven rows", 8),
    "dtype": (
        "table = torch.ones(9, 2)\n\n\ndef target():\n    return F.embedding(x, table)\n",
        "Expected tensor",
        11,
    ),
    "own": ("def inner(y):\n    raise ValueError('no')\n\n\ndef target():\n    return inner(x)\n", "ValueError: no", 8),
    "backward": (
        "class Bad(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, y):\n        return y * 2\n\n"
        "    @staticmethod\n    def backward(ctx, g):\n        raise ArithmeticError('no slope')\n\n\n"
        "y = torch.ones(3, requires_grad=True)\n\n\ndef target():\n    return Bad.apply(y).sum()\n",
        "ArithmeticError: no slope",
        14,
    ),
}

FAILS_TO_COMPILE = {
    name: f"def target():\n    try:\n        return {code}\n    except RuntimeError:\n        return x + 1\n"
    for name, code in {
        "view": "x.view(3, 5)",
        "product": "x @ x",
        "broadcast": "x + torch.ones(7)",
        "concatenation": "torch.cat([x, torch.ones(2, 9)])",
        "linear": "F.linear(x, torch.ones(2, 9))",
        "stack": "torch.stack([x, torch.ones(1)])",
    }.items()
}

NOTHING_COMPILED = {
    "a generator": "def target():\n    yield x + 1\n",
    "nothing to do": "def target():\n    return x\n",
    "numbers only": "def target():\n    return sum(range(9))\n",
    "a type": "def target():\n    return isinstance(x, torch.Tensor)\n",
    "a list": "def target():\n    return [x, x]\n",
    "a shape": "def target():\n    return x.shape[0] * 2\n",
}

ONE_BREAK = "def target():\n    y = x + 1\n    print(len(y))\n    return y * 2\n"
CLEAN = "def target():\n    return (x + 1).relu()\n"

COMMANDS = {
    "breaks": ("breaks", "model.py:target", "--backend", "eager", "--seconds", "0"),
    "fix": ("fix", "model.py:target", "--backend", "eager", "--seconds", "0"),
    "inspect": ("inspect", "model.py:target", "--backend", "eager", "--force"),
    "guards": ("guards", "model.py:target"),
    "verify": ("verify", "model.py:target", "--variants", "eager-backend", "--samples", "0"),
    "bench": ("bench", "model.py:target", "--variants", "eager-backend", "--builds", "0", "--seconds", "0.05"),
}
TRACING = ("breaks", "fix", "inspect", "guards")
CLAIMS = (
    "frame was captured as one graph",
    "No graph breaks and",
    "No graph breaks, but",
    "nothing to fix",
    "agrees with eager",
    "raises, as eager",
    "No graph breaks:",
)


def every_name_with(command: str, names: Iterable[str], *fully: str) -> list[Any]:
    """Pairs: every name with one of the commands that trace, some names with all; the others are for long runs."""
    return [
        (name, each) if each == command or name in fully else pytest.param(name, each, marks=pytest.mark.exhaustive)
        for name in names
        for each in TRACING
    ]


def typed(command: str, source: str, folder: Path) -> Done:
    (folder / "model.py").write_text(HEAD + source)
    return invoke(*COMMANDS[command], cwd=folder)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", FAILS_IN_EAGER)
def test_a_target_that_fails_in_eager_mode_is_refused_with_its_line(name: str, command: str, tmp_path: Path) -> None:
    source, message, line = FAILS_IN_EAGER[name]
    done = typed(command, source, tmp_path)
    assert done.returncode == 2, done.stdout
    assert not done.stdout
    assert done.stderr.startswith("compile-inspect: the target fails in eager mode: ")
    assert message in done.stderr
    if not (name == "backward" and command == "verify"):
        assert f"model.py:{line} in " in done.stderr
    assert not any(claim in done.stderr for claim in CLAIMS)


@pytest.mark.parametrize(("name", "command"), every_name_with("inspect", FAILS_TO_COMPILE, "view"))
def test_a_compilation_that_fails_comes_first_with_its_cause_and_line(name: str, command: str, tmp_path: Path) -> None:
    done = typed(command, FAILS_TO_COMPILE[name], tmp_path)
    assert done.returncode == 1, done.stderr
    assert "Compilation 0/0 of target failed: RuntimeError: " in " ".join(done.stdout.split())
    assert "making fake tensor call" not in done.stdout
    assert "model.py:9" in done.stdout
    assert not any(claim in done.stdout for claim in CLAIMS)
    if command == "inspect":
        assert done.stdout.startswith("1 compilation failed.")
        assert done.stdout.rstrip().endswith("Next: compile-inspect show target.inspection failures")


@pytest.mark.parametrize(("name", "command"), every_name_with("breaks", NOTHING_COMPILED, "a generator", "nothing to do"))
def test_that_nothing_was_compiled_is_said(name: str, command: str, tmp_path: Path) -> None:
    done = typed(command, NOTHING_COMPILED[name], tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith(("Nothing was compiled", "Nothing runs compiled"))
    assert not any(claim in done.stdout for claim in CLAIMS)


def test_why_nothing_is_compiled_is_said_where_it_is_known(tmp_path: Path) -> None:
    source = "@torch.compiler.disable\ndef inner():\n    return x + 1\n\n\ndef target():\n    return inner()\n"
    done = typed("breaks", source, tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("Nothing runs compiled: no graph contains an operation.\nGraph break 1 of 1: ")
    assert typed("inspect", source, tmp_path).stdout.startswith(
        "Nothing runs compiled: torch traced 1 frame and built no graph; "
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_one_break(command: str, tmp_path: Path) -> None:
    done = typed(command, ONE_BREAK, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    first = {"breaks": "Graph break 1 of 1", "inspect": "1 graph break."}
    assert first.get(command, "") in done.stdout  # behind what the target itself prints


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("before", ["", "@torch.compiler.disable\n"], ids=["plain", "disabled, which torch.compile ignores"])
def test_clean(command: str, before: str, tmp_path: Path) -> None:
    done = typed(command, before + CLEAN, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    first = {
        "breaks": "No graph breaks: every frame was captured as one graph.",
        "fix": "No graph breaks: every frame was captured as one graph. There is nothing to fix.",
        "inspect": "No graph breaks and no recompiles.",
    }
    assert done.stdout.startswith(first.get(command, ""))
