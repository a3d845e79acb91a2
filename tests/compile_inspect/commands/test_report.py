"""`compile-inspect report` and `compile-inspect verify` as a user meets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from invoking import invoke

import compile_inspect
from compile_inspect.capture_file import save
from compile_inspect.records import Compilation, CompilationOutcome, Inspection, Process
from conftest import ROOT, environment

PROGRAM = """
import torch

torch.manual_seed(0)
torch.set_num_threads(1)

def double(x):
    return (x * 2).sin()

def branch(x):
    if x.sum() > 0:
        return x * 2
    return x - 1

inputs = (torch.ones(8, 4),)
"""
WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numpy", "scipy", "daqp", "jinja2"):
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, Blocked())
from compile_inspect.commands import main
main()
"""


def in_a_process(
    *arguments: str, cwd: Path, program: tuple[str, ...] = ("-m", "compile_inspect"), **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *program, *arguments],
        env=environment(cwd / "cache", **variables),
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report")
    (path / "mine.py").write_text(PROGRAM)
    compilation = Compilation(
        "0/0", "forward", "model.py", 1, CompilationOutcome.COMPILED, seconds=1.0, graph_nodes=2, graph_calls=1
    )
    for name in ("one", "two"):
        save(Inspection(compilations=(compilation,), process=Process(pid=7, session=name)), path / f"{name}.inspection")
    return path


