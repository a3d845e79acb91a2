"""Timings in a terminal and in files, without any torch."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import samples
from rich.console import Console

from compile_inspect.errors import InspectError
from compile_inspect.records import Build, CacheUse, Measurement, Memory, Payback, Summary, Timing, TimingPoint
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.plots import Line, line_plot
from compile_inspect.reporters.text.timing import print_timing
from compile_inspect.reporters.timings import as_csv, as_json, as_markdown, build_notes, build_time, cells, export
from compile_inspect.serialization import from_data


def printed(timing: Timing, width: int = 140, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
    print_timing(timing, Console(file=file, width=width, color_system=None), ShowOptions())
    file.flush()
    return file.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


def test_cells_of_a_measurement() -> None:
    eager, inductor, refused = samples.timing().points[0].measurements
    assert cells(eager) == ("eager", "1.0 ms", "900.0 µs–1.2 ms", "", "", "", "-", "busy")
    assert cells(inductor) == (
        "inductor",
        "500.0 µs",
        "500.0–500.0 µs",
        "2.00×",
        "9.00 s cold, 3.50 s warm",
        "unclear (5,500–never)",
        "2.0 KiB",
        "noisy, busy",
    )
    assert cells(refused)[-1] == "CUDA graphs need tensors on a CUDA device"


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (Build(3.0, CacheUse.ANEW), "3.00 s warm, order-dependent"),
        (Build(3.0, CacheUse.FOUND), "3.00 s warm, order-dependent"),
        (Build(3.0, CacheUse.ANEW, 9.0), "9.00 s cold"),
        (Build(3.0, CacheUse.ANEW, 9.0, 4.0), "9.00 s cold, 4.00 s warm"),
        (Build(0.1, CacheUse.NOTHING), ""),
        (None, ""),
    ],
)
def test_builds_say_how_they_were_seen(build: Build | None, text: str) -> None:
    assert build_time(build) == text


def test_notes_say_which_build_is_which_and_why_one_is_missing() -> None:
    def notes(*builds: Build) -> list[str]:
        items = tuple(Measurement(f"v{index}", build=build) for index, build in enumerate(builds))
        return build_notes(Timing("t", points=(TimingPoint(measurements=items),)))

    assert notes(Build(0.1, CacheUse.NOTHING)) == []
    cold, warm = notes(Build(1.0, CacheUse.ANEW, 9.0, 4.0, cold_samples=(8.0, 9.0, 10.0)))
    assert cold.startswith("cold: ") and "the median of 3" in cold and warm.startswith("warm: ")
    assert notes(Build(1.0, reason="no pickle"), Build(2.0, reason="no pickle"))[1:] == ["no cold build of v0, v1: no pickle"]
    assert notes(Build(1.0))[0].startswith("warm, order-dependent: ") and notes(Build(1.0))[1] == "no cold build of v0"
    assert notes(Build(1.0, CacheUse.ANEW, 9.0, reason="it died"))[1:] == ["no warm build of v0: it died"]


def test_an_interrupted_run_says_so() -> None:
    timing = replace(samples.timing(), interrupted="sampling")
    assert printed(timing).startswith(
        "model.py:model · forward · cpu · 2 threads · torch 2.13.0 · interrupted while sampling\n"
    )
    assert "interrupted while sampling" in as_markdown([timing])


def test_the_report() -> None:
    text = printed(samples.timing())
    assert text.startswith("model.py:model · forward · cpu · 2 threads · torch 2.13.0\n  batch 1 · float32[1, 16] cpu\n")
    assert "  cuda-graph/eager cannot run: CUDA graphs need tensors on a CUDA device" in text
    assert "  - noisy (inductor): the samples scatter by more than a tenth of their median: small" in text
    assert "  - busy (all): other processes used" in text
    assert "  - cold: a build in a separate process with an empty cache folder; the payback counts a cold build" in text
    assert "  - warm: a build in a separate process with the caches of the cold build" in text
    assert "order-dependent" not in text
    assert "█" not in text  # bars for one size, lines for several
    assert text.count("cannot run") == 2


def test_one_size_has_bars() -> None:
    timing = samples.timing()
    text = printed(replace(timing, points=timing.points[:1]))
    bars = [line.split() for line in text.split("\n") if "█" in line]
    assert [(words[0], len(words[1])) for words in bars] == [("eager", 40), ("inductor", 20)]
    assert "#" * 40 in printed(replace(timing, points=timing.points[:1]), encoding="ascii")


def test_numbers_that_are_none_are_no_crash() -> None:
    for odd in (0.0, math.inf, math.nan):
        item = Measurement("x", samples=(odd,), summary=Summary(1, odd, odd, odd, odd, odd), payback=Payback(None, None, None))
        points = tuple(TimingPoint({"batch": size}, (), (item, replace(item, variant="y"))) for size in (1, 2))
        assert "never" in printed(Timing("odd", points=points))
        assert "never" in printed(Timing("odd", points=points[:1]))
        json.loads(as_json([Timing("odd", points=points)]), parse_constant=pytest.fail)


CROSSING = [Line("up", ((1, 1e-3), (8, 1e-1))), Line("flat", ((1, 1e-1), (8, 1e-1)))]


def test_a_plot_has_its_corners_where_they_belong() -> None:
    rows = [row.plain for row in line_plot(CROSSING, width=40, label="batch")]
    assert rows[0].startswith("100.0 ms ┤▲") and rows[0].rstrip().endswith("✱")
    assert rows[11].startswith("  1.0 ms ┤●")
    assert rows[12].startswith("         └┬─") and rows[12].endswith("┬") and rows[13].split() == ["1", "8"]
    assert rows[-3:] == ["● up", "▲ flat", "✱ several points"]
    assert line_plot([Line("nothing", ())], width=40, label="x") == []
    assert "●" in line_plot([Line("one", ((4, 1.0),))], width=40, label="x")[11].plain


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "no-such-encoding"])
def test_a_plot_is_drawn_with_what_the_terminal_can_show(encoding: str) -> None:
    rows = [row.plain for row in line_plot(CROSSING, width=40, label="batch", encoding=encoding)]
    assert all(row.isascii() for row in rows if "µ" not in row)
    assert rows[0].startswith("100.0 ms +x") and rows[11].startswith("  1.0 ms +o") and rows[-3:-1] == ["o up", "x flat"]


def test_labels_of_a_plot_say_where_their_row_is() -> None:
    rows = [row.plain for row in line_plot([Line("x", ((1, 1e-3), (2, 1.0), (4, 1e-3)))], width=40, label="batch")]
    labeled = {number: row[:8].strip() for number, row in enumerate(rows[:12]) if row[:8].strip()}
    assert labeled == {0: "1.00 s", 6: "23.1 ms", 11: "1.0 ms"}  # a twelfth of a decade and a half up, not its middle


def test_json_holds_everything() -> None:
    data = json.loads(as_json([samples.timing()]))
    assert from_data(Timing, data["timings"][0]) == samples.timing()


def test_csv_has_a_line_for_every_variant_and_size() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv([samples.timing()]))))
    assert [(row["batch"], row["variant"]) for row in rows] == [
        (batch, name) for batch in ("1", "8") for name in ("eager", "inductor", "cuda-graph/eager")
    ]
    assert (rows[1]["speedup"], rows[1]["payback_calls"], rows[1]["payback_high"], rows[1]["build_caches"]) == (
        "2.0",
        "6000",
        "",
        "ANEW",
    )
    assert rows[1]["doubts"] == "NOISY BUSY"
    assert rows[2]["refused"] == "CUDA graphs need tensors on a CUDA device"
    assert rows[0]["outliers"] == "1"


def test_markdown_is_a_table_that_names_cannot_break() -> None:
    timing = samples.timing()
    odd = replace(timing.points[0].measurements[2], refused="a | b <c>", memory=Memory())
    text = as_markdown([replace(timing, points=(replace(timing.points[0], measurements=(odd,)),))])
    assert "| a \\| b &lt;c> |" in text
    lines = as_markdown([timing]).split("\n")
    tables = [line for line in lines if line.startswith("|")]
    assert len(tables) == 2 * 5
    assert {line.count("|") for line in tables} == {9}
    assert "**batch 8**" in lines
    assert lines[-2].startswith("- busy: ")


def test_files_are_written_by_suffix(tmp_path: Path) -> None:
    for name, start in (
        ("a.json", "{"),
        ("a.csv", "target,"),
        ("a.md", "model.py:model ·"),
        ("a.MARKDOWN", "model.py:model ·"),
    ):
        export([samples.timing()], tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    with pytest.raises(InspectError, match=r"the suffix of .*a\.txt is not one of json, csv and md"):
        export([], tmp_path / "a.txt")
    with pytest.raises(InspectError, match="the timings cannot be written to"):
        export([], tmp_path / "missing" / "a.csv")
