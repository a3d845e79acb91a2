"""The parts of torch's compilers that variants, agreement and tuning use: tracing, compiling graphs, packages."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def flatten(value: Any) -> tuple[list[Any], Any]:
    """The leaves of nested lists, tuples, dictionaries and registered classes, and the structure to rebuild them."""
    from torch.utils import _pytree

    leaves, structure = _pytree.tree_flatten(value)
    return leaves, structure


def unflatten(leaves: list[Any], structure: Any) -> Any:
    """Rebuild what `flatten` took apart."""
    from torch.utils import _pytree

    return _pytree.tree_unflatten(leaves, structure)


def trace(
    function: Callable[..., Any], inputs: list[Any], *, decompose: bool = False, table: dict[Any, Any] | None = None
) -> Any:
    """The operations that a function of tensors runs, as a graph; everything except tensors is frozen into it.

    With `decompose` they are decomposed as Inductor does it; otherwise as `table` says, if given.
    """
    from torch.fx.experimental.proxy_tensor import make_fx

    if decompose:
        from torch._inductor.decomposition import select_decomp_table

        table = select_decomp_table()
    return make_fx(function, decomposition_table=table, tracing_mode="real")(*inputs)


def compile_graph(graph: Any, inputs: list[Any]) -> Callable[..., Any]:
    """Compile a graph with Inductor: no guards, no wrappers, fixed shapes."""
    import torch._inductor

    compiled: Callable[..., Any] = torch._inductor.compile(graph, inputs)
    return compiled


def write_package(graph: Any, inputs: list[Any], path: str) -> None:
    """Compile a graph ahead of time into an AOTInductor package."""
    import torch
    import torch._inductor

    program = torch.export.export(graph, tuple(inputs))
    torch._inductor.aoti_compile_and_package(program, package_path=path)


LOAD_PACKAGE = "import sys, torch, torch._inductor; torch._inductor.aoti_load_package(sys.argv[1])"
"""A program that loads the package it is given, for a process that may crash."""


def load_package(path: str) -> Callable[[list[Any]], list[Any]]:
    """The function in an AOTInductor package, from a list of tensors (which it empties) to a list of tensors."""
    import torch

    # Use the loader itself: torch's wrapper imports the compilers, which takes seconds.
    loader = torch._C._aoti.AOTIModelPackageLoader(path, "model", False, 1, -1)
    run: Callable[[list[Any]], list[Any]] = loader.boxed_run
    return run


@contextlib.contextmanager
def suppressed_compiler_output() -> Iterator[None]:
    """Hide warnings of torch's compilers about our own builds from the user."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def storage_uses(tensors: list[Any]) -> tuple[Callable[[int], int], list[int]]:
    """A function that counts the tensors that share a storage, and the storages of these tensors.

    Views count, including those that only C++ knows.
    """
    import torch

    return torch._C._storage_Use_Count, [tensor.untyped_storage()._cdata for tensor in tensors]


def save_program(graph: Any, inputs: list[Any], path: str) -> None:
    """Write a graph to a file for another process to compile; example inputs are stored as shapes only."""
    import torch

    torch.export.save(torch.export.export(graph, tuple(inputs)), path)


def package_program(program: str, package: str) -> None:
    """Compile what `save_program` wrote into an AOTInductor package."""
    import torch
    import torch._inductor

    torch._inductor.aoti_compile_and_package(torch.export.load(program), package_path=package)


def clear_workspaces() -> None:
    """Release the memory that cuBLAS reserves on every stream; it allocates new memory when it needs some."""
    import torch

    torch._C._cuda_clearCublasWorkspaces()


def replay_function(graph: Any) -> Callable[[], None]:
    """The C++ function that replays a CUDA graph, without the Python method around it."""
    import torch

    method: Callable[[], None] = super(torch.cuda.CUDAGraph, graph).replay
    return method


def stream_waiter(device: Any) -> Callable[[], None]:
    """A function that waits for a device's current stream; it looks the stream up only when that has changed."""
    import torch

    number = torch._C._cuda_getCurrentRawStream
    index = torch.device(device).index
    index = torch.cuda.current_device() if index is None else index
    known: dict[int, Callable[[], None]] = {}

    def wait() -> None:
        current = number(index)
        if current not in known:
            known[current] = super(torch.cuda.Stream, torch.cuda.current_stream(index)).synchronize  # type: ignore[misc]
        known[current]()

    return wait


def import_compilers() -> None:
    """Import the modules for tracing and comparing."""
    import torch._dynamo
    import torch.fx.experimental.proxy_tensor  # noqa: F401


def forbids_forks() -> bool:
    """Whether a fork of this process could not differentiate: with CUDA devices, autograd has its own threads."""
    import torch

    return torch.cuda.is_available()


def die_with_parent() -> None:
    """Make Linux end this process when its parent ends."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Use one thread and no compile workers, as a forked process must."""
    import torch
    import torch._inductor.config as config

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with config.patch(compile_threads=1):
        yield
    torch.set_num_threads(threads)


def cpp_compiler() -> str:
    """The C++ compiler that Inductor would call; empty where there is none."""
    from torch._inductor import cpp_builder

    try:
        return str(cpp_builder.get_cpp_compiler())
    except Exception:  # the exception differs between versions of torch
        return ""


def has_triton() -> bool:
    """Whether Inductor can use Triton on this machine."""
    from torch.utils._triton import has_triton

    return bool(has_triton())


def explain(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, int, int]:
    """Graphs, breaks and operations according to `torch._dynamo.explain`, which resets Dynamo before and after."""
    import torch._dynamo

    report = torch._dynamo.explain(function)(*args, **kwargs)
    return int(report.graph_count), int(report.graph_break_count), int(report.op_count)
