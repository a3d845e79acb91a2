"""Tests of the solver find no packages of earlier runs, and build none unless they are about that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nonsmooth.compile import tier


@pytest.fixture(autouse=True, scope="session")
def empty_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPILE_INSPECT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def nothing_built(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """When compiled functions take over depends on time, and rounding on whether they do."""
    if not request.module.__name__.endswith("test_tier"):
        monkeypatch.setattr(tier, "_build_after_seconds", lambda: float("inf"))
