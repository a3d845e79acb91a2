"""Phase 4 of the tour: the kernels that Inductor writes, what is in each of them, and what was kept apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from compile_inspect.tour.calls import model_name
from compile_inspect.wording.quantities import count

if TYPE_CHECKING:
    from compile_inspect.records import Inspection, Kernel, Lowering
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

MODELS = ("mlp", "information", "salience", "query_content", "block")
TRAINED = ("mlp",)
"""Models whose backward is compiled too; of the others the forward is enough to see."""
CHOICES = ("as many as there are operations", "about half as many", "a third or fewer")


@dataclass(frozen=True)
class WrittenKernel:
    """One launch: what it computes, of which lines."""

    model: str
    name: str
    kind: str
    direction: str
    operations: tuple[str, ...]
    lines: tuple[str, ...]
    fused: bool


@dataclass(frozen=True)
class WrittenModel:
    """What became of one model: operations of its graphs, launches, and reasons that kept neighbors apart."""

    model: str
    operations: int
    kernels: tuple[WrittenKernel, ...]
    apart: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class InductorInspection:
    """What `run_inductor_inspection` has seen."""

    device: str
    models: tuple[WrittenModel, ...]

    def answer(self) -> tuple[str, ...]:
        """What was fused, in figures of this run."""
        kernels = [kernel for model in self.models for kernel in model.kernels]
        if not kernels:
            return ()
        operations = sum(model.operations for model in self.models)
        fused = [kernel for kernel in kernels if kernel.fused]
        library = [kernel for kernel in kernels if kernel.kind == "library call"]
        launches, models = count(len(kernels), "launch", "launches"), count(len(self.models), "model")
        told = [
            f"{count(operations, 'operation')} of {models} became {launches}: {count(len(fused), 'kernel')} of several "
            f"operations, and {count(len(library), 'call')} of a library, which Inductor leaves alone."
        ]
        if fused:
            largest = max(fused, key=lambda kernel: len(kernel.operations))
            lines = f" of line {', '.join(largest.lines)}" if largest.lines else ""
            told.append(
                f"The largest, {largest.name} of {largest.model}, computes {count(len(largest.operations), 'operation')} "
                f"({', '.join(largest.operations)}){lines} in one launch."
            )
        reasons: dict[str, int] = {}
        for model in self.models:
            for reason, times in model.apart:
                reasons[reason] = reasons.get(reason, 0) + times
        if reasons:
            reason, times = max(reasons.items(), key=lambda item: item[1])
            pairs = count(sum(reasons.values()), "pair")
            told.append(f"Neighbors that were looked at and kept apart: {pairs}; for {times} the reason is: {reason}.")
        return tuple(told)


def run_inductor_inspection(target: Target | None = None, *, guide: Guide | None = None) -> InductorInspection:
    """Compile models with Inductor and take the generated code apart: kernels, operations, lines, reasons.

    Where the machine lacks what Inductor needs, the result holds nothing and the guide says what to install.
    """
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    device = guide.machine.device
    if not guide.machine.inductor:
        guide.note(guide.machine.lacking)
        return InductorInspection(device, ())
    if device == "cpu":
        guide.say("There is no GPU, for which Inductor would write Triton: what follows is C++ for the processor.")
    guide.guess("How many kernels does Inductor launch for the operations of these models?", CHOICES)
    if target is not None:
        targets = [(target, None if target.gradients else target.gradients)]
    else:
        targets = [(guide.model(name), None if name in TRAINED else False) for name in MODELS]
    models = []
    for item, gradients in targets:
        name = model_name(item)
        with guide.working(f"compiling {name}"):
            inspection = _inspected(replace(item, gradients=gradients, further=()))
        guide.captures[name] = inspection
        models.append(_written(name, inspection))
        _show(models[-1], inspection, guide, listing=len(models) == min(2, len(targets)))
    result = InductorInspection(device, tuple(models))
    operations, launches = sum(model.operations for model in models), sum(len(model.kernels) for model in models)
    if operations and launches:
        part = launches / operations
        guide.settle(0 if part > 0.75 else 1 if part > 0.4 else 2)
    else:
        guide.note("Inductor was given nothing: no frame was captured, see phase 3")
    return result


def _inspected(target: Target) -> Inspection:
    import torch

    from compile_inspect import torch_private
    from compile_inspect.capture.api import inspect
    from compile_inspect.silence import silence

    torch_private.forget_compiled_code()
    with silence(), torch.set_grad_enabled(target.gradients is not False):
        return inspect(target, fresh=True)


def _written(name: str, inspection: Inspection) -> WrittenModel:
    kernels = tuple(_kernel(name, inspection, lowering, kernel) for lowering, kernel in inspection.kernels())
    graphs = [inspection.graph(lowering.graph) for lowering in inspection.lowerings]
    operations = sum(
        graph.call_count - _free(lowering) for graph, lowering in zip(graphs, inspection.lowerings, strict=True) if graph
    )
    apart: dict[str, int] = {}
    for lowering in inspection.lowerings:
        for pair in lowering.not_fused:
            apart[pair.reason] = apart.get(pair.reason, 0) + pair.times
    return WrittenModel(name, operations, kernels, tuple(sorted(apart.items(), key=lambda item: -item[1])))


def _free(lowering: Lowering) -> int:
    """Calls that need no code, such as views: nobody would launch anything for them."""
    from compile_inspect.records import Fate

    return sum(node.fate in (Fate.VIEW, Fate.ITEM, Fate.UNUSED) for node in lowering.unplaced)


def _kernel(model: str, inspection: Inspection, lowering: Lowering, kernel: Kernel) -> WrittenKernel:
    places = {(Path(item.file).name, item.line) for item in inspection.kernel_lines(kernel) if not item.in_torch}
    return WrittenKernel(
        model=model,
        name=kernel.name,
        kind=kernel.kind.value,
        direction=lowering.direction.value,
        operations=kernel.nodes,
        lines=tuple(f"{file}:{line}" for file, line in sorted(places)),
        fused=kernel.is_fused,
    )


def _show(model: WrittenModel, inspection: Inspection, guide: Guide, *, listing: bool) -> None:
    rows = [
        [
            kernel.direction,
            kernel.name,
            kernel.kind,
            str(len(kernel.operations)),
            ", ".join(kernel.operations),
            ", ".join(kernel.lines),
        ]
        for kernel in model.kernels
    ]
    guide.table(
        f"{model.model}: {count(model.operations, 'operation')}, {count(len(model.kernels), 'launch', 'launches')}",
        ["", "Kernel", "Kind", ">Ops", "Computes", "Lines"],
        rows,
    )
    if model.apart:
        guide.table(
            f"{model.model}: kept apart", [">Pairs", "Reason"], [[str(times), reason] for reason, times in model.apart[:4]]
        )
    largest = max(
        ((lowering, kernel) for lowering, kernel in inspection.kernels() if kernel.is_fused and kernel.first_line),
        key=lambda item: len(item[1].nodes),
        default=None,
    )
    if listing and largest is not None:
        lowering, kernel = largest
        code = lowering.code.split("\n")[(kernel.first_line or 1) - 1 : kernel.last_line]
        language = "cpp" if kernel.kind.value == "generated C++" else "python"
        guide.listing(f"The code of {kernel.name}", "\n".join(code), language=language, most=24)
