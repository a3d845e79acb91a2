"""Phase 4 of the tour: the kernels that Inductor generates, what each computes, and which pairs were not fused."""

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
"""Models whose backward is compiled too; the others only compile the forward."""
CHOICES = ("about as many as there are operations", "about half as many", "a third as many or fewer")


@dataclass(frozen=True)
class GeneratedKernel:
    """One launch: what it computes, and for which lines."""

    model: str
    name: str
    kind: str
    direction: str
    operations: tuple[str, ...]
    lines: tuple[str, ...]
    fused: bool


@dataclass(frozen=True)
class GeneratedModel:
    """One model after Inductor: operations of its graphs, launches, and reasons why neighbors were not fused."""

    model: str
    operations: int
    kernels: tuple[GeneratedKernel, ...]
    not_fused: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class InductorInspection:
    """The results of `run_inductor_inspection`."""

    device: str
    models: tuple[GeneratedModel, ...]

    def answer(self) -> tuple[str, ...]:
        """What was fused, with the numbers of this run."""
        kernels = [kernel for model in self.models for kernel in model.kernels]
        if not kernels:
            return ()
        operations = sum(model.operations for model in self.models)
        fused = [kernel for kernel in kernels if kernel.fused]
        library = [kernel for kernel in kernels if kernel.kind == "library call"]
        launches, models = count(len(kernels), "launch", "launches"), count(len(self.models), "model")
        sentences = [
            f"{count(operations, 'operation')} of {models} became {launches}: {count(len(fused), 'fused kernel')} of several "
            f"operations, and {count(len(library), 'library call')}, which Inductor does not generate code for."
        ]
        if fused:
            largest = max(fused, key=lambda kernel: len(kernel.operations))
            lines = f" from {', '.join(largest.lines)}" if largest.lines else ""
            sentences.append(
                f"The largest, {largest.name} of {largest.model}, computes "
                f"{count(len(largest.operations), 'operation')}{lines} "
                f"in one launch: {', '.join(largest.operations)}."
            )
        reasons: dict[str, int] = {}
        for model in self.models:
            for reason, times in model.not_fused:
                reasons[reason] = reasons.get(reason, 0) + times
        if reasons:
            reason, times = max(reasons.items(), key=lambda item: item[1])
            pairs = count(sum(reasons.values()), "pair")
            sentences.append(
                f"Inductor considered fusing {pairs} more and did not; the reason for {times} of them is: {reason}."
            )
        return tuple(sentences)


def run_inductor_inspection(target: Target | None = None, *, guide: Guide | None = None) -> InductorInspection:
    """Compile models with Inductor and analyze the generated code: kernels, operations, lines, reasons.

    On a machine without what Inductor needs, the result is empty and the guide says what to install.
    """
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    device = guide.machine.device
    if not guide.machine.inductor:
        guide.note(guide.machine.missing_requirement)
        return InductorInspection(device, ())
    if device == "cpu":
        guide.remark("This machine has no GPU, so Inductor generates C++ for the CPU. For a GPU it would generate Triton code.")
    guide.ask("How many kernels does Inductor launch for the operations of these models?", CHOICES)
    if target is not None:
        targets = [(target, None if target.gradients else target.gradients)]
    else:
        targets = [(guide.model(name), None if name in TRAINED else False) for name in MODELS]
    models = []
    for item, gradients in targets:
        name = model_name(item)
        with guide.working(f"compiling {name}"):
            inspection = _compile_and_inspect(replace(item, gradients=gradients, further=()))
        guide.captures[name] = inspection
        models.append(_generated_model(name, inspection))
        _show(models[-1], inspection, guide, listing=len(models) == min(2, len(targets)))
    result = InductorInspection(device, tuple(models))
    operations, launches = sum(model.operations for model in models), sum(len(model.kernels) for model in models)
    if operations and launches:
        launches_per_operation = launches / operations
        guide.reveal(0 if launches_per_operation > 0.75 else 1 if launches_per_operation > 0.4 else 2)
    else:
        guide.note("Inductor received no graph, because Dynamo captured no frame; phase 3 shows why")
    return result


def _compile_and_inspect(target: Target) -> Inspection:
    import torch

    from compile_inspect import torch_private
    from compile_inspect.capture.api import inspect
    from compile_inspect.silence import silence

    torch_private.forget_compiled_code()
    with silence(), torch.set_grad_enabled(target.gradients is not False):
        return inspect(target, fresh=True)


def _generated_model(name: str, inspection: Inspection) -> GeneratedModel:
    kernels = tuple(_kernel(name, inspection, lowering, kernel) for lowering, kernel in inspection.kernels())
    graphs = [inspection.graph(lowering.graph) for lowering in inspection.lowerings]
    operations = sum(
        graph.call_count - _calls_without_code(lowering)
        for graph, lowering in zip(graphs, inspection.lowerings, strict=True)
        if graph
    )
    not_fused: dict[str, int] = {}
    for lowering in inspection.lowerings:
        for pair in lowering.not_fused:
            not_fused[pair.reason] = not_fused.get(pair.reason, 0) + pair.times
    return GeneratedModel(name, operations, kernels, tuple(sorted(not_fused.items(), key=lambda item: -item[1])))


def _calls_without_code(lowering: Lowering) -> int:
    """Calls that need no code, such as views."""
    from compile_inspect.records import Fate

    return sum(node.fate in (Fate.VIEW, Fate.ITEM, Fate.UNUSED) for node in lowering.unplaced)


def _kernel(model: str, inspection: Inspection, lowering: Lowering, kernel: Kernel) -> GeneratedKernel:
    places = {(Path(item.file).name, item.line) for item in inspection.kernel_lines(kernel) if not item.in_torch}
    return GeneratedKernel(
        model=model,
        name=kernel.name,
        kind=kernel.kind.value,
        direction=lowering.direction.value,
        operations=kernel.nodes,
        lines=tuple(f"{file}:{line}" for file, line in sorted(places)),
        fused=kernel.is_fused,
    )


def _show(model: GeneratedModel, inspection: Inspection, guide: Guide, *, listing: bool) -> None:
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
    if model.not_fused:
        guide.table(
            f"{model.model}: not fused", [">Pairs", "Reason"], [[str(times), reason] for reason, times in model.not_fused[:4]]
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
        guide.listing(f"The code of {kernel.name}", "\n".join(code), language=language, max_lines=24)
