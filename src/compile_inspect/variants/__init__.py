"""Every way of running a target: one small module each, all with the same interface."""

from __future__ import annotations

from collections.abc import Iterable

from compile_inspect.errors import TargetError
from compile_inspect.variants.base import Prepared, RefusalError, Step, Variant
from compile_inspect.variants.compiled import MODES, Compiled
from compile_inspect.variants.cuda_graph import CudaGraph
from compile_inspect.variants.eager import Eager
from compile_inspect.variants.inductor import AotInductor, InductorCallable
from compile_inspect.variants.task import Task
from compile_inspect.variants.torchscript import TorchScript

__all__ = [
    "Prepared",
    "RefusalError",
    "Step",
    "Task",
    "Variant",
    "default_variants",
    "named_variants",
    "tuning_variants",
    "variant",
    "variant_names",
]

_FIXED_VARIANTS: dict[str, Variant] = {
    item.name: item
    for item in (
        Eager(),
        TorchScript("trace"),
        TorchScript("script"),
        InductorCallable(),
        AotInductor(),
        AotInductor(loops="all"),
        AotInductor(loops="across"),
        CudaGraph("eager"),
        CudaGraph("inductor"),
    )
}
_OPTION_WORDS = {"dynamic": {"dynamic": True}, "static": {"dynamic": False}, "fullgraph": {"fullgraph": True}}


def variant_names() -> tuple[str, ...]:
    """Names that `variant` accepts; you can also name any registered backend, with modes after a slash."""
    import torch

    backends = ("eager-backend", "aot_eager", "inductor", "cudagraphs", *torch.compiler.list_backends())
    return (*_FIXED_VARIANTS, *(f"inductor/{mode}" for mode in MODES), *dict.fromkeys(backends))


def variant(name: str) -> Variant:
    """The variant with a given name.

    >>> variant("inductor/max-autotune/dynamic").name
    'inductor/max-autotune/dynamic'
    >>> variant("eager").name
    'eager'

    `eager` runs without compilation; the backend of that name is `eager-backend`.
    """
    import torch

    if name in _FIXED_VARIANTS:
        return _FIXED_VARIANTS[name]
    backend, *words = name.split("/")
    backend = "eager" if backend == "eager-backend" else backend
    choices: dict[str, object] = {}
    for word in words:
        if word in MODES and "mode" not in choices:
            choices["mode"] = word
        elif word in _OPTION_WORDS:
            choices |= _OPTION_WORDS[word]
        else:
            raise TargetError(f"{name!r} is not a variant: {word!r} is none of {', '.join([*MODES, *_OPTION_WORDS])}")
    known_backends = ("eager", "inductor", "aot_eager", "cudagraphs", *torch.compiler.list_backends(exclude_tags=()))
    if backend not in known_backends:
        raise TargetError(f"{name!r} is not a variant: write one of {', '.join(variant_names())}")
    return Compiled(backend, **choices)  # type: ignore[arg-type]


def named_variants(variants: str | Variant | Iterable[str | Variant]) -> tuple[Variant, ...]:
    """Variants given by name or as objects; one string may contain several names, separated by commas.

    >>> [item.name for item in named_variants("inductor,aot-inductor")]
    ['inductor', 'aot-inductor']
    """
    if isinstance(variants, Variant):
        variants = [variants]
    if isinstance(variants, str):
        variants = [name.strip() for name in variants.split(",") if name.strip()]
    return tuple(variant(item) if isinstance(item, str) else item for item in variants)


def default_variants(task: Task) -> tuple[Variant, ...]:
    """The variants worth trying for a task: eager first, then those that may be faster on its device."""
    names = ["eager", "inductor"]
    # On CUDA a package gains nothing over a recorded graph, and autotuning comes last: it takes minutes.
    names += ["cuda-graph/inductor", "cuda-graph/eager"] if task.device == "cuda" else ["aot-inductor"]
    names += ["inductor-callable"]
    # A trace of something that TorchScript does not understand may read memory that is not its own; on CUDA every later
    # call of the process then fails.
    names += ["inductor/reduce-overhead", "inductor/max-autotune"] if task.device == "cuda" else ["torchscript/trace"]
    return tuple(variant(name) for name in names)


def tuning_variants(task: Task) -> tuple[Variant, ...]:
    """The variants worth trying where only speed matters: also forms of a variant that seldom pay."""
    further = ["aot-inductor/loops", "aot-inductor/loops-across"] if task.device == "cpu" else []
    return (*default_variants(task), *(variant(name) for name in further))
