"""Dockerfile and compose files, as far as they can be checked without an engine.

Every path they copy is in a clone, every command they name runs here, what runs in the image is no root, and the file
for all machines asks for no GPU. That the installation works in a new environment is seen by `.ci/newcomer`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from dockerfile_reader import ROOT, Instruction, copied_paths, ignored, pip_commands, read_dockerfile

SERVICE = "torchcompile"
PROMISED = (
    "docker compose build",
    "docker compose run --rm torchcompile python -m compile_inspect.inductor_codegen",
    "docker compose run --rm torchcompile python -m compile_inspect.benchmark",
    "docker compose run --rm torchcompile python -m compile_inspect.main",
    "docker compose run --rm torchcompile bash",
    "uv sync",
    "uv run python -m compile_inspect.basics",
    "uv run python -m compile_inspect.dynamo_capture",
    "uv run python -m compile_inspect.graph_breaks",
    "uv run python -m compile_inspect.inductor_codegen",
    "uv run python -m compile_inspect.benchmark",
    "uv run python -m compile_inspect.main",
)
"""The commands of the course that the tour follows, word for word."""
INSTRUCTIONS = read_dockerfile()


def composed(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def of(name: str) -> list[Instruction]:
    return [item for item in INSTRUCTIONS if item.name == name]


def variables() -> dict[str, str]:
    return dict(word.split("=", 1) for item in of("ENV") for word in item.words)


def in_a_clone() -> set[str]:
    """Every file that git knows, and the folders they are in."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("this is no git checkout")
    files = done.stdout.split()
    return set(files) | {str(parent) for file in files for parent in Path(file).parents}


def test_the_reader_joins_lines_and_leaves_comments_out(tmp_path: Path) -> None:
    path = tmp_path / "Dockerfile"
    path.write_text(
        '# a\nFROM a:1\nRUN --mount=type=cache,target=/x \\\n    one \\\n    # not this\n    && two\nCMD ["a", "b c"]\n'
    )
    first, run, command = read_dockerfile(path)
    assert (first.name, first.rest) == ("FROM", "a:1")
    assert (run.flags, run.plain) == (("--mount=type=cache,target=/x",), "one && two")
    assert command.words == ("a", "b c")


def test_only_known_instructions_in_a_sensible_order() -> None:
    names = [item.name for item in INSTRUCTIONS]
    assert set(names) <= {"FROM", "RUN", "ARG", "WORKDIR", "COPY", "ENV", "USER", "CMD"}
    assert names[0] == "FROM" and names[-1] == "CMD" and names.count("FROM") == 1
    image, _, tag = of("FROM")[0].rest.partition(":")
    assert image and re.search(r"\d", tag), "an image without a version changes under our feet"


def test_every_copied_path_is_in_a_clone_and_is_not_ignored() -> None:
    known = in_a_clone()
    copied = copied_paths(INSTRUCTIONS)
    assert copied
    for path in copied:
        assert path in known, path
        assert not ignored(path), path
    for path in known:
        if any(path == name or path.startswith(f"{name}/") for name in copied):
            assert not ignored(path), path
    for path in (".git", ".venv/bin/python", "docs/index.md", "src/nonsmooth/__pycache__/run.pyc"):
        assert ignored(path), path


def test_what_the_installation_needs_is_copied() -> None:
    copied = copied_paths(INSTRUCTIONS)
    for needed in ("pyproject.toml", "README.md", "LICENSE", "src", "constraints.txt"):
        assert needed in copied
    for command in pip_commands(INSTRUCTIONS):
        words = shlex.split(command)
        assert words[:2] == ["pip", "install"]
        assert words[words.index("--constraint") + 1] in copied


def test_torch_is_installed_before_the_sources_are_copied() -> None:
    texts = [f"{item.name} {item.plain}" for item in INSTRUCTIONS]
    torch = next(place for place, text in enumerate(texts) if text.startswith("RUN pip") and text.endswith(" torch"))
    assert torch < texts.index("COPY src ./src")


