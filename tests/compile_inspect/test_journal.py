"""Journals: readable after every line, harmless when the disk is not."""

from __future__ import annotations

from pathlib import Path

from compile_inspect.journal import FileJournal, MemoryJournal, read_events, read_header


def test_events_can_be_read_while_they_are_written(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "a", {"schema": 1})
    assert not (tmp_path / "a").exists()
    journal.append({"kind": "one"})
    assert list(read_events(tmp_path / "a")) == [{"kind": "one"}]
    journal.append({"kind": "two"})
    assert list(journal.events()) == [{"kind": "one"}, {"kind": "two"}]
    assert read_header(tmp_path / "a") == {"format": "compile-inspect journal", "schema": 1}


def test_odd_values_are_written_as_text(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "a", {})
    journal.append({"kind": "one", "path": Path("x"), "text": "\ud800 lone surrogate"})
    (event,) = journal.events()
    assert event["path"] == "x"


def test_a_full_disk_is_noted_and_the_program_goes_on(tmp_path: Path) -> None:
    full = Path("/dev/full")
    journal = FileJournal(full if full.exists() else tmp_path / "no" / "a", {})
    journal.append({"kind": "one"})
    journal.append({"kind": "two"})
    assert journal.failure is not None and "could not be written" in journal.failure


def test_memory_and_file_hold_the_same(tmp_path: Path) -> None:
    event = {"kind": "one", "rows": (1, 2), "none": None, "number": 1.5}
    journals = (MemoryJournal(), FileJournal(tmp_path / "a", {}))
    for journal in journals:
        journal.append(event)
    first, second = (list(journal.events()) for journal in journals)
    assert first == second == [{"kind": "one", "rows": [1, 2], "none": None, "number": 1.5}]


def test_other_files_have_no_header(tmp_path: Path) -> None:
    for content in (b"", b"x", b"[]", b'{"format": "x"}\n', bytes(range(256))):
        (tmp_path / "a").write_bytes(content)
        assert read_header(tmp_path / "a") is None
