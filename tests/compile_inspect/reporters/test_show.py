"""The command `compile-inspect show`, with captures that need no file."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from collections.abc import Sequence
from pathlib import Path

import pytest
import samples
import typer
from typer.testing import CliRunner

from compile_inspect.commands.show import show, split_arguments
from compile_inspect.errors import InspectError
from compile_inspect.records import Inspection
from compile_inspect.reporters import SECTIONS

ESCAPE = "\x1b"


@pytest.fixture(autouse=True)
def captures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Any file name loads the full sample."""

    def load_together(paths: Sequence[Path]) -> list[tuple[Path, Inspection]]:
        return [(path, samples.everything()) for path in paths]

    module = types.ModuleType("compile_inspect.capture_file")
    module.load_together = load_together  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "compile_inspect.capture_file", module)
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str) -> str:
    """What the command prints; errors are raised."""
    application = typer.Typer()
    application.command()(show)
    result = CliRunner().invoke(application, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_summary_is_the_default_section() -> None:
    assert run("step.inspection").startswith("1 compilation failed, ")
    assert run("step.inspection", "summary") == run("step.inspection")


def test_the_last_argument_may_be_a_section() -> None:
    assert run("step.inspection", "breaks").startswith("Graph break 1 of 2: ")
    assert run("a", "b", "breaks").startswith("identical in 2 processes: ")
    assert run("a", "b", "breaks").endswith("Next: compile-inspect breaks a\n")


def test_a_section_wins_over_a_file_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "breaks").touch()
    assert split_arguments(["a", "breaks"]) == ([Path("a")], "breaks")
    assert split_arguments(["a", "./breaks"]) == ([Path("a"), Path("breaks")], "summary")
    assert split_arguments(["breaks", "time"]) == ([Path("breaks")], "time")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "breks"], "there is no section 'breks', and no file of that name; the sections are summary, failures, graphs,"),
        (["breaks"], "name a capture file before the section: compile-inspect show FILE breaks"),
        (["breaks", "a.inspection"], "the section comes last: compile-inspect show FILE breaks"),
        (["a", "--trace", "t.json"], "--trace needs the section time: compile-inspect show FILE time --trace t.json"),
        (["a", "--compilation", "5/5"], "there is no compilation '5/5' in this capture"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], message: str) -> None:
    with pytest.raises(InspectError) as caught:
        run(*arguments)
    assert str(caught.value).startswith(message)


def test_json_is_one_line_for_programs() -> None:
    text = run("step.inspection", "breaks", "--json", "--limit", "1")
    assert text.count("\n") == 1
    data = json.loads(text)
    assert data["processes"][0]["file"] == "step.inspection"
    assert [item["identifier"] for item in data["processes"][0]["breaks"]] == ["GB0059"]


def test_without_a_terminal_the_width_is_fixed_and_there_is_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    text = run("step.inspection", "cache")
    assert ESCAPE not in text
    assert max(map(len, text.split("\n"))) <= 120
    assert "Cannot cache a custom autograd function" in text  # wraps at rich's own default of 80
    monkeypatch.setenv("COLUMNS", "70")
    assert "Cannot cache a custom autograd function" not in run("step.inspection", "cache")


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert ESCAPE + "[1;31m1 compilation failed" in run("step.inspection")
    assert ESCAPE + "[1m1 compilation failed" in run("step.inspection", "--no-color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert ESCAPE + "[1m1 compilation failed" in run("step.inspection")


def test_trace_is_written_once_and_says_how_to_open_it(tmp_path: Path) -> None:
    text = run("step.inspection", "time", "--trace", "t.json")
    assert text.startswith("Wrote t.json. To view it, open https://ui.perfetto.dev and drop the file there.\n")
    assert "Phases by own time" in text
    assert len(json.loads((tmp_path / "t.json").read_text())["traceEvents"]) == 9
    with pytest.raises(InspectError, match=r"t\.json already exists; choose another name, or add --force"):
        run("step.inspection", "time", "--trace", "t.json")
    run("step.inspection", "time", "--trace", "t.json", "--compilation", "0/1", "--force")
    assert len(json.loads((tmp_path / "t.json").read_text())["traceEvents"]) == 3
    assert json.loads(run("step.inspection", "time", "--trace", "u.json", "--json"))["section"] == "time"


def test_a_trace_that_cannot_be_written_is_explained() -> None:
    with pytest.raises(InspectError, match=r"the trace cannot be written to nowhere/t\.json: No such file"):
        run("step.inspection", "time", "--trace", "nowhere/t.json")


def test_the_help_names_every_section() -> None:
    assert all(name in (show.__doc__ or "") for name in SECTIONS)


_PIPED = """
import sys, types
sys.path.insert(0, {tests!r})
import samples, typer
module = types.ModuleType("compile_inspect.capture_file")
module.load_together = lambda paths: [(path, samples.large()) for path in paths]
sys.modules["compile_inspect.capture_file"] = module
from compile_inspect.commands.show import show
application = typer.Typer()
application.command()(show)
application(["big", "guards"])
"""


def test_a_reader_that_stops_early_causes_no_traceback() -> None:
    program = _PIPED.format(tests=str(Path(__file__).parent))
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("Compilation 0/0")
        process.stdout.close()
        assert process.stderr.read() == ""
