"""Every block of every page runs as it stands, and prints what the page says; `page_blocks` has the rules."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
from page_blocks import LANGUAGES, ROOT, Block, Command, blocks, commands, pages
from promised_output import agrees

# Pages whose blocks a test of their own runs.
ELSEWHERE = {
    "docs/explanation/common-wrong-statements.md": "test_wrong_statements.py",
    "docs/how-to/from-torchscript.md": "test_wrong_statements.py",
}

# The blocks that are not run, each with the reason that the page gives. Nothing is added here that could run.
NOT_RUN: list[tuple[str, str]] = [
    ("README.md", "it creates an environment"),
    ("README.md", "it installs packages"),
    ("docs/how-to/inspect-a-program.md", "it installs packages"),
    ("docs/how-to/inspect-a-program.md", "it needs a torch without a function that is observed"),
    ("docs/how-to/put-it-into-ci.md", "it is a workflow; its commands are those above"),
    ("docs/index.md", "it installs packages"),
    ("docs/index.md", "it needs Docker"),
    ("docs/tutorials/tour.md", "it takes minutes; CI runs make tour"),
]


def test_blocks_that_are_not_run_are_these() -> None:
    found = [(page, block.not_run) for page in pages() if page not in ELSEWHERE for block in blocks(page) if block.not_run]
    assert found == NOT_RUN


def test_every_block_is_of_a_kind_that_is_looked_at() -> None:
    for page in pages():
        for block in blocks(page):
            assert block.language in LANGUAGES, f"{block.place}: {block.language or 'no language'}"
            if page not in ELSEWHERE:
                assert block.language != "text" or block.is_output or block.not_run, f"{block.place} is the output of nothing"
                assert block.language != "sh" or block.file or block.not_run, (
                    f"{block.place}: write console with '$ ', or name a file"
                )
        text = (ROOT / page).read_text(encoding="utf-8")
        fences = sum(line.lstrip().startswith("```") for line in text.split("\n"))
        assert fences == 2 * len(blocks(page)), f"{page} has a fence that is not closed"


def test_every_file_that_is_written_is_used() -> None:
    for page in pages():
        found = blocks(page)
        for index, block in enumerate(found):
            if block.file is not None and block.not_run is None and block.language != "yaml":
                name = Path(block.file)
                later = "\n".join(
                    other.text
                    for other in found[index + 1 :]
                    if other.language != "text" and other.not_run is None and other.file is None
                )
                assert name.name in later or f"import {name.stem}" in later or f"from {name.stem}" in later, (
                    f"{block.place} is written to {name} and never used"
                )


def test_everything_printed_is_compared() -> None:
    for page in pages():
        for block in blocks(page):
            if block.language == "python" and block.file is None and block.not_run is None and "print(" in block.text:
                assert block.promised is not None, f"{block.place} prints, and no text block says what"


def test_pages_with_a_test_of_their_own_have_it() -> None:
    for page, test in ELSEWHERE.items():
        if (ROOT / page).exists():
            assert Path(page).name in (Path(__file__).with_name(test)).read_text(encoding="utf-8"), page


def test_yaml_is_read() -> None:
    yaml = pytest.importorskip("yaml")
    for page in pages():
        for block in blocks(page):
            if block.language == "yaml":
                assert yaml.safe_load(block.text), block.place


def test_steps_of_a_workflow_are_commands_of_its_page() -> None:
    yaml = pytest.importorskip("yaml")
    found = blocks("docs/how-to/put-it-into-ci.md")
    typed = [command.text for block in found if block.language == "console" for command in commands(block)]
    (workflow,) = [yaml.safe_load(block.text) for block in found if block.language == "yaml"]
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert len(steps) == 4
    assert [step for step in steps if step not in typed] == [step for step in steps if step.startswith("pip install ")]


@pytest.mark.docs
@pytest.mark.parametrize("page", [page for page in pages() if page not in ELSEWHERE and blocks(page)])
def test_page(page: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    # The page lies beside what it writes: torch and blame read the lines of its blocks from there.
    copy = tmp_path / "page" / page
    copy.parent.mkdir(parents=True)
    shutil.copy(ROOT / page, copy)
    folder = tmp_path / "page"
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    for name in [name for name in os.environ if name.startswith(("TORCH", "COMPILE_INSPECT"))]:
        monkeypatch.delenv(name)
    # Pages share what the C++ compiler made, so that it runs less often. Every page begins without graphs, so that Inductor's
    # scheduler runs, and figures do not depend on the pages before.
    cache = tmp_path_factory.getbasetemp() / "inductor"
    for graphs in ("fxgraph", "aotautograd"):
        shutil.rmtree(cache / graphs, ignore_errors=True)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))
    monkeypatch.setenv("COMPILE_INSPECT_CACHE", str(tmp_path / "packages"))
    torch.compiler.reset()
    torch.manual_seed(0)
    known = set(sys.modules)
    try:
        session = _session(monkeypatch)
        for block in blocks(page):
            if block.not_run is not None or block.language == "text":
                continue
            if block.file is not None:
                path = folder / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                _execute(block, _session(monkeypatch) if block.alone else session)
            elif block.language == "console":
                for command in commands(block):
                    _run(page, command, folder)
    finally:
        for name in set(sys.modules) - known:  # a page's own files must not be found by the next page
            if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def _session(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    return module


def _execute(block: Block, session: types.ModuleType) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(
            compile("\n" * (block.line - 1) + block.text, block.page, "exec"), vars(session)
        )  # tracebacks name the page's line
    said = printed.getvalue()
    assert block.promised is None or agrees(block.promised, said), f"{block.place} prints\n{said}"


def _run(page: str, command: Command, folder: Path) -> None:
    """Run a command as in a terminal of 120 columns: what is said only to people is part of what a page shows."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TERM": "dumb",  # no spinners
        "NO_COLOR": "1",
        "COLUMNS": "120",
        "LINES": "50",
    }
    terminal, end = os.openpty()
    try:
        process = subprocess.Popen(
            ["bash", "-c", command.text], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=end, stderr=end
        )
        os.close(end)
        said = b""
        with contextlib.suppress(OSError):  # Linux says so when the last process has closed its end
            while piece := os.read(terminal, 65536):
                said += piece
        status = process.wait()
    finally:
        os.close(terminal)
    printed = said.decode(errors="replace").replace("\r\n", "\n")
    told = f"{page}:{command.line}: {command.text}\nended with {status} and printed\n{printed}"
    assert status == command.status, told
    assert command.shown is None or agrees(command.shown, printed), told
