"""The one command to type next, printed at the end of every section."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from compile_inspect.records import CudaGraphOutcome, Inspection
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.target_name import target_words
from compile_inspect.wording.plain import one_line

# In the order in which they are worth reading: what costs most first. A section is offered only where there is
# something to see in it.
_WORTH_READING: dict[str, Callable[[Inspection], bool]] = {
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
    """The command that shows what is worth seeing after `section`.

    >>> from compile_inspect.records import Lowering, Direction
    >>> inspection = Inspection(lowerings=(Lowering("a", "0/0", Direction.FORWARD, None),))
    >>> next_command([inspection], "summary", ["my step.inspection"], ShowOptions())
    "compile-inspect show 'my step.inspection' kernels"
    """
    show = ["compile-inspect", "show", *(_argument(file) for file in dict.fromkeys(files))]
    chosen = [] if options.compilation is None else ["--compilation", _argument(options.compilation)]
    if section == "graphs" and not chosen and not options.all:
        first = next((graph.compilation for item in inspections for graph in item.graphs if graph.compilation), None)
        if first is not None:  # the nodes themselves are the next thing to look at
            return " ".join([*show, "graphs", "--compilation", _argument(first)])
    known = _beyond_reading(inspections, section, files)
    if known:
        return known
    names = list(_WORTH_READING)
    if any(inspection.limits for inspection in inspections):  # what torch gave up runs in eager mode, breaks or not
        names.sort(key=("failures", "recompiles").__contains__, reverse=True)
    start = names.index(section) + 1 if section in names else 0
    for name in names[start:]:
        if any(_WORTH_READING[name](inspection) for inspection in inspections):
            return " ".join([*show, name, *chosen])
    if section == "summary":  # there is nothing to see anywhere: record again
        return "compile-inspect run --help"
    return " ".join([*show, "summary"])


def _beyond_reading(inspections: Sequence[Inspection], section: str, files: Sequence[str]) -> str:
    """The command that does something about what a section showed; empty where there is none."""
    if section == "breaks":
        broken = next(((item, file) for item, file in zip(inspections, files, strict=False) if item.breaks), None)
        if broken is not None:
            words = target_words(broken[0])
            proven = any(finding.chosen is not None for finding in broken[0].findings)
            command = "fix" if proven and words is not None else "breaks"
            return " ".join(["compile-inspect", command, *(_argument(word) for word in words or (broken[1],))])
    if section == "recompiles":
        again = next((file for item, file in zip(inspections, files, strict=False) if item.recompiles), None)
        if again is not None:
            return f"compile-inspect guards {_argument(again)}"
    return ""


def _argument(value: str) -> str:
    # Made clean before it is quoted: taking characters out afterwards could take out a quote.
    return shlex.quote(one_line(value))


def print_next(
    console: Console, inspections: Sequence[Inspection], section: str, files: Sequence[str], options: ShowOptions
) -> None:
    """Print the last line of a section."""
    command = next_command(inspections, section, files, options)
    console.print(Text("Next: ", style="dim").append(command, style="bold not dim"), soft_wrap=True)
