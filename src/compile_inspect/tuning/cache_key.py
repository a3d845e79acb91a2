"""A key for everything that a decision about a program depends on, the same in every process.

It is made from the capture itself (the graph with its constants, what Dynamo read and guards, the code it traced) and from
the machine (torch, device, driver, and the processor's instruction sets).
"""

from __future__ import annotations

import hashlib
import os
import platform
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from compile_inspect import torch_private
from compile_inspect.variants.guard import program_text, without_numbers
from compile_inspect.variants.task import Task

KEY_VERSION = 3
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def program_key(task: Task) -> str:
    """The key of a task's program on this machine; raises `RefusalError` if it cannot be captured as one graph."""
    fullgraph = task.program.fullgraph
    summary = hashlib.sha256()
    for part in (
        KEY_VERSION,
        task.gradients,
        task.name,
        task.label,
        *_machine(task.device),
        program_text(fullgraph),
        *_captured_facts(fullgraph),
    ):
        summary.update(repr(part).encode())
        summary.update(b"\0")
    return summary.hexdigest()[:40]


def _machine(device: str) -> Iterator[object]:
    import torch

    yield torch.__version__, platform.python_version(), torch.get_num_threads(), torch.get_float32_matmul_precision()
    yield platform.machine(), torch.backends.cpu.get_cpu_capability(), os.environ.get("ATEN_CPU_CAPABILITY"), _cpu_flags()
    if device == "cuda":
        properties = torch.cuda.get_device_properties()
        yield properties.name, properties.major, properties.minor, torch.version.cuda, torch_private.driver_version()


@cache
def _cpu_flags() -> str:
    """A digest of the processor's instruction sets; the processor's name where the system does not list them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return hashlib.sha256(" ".join(sorted(flags.partition(":")[2].split())).encode()).hexdigest()


def _captured_facts(fullgraph: Any) -> Iterator[object]:
    for source, tensor in zip(fullgraph.sources, fullgraph.inputs, strict=True):
        yield source, _describe_tensor(tensor)
    for read in fullgraph.reads:
        yield without_numbers(read.name), read.kind, _describe_value(read.value)
    for code in fullgraph.traced_codes:
        yield tuple(_describe_code(code))
    yield tuple(_describe_code(fullgraph.code, names=False))


def _describe_tensor(tensor: Any) -> object:
    return str(tensor.dtype), tuple(tensor.shape), tensor.stride(), str(tensor.device), bool(tensor.requires_grad)


def _describe_value(value: Any, depth: int = 4) -> object:
    """A description of a value that was read, valid in other processes too."""
    if torch_private.is_tensor(value):
        return _describe_tensor(value)
    if isinstance(value, _PLAIN):
        return type(value).__name__, repr(value)
    if isinstance(value, (types.FunctionType, types.MethodType)):
        return tuple(_describe_code(getattr(value, "__func__", value).__code__))
    if isinstance(value, types.CodeType):
        return tuple(_describe_code(value))
    if isinstance(value, (types.ModuleType, type)):
        return value.__name__
    if depth and isinstance(value, dict):
        return "dict", [(_describe_value(key, depth - 1), _describe_value(item, depth - 1)) for key, item in value.items()]
    if depth and isinstance(value, (tuple, list)):
        return type(value).__name__, [_describe_value(item, depth - 1) for item in value]
    return type(value).__module__, type(value).__qualname__


def _describe_code(code: types.CodeType, *, names: bool = True) -> Iterator[object]:
    """A code object without line numbers; names that Dynamo numbers anew in every process can be left out."""
    yield code.co_name, code.co_code, code.co_varnames
    if names:
        yield code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _describe_code(constant, names=names)
        else:
            yield type(constant).__name__, repr(constant) if isinstance(constant, (*_PLAIN, tuple)) else ""
