"""Statements that hold; the docstrings are the list in docs/explanation/common-wrong-statements.md."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import torch._dynamo


def graphs_of(function: Callable[..., object], *inputs: object, **options: object) -> list[torch.fx.GraphModule]:
    graphs = []

    def keep(graph: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    torch.compile(function, backend=keep, **options)(*inputs)  # type: ignore[call-overload]
    return graphs


def decorator() -> None:
    """`@torch.compile` and `torch.compile(model)` both compile."""

    @torch.compile(backend="eager")
    def waves(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + torch.cos(x)

    assert waves(torch.zeros(1)).item() == 1
    assert torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(2)).shape == (2,)


def print_splits() -> None:
    """`print` in straight-line code splits one graph into two."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        print(f"x = {x.shape}")
        return x * 2

    assert len(graphs_of(fn, torch.ones(2))) == 2


def fullgraph_error() -> None:
    """`fullgraph=True` raises `Unsupported: Data-dependent branching` for a branch on a sum."""

    def broken(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x

    try:
        torch.compile(broken, backend="eager", fullgraph=True)(torch.ones(2))
    except torch._dynamo.exc.Unsupported as error:
        assert str(error).startswith("Data-dependent branching")
    else:
        raise AssertionError("it does not raise")


def item_breaks() -> None:
    """`if x.item() > 0:` breaks the graph."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        if x.item() > 0:
            return y * 2
        return y

    assert torch._dynamo.explain(fn)(torch.ones(1)).graph_break_count == 1


def explain_works() -> None:
    """`torch._dynamo.explain(fn)(x)` works, also for a compiled function."""
    compiled = torch.compile(lambda x: torch.relu(x + 1), backend="eager")
    assert torch._dynamo.explain(compiled)(torch.randn(3, 3)).graph_count == 1


def custom_backend() -> None:
    """A function that is decorated with `register_backend` and returns `gm.forward` is a backend."""

    @torch._dynamo.register_backend
    def backend_of_the_statement(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., object]:
        return graph.forward

    assert torch.compile(lambda x: x + 1, backend="backend_of_the_statement")(torch.ones(1)).item() == 2


def aot_function_works() -> None:
    """`aot_function(fn, my_compiler)` works, with a warning about boxed arguments."""
    from torch._functorch.aot_autograd import aot_function

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert aot_function(torch.sin, lambda graph, _: graph.forward)(torch.zeros(1)).item() == 0


def stances() -> None:
    """`force_eager` ignores torch.compile, and `eager_then_compile` runs the first call eagerly."""
    graphs = []

    def keep(graph: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(lambda x: x * 3, backend=keep)
    with torch.compiler.set_stance("force_eager"):
        compiled(torch.ones(4))
    assert not graphs
    with torch.compiler.set_stance("eager_then_compile"):
        compiled(torch.ones(4))
        assert not graphs
        compiled(torch.ones(4))
    assert len(graphs) == 1


def compiler_utilities() -> None:
    """`is_compiling`, `disable`, `allow_in_graph`, `cudagraph_mark_step_begin` and `list_options` exist and work."""

    @torch.compiler.disable
    def eager_only(x: torch.Tensor) -> bool:
        return torch.compiler.is_compiling()

    assert torch.compile(lambda x: (x + 6, eager_only(x)), backend="eager")(torch.ones(1))[1] is False
    torch.compiler.allow_in_graph(lambda x: x)
    torch.compiler.cudagraph_mark_step_begin()
    assert "max_autotune" in torch._inductor.list_options()


def defaults() -> None:
    """The recompile limit is 8, and errors are not suppressed."""
    assert torch._dynamo.config.recompile_limit == 8
    assert torch._dynamo.config.suppress_errors is False


def files() -> None:
    """The fifteen files and folders of torch that are listed without line numbers exist."""
    found = importlib.util.find_spec("torch")
    assert found is not None and found.origin is not None
    named = {
        "_dynamo": "__init__ eval_frame convert_frame symbolic_convert guards output_graph bytecode_transformation config",
        "_inductor": "__init__ compile_fx graph codegen/__init__ config",
        "_functorch": "aot_autograd",
        "compiler": "__init__",
    }
    for folder, names in named.items():
        for name in names.split():
            assert (Path(found.origin).parent / folder / f"{name}.py").exists(), name


def trace_is_saved() -> None:
    """A traced function can be saved and loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(lambda x, y: torch.relu(x + y), (torch.randn(3, 3), torch.randn(3, 3)))
        stored = io.BytesIO()
        torch.jit.save(traced, stored)
        stored.seek(0)
        assert torch.jit.load(stored)(torch.ones(2), torch.ones(2)).tolist() == [2, 2]


def importing() -> int:
    import numpy

    return numpy.uint8(1)


def script_refuses_imports() -> None:
    """TorchScript rejects an `import` inside a scripted function."""
    try:
        torch.jit.script(importing)
    except torch.jit.frontend.UnsupportedNodeError as error:
        assert "import statements aren't supported" in str(error)
    else:
        raise AssertionError("it does not raise")


def deprecated() -> None:
    """TorchScript is deprecated."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.jit.trace(torch.cos, torch.ones(1))
    assert any(item.category is DeprecationWarning and "torch.jit.trace" in str(item.message) for item in caught)


def same_shape() -> None:
    """A second call with the same shape does not compile again."""
    graphs = []

    def keep(graph: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(lambda x: x + 4, backend=keep)
    compiled(torch.randn(10))
    compiled(torch.randn(10))
    assert len(graphs) == 1


def no_annotations() -> None:
    """`torch.compile` does not need type annotations."""
    compiled = torch.compile(lambda x, y: x + y, backend="eager")
    assert compiled(torch.ones(1), 2).item() == 3
    assert compiled("a", "b") == "ab"


def log_switches() -> None:
    """`torch._logging.set_logs` accepts `graph_code`, `graph_breaks` and `recompiles`."""
    try:
        torch._logging.set_logs(graph_code=True, graph_breaks=True, recompiles=True)
        with contextlib.redirect_stderr(io.StringIO()):
            torch.compile(lambda x: x + 5, backend="eager")(torch.ones(1))
    finally:
        torch._logging.set_logs()


def backends_agree() -> None:
    """For a small MLP, `eager`, `aot_eager` and `inductor` give the results of eager."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    batch = torch.randn(3, 4)
    for backend in ("eager", "aot_eager", "inductor"):
        torch.testing.assert_close(torch.compile(model, backend=backend)(batch), model(batch))


def vectorized_lbfgs() -> None:
    """The vectorized inner loop of L-BFGS gives the same result as the loop."""
    torch.manual_seed(0)
    q, alpha, y = torch.randn(5, 3), torch.randn(3), torch.randn(5)
    looped = q.clone()
    for k in range(3):
        looped[:, k] = looped[:, k] - alpha[k] * y
    torch.testing.assert_close(q - y[:, None] * alpha[None, :], looped)


def in_place_bfgs() -> None:
    """The in-place update of H gives the same result as the update of a copy."""
    torch.manual_seed(0)
    matrix, product, s = torch.eye(3), torch.randn(3, 3), torch.randn(3, 1)
    copied = matrix - (torch.conj(product.t()) + product) + s @ torch.conj(s.t())
    torch.testing.assert_close(matrix.sub_(product.mH).sub_(product).add_(s @ s.mH), copied)


def direct_csc() -> None:
    """`sparse.eye(n, format='csc')` and `sparse.vstack(…, format='csc')` create the CSC matrix directly."""
    from scipy import sparse

    assert sparse.vstack([sparse.eye(3, format="csc"), sparse.eye(3, format="csc")], format="csc").format == "csc"


def profile_runs() -> None:
    """The profiling recipe runs; on torch 2.13 its `with_stack=True` fills the table with Python frames."""
    import torch.profiler as profiler

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]
        with profiler.profile(activities=both, record_shapes=True, profile_memory=True, with_stack=True) as profile:
            torch.ones(3).sin()
        averages = profile.key_averages()
        assert "CPU total" in averages.table(sort_by="cuda_time_total", row_limit=20)
        assert "aten::sin" in {average.key for average in averages}


CLAIMS: tuple[Callable[[], None], ...] = (
    decorator,
    print_splits,
    fullgraph_error,
    item_breaks,
    explain_works,
    custom_backend,
    aot_function_works,
    stances,
    compiler_utilities,
    defaults,
    files,
    trace_is_saved,
    script_refuses_imports,
    deprecated,
    same_shape,
    no_annotations,
    log_switches,
    backends_agree,
    vectorized_lbfgs,
    in_place_bfgs,
    direct_csc,
    profile_runs,
)
