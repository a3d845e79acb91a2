"""Paste every Python block of a README into a file and run it, and run its `compile-inspect` commands, in one folder.

    python tests/newcomer/readme_blocks.py README.md FOLDER

A block whose paragraph before it names a file, as in "`script.py`", goes into that file; each stands for itself. Commands
are the lines of `console` blocks that begin with `$`. Exits with 1 if one of them failed. What is left out is named with
the reason: a block that its page marks as not run, a file that the page does not give, a placeholder.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = ("compile-inspect", "python -m compile_inspect")
TIMEOUT = 900


@dataclass(frozen=True)
class Block:
    """A fenced block and the paragraph before it."""

    language: str
    text: str
    line: int
    before: str

    @property
    def file(self) -> str | None:
        """The Python file that the paragraph before names last."""
        named = re.findall(r"`([\w-]+\.py)`", self.before)
        return named[-1] if named else None

    @property
    def reason(self) -> str | None:
        """Why the page says it is not run."""
        found = re.search(r"<!--\s*not run: (.*?)\s*-->", self.before)
        return found[1] if found else None


def blocks_of(page: str) -> tuple[Block, ...]:
    """All fenced blocks of a page."""
    found = []
    for match in BLOCK.finditer(page):
        before = re.split(r"\n```\n|\n#+ [^\n]*\n", page[: match.start()])[-1].strip().split("\n\n")[-1]
        found.append(Block(match[1], match[2], page.count("\n", 0, match.start()) + 1, before))
    return tuple(found)


def commands_of(block: Block) -> Iterator[str]:
    """The commands of a console block that this package answers."""
    for line in block.text.splitlines():
        command = line.removeprefix("$ ").split("  #")[0].strip()
        if line.startswith("$ ") and command.startswith(COMMANDS):
            yield command


def left_out(command: str, folder: Path) -> str | None:
    """Why a command cannot be typed as it stands."""
    words = shlex.split(command)
    if "…" in command or "/path/to" in command:
        return "it has a placeholder"
    if words[1:2] == ["tour"] or "compile_inspect.main" in words:
        return "it is the tour, which has its own step"
    output = words[words.index("-o") + 1] if "-o" in words else None
    for word in words[1:]:
        name = word.partition(":")[0]
        if name != output and name.endswith((".py", ".inspection")) and not (folder / name).exists():
            return f"there is no {name} in the README"
    return None


def told(name: str, words: list[str] | str, folder: Path) -> bool:
    """Run something, say how it went, and show what it said if it failed."""
    began = perf_counter()
    try:
        done = subprocess.run(
            words, shell=isinstance(words, str), cwd=folder, capture_output=True, text=True, errors="replace", timeout=TIMEOUT
        )
        code, said = str(done.returncode), done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        code, said = f"none after {TIMEOUT} s", ""
    good = code == "0"
    print(f"  {'ok    ' if good else 'FAILED'} {name} ({perf_counter() - began:.1f} s)", flush=True)
    if not good:
        print(f"         exit status {code}\n" + "\n".join(f"         {line}" for line in said.splitlines()[-15:]), flush=True)
    return good


def run_page(page: Path, folder: Path) -> bool:
    """Everything on the page, in its order; whether all of it went well."""
    results = []
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    for block in blocks_of(page.read_text(encoding="utf-8")):
        where = f"{page.name}:{block.line}"
        if block.reason is not None:
            print(f"  not run {where}: {block.reason}")
        elif block.language == "python":
            path = folder / (block.file or f"block_at_line_{block.line}.py")
            path.write_text(block.text, encoding="utf-8")
            results.append(told(f"{where} as {path.name}", [sys.executable, path.name], folder))
        elif block.language == "console":
            for command in commands_of(block):
                reason = left_out(command, folder)
                if reason is not None:
                    print(f"  not run {where} $ {command}: {reason}")
                else:
                    results.append(told(f"{where} $ {command}", command, folder))
    if not results:
        print(f"  FAILED {page.name} has neither a Python block nor a command")
    return bool(results) and all(results)


if __name__ == "__main__":
    sys.exit(0 if run_page(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()) else 1)
