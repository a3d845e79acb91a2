"""The command line as a user meets it."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from invoking import Done, invoke

from compile_inspect.capture_file import save
from compile_inspect.records import Inspection
from compile_inspect.reporters import SECTIONS
from conftest import ROOT, environment

READING = [
    [],
    ["--help"],
    ["--version"],
    ["show", "--help"],
    ["run", "--help"],
    ["inspect", "--help"],
    ["tour", "--help"],
    ["bench", "--help"],
]


def command(*arguments: str, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "compile_inspect", *arguments],
        env=environment(Path("cache"), **more),
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
    )


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "a.inspection"
    save(Inspection(notes=("hello",)), path)
    return path


# Importing torch raises in these tests: what only reads must not need it.
@pytest.fixture
def without_torch(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "poison" / "torch").mkdir(parents=True)
    (tmp_path / "poison" / "torch" / "__init__.py").write_text("raise ImportError('torch was imported')")
    return {"PYTHONPATH": f"{tmp_path / 'poison'}:{ROOT / 'src'}"}


# Many commands in one process, each with an output of its own.
ONE_AFTER_THE_OTHER = """
import contextlib, io, json, sys
from compile_inspect.commands import main

found = []
for arguments in json.load(sys.stdin):
    output, errors, status = io.StringIO(), io.StringIO(), 0
    sys.argv = ["compile-inspect", *arguments]
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as ended:
            status = ended.code or 0
    found.append([status, output.getvalue(), errors.getvalue()])
