"""Workflows, issue forms and the guide for contributors name targets, scripts and versions that exist."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
FORMS = sorted(path for path in GITHUB.glob("ISSUE_TEMPLATE/*.yml") if path.name != "config.yml")
TARGET = re.compile(r"^([a-z-]+):.*##", re.MULTILINE)


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def make_targets() -> set[str]:
    return set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))


def steps(workflow: Path) -> Iterator[dict[str, Any]]:
    for job in read(workflow)["jobs"].values():
        yield from job.get("steps", ())


def commands(workflow: Path) -> Iterator[list[str]]:
    for step in steps(workflow):
        for line in step.get("run", "").splitlines():
            yield shlex.split(line)


def test_the_workflows_are_there() -> None:
    assert [path.name for path in WORKFLOWS] == ["docs.yml", "release.yml", "tests.yml"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_well_formed(workflow: Path) -> None:
    content = read(workflow)
    assert {"name", True, "permissions", "jobs"} <= content.keys()  # YAML 1.1 reads the key `on` as true
    for name, job in content["jobs"].items():
        assert {"runs-on", "steps"} <= job.keys() or "uses" in job, name
        assert job.get("needs", name) in content["jobs"], name
        if job.get("uses", "").startswith("./"):
            assert (ROOT / job["uses"]).is_file()
            assert "workflow_call" in read(ROOT / job["uses"])[True]
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step), step
        assert "uses" not in step or re.fullmatch(r"[\w-]+/[\w-]+@[\w./-]+", step["uses"]), step


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_targets_and_scripts_that_exist(workflow: Path) -> None:
    for words in commands(workflow):
        if words[0] == "make":
            assert set(words[1:]) <= make_targets(), words
        for word in words:
            if word.startswith(".ci/"):
                assert os.access(ROOT / word, os.X_OK), word


def test_the_workflows_run_what_ci_runs() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    expected = {line for line in lines if line.startswith(("make ", ".ci/try-wheel"))}
    called = {" ".join(words) for workflow in WORKFLOWS for words in commands(workflow)}
    assert expected
    assert expected <= called


def test_every_supported_python_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    classified = [name.rpartition(" ")[2] for name in project["classifiers"] if re.search(r":: Python :: 3\.\d+$", name)]
    assert read(GITHUB / "workflows" / "tests.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"] == classified
    assert project["requires-python"] == f">={classified[0]}"
    page = (ROOT / "docs" / "reference" / "versions.md").read_text(encoding="utf-8")
    assert f"| Python | {', '.join(classified)} |" in page


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.name)
def test_an_issue_form_is_well_formed(form: Path) -> None:
    content = read(form)
    assert {"name", "description", "body"} <= content.keys()
    fields = [item for item in content["body"] if item["type"] != "markdown"]
    assert len({item["id"] for item in fields}) == len(fields) > 0
    for item in content["body"]:
        assert item["type"] in ("markdown", "textarea", "input", "dropdown", "checkboxes")
        assert item["type"] == "markdown" or item["attributes"]["label"]


@pytest.mark.parametrize("name", ["bug-report.yml", "wrong-verdict.yml"])
def test_reports_ask_for_versions_and_a_capture(name: str) -> None:
    fields = {item["id"]: item for item in read(GITHUB / "ISSUE_TEMPLATE" / name)["body"] if "id" in item}
    assert "compile-inspect --version" in fields["version"]["attributes"]["description"]
    assert {"torch", "capture"} <= fields.keys()


def test_the_guide_for_contributors_lists_the_make_targets() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `make ([a-z-]+)` \|", guide, re.MULTILINE)) == make_targets() - {"help"}


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_the_first_pages_stay_short(page: str) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= 150
