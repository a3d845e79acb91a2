"""One version everywhere: the packages, the citation, the changelog; and the section that becomes a release's notes."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

import compile_inspect
import nonsmooth

ROOT = Path(__file__).resolve().parents[1]
HEADING = re.compile(r"^## \[(.+?)\](?: - (\S+))?$", re.MULTILINE)


def citation() -> Any:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def headings() -> list[tuple[str, str]]:
    return HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


def notes(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / ".ci" / "release-notes"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")


def test_the_changelog_begins_with_unreleased_and_is_in_order() -> None:
    unreleased, *releases = headings()
    assert unreleased == ("Unreleased", "")
    assert releases
    dates = [datetime.date.fromisoformat(date) for _, date in releases]
    assert dates == sorted(dates, reverse=True)
    versions = [tuple(map(int, version.split("."))) for version, _ in releases]
    assert versions == sorted(set(versions), reverse=True)


def test_one_version_and_date_everywhere() -> None:
    version, date = headings()[1]
    assert compile_inspect.__version__ == nonsmooth.__version__ == version
    assert citation()["version"] == version
    assert citation()["date-released"] == date


def test_the_citation_has_what_the_format_requires() -> None:
    fields = citation()
    assert fields["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= fields.keys()
    assert all(author.keys() == {"name"} for author in fields["authors"])  # an entity, not a person
    assert fields["license"] == "Apache-2.0"
    assert isinstance(fields["version"], str) and isinstance(fields["date-released"], str)


def test_the_notes_of_a_release_are_its_section() -> None:
    version = compile_inspect.__version__
    completed = notes(f"v{version}")
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.strip()
    assert completed.stdout.strip() in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert not HEADING.search(completed.stdout)
    relative = re.findall(r"\]\((?!https?:|#)", notes(f"v{version}", "https://example.invalid/blob/tag").stdout)
    assert not relative, "a release page cannot follow links within the repository"


def test_a_tag_of_another_version_is_refused() -> None:
    completed = notes("v999.0.0")
    assert completed.returncode != 0
    assert "the tag is v999.0.0" in completed.stderr
