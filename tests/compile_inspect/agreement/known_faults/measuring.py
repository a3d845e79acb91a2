"""What `verify` says of every entry of the gallery: caught or not, and whether what it blames is what is at fault."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from compile_inspect import verify
from compile_inspect.records import VariantAgreement, Verdict
from known_faults.entry import KnownFault

MEASURED = Path(__file__).parent / "measured.json"


@dataclass(frozen=True)
class Measurement:
    """One entry, verified with blame."""

    name: str
    caught: bool
    stage: str = ""
    operation: str = ""
    line: int = 0
    stage_right: bool = False
    operation_right: bool = False
    line_right: bool = False

    @property
    def blame_right(self) -> bool:
        """Whether stage, operation and line are all those at fault."""
        return self.stage_right and self.operation_right and self.line_right


def verified(fault: KnownFault) -> VariantAgreement:
    """The comparison of an entry compiled by Inductor, at its own inputs and at generated ones."""
    torch.compiler.reset()
    return verify(fault.function, *fault.inputs(), variants=["inductor"], gradients=fault.gradients).variant("inductor")


def measure(fault: KnownFault) -> Measurement:
    """Verify one entry and hold the blame against the truth."""
    found = verified(fault)
    blame = found.blame
    if found.verdict is not Verdict.DISAGREES or blame is None:
        return Measurement(fault.name, found.verdict is Verdict.DISAGREES)
    line = 0 if blame.location is None else blame.location.line
    return Measurement(
        fault.name,
        True,
        blame.stage.name,
        blame.operation,
        line,
        blame.stage is fault.stage,
        any(part in blame.operation for part in fault.operations),
        line in fault.numbers,
    )


def machine() -> str:
    """What the numbers depend on: torch, and the instructions that kernels are written for."""
    capability = torch.backends.cpu.get_cpu_capability()
    return f"torch {torch.__version__}, {platform.system()}, {capability}, Python {platform.python_version()}"


def write(measurements: list[Measurement]) -> None:
    """Keep measurements for the documentation."""
    content = {"machine": machine(), "entries": [asdict(item) for item in measurements]}
    MEASURED.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read() -> tuple[str, dict[str, Measurement]]:
    """What was measured last, by the name of the entry, and where."""
    content: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return content["machine"], {item["name"]: Measurement(**item) for item in content["entries"]}
