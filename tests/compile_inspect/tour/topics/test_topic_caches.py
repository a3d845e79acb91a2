from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from lesson_state import guide_with_compiler, quiet_guide, unchanged

from compile_inspect.errors import InspectError
from compile_inspect.tour.command_line import fresh_caches
from compile_inspect.tour.guide import Guide
from compile_inspect.tour.topics.caches import (
    CacheComparison,
    CacheRun,
    _environment,
    _run,
    _show,
    _user_folder,
    run_cache_comparison,
)

unchanged = pytest.fixture(autouse=True)(unchanged)
with_compiler = pytest.fixture(guide_with_compiler)


def test_the_answer_is_made_of_the_results() -> None:
    cold = CacheRun("empty", 9.0, 0.002, 0.3, 0, 2, 2, 0, 2048, 2)
    warm = CacheRun("filled", 1.5, 0.001, 0.2, 2, 0, 2, 0)
    text = " ".join(CacheComparison((cold, warm), "/caches", 24, 4096).answer())
    assert "took 9.00 s (2 misses, 0 hits); in a new process with the same folder it took 1.50 s (0 misses, 2 hits)" in text
    assert "the next call took 300.0 ms, with 2 hits and 0 misses" in text and "still there" in text
    assert "24 files (4.0 KiB)" in text and "2 entries (2.0 KiB)" in text and "/caches" in text
    lost = replace(cold, hits_after_reset=0, misses_after_reset=2)
    assert "nothing was found on disk" in " ".join(CacheComparison((lost, warm), "/caches").answer())


def test_a_process_takes_nothing_of_torchs_settings_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TORCH_LOGS", "dynamo")
        patch.setenv("TORCHINDUCTOR_FX_GRAPH_CACHE", "0")
        found = _environment(str(tmp_path))
    assert "TORCH_LOGS" not in found and "TORCHINDUCTOR_FX_GRAPH_CACHE" not in found
    assert found["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path) and found["PATH"] == os.environ["PATH"]


def test_a_program_that_fails_is_told_in_one_sentence(tmp_path: Path) -> None:
    program = tmp_path / "failing.py"
    program.write_text("raise ValueError('no such thing')")
    with pytest.raises(InspectError, match=r"failing\.py exited with status 1: ValueError: no such thing"):
        _run("empty", program, "cpu", str(tmp_path))


@pytest.mark.exhaustive
def test_the_second_process_finds_what_the_first_has_left(with_compiler: Guide) -> None:
    found = run_cache_comparison(guide=with_compiler)
    cold, warm = found.runs
    assert (cold.hits, cold.misses) == (0, 2) and (warm.hits, warm.misses) == (2, 0)
    assert warm.first_seconds < cold.first_seconds
    assert (cold.hits_after_reset, cold.misses_after_reset) == (2, 0)  # a reset clears nothing on disk
    assert cold.later_seconds < cold.after_reset_seconds < cold.first_seconds  # but what was in the process
    assert cold.artifacts == 2 and cold.artifact_bytes > 1000 and found.files > 2
    assert (with_compiler.folder.path / "first_call.py").exists()


def test_the_usual_folder_is_not_the_tours_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    guide = quiet_guide()
    with monkeypatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
        assert _user_folder(guide) == str(tmp_path)
        with fresh_caches() as usual:
            guide.user_cache_folder = usual
            assert _user_folder(guide) == str(tmp_path)
        patch.delenv("TORCHINDUCTOR_CACHE_DIR")
        with fresh_caches() as guide.user_cache_folder:
            own = os.environ["TORCHINDUCTOR_CACHE_DIR"]
            assert guide.user_cache_folder == "" and _user_folder(guide) != own and "torchinductor" in _user_folder(guide)


@pytest.mark.parametrize("permanent", [True, False])
def test_a_folder_that_is_gone_is_not_named(permanent: bool) -> None:
    guide = quiet_guide()
    guide.folder.permanent = permanent
    run = CacheRun("empty", 9.0, 0.002, 0.3, 0, 2, 2, 0)
    _show(CacheComparison((run, run), "/caches"), Path("first_call.py"), guide)
    assert ("in the tour's folder" in guide.console.file.getvalue()) is permanent
