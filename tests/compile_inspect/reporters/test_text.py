"""What a reader sees in the terminal."""

from __future__ import annotations

import dataclasses
import io
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import samples
from rich.console import Console

from compile_inspect.errors import InspectError
from compile_inspect.records import CudaGraphEvent, CudaGraphOutcome, Guard, Inspection, Missing, Outcome, Phase
from compile_inspect.reporters import SECTIONS
from compile_inspect.reporters.text import ShowOptions, render
from compile_inspect.wording.locations import short_path
from compile_inspect.wording.plain import clean, one_line


@pytest.fixture(autouse=True)
def anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Paths are shortened relative to the current directory, which must not decide the outcome."""
    monkeypatch.chdir(tmp_path)


def shown(
    *inspections: Inspection,
    section: str = "summary",
    width: int = 140,
    color: bool = False,
    files: tuple[str, ...] = (),
    **options: object,
) -> str:
    """The text of a section."""
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=color, color_system="truecolor" if color else None)
    named = files or tuple(f"{number}.inspection" for number in range(len(inspections)))
    render(inspections, section, console, files=named, options=ShowOptions(**options))  # type: ignore[arg-type]
    return file.getvalue()


def lines(text: str) -> list[str]:
    """Lines with runs of spaces made one, so that tables can be compared."""
    return [re.sub(r" +", " ", line).strip() for line in text.split("\n")]


# ------------------------------------------------------------------------------------------------ summary


def test_summary_begins_with_the_verdict_and_counts_everything() -> None:
    text = lines(shown(samples.everything()))
    assert text[0] == ("1 compilation failed, torch gave up on 1 function, 2 graph breaks, 2 recompiles.")
    assert text[1] == "python train.py · torch 2.13.0 · Python 3.11.9 · cpu"
    assert "Compilations Graphs Graph breaks Recompiles Time Kernels Cache" in text
    assert "5 2 2 2 6.75 s 3 1 hit, 1 miss, 1 bypassed" in text


def test_summary_on_a_narrow_screen_has_one_number_a_line() -> None:
    text = lines(shown(samples.everything(), width=60))
    assert "Graph breaks 2" in text
    assert "Cache 1 hit, 1 miss, 1 bypassed" in text


def test_summary_lists_breaks_by_hits_and_keeps_their_numbers() -> None:
    text = lines(shown(samples.everything()))
    first = text.index("2 /home/me/project/model.py:8 Data-dependent branching GB0170 5 return helper(z)")
    assert text[first + 1] == ("1 /home/me/project/model.py:6 Failed to trace builtin operator GB0059 2 print(y.sum())")


def test_summary_folds_all_but_three_breaks() -> None:
    inspection = samples.everything()
    many = dataclasses.replace(inspection, breaks=inspection.breaks * 4)
    assert "… 5 more graph breaks (use --all)" in shown(many)
    assert "more graph break" not in shown(many, all=True)
    assert "… 7 more graph breaks (use --all)" in shown(many, limit=1)


def test_summary_tells_recompiles_limits_failures_gaps_and_notes() -> None:
    text = lines(shown(samples.everything()))
    assert "forward (/home/me/project/model.py:4) 2 0/2 x: 8 -> 16 /home/me/project/model.py:5" in text
    assert any(line.startswith("- forward (/home/me/project/model.py:4) reached recompile_limit = 8:") for line in text)
    assert "- Compilation 2/0 of broken failed: BackendError: no (/home/me/project/model.py:6)." in text
    assert "- Requested, without effect on a CPU: no CUDA device is involved (2 times)." in text
    assert "- peak memory: estimate_peak_memory is not there (3 times)" in text
    assert "- The example inputs were given twice." in text


def test_summary_of_a_clean_capture_is_short_and_green() -> None:
    assert lines(shown(samples.whole()))[0] == "No graph breaks and no recompiles."
    assert "\x1b[1;32mNo graph breaks" in shown(samples.whole(), color=True)


def test_summary_claims_nothing_that_missing_evidence_could_contradict() -> None:
    unsure = dataclasses.replace(samples.whole(), missing=(Missing("breaks", "no hook"),))
    assert lines(shown(unsure))[0] == "No graph breaks and no recompiles, as far as recorded."


def test_summary_of_a_partial_capture_warns() -> None:
    text = lines(shown(samples.partial()))
    assert text[0] == "1 graph break, 1 compilation unfinished."
    assert "Warning: This capture is incomplete: the program was killed, or the file could not be fully written." in text
    assert "- torch 2.99.0 is outside the range of versions that compile-inspect supports." in text
    assert "- guards: unreadable (4 times)" in text


def test_summary_counts_recompiles_that_only_the_compile_ids_tell() -> None:
    silent = dataclasses.replace(samples.everything(), recompiles=(), limits=())
    assert "1 recompile." in lines(shown(silent))[0]
    told = shown(silent, section="recompiles")
    assert told.startswith("1 recompile happened, but no reason was recorded.")


# ------------------------------------------------------------------------------------------------ breaks


def test_break_shows_source_explanation_hints_and_folded_stack() -> None:
    text = shown(samples.everything(), section="breaks")
    block = lines(text[: text.index("Graph break 2 of 2")])
    assert block[:12] == [
        "Graph break 1 of 2: Failed to trace builtin operator · GB0059",
        "The graph was split and tracing resumed after the line · 2 hits · compilations 0/0, 0/1",
        "Line /home/me/project/model.py:6 in forward",
        "4 │ def forward(self, x):",
        "5 │ y = torch.sin(x)",
        "> 6 │ print(y.sum())",
        "7 │ z = y * 2",
        "8 │ return helper(z)",
        "Why",
        "Dynamo does not know how to trace builtin operator `print` with argument types ['Tensor']",
        "Hints from torch (not tried)",
        "- Avoid calling builtin `print`.",
    ]
    stack = block.index("Stack")
    assert block[stack + 1 : stack + 4] == [
        "/home/me/project/train.py:3 in main model(x)",
        "… 3 library frames",
        "/home/me/project/model.py:6 in forward print(y.sum())",
    ]
    assert "Read more https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html" in block


def test_break_in_a_library_names_both_lines_own_first() -> None:
    text = shown(samples.everything(), section="breaks")
    block = lines(text[text.index("Graph break 2 of 2") :])
    own = block.index("Your line /home/me/project/model.py:8 in forward")
    library = block.index("In library line transformers/modeling.py:88 in helper")
    assert own < library
    assert block[own + 3] == "> 8 │ return helper(z)"
    assert block[library + 1] == "> 88 │ if z.sum() > 0:"  # from the stack: the file is not in the capture


def test_breaks_with_all_show_whole_stacks_and_torchs_message() -> None:
    text = shown(samples.everything(), section="breaks", all=True)
    assert "library frame" not in text
    assert text.count("torch/nn/modules/module.py:1775 in _call_impl") == 4
    assert "Graph break in user code at model.py:6" in text
    assert "Graph break in user code" not in shown(samples.everything(), section="breaks")


def test_a_stack_of_libraries_only_folds_torch_alone() -> None:
    inspection = samples.everything()
    library = dataclasses.replace(inspection.stacks[2], locations=inspection.stacks[2].locations[1::2])
    broken = dataclasses.replace(inspection.breaks[1], own_location=None)
    inspection = dataclasses.replace(inspection, breaks=(broken,), stacks=(*inspection.stacks[:2], library))
    text = lines(shown(inspection, section="breaks"))
    stack = text.index("Stack")
    assert text[stack + 1 : stack + 3] == ["… 1 library frame", "transformers/modeling.py:88 in helper if z.sum() > 0:"]
    assert "In library line transformers/modeling.py:88 in helper" in text


def test_break_without_any_place_still_renders() -> None:
    text = lines(shown(samples.partial(), section="breaks"))
    assert "Graph break 1 of 1: Unknown" in text
    assert "An exception reached the program · 1 hit" in text


def test_no_breaks_is_said_only_as_far_as_it_is_true() -> None:
    assert shown(samples.whole(), section="breaks").startswith("No graph breaks: every frame was captured as one graph.\n")
    skipped = dataclasses.replace(samples.whole().compilations[0], outcome=Outcome.SKIPPED)
    text = shown(Inspection(compilations=(*samples.whole().compilations, skipped)), section="breaks")
    assert text.startswith("No graph breaks, but 1 frame could not be compiled.\n")
    text = shown(Inspection(compilations=(skipped,)), section="breaks")
    assert text.startswith("Nothing was compiled, so there was no graph to break.\n")


# ------------------------------------------------------------------------------------------------ graphs


def test_graphs_count_calls_functions_and_methods() -> None:
    text = lines(shown(samples.everything(), section="graphs"))
    start = text.index("captured by Dynamo: 5 nodes, 3 calls")
    assert text[start + 1 : start + 4] == [
        "2 × torch.sin",
        "1 × Tensor.add",
        "then: AOTAutograd joint, 3 nodes, 2 calls; Inductor post-grad forward, 3 nodes, 2 calls; "
        "Inductor post-grad backward, only its printed form was recorded",
    ]
    assert "dynamic sizes: s0 = L['x'].size()[0]" in text
    assert "captured by Dynamo: 5 nodes, 3 calls, read from its printed form" in text


def test_graphs_of_one_compilation_list_nodes_with_types_and_lines() -> None:
    text = lines(shown(samples.everything(), section="graphs", compilation="0/0"))
    assert "sin_1 torch.sin float32[4, 8] /home/me/project/model.py:5" in text
    assert "add Tensor.add float32[4, 8] transformers/modeling.py:88" in text
    assert "l_x_ placeholder L_x_ float32[4, 8] -" in text
    assert "def backward(): ..." in text  # of the graph that has no nodes
    assert not any("0/1" in line for line in text)
    assert "… 4 more nodes (use --all)" in shown(samples.everything(), section="graphs", compilation="0/0", limit=1)


def test_long_cells_are_cut_on_a_narrow_screen_and_whole_with_all() -> None:
    text = shown(samples.everything(), section="graphs", compilation="0/0", width=60)
    rows = [line for line in text.split("\n") if line.lstrip().startswith("sin_1")]
    assert len(rows) == 1 and len(rows[0]) <= 60 and rows[0].endswith("…ect/model.py:5")
    assert "/home/me/project/model.py:5" in shown(samples.everything(), section="graphs", all=True, width=60)


# ------------------------------------------------------------------------------------------------ guards, recompiles


def test_guards_by_kind_with_noise_folded() -> None:
    text = lines(shown(samples.everything(), section="guards"))
    assert text[0] == ("Compilation 0/0 forward · /home/me/project/model.py:4 · 4 guards")
    assert text[1:6] == [
        "TENSOR_MATCH · 1",
        "x check_tensor(L['x'], torch.float32, size=[4, 8]) /home/me/project/model.py:5",
        "CONSTANT_MATCH · 1",
        "self.scale L['self'].scale == 2 /home/me/project/model.py:5",
        "+ 2 on the interpreter, torch and other libraries (use --all)",
    ]
    everything = shown(samples.everything(), section="guards", all=True)
    assert "torch.is_grad_enabled()" in everything
    assert "on the interpreter" not in everything


def test_guards_on_tensors_come_first_and_long_kinds_are_folded() -> None:
    others = tuple(Guard("0/0", "TYPE_MATCH", "s", f"v{number}", f"v{number} is of type int") for number in range(30))
    inspection = dataclasses.replace(samples.whole(), guards=(*others, samples.everything().guards[0]))
    text = lines(shown(inspection, section="guards"))
    assert text[1] == "TENSOR_MATCH · 1"
    assert text[3:5] == ["TYPE_MATCH · 30", "v0 is of type int -"]
    assert "… 18 more of this kind (use --all)" in text
    assert "v29" in shown(inspection, section="guards", all=True)


def test_a_module_compiled_through_torchs_wrapper_is_placed_by_its_caller() -> None:
    inspection = dataclasses.replace(samples.everything(), guards=(Guard("3/0", "KIND", "s", "v", "c"),))
    assert lines(shown(inspection, section="guards"))[0] == (
        "Compilation 3/0 inner · torch/nn/modules/module.py:67 · called at /home/me/project/model.py:5 · 1 guard"
    )


def test_recompiles_are_a_timeline_with_the_guard_that_failed() -> None:
    text = lines(shown(samples.everything(), section="recompiles"))
    assert text[0] == "forward · /home/me/project/model.py:4 · 2 recompiles · 2.00 s compile time"
    assert "0/1 0/0 x 4 -> 7 tensor 'x' size mismatch at index 0 /home/me/project/model.py:5 2.00 s" in text
    assert "0/2 0/1 x 8 -> 16 tensor 'x' stride mismatch at index 0 /home/me/project/model.py:5 -" in text
    assert "+ 1 failed guard of older versions (use --all)" in text
    older = lines(shown(samples.everything(), section="recompiles", all=True))
    assert "0/0 x 4 -> 7 tensor 'x' size mismatch at index 0 /home/me/project/model.py:5" in older


def test_recompiles_keep_the_last_ones() -> None:
    text = shown(samples.large(recompiles=60, nodes=60), section="recompiles")
    assert "… 39 earlier recompiles (use --all)" in text
    assert "0/59" in text and "0/39 " not in text


# ------------------------------------------------------------------------------------------------ kernels, code


def test_kernels_with_what_they_compute_and_what_was_kept_apart() -> None:
    text = lines(shown(samples.everything(), section="kernels"))
    assert text[0].endswith("· forward · 2 kernel launches · 1 fused · peak memory 3.0 MiB by Inductor's estimate")
    assert ("1 cpp_fused_sin_0 generated C++ 3 sin, sin_1, mul /home/me/project/model.py:5, 6") in text
    assert "2 extern_kernels.mm library call 1 mm transformers/modeling.py:88" in text
    assert "3 no shared data #1 + #2, buf0 + buf2" in text
    assert "2 an input of the graph" in text
    backward = next(line for line in text if "· backward ·" in line)
    assert "from torch's cache" in backward
    assert "2 an input of the graph: arg0_1, arg1_1" in lines(shown(samples.everything(), section="kernels", all=True))


def test_code_is_printed_as_it_is_even_when_lines_are_long() -> None:
    long = "x = " + "1 + " * 100 + "1"
    inspection = samples.everything()
    lowering = dataclasses.replace(inspection.lowerings[0], code=f"import torch\n{long}\n")
    text = shown(dataclasses.replace(inspection, lowerings=(lowering,)), section="code", width=60)
    assert f"\nimport torch\n{long}\n" in text
    assert "# /tmp/torchinductor_me/ab/cab.py\n" in text


def test_code_is_highlighted_only_where_there_is_color() -> None:
    assert "\x1b[" not in shown(samples.everything(), section="code")
    assert "\x1b[94" in shown(samples.everything(), section="code", color=True)


def test_code_of_many_lowerings_is_folded() -> None:
    inspection = samples.everything()
    many = dataclasses.replace(inspection, lowerings=inspection.lowerings * 3)
    assert "# … 2 more modules (use --all, or select one with --compilation ID)" in shown(many, section="code")


# ------------------------------------------------------------------------------------------------ time and the rest


def test_time_is_a_tree_with_shares_and_repeated_phases_added_up() -> None:
    text = lines(shown(samples.everything(), section="time"))
    assert text[:6] == [
        "Compilation 0/0 forward · /home/me/project/model.py:4 · 3.00 s",
        "entire_frame_compile 3.00 s 100 % ████████████████████",
        "backend_compile 1.50 s 50 % ██████████",
        "GraphLowering.run × 2 1.00 s 33 % ██████▋",
        "… 1 shorter phase (use --all) 20.0 ms <1 % ▏",
        "bytecode_tracing 1.00 s 33 % ██████▋",
    ]
    top = text.index("Phases by own time · 5.00 s in total")
    assert text[top + 1] == "entire_frame_compile × 2 2.50 s 50 % ██████████"
    assert "tiny 20.0 ms <1 % ▏" in lines(shown(samples.everything(), section="time", all=True))


def test_time_indents_what_ran_inside() -> None:
    text = shown(samples.everything(), section="time")
    assert "\n  entire_frame_compile" in text
    assert "\n    backend_compile" in text
    assert "\n      GraphLowering.run" in text


def test_time_of_a_partial_capture_survives_a_missing_parent() -> None:
    assert "bytecode_tracing 1.00 s 100 %" in " ".join(lines(shown(samples.partial(), section="time")))


def test_times_that_are_no_numbers_are_left_out() -> None:
    nan = float("nan")
    compilation = dataclasses.replace(samples.whole().compilations[0], seconds=nan)
    phases = (Phase("0/0", "bad", 0.0, nan), Phase("0/0", "good", 0.0, 1.0, own_seconds=1.0))
    inspection = Inspection(compilations=(compilation,), phases=phases)
    text = shown(inspection, section="time")
    assert "good" in text and "bad" not in text
    assert "1 1 0 0 - 0 not used" in lines(shown(inspection))


def test_time_shows_the_slowest_compilations() -> None:
    phases = tuple(Phase(f"{number}/0", "compile", float(number), 1.0 + number) for number in range(8))
    text = shown(dataclasses.replace(samples.whole(), phases=phases), section="time")
    assert "Compilation 7/0" in text and "Compilation 2/0" not in text
    assert "… 3 more compilations that took less time (use --all)" in text


def test_cache_counts_and_reasons() -> None:
    text = lines(shown(samples.everything(), section="cache"))
    assert "FX graph cache 1 1 0 1.50 s" in text
    assert "0/0 forward AOTAutograd cache bypassed Cannot cache a custom autograd function - -" in text
    assert "0/0 forward FX graph cache miss - - fabcdefghij…" in text
    assert "fabcdefghijklmnop" in shown(samples.everything(), section="cache", all=True)


def test_cuda_graphs_without_effect_are_a_warning() -> None:
    text = lines(shown(samples.everything(), section="cudagraphs"))
    assert text[0] == "Warning: CUDA graphs were requested, without effect on a CPU: no CUDA device is involved."
    assert "0/1 forward backward skipped 1 skipping: mutated inputs /home/me/project/model.py:5" in text
    used = dataclasses.replace(samples.whole(), cuda_graphs=(CudaGraphEvent("0/0", CudaGraphOutcome.USED),))
    assert "Warning" not in shown(used, section="cudagraphs")


def test_bytecode_before_and_after() -> None:
    text = lines(shown(samples.everything(), section="bytecode"))
    assert text[1:6] == ["Original 2 lines", "4 0 RESUME 0", "5 2 LOAD_GLOBAL 1", "Rewritten 1 line", "4 0 CALL 7"]


# ------------------------------------------------------------------------------------------------ every section


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("make", [samples.everything, samples.empty, samples.whole, samples.partial, samples.hostile])
def test_every_section_ends_with_exactly_one_next_command(make: object, section: str) -> None:
    text = shown(make(), section=section, files=("my step.inspection",))  # type: ignore[operator]
    commands = [line for line in text.split("\n") if line.startswith("Next: ")]
    assert text.endswith(f"\n\n{commands[0]}\n")
    assert len(commands) == 1
    known = ("show 'my step.inspection' ", "breaks 'my step.inspection'", "guards 'my step.inspection'", "run")
    assert commands[0].startswith(tuple(f"Next: compile-inspect {command}" for command in known))


def test_next_leads_from_what_costs_most_to_what_costs_least() -> None:
    inspection = samples.everything()

    def after(section: str, **options: object) -> str:
        return shown(inspection, section=section, **options).rsplit("0.inspection ", 1)[1].strip()  # type: ignore[arg-type]

    assert after("summary") == "failures"
    assert after("failures") == "recompiles"  # torch gave a function up: it runs in eager mode, breaks or not
    assert shown(inspection, section="breaks").endswith("Next: compile-inspect breaks 0.inspection\n")
    assert shown(inspection, section="recompiles").endswith("Next: compile-inspect guards 0.inspection\n")
    assert after("kernels") == "time"
    assert after("graphs") == "graphs --compilation 0/0"
    assert after("graphs", compilation="0/0") == "guards --compilation 0/0"
    assert after("bytecode") == "timing"
    assert after("timing") == "summary"
    inspection = dataclasses.replace(inspection, limits=())
    assert after("failures") == "breaks"
    inspection = dataclasses.replace(inspection, failures=(), breaks=(), recompiles=(), limits=(), cuda_graphs=())
    assert after("summary") == "kernels"


def test_a_command_made_of_hostile_names_stays_one_argument() -> None:
    import shlex

    name = "a'\x1b[31m; rm -rf ~ #\n$(x)"
    last = shown(samples.everything(), files=(name,)).strip().split("\n")[-1]
    assert shlex.split(last)[1:] == ["compile-inspect", "show", "a'; rm -rf ~ # $(x)", "failures"]


@pytest.mark.parametrize("section", [name for name in SECTIONS if name != "summary"])
def test_empty_sections_say_so(section: str) -> None:
    assert re.match(r"No(thing|t? )[^\n]+\.\n\nNext: ", shown(samples.whole(), section=section))
    assert shown(samples.empty(), section=section).startswith(("Nothing was compiled during", "Nothing was compiled, so"))
    assert shown(samples.partial(), section=section).startswith("Warning: This capture is incomplete: ")


def test_an_unknown_section_names_the_known_ones() -> None:
    with pytest.raises(InspectError, match=r"no section 'breks'; the sections are summary, failures, graphs, breaks, guards"):
        shown(samples.whole(), section="breks")


def test_an_unknown_compilation_names_the_known_ones() -> None:
    with pytest.raises(InspectError, match=r"no compilation '9/9' in this capture; it contains 0/0, 0/1, 1/0, 3/0, 2/0"):
        shown(samples.everything(), compilation="9/9")


@pytest.mark.parametrize(
    ("section", "mine", "others"),
    [
        ("breaks", "GB0059", "GB0170"),
        ("guards", "size=[None, 8]", "size=[4, 8]"),
        ("time", "Compilation 0/1", "backend_compile"),
        ("cache", "fqrstuvwxyz", "fabcdefghij"),
        ("cudagraphs", "mutated inputs", "no effect"),
        ("kernels", "No kernels", "cpp_fused"),
        ("code", "No generated code", "def call"),
        ("bytecode", "No bytecode", "RESUME"),
    ],
)
def test_one_compilation_shows_its_own_records_only(section: str, mine: str, others: str) -> None:
    assert others in shown(samples.everything(), section=section)
    text = shown(samples.everything(), section=section, compilation="0/1")
    assert mine in text and others not in text


def test_a_compilation_pasted_with_brackets_is_understood() -> None:
    text = shown(samples.everything(), section="recompiles", compilation="[0/1]")
    assert "0/1" in text and "0/2" not in text


# ------------------------------------------------------------------------------------------------ processes


def test_processes_that_saw_the_same_are_shown_once() -> None:
    text = shown(*samples.ranks(), section="breaks")
    assert text.count("Graph break 1 of 2") == 1
    assert text.startswith("identical in 2 processes: rank 0 · pid 100 · 0.inspection, rank 1 · pid 101 · 1.inspection")
    assert text.endswith("Next: compile-inspect breaks 0.inspection\n")


def test_processes_that_differ_have_a_header_each() -> None:
    first, second = samples.ranks()
    second = dataclasses.replace(second, breaks=second.breaks[:1], complete=False)
    text = shown(first, second, section="breaks")
    assert text.count("Graph break 1 of ") == 2
    assert "rank 0 · pid 100 · 0.inspection ─" in text
    assert "rank 1 · pid 101 · 1.inspection · partial ─" in text


def test_summary_of_processes_has_a_row_each_and_the_sum() -> None:
    text = lines(shown(*samples.ranks()))
    assert "rank 0 5 2 2 2 6.75 s 3 1 hit, 1 miss, 1 bypassed" in text
    assert "total 10 4 4 4 13.5 s 6 2 hits, 2 misses, 2 bypassed" in text


# ------------------------------------------------------------------------------------------------ safety


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("section", SECTIONS)
def test_a_hostile_capture_cannot_drive_the_terminal(section: str, everything: bool) -> None:
    text = shown(samples.hostile(), section=section, all=everything, width=4000)
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text) == []
    assert "owned" not in text  # the window title goes with its sequence
    assert "[red]x[/red][link=file:///etc]EVIL" in text  # markup is shown, not obeyed
    assert ":smile:" in text
    text.encode("utf-8")


@pytest.mark.parametrize("section", SECTIONS)
def test_in_color_every_escape_sequence_is_ours(section: str) -> None:
    text = shown(samples.hostile(), section=section, all=True, color=True, width=4000)
    # Colors and attributes only: no link, no cursor movement, no title.
    assert "\x1b" not in re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert "EVIL" in text


def test_hostile_names_do_not_break_lines_apart() -> None:
    guard = Guard("0/0", "KIND\nNext: rm -rf ~", "s", "a\nb", "c\r\nd\te")
    text = shown(dataclasses.replace(samples.whole(), guards=(guard,)), section="guards")
    assert "  KIND Next: rm -rf ~ · 1\n    a b  c d e  -\n" in text


def test_an_error_message_holds_nothing_hostile() -> None:
    with pytest.raises(InspectError) as caught:
        shown(samples.hostile(), compilation="\x1b[31m9/9")
    assert str(caught.value).isprintable()
    assert "0/0[red]x[/red]" in str(caught.value)


def test_clean_cannot_be_fooled_by_nested_sequences() -> None:
    assert clean("\x1b\x1b[31m[32mx") == "[32mx"
    assert clean("\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\") == "text"
    assert clean("a\x1b]0;never ended") == "a]0;never ended"
    assert one_line("  two\n\n lines\t") == "two lines"


def test_paths_are_short(tmp_path: Path) -> None:
    assert short_path(str(tmp_path / "pkg" / "a.py")) == "pkg/a.py".replace("/", str(Path("/"))[-1])
    assert short_path(str(tmp_path / "venv/lib/python3.11/site-packages/numpy/core.py")) == "numpy/core.py"
    assert short_path("/usr/lib/python3.11/functools.py") == "functools.py"
    assert short_path(str(tmp_path) + "-other/a.py") == str(tmp_path) + "-other/a.py"


# ------------------------------------------------------------------------------------------------ cost


def test_a_large_summary_is_quick() -> None:
    inspection = samples.large()
    start = time.perf_counter()
    text = shown(inspection)
    assert time.perf_counter() - start < 0.5
    assert lines(text)[0] == "No graph breaks, but 299 recompiles."


def test_importing_the_reporters_is_cheap() -> None:
    code = "import sys, compile_inspect.reporters.json, compile_inspect.reporters.chrome_trace; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "compile_inspect.reporters.json" in loaded
    assert not loaded & {"rich", "pygments", "torch", "typer"}
    code = "import sys, compile_inspect.reporters.text; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch" not in done.stdout.split()