json.dump(found, sys.stdout)
"""


def one_after_the_other(commands: list[list[str]], **more: str) -> list[Done]:
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_THE_OTHER],
        env=environment(Path("cache"), **more),
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [Done(*item) for item in json.loads(done.stdout)]


def test_help_needs_no_torch(without_torch: dict[str, str]) -> None:
    for arguments, done in zip(READING, one_after_the_other(READING, **without_torch), strict=True):
        assert done.returncode == (2 if not arguments else 0), (arguments, done)
        assert "compile-inspect" in done.stdout, (arguments, done)
        assert "torch was imported" not in done.stderr, (arguments, done)


def test_reading_needs_no_torch(capture: Path, without_torch: dict[str, str]) -> None:
    commands = [["show", str(capture), section, *last] for section in SECTIONS for last in ([], ["--json"])]
    for arguments, done in zip(commands, one_after_the_other(commands, **without_torch), strict=True):
        assert done.returncode == 0 and done.stdout, (arguments, done)
        if arguments[-1] == "--json":
            assert json.loads(done.stdout)["section"] == arguments[2]
        else:
            assert done.stdout.splitlines()[-1].startswith("Next: compile-inspect "), (arguments, done)


def test_without_arguments_help_is_printed_and_the_status_is_2(without_torch: dict[str, str]) -> None:
    done = command(**without_torch)
    assert done.returncode == 2 and "compile-inspect" in done.stdout


def test_help_and_show_are_quick(capture: Path) -> None:
    """Measured in what an import of typer and rich takes, which both need: how fast the machine is does not matter."""
    imports = [sys.executable, "-c", "import rich.console, rich.markdown, rich.table, typer"]
    for arguments in (["--help"], ["show", str(capture)]):
        words = [sys.executable, "-m", "compile_inspect", *arguments]
        ours, least = [_seconds(words)], [_seconds(imports)]
        while min(ours) >= 5 * min(least) and len(ours) < 5:  # in turns: the machine may be busy
            ours.append(_seconds(words))
            least.append(_seconds(imports))
        # It is one and a half times; torch alone takes ten times as long.
        assert min(ours) < 5 * min(least), f"{arguments} took {min(ours):.2f} s, and the imports {min(least):.2f} s"


def _seconds(words: list[str]) -> float:
    """What a process takes of a processor, which other work beside it changes little."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, env=environment(Path("cache")), capture_output=True, check=True, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show", "missing.inspection"], "there is no file missing.inspection"),
        (["show", "{capture}", "kernel"], "there is no section 'kernel'"),
        (["show", "breaks"], "name a capture file before the section"),
        (["show", "{capture}", "breaks", "--trace", "x"], "--trace needs the section time"),
        (["run", "missing.py"], "there is no file missing.py"),
        (["run", "-o", "{capture}", "{script}"], "exists already"),
        (["run", "-o", "no/such/dir/x", "{script}"], "does not exist"),
        (["inspect", "nothing"], "does not name a target"),
        (["inspect", "missing.py:x"], "there is no file missing.py"),
        (["inspect", "{script}:x", "--option", "a"], "is not of the form NAME=VALUE"),
        (["inspect", "{script}:x", "-o", "{capture}"], "exists already"),
    ],
)
def test_mistakes_get_one_sentence_and_status_2(arguments: list[str], sentence: str, capture: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("x = 1")
    done = invoke(*(item.format(capture=capture, script=script) for item in arguments), cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stdout == ""


def test_a_damaged_capture_gets_one_sentence_and_status_2(tmp_path: Path) -> None:
    path = tmp_path / "a.inspection"
    save(Inspection(), path)
    path.write_bytes(path.read_bytes()[:-30])
    done = invoke("show", str(path), cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_reader_that_leaves_early_is_no_error(capture: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m compile_inspect show {capture} | true",
        shell=True,
        env=environment(Path("cache")),
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""


def test_a_program_without_torch_is_recorded_without_it(tmp_path: Path, without_torch: dict[str, str]) -> None:
    (tmp_path / "script.py").write_text(
        "import sys; print('ran', sys.argv[1:], sorted(m for m in sys.modules if m == 'torch'))"
    )
    done = command(
        "run", "--quiet", "script.py", "-o", "mine", "--force", "-m", "--help", "--", "x y", cwd=tmp_path, **without_torch
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "ran ['-o', 'mine', '--force', '-m', '--help', '--', 'x y'] []\n"
    shown = invoke("show", "script.inspection", cwd=tmp_path)
    assert "Nothing was compiled during the recording." in shown.stdout


def test_the_users_own_sitecustomize_still_runs(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.customized = 'yes'")
    (tmp_path / "script.py").write_text("import sitecustomize; print(customized, sitecustomize.__file__)")
    path = f"{tmp_path / 'site'}:{ROOT / 'src'}"
    done = command("run", "script.py", cwd=tmp_path, PYTHONPATH=path)
    assert done.stdout == f"yes {tmp_path / 'site' / 'sitecustomize.py'}\n", done.stderr


def test_modules_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text(
        "import sys; print(__name__, __package__, sys.argv[1:], sys.stdin.read())"
    )
    done = subprocess.run(
        [sys.executable, "-m", "compile_inspect", "run", "-m", "package", "-v"],
        env=environment(Path("cache")),
        input="piped",
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "__main__ package ['-v'] piped\n"), done.stderr
    assert (tmp_path / "package.inspection").exists()


def test_inspect_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\n\ndef double(x):\n    print('!')\n    return x * 2\n\ninputs = (torch.ones(3),)\n"
    )
    done = command("inspect", "mine.py:double", "--inputs", "mine.py:inputs", "--backend", "eager", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 graph break" in done.stdout
    assert "GB0059" in done.stdout
    assert (tmp_path / "double.inspection").exists()
    refused = invoke(
        "inspect", "mine.py:double", "--inputs", "mine.py:inputs", "--backend", "eager", "--fullgraph", "--force", cwd=tmp_path
    )
    assert refused.returncode == 1
    told = "Compilation 0/0 of double failed: Unsupported: Failed to trace builtin operator (mine.py:4)."
    assert told in " ".join(refused.stdout.split())


def test_a_program_that_dies_before_anything_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import torch\n\nsizes = {}\nprint(sizes['batch'])\n")
    done = command("run", "script.py", cwd=tmp_path)
    assert done.returncode == 1 and "KeyError: 'batch'" in done.stderr
    shown = invoke("show", "script.inspection", cwd=tmp_path)
    assert shown.stdout.startswith("The run ended with an exception before anything was compiled.")
    assert "The run ended with an exception: KeyError: 'batch' (script.py:4)." in shown.stdout
    assert shown.stdout.rstrip().endswith("Next: compile-inspect show script.inspection failures")
    broken = invoke("breaks", "script.inspection", cwd=tmp_path)
    assert broken.returncode == 1
    assert broken.stdout == (
        "No graph break was recorded before this. The run ended with an exception: KeyError: 'batch' (script.py:4).\n"
        "Next: compile-inspect show script.inspection failures\n"
    )


def test_an_exception_that_the_program_handled_did_not_end_it(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import code, torch\n\ncode.InteractiveInterpreter().runsource('1 / 0')\n")
    assert command("run", "script.py", cwd=tmp_path).returncode == 0
    shown = invoke("show", "script.inspection", cwd=tmp_path)
    assert shown.stdout.startswith("Nothing was compiled during the recording.")
