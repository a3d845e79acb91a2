"""What a Dockerfile says, as far as ours needs it. There is no engine on the machines that run the tests.

    python tests/dockerfile_reader.py FOLDER

copies into a folder what the image is built from, and prints the pip commands of the Dockerfile, one per line: what
remains is to run them in a new environment, which `.ci/newcomer` does.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Instruction:
    """One instruction: its name, and the rest on one line."""

    name: str
    rest: str

    @property
    def flags(self) -> tuple[str, ...]:
        """Words such as `--mount=…` before the rest."""
        return tuple(word for word in re.match(r"(?:--\S+\s+)*", self.rest)[0].split())  # type: ignore[index]

    @property
    def plain(self) -> str:
        """The rest without flags."""
        return re.sub(r"^(?:--\S+\s+)*", "", self.rest)

    @property
    def words(self) -> tuple[str, ...]:
        """The rest as words, from either form."""
        return tuple(json.loads(self.plain)) if self.plain.startswith("[") else tuple(shlex.split(self.plain))


def read_dockerfile(path: Path = ROOT / "Dockerfile") -> tuple[Instruction, ...]:
    """All instructions, with lines that were continued put together and comments left out."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    found = [line.strip().partition(" ") for line in joined.splitlines() if line.strip()]
    return tuple(Instruction(name.upper(), re.sub(r"\s+", " ", rest)) for name, _, rest in found)


def copied_paths(instructions: tuple[Instruction, ...]) -> tuple[str, ...]:
    """What is copied from the checkout, in the order of the file."""
    return tuple(source for item in instructions if item.name == "COPY" for source in item.words[:-1])


def ignored(path: str, rules: Path = ROOT / ".dockerignore") -> bool:
    """Whether .dockerignore keeps a path from the engine: the last rule that fits decides."""
    answer = False
    for rule in rules.read_text(encoding="utf-8").splitlines():
        pattern = rule.strip().lstrip("!").strip("/")
        if not pattern or pattern.startswith("#"):
            continue
        parts = path.split("/")
        beginnings = ["/".join(parts[: length + 1]) for length in range(len(parts))]
        if pattern.startswith("**/"):
            fits = any(fnmatch(part, pattern[3:]) for part in parts)
        else:
            fits = any(fnmatch(beginning, pattern) and beginning.count("/") == pattern.count("/") for beginning in beginnings)
        if fits:
            answer = not rule.strip().startswith("!")
    return answer


def pip_commands(instructions: tuple[Instruction, ...]) -> tuple[str, ...]:
    """The commands that install something with pip."""
    commands = (part.strip() for item in instructions if item.name == "RUN" for part in item.plain.split("&&"))
    return tuple(command for command in commands if command.startswith("pip "))


def main(folder: Path) -> None:
    """Copy what the image is built from, and print the pip commands."""
    instructions = read_dockerfile()
    for name in copied_paths(instructions):
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    print("\n".join(pip_commands(instructions)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
