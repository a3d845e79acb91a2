"""Every command that is printed can be typed as it is printed; every remedy that is printed as code can be run."""

from __future__ import annotations

import ast
import contextlib
import linecache
import re
import runpy
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from invoking import Done, invoke

import compile_inspect
from compile_inspect import torch_private
from compile_inspect.capture_file import save
from compile_inspect.recompiles import Call, find_remedies, predict
from compile_inspect.records import Inspection
from compile_inspect.reporters.target_arguments import infer_target_arguments
from compile_inspect.target import Target
from conftest import quick_first

CLEAN = """
import torch

@torch.compile(backend="eager")
def step(x, y, scale=2):
    return (x * scale).sin() + y

if __name__ == "__main__":
    step(torch.ones(4, 3), torch.zeros(3), 3)
"""
ONE_BREAK = CLEAN.replace("    return (x", '    print("step")\n    return (x')
BROKEN_LATE = """
import torch

class Net(torch.nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x, *, mask=None):
        y = self.linear(x)
        print("late")
        return y if mask is None else y * mask

if __name__ == "__main__":
    torch.compile(Net(), backend="eager")(torch.ones(2, 4), mask=torch.ones(4))
"""
RECOMPILES = CLEAN.replace("    step(torch.ones(4, 3)", "    for n in (4, 8):\n        step(torch.ones(n, 3)")
NOTHING = """
import torch

@torch.compile(backend="eager")
def step(x):
    torch._dynamo.graph_break()
    return x

if __name__ == "__main__":
    step(torch.ones(4))
"""
FAILED = """
import torch

def backend(graph, inputs):
    raise RuntimeError("not today")

@torch.compile(backend=backend)
def step(x):
    return x * 2

if __name__ == "__main__":
    try:
        step(torch.ones(4))
    except Exception:
        pass
"""
UNGUARDED = ONE_BREAK.replace('if __name__ == "__main__":\n    step', "step")
CLOSURE = """
import torch

def make(k):
    @torch.compile(backend="eager")
    def inner(x):
        print("inner")
        return x * k
    return inner

if __name__ == "__main__":
    make(2)(torch.ones(4))
"""
PROGRAMS = {
    "clean": CLEAN,
    "one break": ONE_BREAK,
    "late break": BROKEN_LATE,
    "recompiles": RECOMPILES,
    "nothing compiled": NOTHING,
    "failed": FAILED,
    "unguarded": UNGUARDED,
    "closure": CLOSURE,
}
_PRINTED = re.compile(r"(?:Next: |: )(compile-inspect [^\n]+)$", re.MULTILINE)
# Options that change nothing about what a command means, and save the time of Inductor.
_QUICK = {
    "breaks": ("--backend", "eager", "--seconds", "0"),
    "fix": ("--backend", "eager", "--seconds", "0"),
    "bench": ("--variants", "eager-backend", "--seconds", "0.01", "--builds", "0"),
    "verify": ("--variants", "eager-backend", "--samples", "1"),
    "inspect": ("--backend", "eager", "--force"),
}


def record(folder: Path) -> Inspection:
    """Record a program as `run` does, within this process."""
    torch_private.forget_compiled_code()
    linecache.clearcache()
    with compile_inspect.record() as recording, contextlib.redirect_stdout(None):
        runpy.run_path(str(folder / "prog.py"), run_name="__main__")
    inspection = recording.inspection
    return replace(inspection, process=replace(inspection.process, command=("python", "prog.py")))


def typed(line: str, folder: Path) -> Done:
    """Type a command as it was printed."""
    _, command, *words = shlex.split(line)
    quick = _QUICK.get(command, ())
    left = [word for pair in zip(quick[::2], quick[1::2], strict=False) if pair[0] not in words for word in pair]
    left += [word for word in quick if word == "--force"]
    return invoke(command, *words, *dict.fromkeys(left) if command == "inspect" else left, cwd=folder)


def follow(first: str, folder: Path) -> dict[str, Done]:
    """Type a command, then all that are printed by it and by those, each once."""
    done: dict[str, Done] = {}
    waiting = [first]
    while waiting:
        line = waiting.pop(0)
        if line in done:
            continue
        done[line] = typed(line, folder)
        if "--help" not in line:  # which shows how commands are written, not one to type
            waiting += _PRINTED.findall(done[line].stdout)
    return done


