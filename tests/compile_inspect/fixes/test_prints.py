"""What is written in the place of a print, exactly."""

from __future__ import annotations

import pytest

from compile_inspect.fixes import advise
from compile_inspect.fixes.source import apply
from compile_inspect.records import BreakEffect, GraphBreak, Location


def fixed(text: str, line: int) -> str:
    cause = GraphBreak("Failed to trace builtin operator", None, Location("/home/me/model.py", line), BreakEffect.SPLIT)
    advice = advise(cause, {"/home/me/model.py": text})
    assert advice.proposals, advice
    assert advice.proposals[0].fixer == "prints"
    return apply(text, advice.proposals[0].replacements)


CASES = {
    "plain": (
        "import torch\ndef f(x):\n    print(x)  # why\n    return x\n",
        3,
        "import torch\ndef f(x):\n    if not torch.compiler.is_compiling():\n        print(x)  # why\n    return x\n",
    ),
    "tabs and several lines": (
        "import torch\ndef f(x):\n\tprint(x,  # one\n\n\t      x)\n\treturn x\n",
        3,
        "import torch\ndef f(x):\n\tif not torch.compiler.is_compiling():\n\t\tprint(x,  # one\n\n\t\t      x)\n\treturn x\n",
    ),
    "semicolons": (
        "import torch\ndef f(x):\n    y = x; print('ä', x); return y\n",
        3,
        "import torch\ndef f(x):\n    y = x; torch.compiler.is_compiling() or print('ä', x); return y\n",
    ),
    "in the line of an if": (
        "import torch\ndef f(x):\n    if x.dim(): print(x)\n    return x\n",
        3,
        "import torch\ndef f(x):\n    if x.dim(): torch.compiler.is_compiling() or print(x)\n    return x\n",
    ),
    "torch by another name": (
        "import torch as th\ndef f(x):\n    print(x)\n    return x\n",
        3,
        "import torch as th\ndef f(x):\n    if not th.compiler.is_compiling():\n        print(x)\n    return x\n",
    ),
    "without torch": (
        "from helpers import g\n\ndef f(x):\n    logger.info('%s', x)\n    return g(x)\n",
        4,
        "from helpers import g\nimport torch\n\ndef f(x):\n    if not torch.compiler.is_compiling():\n"
        "        logger.info('%s', x)\n    return g(x)\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_only_the_lines_of_the_fix_change(name: str) -> None:
    text, line, expected = CASES[name]
    assert fixed(text, line) == expected


@pytest.mark.parametrize(
    "statement", ["print(self.meter.update(x))", "print(n := 3)", "y = print(x)", "math.log(x)", "x.log()", "self.log(x)"]
)
def test_what_is_used_or_does_not_tell_anything_is_left(statement: str) -> None:
    cause = GraphBreak("Failed to trace builtin operator", None, Location("/home/me/model.py", 2), BreakEffect.SPLIT)
    advice = advise(cause, {"/home/me/model.py": f"def f(self, x):\n    {statement}\n    return x\n"})
    assert not any(proposal.is_rewrite for proposal in advice.proposals if proposal.fixer == "prints")
