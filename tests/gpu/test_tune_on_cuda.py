"""CUDA graphs handed out by `tune`: safe whatever the caller does."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import compile_inspect
from compile_inspect.variants import Task, variant

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]

WEIGHT = 1.5


def function(x: Tensor, y: Tensor) -> Tensor:
    return torch.tanh(x @ y) * WEIGHT + x.sum(-1, keepdim=True)


@pytest.fixture(scope="module")
def inputs() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(16, 32, device="cuda"), torch.randn(32, 32, device="cuda")


@pytest.fixture(scope="module")
def fast(inputs: tuple[Tensor, Tensor]) -> compile_inspect.Tuned:
    return compile_inspect.tune(function, *inputs, variants=["cuda-graph/inductor"])


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_the_graph_is_chosen(fast: compile_inspect.Tuned, inputs: tuple[Tensor, Tensor]) -> None:
    assert fast.decision.variant == "cuda-graph/inductor", fast.decision
    close(fast(*inputs), function(*inputs))
    assert fast.fallbacks == 0


def test_inputs_at_new_addresses(fast: compile_inspect.Tuned) -> None:
    before = fast.fallbacks
    for _ in range(5):
        x, y = torch.randn(16, 32, device="cuda"), torch.randn(32, 32, device="cuda")
        close(fast(x, y), function(x, y))
    assert fast.fallbacks == before


def test_contents_changed_in_place(fast: compile_inspect.Tuned, inputs: tuple[Tensor, Tensor]) -> None:
    x, y = inputs
    for _ in range(3):
        x.mul_(0.5)
        close(fast(x, y), function(x, y))


def test_outputs_kept_across_calls(fast: compile_inspect.Tuned, inputs: tuple[Tensor, Tensor]) -> None:
    x, y = inputs
    kept, expected = [], []
    for number in range(6):
        x.fill_(0.1 * number)
        kept.append(fast(x, y))
        expected.append(function(x, y))
    views = [result[2:, ::2] for result in kept]
    del kept  # the views alone must keep the memory
    x.fill_(9.0)
    fast(x, y)
    for view, right in zip(views, expected, strict=True):
        close(view, right[2:, ::2])


def test_changed_shapes_and_dtypes(fast: compile_inspect.Tuned, inputs: tuple[Tensor, Tensor]) -> None:
    before = fast.fallbacks
    x, y = inputs
    close(fast(x[:3], y), function(x[:3], y))
    close(fast(x.double(), y.double()), function(x.double(), y.double()))
    assert fast(x.cpu(), y.cpu()).device.type == "cpu"
    assert fast.fallbacks == before + 3


def test_another_stream(fast: compile_inspect.Tuned, inputs: tuple[Tensor, Tensor]) -> None:
    x, y = inputs
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        results = [fast(x, y) for _ in range(3)]
    torch.cuda.current_stream().wait_stream(stream)
    for result in results:
        close(result, function(x, y))


def test_an_exception_inside_leaves_everything_usable(fast: compile_inspect.Tuned, inputs: tuple[Tensor, Tensor]) -> None:
    x, y = inputs
    with pytest.raises(RuntimeError):
        fast(x, torch.randn(5, 5, device="cuda"))
    close(fast(x, y), function(x, y))

    def synchronizes(x: Tensor) -> Tensor:
        return x * float(x.sum())

    tuned = compile_inspect.tune(synchronizes, x, variants=["cuda-graph/eager"])
    assert tuned.decision.variant == "eager"
    close(tuned(x), synchronizes(x))
    close(fast(x, y), function(x, y))


def test_memory_that_the_next_call_overwrites(inputs: tuple[Tensor, Tensor]) -> None:
    tuned = compile_inspect.tune(function, *inputs, variants=["cuda-graph/inductor"], reuse_outputs=True)
    assert tuned(*inputs).data_ptr() == tuned(*inputs).data_ptr()


def test_parameters_updated_and_moved() -> None:
    model = nn.Linear(32, 8).cuda()
    x = torch.randn(4, 32, device="cuda")
    tuned = compile_inspect.tune(model, x, variants=["cuda-graph/inductor"])
    with torch.no_grad():
        close(tuned(x), model(x))
        model.weight.mul_(2)
        close(tuned(x), model(x))
        model.double()
        close(tuned(x.double()), model(x.double()))
        model.float()
        close(tuned(x), model(x))


def test_training_steps() -> None:
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 1)).cuda()

    def loss(x: Tensor) -> Tensor:
        return model(x).square().mean()

    x = torch.randn(16, 32, device="cuda")
    tuned = compile_inspect.tune(loss, x, gradients=True, variants=["cuda-graph/inductor", "cuda-graph/eager"])
    assert tuned.decision.variant.startswith("cuda-graph"), tuned.decision
    for _ in range(3):
        x = torch.randn(16, 32, device="cuda")
        model.zero_grad()
        (2 * tuned(x)).backward()
        found = [parameter.grad.clone() for parameter in model.parameters()]
        model.zero_grad()
        (2 * loss(x)).backward()
        for ours, parameter in zip(found, model.parameters(), strict=True):
            close(ours, parameter.grad)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(0.1 * parameter.grad)


@pytest.mark.parametrize("name", ["cudagraphs", "inductor/reduce-overhead", "cuda-graph/eager"])
def test_other_variants_with_graphs(name: str, inputs: tuple[Tensor, Tensor]) -> None:
    prepared = variant(name).prepare(Task(function, inputs))
    close(prepared.run(*inputs).result, function(*inputs))


def test_graphs_survive_those_of_inductor() -> None:
    """Inductor's own CUDA graphs let go of cuBLAS' workspaces; a recording that used a shared one would read freed memory."""
    data = torch.randn(30, 9000, dtype=torch.float64, device="cuda")

    def products(q: Tensor) -> Tensor:
        return data @ (q @ data).sign()

    q = torch.randn(30, dtype=torch.float64, device="cuda")
    tuned = compile_inspect.tune(products, q, variants=["cuda-graph/inductor", "cuda-graph/eager", "inductor/reduce-overhead"])
    for _ in range(20):
        close(tuned(q), products(q))
    torch.cuda.synchronize()
