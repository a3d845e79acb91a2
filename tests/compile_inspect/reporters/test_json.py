"""The JSON of a section, complete in itself."""

from __future__ import annotations

import dataclasses
import json

import pytest
import samples

from compile_inspect.errors import InspectError
from compile_inspect.records import SCHEMA_VERSION, Inspection, Phase
from compile_inspect.reporters import SECTIONS
from compile_inspect.reporters.json import section_data
from compile_inspect.reporters.options import ShowOptions


def content(inspection: Inspection, section: str, **options: object) -> object:
    """One section of one process, after a trip through JSON."""
    data = section_data([inspection], section, ShowOptions(**options))  # type: ignore[arg-type]
    return json.loads(json.dumps(data, allow_nan=False))["processes"][0][section]


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_names_itself_and_its_processes(section: str) -> None:
    data = section_data(samples.ranks(), section, ShowOptions(), files=["a", "b"])
    assert data["schema"] == SCHEMA_VERSION
    assert data["section"] == section
    told = [(item["pid"], item["rank"], item["file"], item["complete"]) for item in data["processes"]]
    assert told == [(100, 0, "a", True), (101, 1, "b", True)]
    assert all(section in item for item in data["processes"])


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("make", [samples.everything, samples.empty, samples.partial, samples.hostile])
def test_no_section_refers_to_a_stack_by_number(make: object, section: str) -> None:
    def stacks(value: object) -> list[object]:
        if isinstance(value, dict):
            own = [item for key, item in value.items() if key in ("stack", "stacks", "call_stack")]
            return own + [found for item in value.values() for found in stacks(item)]
        return [found for item in value for found in stacks(item)] if isinstance(value, list) else []

    found = stacks(content(make(), section, all=True))  # type: ignore[operator]
    assert all(not isinstance(item, int) for item in found)
    assert all(not isinstance(inner, int) for item in found if isinstance(item, list) for inner in item)


def test_summary_has_the_numbers_of_the_text() -> None:
    summary = content(samples.everything(), "summary")
    assert isinstance(summary, dict)
    numbers = {key: value for key, value in summary.items() if isinstance(value, (int, float))}
    assert numbers == {
        "compilations": 5,
        "failed": 1,
        "skipped": 0,
        "unfinished": 0,
        "graphs": 2,
        "breaks": 2,
        "break_hits": 7,
        "recompiles": 2,
        "compile_seconds": 6.75,
        "kernels": 3,
    }
    assert summary["cache"] == {"MISS": 1, "HIT": 1, "BYPASS": 1}
    assert summary["environment"]["torch"] == "2.13.0"
    assert summary["by_compilation"][0]["call_stack"][-1]["line"] == 5


def test_breaks_have_their_stacks_written_out() -> None:
    breaks = content(samples.everything(), "breaks")
    assert isinstance(breaks, list)
    assert breaks[0]["identifier"] == "GB0059"
    assert breaks[0]["effect"] == "SPLIT"
    assert [frame["line"] for frame in breaks[0]["stack"]] == [3, 1775, 1775, 1775, 6]
    assert breaks[1]["own_location"] == {
        "file": samples.MODEL,
        "line": 8,
        "function": "forward",
        "code": "return helper(z)",
    }


def test_a_stack_number_that_points_nowhere_becomes_null() -> None:
    breaks = content(samples.partial(), "breaks")
    assert isinstance(breaks, list)
    assert breaks[0]["stack"] is None


def test_graphs_have_user_lines_and_with_all_whole_stacks_and_text() -> None:
    graphs = content(samples.everything(), "graphs")
    assert isinstance(graphs, list)
    sin = graphs[0]["nodes"][1]
    assert (sin["name"], sin["user_line"]["line"]) == ("sin", 5)
    assert "stack" not in sin and "text" not in graphs[0]
    assert graphs[0]["call_counts"] == {"torch.sin": 2, "Tensor.add": 1}
    whole = content(samples.everything(), "graphs", all=True)
    assert isinstance(whole, list)
    assert [frame["line"] for frame in whole[0]["nodes"][1]["stack"]] == [3, 1775, 1775, 5]
    assert whole[0]["text"] == "def forward(self, L_x_): ..."


def test_kernels_have_lines_and_leave_the_code_to_section_code() -> None:
    lowerings = content(samples.everything(), "kernels")
    assert isinstance(lowerings, list)
    kernel = lowerings[0]["kernels"][0]
    assert (kernel["name"], kernel["kind"], kernel["nodes"]) == ("cpp_fused_sin_0", "CPP", ["sin", "sin_1", "mul"])
    assert [line["line"] for line in kernel["lines"]] == [5, 6]
    assert lowerings[0]["memory"]["peak_bytes"] == 3 * 1024 * 1024
    assert "code" not in lowerings[0]
    code = content(samples.everything(), "code")
    assert isinstance(code, list)
    assert code[0]["code"].startswith("import torch\n")
    assert code[1] == {
        "id": "lowering-1",
        "compilation": "0/0",
        "direction": "BACKWARD",
        "code": "def call(args):\n    return cpp_fused_cos_0(args)\n",
        "from_cache": True,
    }


def test_recompiles_time_and_guards() -> None:
    recompiles = content(samples.everything(), "recompiles")
    assert isinstance(recompiles, dict)
    assert recompiles["recompiles"][1]["failures"][0]["actual"] == "16"
    assert recompiles["limits"][0]["value"] == 8
    time = content(samples.everything(), "time")
    assert isinstance(time, dict)
    assert (time["compile_seconds"], len(time["phases"])) == (6.75, 7)
    guards = content(samples.everything(), "guards")
    assert isinstance(guards, list)
    assert [guard.get("is_internal", False) for guard in guards] == [False, False, True, True, False]
    assert guards[1]["stack"][-1]["line"] == 5


def test_one_compilation_and_a_limit() -> None:
    guards = content(samples.everything(), "guards", compilation="0/1")
    assert isinstance(guards, list)
    assert [guard["compilation"] for guard in guards] == ["0/1"]
    phases = content(samples.everything(), "time", limit=2)
    assert isinstance(phases, dict)
    assert len(phases["phases"]) == 2


def test_what_is_no_number_becomes_null() -> None:
    inspection = dataclasses.replace(samples.whole(), phases=(Phase("0/0", "x", float("nan"), float("inf")),))
    time = content(inspection, "time")
    assert isinstance(time, dict)
    assert (time["phases"][0]["start"], time["phases"][0]["seconds"]) == (None, None)


def test_gaps_in_the_evidence_are_told() -> None:
    process = section_data([samples.partial()], "kernels", ShowOptions())["processes"][0]
    assert process["complete"] is False
    assert process["file"] is None
    assert process["missing_evidence"][0] == {"collector": "kernels", "reason": "the scheduler has no such hook"}


def test_an_unknown_section_is_refused() -> None:
    with pytest.raises(InspectError, match="no section 'kernel'; the sections are summary, failures, graphs"):
        section_data([samples.empty()], "kernel", ShowOptions())


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="limit must be at least 1, not 0"):
        ShowOptions(limit=0)