@pytest.fixture(scope="module", params=quick_first(PROGRAMS, 2))
def followed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Done]]:
    folder = tmp_path_factory.mktemp("next")
    (folder / "prog.py").write_text(PROGRAMS[request.param])
    save(record(folder), folder / "prog.inspection")
    return request.param, follow("compile-inspect show prog.inspection", folder)


def test_what_is_printed_can_be_typed(followed: tuple[str, dict[str, Done]]) -> None:
    name, done = followed
    assert len(done) > 1, name
    for line, result in done.items():
        assert result.returncode != 2, f"{name}: {line}: {result.stderr}"
        assert "TARGET" not in line and "FILE" not in line
        assert "Traceback" not in result.stderr


def test_breaks_and_fix_are_reached_where_they_help(followed: tuple[str, dict[str, Done]]) -> None:
    name, done = followed
    commands = {shlex.split(line)[1] for line in done}
    if name in ("one break", "late break"):
        assert {"show", "breaks", "fix", "verify", "bench"} <= commands
        assert any(line.endswith("--apply") for line in done)
    if name in ("unguarded", "closure"):  # the target cannot be named: what is offered reads the capture
        assert "breaks" in commands and not commands & {"fix", "verify"}
    if name == "recompiles":
        assert "guards" in commands


def captured(text: str, folder: Path) -> tuple[str, ...] | None:
    (folder / "prog.py").write_text(text)
    return infer_target_arguments(record(folder))


@pytest.mark.parametrize(
    ("arguments", "call", "words"),
    [
        ("x, y=None", "torch.ones(2)", "float32[2]"),
        ("x, n, /", "torch.ones(2), 3", "float32[2], 3"),
        ("x, *, n=2", "torch.ones(2), n=5", "float32[2], n=5"),
        ("x, n", "torch.zeros((), dtype=torch.int64), 'sum'", "int64[], 'sum'"),
        ("*x", "torch.ones(2)", None),
        ("x", "[torch.ones(2)]", None),
    ],
)
def test_inputs_are_named_as_they_looked(arguments: str, call: str, words: str | None, tmp_path: Path) -> None:
    body = "x[0] if isinstance(x, (list, tuple)) else x"
    text = "import torch\n\n@torch.compile(backend='eager')\ndef step(ARGUMENTS):\n    USED\n    z = BODY\n    return z * 2\n\n"
    used = "assert n != 7" if "n" in arguments.replace("None", "") else "pass"
    text = text.replace("ARGUMENTS", arguments).replace("USED", used).replace("BODY", body)
    text += f"if __name__ == '__main__':\n    step({call})\n"
    folder = tmp_path
    found = captured(text, folder)
    assert (found[-1] if found is not None else None) == words


def test_hints_are_not_repeated_where_trials_tell_more(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ONE_BREAK)
    target = ("mine.py:step", "--inputs", "float32[4, 3], float32[3]")
    done = invoke("breaks", *target, "--backend", "eager", "--seconds", "0", "--capture", "mine.inspection", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = invoke("show", "mine.inspection", "breaks", cwd=tmp_path).stdout
    assert "  Fix  " in shown and "The break is gone" in shown.replace("the break", "The break")
    assert "Hints from torch" not in shown and "What to do" not in shown
    assert shown.rstrip().endswith("compile-inspect fix mine.py:step --inputs 'float32[4, 3], float32[3]'")


REMEDIES: dict[str, list[tuple[tuple[int, int], dict[str, Any]]]] = {
    "size": [((4, 3), {}), ((8, 3), {}), ((9, 3), {})],
    "float": [((4, 3), {"scale": 1.5}), ((4, 3), {"scale": 2.5}), ((4, 3), {"scale": 3.5})],
    "dtype": [((4, 3), {"dtype": "float64"}), ((4, 3), {})],
}


@pytest.mark.parametrize("case", REMEDIES)
def test_a_remedy_that_is_printed_as_code_is_code(case: str) -> None:
    import torch

    def function(x, scale=1.0):  # type: ignore[no-untyped-def]
        return x * scale

    calls = []
    for shape, given in REMEDIES[case]:
        dtype = getattr(torch, str(given.get("dtype", "float32")))
        calls.append(Call((torch.ones(shape, dtype=dtype),), {"scale": given["scale"]} if "scale" in given else {}))
    target = Target(function, calls[0].args, calls[0].kwargs)
    treatments = find_remedies(target, calls, predict(target, calls))
    codes = [remedy.code for item in treatments for remedy in item.remedies if remedy.code]
    assert codes
    for code in codes:
        ast.parse(code)
    assert any(remedy.proof is not None for item in treatments for remedy in item.remedies)
