"""Programs whose files have the same names, in several folders, one after the other in one process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compile_inspect.fixes.planning import try_proposals
from compile_inspect.fixes.trial_runner import TrialRunner
from compile_inspect.records.fixes import ProofStatus
from conftest import quick_first

HELPERS = {
    "one": "def deep(x):\n    print('one')\n    return x * 2\n",
    "two": "def deep(x):\n    y = x.sin()\n    print('two', 'three')\n    return y * 3\n",
    "three": "import torch\n\n\ndef deep(x):\n    y = x * 2\n    print('three')\n    return torch.relu(y)\n",
}
PROGRAMS = {
    "imported at the top": "import helper\n\n\ndef target(x):\n    return helper.deep(x) + 1\n",
    "imported at the call": "def target(x):\n    import helper\n\n    return helper.deep(x) + 1\n",
    "a name imported at the call": "def target(x):\n    from helper import deep\n\n    return deep(x) + 1\n",
    "imported by name": "from importlib import import_module\n\n\ndef target(x):\n    return HELPER.deep(x)\n".replace(
        "def target", "HELPER = import_module('helper')\n\n\ndef target"
    ),
}


def standings(folder: Path, program: str, helper: str) -> list[tuple[ProofStatus, str]]:
    folder.mkdir()
    (folder / "model.py").write_text(program)
    (folder / "helper.py").write_text(helper)
    runner = TrialRunner(f"{folder / 'model.py'}:target", "float32[3]", backend="eager", samples=0, seconds=0.0)
    findings = try_proposals(runner)
    assert len(findings) == 1, [str(item.cause.location) for item in findings]
    place = findings[0].cause.location
    assert place is not None and place.file == str(folder / "helper.py")
    return [(proof.status, proof.reason) for _, proof in findings[0].trials]


@pytest.mark.slow
@pytest.mark.parametrize("name", quick_first(PROGRAMS, 1))
def test_what_one_program_imported_is_not_in_the_way_of_the_next(name: str, tmp_path: Path) -> None:
    path, modules = list(sys.path), set(sys.modules)
    helpers = (*HELPERS, "one") if name == "imported at the top" else ("one", "two")
    for index, helper in enumerate(helpers):
        found = standings(tmp_path / str(index), PROGRAMS[name], HELPERS[helper])
        assert found and all(standing is ProofStatus.PROVEN for standing, _ in found), found
    assert sys.path == path
    assert not {"model", "helper"} & (set(sys.modules) - modules)
