"""The suggested next command, printed at the end of every section."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from compile_inspect.records import CudaGraphOutcome, Inspection
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.target_arguments import infer_target_arguments
from compile_inspect.wording.plain import one_line

# In the order of their usual cost. A section is suggested only where it has
# something to show.
_SECTIONS_WITH_CONTENT: dict[str, Callable[[Inspection], bool]] = {
    "failures": lambda inspection: bool(inspection.failures),
    "breaks": lambda inspection: bool(inspection.breaks),
    "recompiles": lambda inspection: bool(inspection.recompiles or inspection.limits),
    "cudagraphs": lambda inspection: any(
        event.outcome in (CudaGraphOutcome.SKIPPED, CudaGraphOutcome.NO_EFFECT) for event in inspection.cuda_graphs
    ),
    "kernels": lambda inspection: bool(inspection.lowerings),
    "time": lambda inspection: bool(inspection.phases),
    "cache": lambda inspection: bool(inspection.caches),
    "graphs": lambda inspection: bool(inspection.graphs),
    "guards": lambda inspection: bool(inspection.guards),
    "code": lambda inspection: any(lowering.code for lowering in inspection.lowerings),
    "bytecode": lambda inspection: bool(inspection.bytecode),
    "timing": lambda inspection: bool(inspection.timings),
}


def next_command(inspections: Sequence[Inspection], section: str, files: Sequence[str], options: ShowOptions) -> str:
    """The command to suggest after `section`.

    >>> from compile_inspect.records import Lowering, Direction
    >>> inspection = Inspection(lowerings=(Lowering("a", "0/0", Direction.FORWARD, None),))
    >>> next_command([inspection], "summary", ["my step.inspection"], ShowOptions())
    "compile-inspect show 'my step.inspection' kernels"
    """
    show = ["compile-inspect", "show", *(_argument(file) for file in dict.fromkeys(files))]
    chosen = [] if options.compilation is None else ["--compilation", _argument(options.compilation)]
    if section == "graphs" and not chosen and not options.all:
        first = next((graph.compilation for item in inspections for graph in item.graphs if graph.compilation), None)
        if first is not None:  # the nodes are the next thing to look at
            return " ".join([*show, "graphs", "--compilation", _argument(first)])
    action = _follow_up_command(inspections, section, files)
    if action:
        return action
    names = list(_SECTIONS_WITH_CONTENT)
    if any(
        inspection.limits for inspection in inspections
    ):  # functions that torch gave up on run in eager mode, with or without graph breaks
        names.sort(key=("failures", "recompiles").__contains__, reverse=True)
    start = names.index(section) + 1 if section in names else 0
    for name in names[start:]:
        if any(_SECTIONS_WITH_CONTENT[name](inspection) for inspection in inspections):
            return " ".join([*show, name, *chosen])
    if section == "summary":  # no section has content: record again
        return "compile-inspect run --help"
    return " ".join([*show, "summary"])


def _follow_up_command(inspections: Sequence[Inspection], section: str, files: Sequence[str]) -> str:
    """The command that acts on the contents of a section; empty if there is none."""
    if section == "breaks":
        broken = next(((item, file) for item, file in zip(inspections, files, strict=False) if item.breaks), None)
        if broken is not None:
            arguments = infer_target_arguments(broken[0])
            proven = any(finding.best_proposal is not None for finding in broken[0].findings)
            command = "fix" if proven and arguments is not None else "breaks"
            return " ".join(["compile-inspect", command, *(_argument(word) for word in arguments or (broken[1],))])
    if section == "recompiles":
        capture = next((file for item, file in zip(inspections, files, strict=False) if item.recompiles), None)
        if capture is not None:
            return f"compile-inspect guards {_argument(capture)}"
    return ""


def _argument(value: str) -> str:
    # Cleaned before it is quoted: cleaning afterward could remove a quote.
    return shlex.quote(one_line(value))


def print_next(
    console: Console, inspections: Sequence[Inspection], section: str, files: Sequence[str], options: ShowOptions
) -> None:
    """Print the last line of a section."""
    command = next_command(inspections, section, files, options)
    console.print(Text("Next: ", style="dim").append(command, style="bold not dim"), soft_wrap=True)
