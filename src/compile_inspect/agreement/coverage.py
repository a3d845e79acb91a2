"""What a finished comparison did not cover, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from compile_inspect import torch_private
from compile_inspect.agreement.reference import Point, Reference, join_names
from compile_inspect.agreement.second_derivatives import TwiceDifferentiated
from compile_inspect.variants import Prepared


def find_coverage_gaps(reference: Reference, prepared: Prepared, skipped_points: list[Point], calls: str) -> tuple[str, ...]:
    """What was not verified: inputs that were left out, with the reason, and what was not requested."""
    return tuple(_sentences(reference, prepared, skipped_points, calls))


def _sentences(reference: Reference, prepared: Prepared, skipped_points: list[Point], calls: str) -> Iterator[str]:
    task = reference.task
    leaves = torch_private.flatten((task.args, dict(task.kwargs)))[0]
    tensors = [leaf for leaf in leaves if torch_private.is_tensor(leaf)]
    if tensors:
        dtypes = join_names(list(dict.fromkeys(str(leaf.dtype).removeprefix("torch.") for leaf in tensors)))
        yield "other shapes" if not task.further else "shapes other than those given"
        yield f"dtypes other than {dtypes}"
    if len(tensors) < len(leaves):
        yield "other values of non-tensor arguments"
    if not task.gradients:
        yield "gradients"
    else:
        yield "calls under torch.no_grad()"
        if not isinstance(task, TwiceDifferentiated):
            yield "second derivatives"
        elif prepared.program is not None:
            yield "second derivatives: the variant's gradients cannot be differentiated"
        if prepared.program is not None:
            yield "requires_grad of results: gradients are computed together with them"
    if len(reference.points) == 1 + len(task.further):
        yield "inputs other than those given"
    else:
        yield from reference.not_probed
    if skipped_points:
        yield f"{join_names([point.name for point in skipped_points])}: the variant takes only inputs like the example"
    raising = [point.name for point in reference.points if point.eager.error is not None and point not in skipped_points]
    if raising:
        yield f"results at {join_names(raising)}: eager raises there"
    if calls:
        yield calls
