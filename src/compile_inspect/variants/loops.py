"""Write products with vectors as sums, so that Inductor turns them into loops.

A library's product is made for matrices. With a vector on one side, the loop that Inductor writes reads the matrix once,
on all threads, together with the operations that follow (bias, activation); it can take half the time.
"""

from __future__ import annotations

from typing import Any

from compile_inspect import torch_private
from compile_inspect.variants.base import RefusalError


def with_loops(graph: Any, inputs: list[Any], which: str = "all") -> Any:
    """The graph with matrix-vector products as sums of products; refuses a graph that this does not change.

    `which` is `all`, or `across` for only those whose sums run across memory: along it, a library may be faster.
    """
    import torch

    aten = torch.ops.aten

    def mm(a: Any, b: Any) -> Any:
        return _product_sum(a, b) if _is_chosen(a, b, which) else NotImplemented

    def addmm(bias: Any, a: Any, b: Any, *, beta: float = 1, alpha: float = 1) -> Any:
        return bias + _product_sum(a, b) if beta == alpha == 1 and _is_chosen(a, b, which) else NotImplemented

    def mv(a: Any, vector: Any) -> Any:
        return (a * vector).sum(-1) if _is_chosen(a, vector.unsqueeze(-1), which) else NotImplemented

    table = {aten.mm.default: mm, aten.addmm.default: addmm, aten.mv.default: mv}
    names = {str(target) for target in table}
    rewritten = torch_private.trace(graph, inputs, table=table)
    before, after = _count(graph, names), _count(rewritten, names)
    if before == after:
        raise RefusalError("it has no product of a matrix with a vector" + (" across its memory" if which == "across" else ""))
    if which == "across" and after == 0:
        raise RefusalError("every product with a vector runs across memory: it is the same as aot-inductor/loops")
    return rewritten


def _count(graph: Any, names: set[str]) -> int:
    return sum(str(node.target) in names for node in graph.graph.nodes)


def _product_sum(a: Any, b: Any) -> Any:
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)


def _is_chosen(a: Any, b: Any, which: str) -> bool:
    """Whether one side is a vector, and the sums through the other run as requested.

    Only in float32 and float64: libraries sum narrow types in wider ones, and integers may wrap around.
    """
    import torch

    if a.dtype not in (torch.float32, torch.float64):
        return False
    if a.shape[-2] == 1:
        return which == "all" or b.stride(-2) != 1
    return bool(b.shape[-1] == 1) and (which == "all" or a.stride(-1) != 1)
