"""What the target, torch and compilers print stays out of the answer, unless it is asked for."""

from __future__ import annotations

import dataclasses
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from invoking import invoke

from compile_inspect.silence import divert_output
from compile_inspect.timing import point_measurement
from compile_inspect.timing.sampling import Rounds, sample_rounds
from conftest import environment, quick_first

pytestmark = pytest.mark.filterwarnings("ignore:CHATTER")

# One line for each way in which a program can print.
PROGRAM = """
import logging
import os
import subprocess
import sys
import warnings

import torch

handler = logging.StreamHandler()  # keeps the stream of this moment
logging.getLogger("mine").addHandler(handler)
print("CHATTER at import")

def talk():
    print("CHATTER printed")
    print("CHATTER to errors", file=sys.stderr)
    warnings.warn("CHATTER warned")
    logging.getLogger("mine").warning("CHATTER logged")
    os.write(1, b"CHATTER by descriptor\\n")
    os.write(2, b"CHATTER by descriptor\\n")
    subprocess.run([sys.executable, "-S", "-c", "print('CHATTER of a child')"])



@torch.compiler.disable
def said(x):
    talk()
    return x

def model(x):
    return said(x) * 2 if not torch.jit.is_tracing() else x * 2

def inputs():
    return (torch.ones(4),)
"""
COMMANDS = {
    "verify": ("--samples", "0", "--variants", "eager-backend"),
    "bench": ("--seconds", "0.01", "--builds", "0", "--variants", "eager-backend"),
    "inspect": ("--backend", "eager", "--force"),
    "guards": (),
    "breaks": ("--backend", "eager", "--no-proof"),
}
SENTENCES = {
    "verify": "eager-backend agrees with eager: values at 1 input. Not probed:",
}
"""What is said last."""
WINNERS = {
    0.5: (
        "Use eager: nothing is faster. The next fastest variant is eager-backend: speedup over eager 0.50× (95 % interval "
        "0.50–0.50×).",
        "",
    ),
    1.0: ("Nothing is clearly faster than eager. The closest variant is eager-backend: speedup over eager 1.00×", ""),
    2.0: (
        "Use eager-backend: speedup over eager 2.00×",
        "Next: compile-inspect verify loud.py:model --inputs loud.py:inputs --variants eager-backend",
    ),
}
"""What `bench` says where the variant is so many times as fast as eager, and the command it leads to."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "loud.py").write_text(PROGRAM)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_but_the_answer_is_printed(command: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = invoke(command, "loud.py:model", "--inputs", "loud.py:inputs", *COMMANDS[command], cwd=folder)
    written = capfd.readouterr()
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and "CHATTER" not in done.stdout + done.stderr.replace("loud.py", "")
    assert "CHATTER" not in written.out + written.err
    if command != "bench":  # what that says last depends on what it measured
        last = done.stdout.rstrip().split("\n\n")[-1]
        assert last.startswith(SENTENCES.get(command, "")), last


@pytest.mark.parametrize("ratio", quick_first(WINNERS, 1))
def test_whichever_wins_the_answer_is_printed_last(
    ratio: float, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sampled(calls: dict[str, Callable[[], object]], **options: Any) -> Rounds:
        found = sample_rounds(calls, **options)  # the target is really called, and chatters
        times = {name: 1e-3 if name == "eager" else 1e-3 / ratio for name in calls}
        return dataclasses.replace(found, wall={name: (time,) * len(found.wall[name]) for name, time in times.items()})

    monkeypatch.setattr(point_measurement, "sample_rounds", sampled)
    done = invoke("bench", "loud.py:model", "--inputs", "loud.py:inputs", *COMMANDS["bench"], cwd=folder)
    written = capfd.readouterr()
    assert done.returncode == 0, done.stderr
    assert "CHATTER" not in done.stdout + done.stderr + written.out + written.err
    answer, following = WINNERS[ratio]
    *_, told, last = ["", *done.stdout.rstrip().split("\n\n")]
    if following:
        assert last == following
        last = told
    assert " ".join(last.split()).startswith(answer), last


@pytest.mark.parametrize("command", quick_first([name for name in COMMANDS if name != "breaks"], 2))
def test_verbose_shows_it(command: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = invoke(command, "loud.py:model", "--inputs", "loud.py:inputs", *COMMANDS[command], "--verbose", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "CHATTER at import" in done.stdout
    assert "CHATTER" in capfd.readouterr().out


def test_output_comes_back_also_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), divert_output() as seen:
        print("hidden")
        os.write(1, b"hidden\n")
        print("progress", file=seen)
        raise ZeroDivisionError
    print("visible")
    os.write(2, b"visible too\n")
    written = capfd.readouterr()
    assert written.out == "visible\n" and written.err == "progress\nvisible too\n"


def test_closed_descriptors_are_no_error(folder: Path) -> None:
    code = "from compile_inspect.silence import divert_output\nwith divert_output() as seen: print('x', file=seen)"
    done = subprocess.run(["sh", "-c", f'exec "{sys.executable}" -c "{code}" >&- 2>&-'], env=environment(folder / "cache"))
    assert done.returncode == 0


def test_a_crash_still_says_where(folder: Path) -> None:
    code = (
        "import os, signal\nfrom compile_inspect.silence import divert_output\n"
        "with divert_output():\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(folder / "cache"), capture_output=True, text=True)
    assert done.returncode < 0 and "Segmentation fault" in done.stderr


def test_progress_is_on_the_terminal_only(folder: Path) -> None:
    leader, follower = pty.openpty()
    code = (
        "import time\nfrom compile_inspect.commands.progress import working\n"
        "with working('comparing …') as say:\n    print('CHATTER'); say('trying …'); time.sleep(1.2)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment(folder / "cache", TERM="xterm"), stdout=subprocess.PIPE, stderr=follower
    ) as process:
        os.close(follower)
        seen = b""
        while True:
            try:
                part = os.read(leader, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
        assert process.stdout is not None and process.stdout.read() == b""
    assert "trying …" in seen.decode() and "CHATTER" not in seen.decode()
    assert re.search(r"0:00:0[1-9]", seen.decode())  # how many depends on when a busy machine draws
