"""Print docs/reference/known-wrong-results.md: the gallery of wrong results of torch.compile, with measurements.

    python docs/generate_known_wrong_results.py             # print the page
    python docs/generate_known_wrong_results.py --update    # write it
    python docs/generate_known_wrong_results.py --measure   # verify every entry first (10 minutes), then write it

The entries are in tests/compile_inspect/agreement/known_faults. tests/docs/test_known_wrong_results.py runs this.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "known-wrong-results.md"
sys.path.insert(0, str(ROOT / "tests" / "compile_inspect" / "agreement"))

from known_faults import GALLERY, TORCH, KnownFault, measuring  # noqa: E402

INTRODUCTION = f"""\
# Known wrong results

<!-- Written by docs/generate_known_wrong_results.py; do not edit. -->

For these functions, `torch.compile` of torch {TORCH} returns wrong results on a CPU, without an error. Each was run on the
machine named below; the numbers are its results. Entries without an issue were found by differential testing: single
operators at special values, eager compared with compiled.

The gallery measures `verify`: whether it catches an entry, and whether the stage, the operation and the line that it
[blames](../how-to/check-results.md#what-is-to-blame) are those at fault. The fault was determined without `verify`: the
stage by compiling with each of torch's backends, the operation by compiling it alone or from the diagnosis in the issue.
If a fault needs two operations together, either counts as correct.

The functions below need these imports:

```python
import torch
import torch.nn.functional as F
from torch import Tensor
```
"""


def page() -> str:
    """The whole page."""
    machine, measured = measuring.read()
    sections = [section(fault, measured.get(fault.name)) for fault in GALLERY]
    return "\n".join([INTRODUCTION, *summary(machine, measured), *table(measured), *sections])


def summary(machine: str, measured: dict[str, measuring.Measurement]) -> list[str]:
    """Counts by stage."""
    lines = [f"Machine: {machine}.", "", "| Stage | Entries | Caught | Blame correct |", "|---|---|---|---|"]
    stages = list(dict.fromkeys(fault.stage for fault in GALLERY))
    for stage in [*stages, None]:
        faults = [fault for fault in GALLERY if stage is None or fault.stage is stage]
        items = [measured[fault.name] for fault in faults if fault.name in measured]
        name = "All" if stage is None else stage.value.partition(",")[0]
        lines.append(
            f"| {name} | {len(faults)} | {sum(item.caught for item in items)} | {sum(item.blame_right for item in items)} |"
        )
    return [*lines, ""]


def table(measured: dict[str, measuring.Measurement]) -> list[str]:
    """One row for every entry."""
    lines = ["| Entry | Issue | Eager | Compiled | Caught | Blame correct |", "|---|---|---|---|---|---|"]
    for fault in GALLERY:
        item = measured.get(fault.name)
        caught = "" if item is None else "yes" if item.caught else "no"
        blame = "" if item is None or not item.caught else "yes" if item.blame_right else "no"
        values = f"`{fault.eager}` | `{fault.compiled}`"
        lines.append(f"| [{fault.name}](#{anchor(fault)}) | {issue(fault)} | {values} | {caught} | {blame} |")
    return [*lines, ""]


def section(fault: KnownFault, item: measuring.Measurement | None) -> str:
    """One entry with its code."""
    source = inspect.getsource(fault.function)
    code = source[source.index("def ") :].rstrip()
    reason = [f"Not caught: {fault.missed}", ""] if item is not None and not item.caught else []
    label = "" if fault.shown == "result" else f" ({fault.shown})"
    stage = fault.stage.value.partition(",")[0]
    at_fault = " and ".join(f"`{line}`" for line in fault.lines)
    return "\n".join(
        [
            f"## {fault.name[0].upper()}{fault.name[1:]}",
            "",
            f"{fault.title} {issue(fault, 'Issue ')}".rstrip(),
            "",
            f"Eager{label}: `{fault.eager}`. Compiled: `{fault.compiled}`. At fault: {stage}, {at_fault}.",
            "",
            *reason,
            "```python",
            code,
            "```",
            "",
        ]
    )


def issue(fault: KnownFault, before: str = "") -> str:
    """A link to the report of the fault."""
    if fault.issue is None:
        return "" if before else "none"
    return f"{before}[#{fault.issue}](https://github.com/pytorch/pytorch/issues/{fault.issue}){'.' if before else ''}"


def anchor(fault: KnownFault) -> str:
    """The heading's anchor."""
    return fault.name.lower().replace(" ", "-")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    if options.measure:
        measuring.write([measuring.measure(fault) for fault in GALLERY])
    if options.update or options.measure:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
