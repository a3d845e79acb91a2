"""The reference has exactly the public names, and the commands as they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import compile_inspect
import nonsmooth
import nonsmooth.terms

DOCS = Path(__file__).resolve().parents[2] / "docs"


PACKAGES = {compile_inspect: [compile_inspect], nonsmooth: [nonsmooth, nonsmooth.terms]}
"""The modules with public names, by packages."""


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_the_reference_has_exactly_the_public_names(package: ModuleType) -> None:
    page = (DOCS / "reference" / f"{package.__name__}.md").read_text(encoding="utf-8")
    named = re.findall(r"^::: ([\w.]+)$", page, re.MULTILINE)
    assert sorted(named) == sorted(f"{module.__name__}.{name}" for module in PACKAGES[package] for name in module.__all__)
    assert page.count(":::") == len(named)


def test_the_page_of_the_commands_is_current() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCS / "generate_commands.py")], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    page = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    assert page == done.stdout, "run: python docs/generate_commands.py --update"
