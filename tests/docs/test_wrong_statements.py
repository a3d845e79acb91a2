"""The blocks of common-wrong-statements.md and from-torchscript.md run and print what the pages show; verdicts are counted."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATEMENTS = ROOT / "docs" / "explanation" / "common-wrong-statements.md"
TORCHSCRIPT = ROOT / "docs" / "how-to" / "from-torchscript.md"
SCRIPTS = Path(__file__).with_name("statements")

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VERDICTS = {"Wrong": "Wrong", "Outdated": "Outdated", "Right but incomplete": "Incomplete"}
NO_SECTION = "the page's first block"


@dataclass(frozen=True)
class Block:
    """A fenced block: where it is, what it holds, the output promised where a text block follows, the file it is written to."""

    page: Path
    section: str
    line: int
    language: str
    text: str
    promised: str | None
    file: str | None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    matches = list(FENCE.finditer(text))
    found = []
    for match, following in zip(matches, [*matches[1:], None], strict=True):
        promised = None
        if following is not None and following[1] == "text" and not text[match.end() : following.start()].strip():
            promised = following[2]
        titles = re.findall(r"^## (.+)$", text[: match.start()], re.MULTILINE)
        section = titles[-1] if titles else NO_SECTION
        named = re.search(r"`(\w+\.py)`:\s*\Z", text[: match.start()])
        line = text.count("\n", 0, match.start()) + 2
        found.append(Block(page, section, line, match[1], match[2], promised, named[1] if named else None))
    return found


def sections(page: Path) -> list[str]:
    return list(dict.fromkeys(block.section for block in blocks(page) if block.language == "python"))


def agrees(promised: str, printed: str) -> bool:
    """Whether the output is as promised; … stands for anything."""
    pattern = ".*?".join(re.escape(part) for part in promised.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def bullets(title: str) -> list[str]:
    """The items of the list under a heading, each on one line."""
    section = STATEMENTS.read_text(encoding="utf-8").split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    return [" ".join(item.split()) for item in re.findall(r"^- (.+?)(?=^- |\Z)", section, re.MULTILINE | re.DOTALL)]


def entries(text: str) -> dict[str, str]:
    """The entries of the page by their titles, each without the heading and the text of the next section."""
    found = [re.split(r"^## ", part, flags=re.MULTILINE)[0] for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]]
    return {title: entry for title, _, entry in (part.partition("\n") for part in found)}


def anchor(title: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def shows_a_run(entry: str) -> bool:
    """Whether an entry has a block of its own, or names the runs on other machines."""
    return "```python" in entry or "[the run](#runs-that-need-more-than-a-cpu)" in entry


def shown(script: str) -> str:
    """What the page shows below the command that runs a script."""
    (text,) = [block.text for block in blocks(STATEMENTS) if block.language == "console"]
    return re.split(r"^\$ ", text.split(f"$ python tests/docs/statements/{script}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def run_script(python: str, script: str, folder: Path) -> str:
    done = subprocess.run([python, str(SCRIPTS / script)], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Empty at first, and shared: the headers that Inductor compiles once for a cache take longer than all the rest."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def quiet_torch(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the test's own, nothing compiled, and torch as it was afterwards."""
    import torch

    for name in [name for name in os.environ if name.startswith(("TORCH", "COMPILE_INSPECT"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    folder = tmp_path / "page"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    torch.compiler.reset()
    torch.manual_seed(0)
    known = set(sys.modules)
    yield folder
    torch.compiler.reset()
    for name in set(sys.modules) - known:  # a page's own files must not be found by the next page
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(folder)):
            del sys.modules[name]


def run_session(session: list[Block], monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for block in session:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            # Blank lines before the code, so that tracebacks name the line of the page.
            exec(compile("\n" * (block.line - 1) + block.text, str(block.page), "exec"), vars(module))
        told = f"{block.page.name}:{block.line} prints\n{printed.getvalue()}"
        assert block.promised is None or agrees(block.promised, printed.getvalue()), told


@pytest.mark.docs
@pytest.mark.parametrize("section", [section for section in sections(STATEMENTS) if section != NO_SECTION])
def test_section_of_statements(section: str, quiet_torch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each section is a session that begins with the page's first block."""
    found = [block for block in blocks(STATEMENTS) if block.language == "python" and block.section in (NO_SECTION, section)]
    assert len(found) > 1
    run_session(found, monkeypatch)


@pytest.mark.docs
def test_page_about_torchscript(quiet_torch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One session. A block whose paragraph names a file is written to it, for the commands of the console blocks."""
    found = [block for block in blocks(TORCHSCRIPT) if block.language == "python"]
    assert len(found) > 10
    run_session([block for block in found if block.file is None], monkeypatch)
    for block in found:
        if block.file is not None:
            (quiet_torch / block.file).write_text(block.text, encoding="utf-8")
    consoles = [block for block in blocks(TORCHSCRIPT) if block.language == "console"]
    assert consoles
    for block in consoles:
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            words = shlex.split(command)
            assert words[0] == "compile-inspect"
            done = subprocess.run(
                [sys.executable, "-m", "compile_inspect", *words[1:]], capture_output=True, text=True, encoding="utf-8"
            )
            assert done.returncode == 0, done.stderr
            assert agrees(output, done.stdout), f"{block.page.name}:{block.line}: {command} prints\n{done.stdout}"


def right_claims() -> tuple[Callable[[], None], ...]:
    found = importlib.util.spec_from_file_location("right_claims", SCRIPTS / "right_claims.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    claims: tuple[Callable[[], None], ...] = module.CLAIMS
    return claims


@pytest.mark.docs
def test_statements_that_are_right(quiet_torch: Path) -> None:
    for claim in right_claims():
        claim()


def test_the_list_of_right_statements_is_that_of_the_checks() -> None:
    """Those that need more than a CPU name what they need."""
    here = [item for item in bullets("Right as they stand") if not re.search(r"\((H200|PyGRANSO 1\.2\.0)\)$", item)]
    assert here == [" ".join((claim.__doc__ or "").split()) for claim in right_claims()]


def test_the_counts_are_those_of_the_page() -> None:
    text = STATEMENTS.read_text(encoding="utf-8")
    table = {name: int(count) for name, count in re.findall(r"^\| ([A-Z][\w ]+) \| (\d+) \|$", text, re.MULTILINE)}
    verdicts = Counter(re.findall(r"^> ([A-Z][a-z ]+)\.$", text, re.MULTILINE))
    expected = {name: verdicts[verdict] for name, verdict in VERDICTS.items()}
    expected["Right as they stand"] = len(bullets("Right as they stand"))
    expected["Checked in all"] = sum(expected.values())
    expected["Not checked here"] = len(bullets("Not checked here"))
    assert table == expected
    assert set(verdicts) == set(VERDICTS.values())
    assert len(re.findall(r"^### ", text, re.MULTILINE)) == sum(verdicts.values()), "each entry has one verdict"


def test_every_entry_quotes_a_statement_and_shows_a_run() -> None:
    """Its own block, a link to the runs elsewhere, or a link to another entry that has one of these."""
    found = entries(STATEMENTS.read_text(encoding="utf-8"))
    assert len(found) > 50
    for title, entry in found.items():
        assert re.search(r'^> "(.|\n)+?"$', entry, re.MULTILINE), title
        others = [found[named] for named in found if f"[the entry above](#{anchor(named)})" in entry]
        assert any(shows_a_run(item) for item in [entry, *others]), title


def test_every_block_is_python_or_its_output() -> None:
    for page in (STATEMENTS, TORCHSCRIPT):
        found = blocks(page)
        promised = sum(block.promised is not None for block in found)
        assert {block.language for block in found} <= {"python", "text", "console"}
        assert sum(block.language == "text" for block in found) == promised, f"{page.name}: an output of nothing"


def test_runs_with_mlx(tmp_path: Path) -> None:
    python = os.environ.get("MLX_PYTHON")
    if python is None:
        pytest.skip("MLX_PYTHON names no interpreter with mlx")
    assert agrees(shown("mlx_claims.py"), run_script(python, "mlx_claims.py", tmp_path))


def test_runs_with_pygranso(tmp_path: Path) -> None:
    python = os.environ.get("PYGRANSO_PYTHON")
    if python is None:
        pytest.skip("PYGRANSO_PYTHON names no interpreter with pygranso")
    assert agrees(shown("pygranso_claims.py"), run_script(python, "pygranso_claims.py", tmp_path))


@pytest.mark.gpu
def test_runs_with_a_cuda_device(tmp_path: Path) -> None:
    assert agrees(shown("cuda_claims.py"), run_script(sys.executable, "cuda_claims.py", tmp_path))