def test_a_page_is_made_without_torch(folder: Path) -> None:
    done = in_a_process("report", "one.inspection", "-o", "bare.html", cwd=folder, program=("-c", WITHOUT))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Wrote bare.html (")
    assert "No graph breaks and no recompiles: every frame was captured as one graph." in (folder / "bare.html").read_text()


def test_the_page_is_named_after_the_capture_and_replaces_its_own_kind_only(folder: Path) -> None:
    first = invoke("report", "two.inspection", cwd=folder)
    assert first.returncode == 0 and (folder / "two.html").is_file()
    before = (folder / "two.html").read_bytes()
    assert invoke("report", "two.inspection", cwd=folder).returncode == 0  # a name that nobody chose
    assert (folder / "two.html").read_bytes() == before
    refused = "compile-inspect: two.html already exists; choose another name with -o, or add --force to overwrite it\n"
    assert invoke("report", "two.inspection", "-o", "two.html", cwd=folder).stderr == refused
    (folder / "two.html").write_text("<!doctype html> my own page")
    assert invoke("report", "two.inspection", cwd=folder).stderr == refused
    assert invoke("report", "two.inspection", "--force", cwd=folder).returncode == 0
    assert (folder / "two.html").read_bytes() == before


def test_a_page_never_replaces_a_capture(folder: Path) -> None:
    before = (folder / "one.inspection").read_bytes()
    done = invoke("report", "one.inspection", "-o", "./one.inspection", "--force", cwd=folder)
    assert done.returncode == 2 and "is one of the captures" in done.stderr
    assert (folder / "one.inspection").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.inspection",), "there is no file missing.inspection"),
        (("mine.py",), "mine.py is not a capture of compile-inspect"),
        (("one.inspection", "--compare"), "--compare takes two captures, the earlier one first, not 1"),
        (("one.inspection", "-o", "nowhere/a.html"), "the directory nowhere does not exist; create it first"),
        (("one.inspection", "-o", "."), "is a directory; name a file in it"),
        (("one.inspection", "-o", "mine.py/a.html"), "mine.py is a file, not a directory"),
        (("one.inspection", "-o", "x" * 300 + ".html"), "choose another one with -o"),
        ((".",), ". is a directory, not a capture file"),
    ],
)
def test_mistakes_are_told_in_a_sentence(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = invoke("report", *arguments, cwd=folder)
    assert done.returncode == 2 and message in done.stderr
    assert len(done.stderr.strip().split("\n")) == 1


def test_links_are_followed_and_pipes_left_alone(folder: Path) -> None:
    (folder / "real.html").write_text("old")
    (folder / "link.html").symlink_to("real.html")
    done = invoke("report", "one.inspection", "-o", "link.html", "--force", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "link.html").is_symlink() and (folder / "real.html").read_text().startswith("<!doctype")
    os.mkfifo(folder / "pipe.html")
    done = invoke("report", "one.inspection", "-o", "pipe.html", "--force", cwd=folder)
    assert done.returncode == 2 and "is a device or a pipe" in done.stderr


def test_a_title_that_is_no_text_is_no_traceback(folder: Path) -> None:
    done = in_a_process("report", "one.inspection", "-o", "odd.html", "--title", "bad\udcff\u202e", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "<title>bad · compile-inspect</title>" in (folder / "odd.html").read_text()
    assert not list(folder.glob("*.writing")) and not list(folder.glob(".*.writing"))


def test_two_captures_are_compared(folder: Path) -> None:
    done = invoke("report", "one.inspection", "two.inspection", "--compare", "-o", "both.html", "--title", "a & b", cwd=folder)
    assert done.returncode == 0, done.stderr
    page = (folder / "both.html").read_text()
    assert "<title>a &amp; b · compile-inspect</title>" in page and done.stderr == ""
    ranks = [folder / "job.inspection", folder / "job.rank1.inspection"]
    for rank, path in enumerate(ranks):
        save(Inspection(process=Process(pid=rank, rank=rank, session="job")), path)
    done = invoke("report", ranks[0].name, "two.inspection", "--compare", "-o", "ranks.html", cwd=folder)
    assert done.stderr == "job.inspection: captures of other processes of the same program (1) are not compared.\n"


def test_verify_tells_what_agrees_and_joins_a_capture(folder: Path) -> None:
    done = invoke(
        "verify", "mine.py:branch", "--inputs", "mine.py:inputs", "--variants", "aot_eager,torchscript/trace",
        "--capture", "checked.inspection", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "aot_eager: it agrees with eager" in done.stdout
    assert "torchscript/trace:" in done.stdout and "blame:" in done.stdout
    assert "Next: compile-inspect report checked.inspection" in done.stdout
    (agreement,) = compile_inspect.load(folder / "checked.inspection").agreements
    assert [item.agrees for item in agreement.variants] == [True, False]
    page = invoke("report", "checked.inspection", cwd=folder)
    assert page.returncode == 0, page.stderr


def test_verify_speaks_json(folder: Path) -> None:
    done = invoke("verify", "mine.py:double", "--inputs", "mine.py:inputs", "--variants", "aot_eager", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert [item["verdict"] for item in json.loads(done.stdout)["variants"]] == ["AGREES"]


def test_verify_fails_where_nothing_could_be_compared(folder: Path) -> None:
    done = invoke("verify", "mine.py:double", "--inputs", "mine.py:inputs", "--variants", "cudagraphs", cwd=folder)
    assert done.returncode == 1
    assert done.stdout.endswith("\nNothing was compared: no variant could run.\n") and not done.stderr
    assert "needs tensors on a CUDA device" in done.stdout


@pytest.mark.slow
def test_a_missing_compiler_is_nobody_s_fault(folder: Path) -> None:
    done = in_a_process(
        "verify", "mine.py:double", "--inputs", "mine.py:inputs", "--variants", "inductor,eager-backend", "--samples", "0",
        cwd=folder, CXX="/nonexistent", TORCHINDUCTOR_CACHE_DIR=str(folder / "empty"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "No working C++ compiler found" in done.stdout and "blame" not in done.stdout


def test_verify_refuses_before_it_runs(folder: Path) -> None:
    done = invoke("verify", "mine.py:double", "--samples", "-1", cwd=folder)
    assert done.returncode == 2 and done.stderr == "compile-inspect: --samples is -1: it must be 0 or more\n"
    (folder / "broken.inspection").write_text("nothing")
    done = invoke("verify", "mine.py:double", "--capture", "broken.inspection", cwd=folder)
    assert done.returncode == 2 and "broken.inspection is not a capture of compile-inspect" in done.stderr


def test_tried_fixes_join_a_capture(folder: Path) -> None:
    done = invoke(
        "breaks", "mine.py:branch", "--inputs", "mine.py:inputs", "--backend", "eager", "--seconds", "0",
        "--capture", "breaks.inspection", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    inspection = compile_inspect.load(folder / "breaks.inspection")
    (finding,) = inspection.findings
    assert finding.best_proposal is not None and finding.best_proposal.title == "Choose with torch.where"
    assert inspection.breaks == (finding.cause,)
    assert invoke("report", "breaks.inspection", cwd=folder).returncode == 0
    (folder / "mine.py").write_text(PROGRAM.replace("return x * 2", "return x * 3"))
    other = invoke(
        "breaks", "mine.py:branch", "--inputs", "mine.py:inputs", "--backend", "eager", "--seconds", "0",
        "--capture", "breaks.inspection", cwd=folder,
    )  # fmt: skip
    (folder / "mine.py").write_text(PROGRAM)
    assert other.returncode == 2 and "was recorded with another version of" in other.stderr
    again = invoke("breaks", "breaks.inspection", "--capture", "one.inspection", cwd=folder)
    assert again.returncode == 2 and "nothing can be tried on it" in again.stderr


def test_the_shipped_assets_are_there() -> None:
    assets = ROOT / "src" / "compile_inspect" / "reporters" / "html" / "assets"
    script = (assets / "report.js").read_text()
    assert "</script" not in script.lower() and "<!--" not in script
    assert len(script) > 10_000 and (assets / "report.css").stat().st_size > 1_000
