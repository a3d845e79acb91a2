"""The newcomer's script on a repository made here, whose `make tour` takes no time: what is wrong is named.

On this repository itself it installs everything anew and takes minutes; `.ci/newcomer` does that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from readme_blocks import blocks_of, commands_of, left_out

ROOT = Path(__file__).resolve().parents[2]
PAGE = "<!DOCTYPE html><html lang='en' data-ready='1'><meta charset='utf-8'><title>t</title><body>{body}</body></html>"
README = """# Something

Take `script.py`:

```python
print("hello")
```

```console
$ compile-inspect run script.py
hello
$ compile-inspect run other.py
$ ls
```

<!-- not run: it would take a GPU -->
```python
raise SystemExit("this is not to be run")
```
"""


def repository(folder: Path, *, readme: str = README, body: str = "a report", report: str = "out/report.html") -> Path:
    """A repository with the parts that the script looks at; its environment is that of these tests."""
    for name in ("tests/newcomer", "tests/browser_pages.py", "tests/dockerfile_reader.py", ".ci/newcomer", ".ci/steps.sh"):
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    (folder / "README.md").write_text(readme)
    (folder / "page.html").write_text(PAGE.format(body=body))
    source = str(ROOT / "src")
    (folder / "Makefile").write_text(
        "tour: .venv/.ready\n"
        f"\tmkdir -p out && cp page.html {report}\n"
        '\ttest -z "$$SECRET" && test -z "$$(ls -A $$HOME | grep -v \'^[.]\')"\n'
        ".venv/.ready:\n"
        "\tmkdir -p .venv/bin\n"
        f"\tprintf '#!/bin/sh\\nPYTHONPATH={source} exec {sys.executable} \"$$@\"\\n' > .venv/bin/python\n"
        f"\tprintf '#!/bin/sh\\necho compile-inspect \"$$@\"\\n' > .venv/bin/compile-inspect\n"
        "\tchmod +x .venv/bin/*\n\ttouch .venv/.ready\n"
    )
    settings = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for words in (["init", "--quiet"], ["add", "--all"], [*settings, "commit", "--quiet", "--message", "all"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def newcomer(folder: Path, *steps: str) -> subprocess.CompletedProcess[str]:
    command = [str(folder / ".ci" / "newcomer"), *steps]
    variables = {**os.environ, "SECRET": "of this machine", "PYTHON": sys.executable}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=200)


def test_a_good_repository_passes_with_nothing_of_this_machine(tmp_path: Path) -> None:
    mine = f"of-{uuid4().hex}"  # other runs of the script leave folders where this one does
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / mine).touch()
    done = newcomer(repository(tmp_path / "good"), "tour", "report", "readme")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "== make tour\n   ok" in done.stdout
    assert "README.md:5 as script.py" in done.stdout
    assert "$ compile-inspect run script.py (" in done.stdout
    assert "$ compile-inspect run other.py: there is no other.py in the README" in done.stdout
    assert "it would take a GPU" in done.stdout
    assert "0 failed" in done.stdout.splitlines()[-1] or "left out: report" in done.stdout
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob(f"newcomer.*/checkout/{mine}"))


def test_a_block_that_fails_is_named(tmp_path: Path) -> None:
    wrong = README.replace('print("hello")', 'raise ValueError("the README is wrong here")')
    done = newcomer(repository(tmp_path / "wrong", readme=wrong), "readme")
    assert done.returncode == 1
    assert "FAILED README.md:5 as script.py" in done.stdout and "the README is wrong here" in done.stdout


def test_a_tour_without_a_report_fails(tmp_path: Path) -> None:
    done = newcomer(repository(tmp_path / "none", report="out/report.txt"), "tour", "report")
    assert done.returncode == 1
    assert "make tour wrote no .html file" in done.stdout


def test_a_report_that_complains_fails(tmp_path: Path) -> None:
    if not any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome", "chrome")):
        pytest.skip("no browser")
    done = newcomer(repository(tmp_path / "noisy", body="text <script>console.warn('hm')</script>"), "tour", "report")
    assert done.returncode == 1
    assert "report.html: warning: hm" in done.stdout


def test_a_step_that_is_not_there() -> None:
    done = newcomer(ROOT, "holiday")
    assert done.returncode == 2
    assert "there is no step 'holiday'" in done.stderr


def test_the_blocks_of_our_own_readme_are_found(tmp_path: Path) -> None:
    blocks = blocks_of((ROOT / "README.md").read_text(encoding="utf-8"))
    assert sum(block.language == "python" for block in blocks) >= 2
    assert any(list(commands_of(block)) for block in blocks if block.language == "console")
    for block in blocks:
        if block.language == "python":
            compile(block.text, f"README.md:{block.line}", "exec")


def test_what_cannot_be_typed(tmp_path: Path) -> None:
    (tmp_path / "model.py").touch()
    assert left_out("compile-inspect bench model.py:model", tmp_path) is None
    assert left_out("compile-inspect run -o new.inspection model.py", tmp_path) is None
    assert left_out("compile-inspect show new.inspection", tmp_path) == "there is no new.inspection in the README"
    assert left_out("compile-inspect fix … --apply", tmp_path) == "it has a placeholder"
    assert left_out("compile-inspect tour --quiz", tmp_path) == "it is the tour, which has its own step"
