"""Remedies for wrappers of torch that it cannot trace: compile the wrapped module, then wrap it."""

from __future__ import annotations

from collections.abc import Iterator

from compile_inspect.records import CompilationOutcome, GraphBreak, Inspection
from compile_inspect.records.locations import is_torch_file

_DATA_PARALLEL = "torch/nn/parallel/distributed.py"
_SHARDED = "torch/distributed/fsdp/"
_OPTIMIZERS = "torch/optim/"
_WRAPPERS = {
    _DATA_PARALLEL: (
        "DistributedDataParallel was compiled, and torch cannot trace it{extent}. Compile the model, then wrap it: "
        "DistributedDataParallel(torch.compile(model))."
    ),
    _SHARDED: (
        "A model sharded by FSDP was compiled from outside, and torch cannot trace the hooks of its parts{extent}. Compile "
        "each part, then shard it: layer.compile(), then fully_shard(layer)."
    ),
}
_NOTHING = "; nothing inside it runs compiled"
_STEP = (
    "{line} breaks the graph on purpose: torch compiles optimizers separately. Compile the forward and the loss in one "
    "function, call backward() outside it, and compile the step separately: step = torch.compile(optimizer.step)."
)
_STEP_ALONE = (
    "The graph break at the start of a compiled optimizer step comes from torch itself, and the update after it runs "
    "compiled: there is nothing to do."
)


def wrapper_remedies(inspection: Inspection) -> Iterator[str]:
    """Sentences on what to do about compiled wrappers and optimizers; none if compiling them did no harm."""
    for files, sentence in _WRAPPERS.items():
        if _is_compiled(inspection, files) and not _compiled_below(inspection, files):
            yield sentence.format(extent=_NOTHING if inspection.nothing_compiled else "")
    broken = [item for item in inspection.root_breaks if _is_optimizer_break(inspection, item)]
    lines = [item.own_location for item in broken if item.own_location is not None]
    if lines:
        yield _STEP.format(line=f"`{lines[0].code}` inside compiled code" if lines[0].code else "An optimizer's step")
    elif broken and _compiled_below(inspection, _OPTIMIZERS):
        yield _STEP_ALONE


def _is_optimizer_break(inspection: Inspection, cause: GraphBreak) -> bool:
    """Whether the graph broke inside an optimizer, or at a call to one that torch does not trace."""
    if any(part in cause.explanation.replace("\\", "/") for part in (_OPTIMIZERS, "`Optimizer.")):
        return True
    stack = inspection.stack(cause.stack)
    innermost = None if stack is None else stack.innermost
    return innermost is not None and _OPTIMIZERS in innermost.file.replace("\\", "/") and innermost.in_torch


def _is_compiled(inspection: Inspection, files: str) -> bool:
    """Whether torch tried to compile these files themselves, rather than code that they call."""
    traced = [item.file for item in inspection.compilations]
    traced += [item.location.file for item in inspection.breaks if item.location is not None]
    return any(files in file.replace("\\", "/") and is_torch_file(file) for file in traced)


def _compiled_below(inspection: Inspection, files: str) -> bool:
    """Whether a graph was compiled from these files or from code that they call."""
    return any(
        item.outcome is CompilationOutcome.COMPILED and item.graph_calls and _passes(inspection, item.call_stack, files)
        for item in inspection.compilations
    )


def _passes(inspection: Inspection, index: int | None, files: str) -> bool:
    stack = inspection.stack(index)
    places = () if stack is None else stack.locations
    return any(files in place.file.replace("\\", "/") and place.in_torch for place in places)
