"""Running a program twice: as it is, for what torch logs and counts, and under the recorder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compile_inspect.capture_file import load_together
from compile_inspect.records import Inspection, Stage

PROGRAMS = Path(__file__).parents[1] / "programs" / "real"
_BREAK = re.compile(r"Graph break in user code at (?P<file>.+):(?P<line>\d+)$", re.MULTILINE)
_RECOMPILE = re.compile(r"Recompiling function (?P<name>\S+) in ")


@dataclass(frozen=True)
class Twice:
    """What torch says of a program by itself, and what was recorded of it; one entry for each process that compiles."""

    counters: tuple[dict[str, dict[str, int]], ...]
    log: str
    inspections: tuple[Inspection, ...]
    summary: str

    @property
    def inspection(self) -> Inspection:
        """What was recorded of the only process, or of the first rank."""
        return self.inspections[0]

    @property
    def headline(self) -> str:
        """The first line of the summary."""
        return self.summary.splitlines()[0]

    def broken_lines(self) -> set[tuple[str, int]]:
        """Where torch's log says that graphs were broken."""
        return {(match["file"], int(match["line"])) for match in _BREAK.finditer(self.log)}

    def recompiles(self) -> int:
        """How often torch's log says that a function was compiled again."""
        return len(_RECOMPILE.findall(self.log))


def run_twice(folder: Path, name: str, *arguments: str, ranks: int = 0) -> Twice:
    """Run a program of `tests/programs/real` by itself and recorded; both must print the same."""
    command = [sys.executable, str(PROGRAMS / f"{name}.py")]
    counts, capture = folder / "counters.json", folder / f"{name}.inspection"
    alone = _run([*command, *arguments], {"TORCH_LOGS": "graph_breaks,recompiles", "TORCH_COUNTERS": str(counts)})
    files = [Path(f"{counts}.{rank}") for rank in range(ranks)] or [counts]
    recorder = [sys.executable, "-m", "compile_inspect"]
    # Another port: the first run's may not be free again.
    again = [str(int(item) + 1) if item.isdigit() else item for item in arguments]
    recorded = _run([*recorder, "run", "-o", str(capture), *command[1:], *again], {})
    assert recorded.stdout == alone.stdout
    shown = _run([*recorder, "show", str(capture)], {"COLUMNS": "400"})
    loaded = [item for _, item in load_together([capture])]
    return Twice(
        counters=tuple(json.loads(file.read_text()) for file in files),
        log=re.sub(r"^(\[rank\d+\]:)?[VDIW]\d{4} .*?\] (\[__\w+\] )?", "", alone.stderr, flags=re.MULTILINE),
        inspections=tuple(item for item in loaded if item.compilations) or tuple(loaded),
        summary=shown.stdout,
    )


def hold_against_torch(twice: Twice, *, ranks: int = 1) -> None:
    """Graphs, operations, breaks and recompiles as torch counts and logs them."""
    for counters, inspection in zip(twice.counters, twice.inspections, strict=True):
        stats = counters.get("stats", {})
        assert inspection.graph_count == stats.get("unique_graphs", 0)
        assert inspection.graph_count == len(inspection.graphs_at(Stage.DYNAMO))
        if inspection.compiled_share is not None:
            captured = stats.get("calls_captured", 0)
            # Torch adds up all versions of a frame, and what it traced before it began again to make numbers tensors.
            reasons = [reason for item in inspection.compilations for reason in item.restart_reasons]
            added = bool(inspection.recompiles) or any("TensorifyScalarRestart" in reason for reason in reasons)
            assert (
                inspection.compiled_share.compiled_operations < captured
                if added
                else inspection.compiled_share.compiled_operations == captured
            )
        assert inspection.missing_evidence == ()
    ours = {
        (stack.innermost.file, stack.innermost.line)
        for inspection in twice.inspections
        for cause in inspection.breaks
        if (stack := inspection.stack(cause.stack)) is not None and stack.innermost is not None
    }
    assert twice.broken_lines() <= ours
    recompiles = sum(len(inspection.recompiles) for inspection in twice.inspections)
    assert recompiles == twice.recompiles()


def _run(command: Sequence[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done
