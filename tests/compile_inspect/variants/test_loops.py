"""Products with vectors as loops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from compile_inspect import torch_private
from compile_inspect.variants import RefusalError, Task, variant
from compile_inspect.variants.loops import with_loops

WEIGHT, BIAS = torch.randn(7, 5), torch.randn(7)
PRODUCTS: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "one row": (lambda x, w: x @ w.T, (torch.randn(1, 5), WEIGHT)),
    "one column": (lambda w, x: w @ x, (WEIGHT, torch.randn(5, 1))),
    "linear": (torch.nn.functional.linear, (torch.randn(1, 5), WEIGHT, BIAS)),
    "across memory": (lambda x, w: x @ w, (torch.randn(1, 5), WEIGHT.T.contiguous())),
    "vector": (lambda w, x: w @ x, (WEIGHT.double(), torch.randn(5, dtype=torch.float64))),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_become_sums_of_the_same_value(name: str) -> None:
    function, inputs = PRODUCTS[name]
    graph = torch_private.trace(lambda *tensors: [function(*tensors)], list(inputs))
    changed = with_loops(graph, list(inputs))
    targets = {str(node.target) for node in changed.graph.nodes}
    assert not targets & {"aten.mm.default", "aten.addmm.default", "aten.mv.default"}
    assert "aten.sum.dim_IntList" in targets
    torch.testing.assert_close(changed(*inputs)[0], function(*inputs))


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x, w: x @ w.T, (torch.randn(2, 5), WEIGHT)),  # no vector
        (lambda x, w: x @ w.T, (torch.ones(1, 5, dtype=torch.int64), WEIGHT.long())),
        (lambda x, w: x @ w.T, (torch.randn(1, 5).bfloat16(), WEIGHT.bfloat16())),
        (lambda b, x, w: torch.addmm(b, x, w.T, beta=2), (BIAS, torch.randn(1, 5), WEIGHT)),
        (lambda x: x + 1, (BIAS,)),
    ],
)
def test_what_a_library_does_differently_is_left(function: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> None:
    graph = torch_private.trace(lambda *tensors: [function(*tensors)], list(inputs))
    with pytest.raises(RefusalError, match="no product of a matrix with a vector"):
        with_loops(graph, list(inputs))


def test_only_sums_across_memory() -> None:
    data = torch.randn(5, 7)
    x = torch.randn(1, 5)
    graph = torch_private.trace(lambda x, data: [(x @ data).sign() @ data.T], [x, data])
    changed = with_loops(graph, [x, data], "across")
    assert [str(node.target) for node in changed.graph.nodes].count("aten.mm.default") == 1
    torch.testing.assert_close(changed(x, data)[0], (x @ data).sign() @ data.T)
    with pytest.raises(RefusalError, match="across its memory"):
        with_loops(torch_private.trace(lambda x, w: [x @ w.T], [x, WEIGHT]), [x, WEIGHT], "across")
    with pytest.raises(RefusalError, match="the same as aot-inductor/loops"):
        with_loops(torch_private.trace(lambda x, data: [x @ data], [x, data]), [x, data], "across")


@pytest.mark.exhaustive
def test_a_package_with_loops() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(5, 9), torch.nn.ReLU(), torch.nn.Linear(9, 2))
    x = torch.randn(1, 5)
    prepared = variant("aot-inductor/loops").prepare(Task(model, (x,)))
    torch.testing.assert_close(prepared.run(x).result, model(x).detach())