@pytest.mark.parametrize("instruction", of("RUN"), ids=lambda item: item.plain.split()[0])
def test_shell_commands_can_be_parsed(instruction: Instruction) -> None:
    done = subprocess.run(["bash", "-n", "-c", instruction.plain], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\" not in instruction.plain


def test_there_is_a_compiler_and_whoever_runs_it_is_not_root() -> None:
    assert any("g++" in item.words for item in of("RUN"))
    (user,) = of("USER")
    assert any(re.search(rf"useradd .*\b{user.rest}\b", item.plain) for item in of("RUN"))
    after = INSTRUCTIONS[INSTRUCTIONS.index(user) :]
    assert "RUN" not in [item.name for item in after]


def test_the_command_is_the_tour() -> None:
    assert of("CMD")[0].words == ("python", "-m", "compile_inspect.main")


def test_the_service_runs_anywhere() -> None:
    compose = composed("compose.yaml")
    assert list(compose["services"]) == [SERVICE]
    service = compose["services"][SERVICE]
    assert not {"deploy", "gpus", "runtime", "devices", "privileged", "network_mode", "command", "image"} & set(service)
    assert (ROOT / service["build"]["context"] / "Dockerfile").is_file()
    declared = {item.rest for item in of("ARG")}
    assert set(service["build"]["args"]) == declared
    assert re.fullmatch(r"\$\{TOUR_USER:-[1-9]\d*:[1-9]\d*\}", service["user"])


def test_outputs_reach_the_host_and_caches_are_kept() -> None:
    compose = composed("compose.yaml")
    mounts = dict(mount.split(":") for mount in compose["services"][SERVICE]["volumes"])
    assert mounts["."] == of("WORKDIR")[-1].rest
    (volume,) = set(mounts) - {"."}
    assert volume in compose["volumes"]
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        assert variables()[name].startswith(f"{mounts[volume]}/")
    folders = next(item.words for item in of("RUN") if "install" in item.words and "--directory" in item.words)
    assert "--mode=1777" in folders and set(mounts.values()) <= set(folders)


def test_the_file_for_gpus_adds_them_and_nothing_else() -> None:
    compose = composed("compose.gpu.yaml")
    assert list(compose) == ["services"] and list(compose["services"]) == [SERVICE]
    service = compose["services"][SERVICE]
    assert list(service) == ["deploy"]
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert {"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"} <= set(variables())
    assert "compose.yaml:compose.gpu.yaml" in (ROOT / "compose.yaml").read_text(encoding="utf-8")


def commands_in_comments() -> set[str]:
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("Dockerfile", "compose.yaml", "compose.gpu.yaml")]
    found = re.findall(r"^# {5}(docker compose .*?)(?:\s+#.*)?$", "\n".join(texts), flags=re.MULTILINE)
    assert found
    return set(found)


@cache
def help_of(module: str) -> str:
    done = subprocess.run([sys.executable, "-m", module, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", sorted({*PROMISED, *commands_in_comments()}))
def test_every_command_leads_to_something_that_runs(command: str) -> None:
    words = shlex.split(command)
    if words[:2] == ["docker", "compose"]:
        words = words[2:]
        if words == ["build"]:
            assert composed("compose.yaml")["services"][SERVICE]["build"]
            return
        assert words[:2] == ["run", "--rm"] and words[2] in composed("compose.yaml")["services"]
        words = list(words[3:] or of("CMD")[0].words)
    elif words == ["uv", "sync"]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        (pinned,) = project["tool"]["uv"]["constraint-dependencies"]
        assert pinned in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        return
    else:
        assert words[:2] == ["uv", "run"]
        words = words[2:]
    if words == ["bash"]:
        return
    assert words[:2] == ["python", "-m"]
    assert f"python -m {words[2]}" in help_of(words[2])
