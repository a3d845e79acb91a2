"""What the tour consists of, in its order."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Chapter:
    """One lesson: what it asks, and the function that runs it.

    The function takes the user's `Target` (or None, for the models of the tour) and the keyword `guide`, and returns
    what it has measured, with a method `answer`.
    """

    key: str
    title: str
    question: str
    where: str

    @property
    def theory(self) -> tuple[str, ...]:
        """The paragraphs that `--explain` tells beside it: `texts/KEY.txt`."""
        text = (files("compile_inspect.tour") / "texts" / f"{self.key}.txt").read_text(encoding="utf-8")
        return tuple(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))

    def function(self) -> Callable[..., Any]:
        """The function that runs it, imported now."""
        module, _, name = self.where.partition(":")
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return found


PHASES = (
    Chapter(
        "basics",
        "Phase 1: what torch.compile does",
        "Why is the first call of a compiled model so much slower than later ones? What happens in it?",
        "compile_inspect.tour.phases.basics:run_backend_comparison",
    ),
    Chapter(
        "dynamo_capture",
        "Phase 2: what Dynamo captures",
        "How do the nodes of the graph relate to the lines of the model? Does every line become exactly one node?",
        "compile_inspect.tour.phases.dynamo_capture:run_dynamo_exploration",
    ),
    Chapter(
        "graph_breaks",
        "Phase 3: graph breaks, and how to be rid of them",
        "Why do graph breaks matter? What happens when Dynamo meets something that it cannot put into a graph?",
        "compile_inspect.tour.phases.graph_breaks:run_fix_graph_breaks",
    ),
    Chapter(
        "inductor_codegen",
        "Phase 4: the code that Inductor writes",
        "How does Inductor decide what to put into one kernel? Which operations were fused here?",
        "compile_inspect.tour.phases.inductor_codegen:run_inductor_inspection",
    ),
    Chapter(
        "benchmark",
        "Phase 5: when it pays",
        "From which batch size on does torch.compile help? Why does it not help, or even hurt, below?",
        "compile_inspect.tour.phases.benchmark:run_benchmark_suite",
    ),
)

CHAPTERS: tuple[Chapter, ...] = (
    Chapter(
        "modes",
        "Modes",
        "What do the modes of torch.compile change, and what does that do on this machine?",
        "compile_inspect.tour.chapters.modes:run_mode_comparison",
    ),
    Chapter(
        "dynamic",
        "Dynamic shapes and guards",
        "When does an input of another size make torch.compile compile again, and who notices?",
        "compile_inspect.tour.chapters.dynamic:run_dynamic_shapes",
    ),
    Chapter(
        "stances",
        "Stances",
        "How can one keep a running program from compiling, without changing it?",
        "compile_inspect.tour.chapters.stances:run_stances",
    ),
    Chapter(
        "caches",
        "Caches, cold and warm",
        "What does a second process save that compiles the same thing, and what does a reset clear?",
        "compile_inspect.tour.chapters.caches:run_cache_comparison",
    ),
    Chapter(
        "autograd",
        "AOTAutograd: the forward and backward graphs",
        "Where does the backward come from, and what does the forward keep for it?",
        "compile_inspect.tour.chapters.autograd:run_autograd_graphs",
    ),
    Chapter(
        "backend",
        "A backend of your own",
        "What does a backend get from Dynamo, how often, and what may it do with it?",
        "compile_inspect.tour.chapters.backend:run_custom_backend",
    ),
    Chapter(
        "cuda_graphs",
        "CUDA graphs, and padding to static shapes",
        "What does a recording of launches freeze, and how do inputs of many lengths go with it?",
        "compile_inspect.tour.chapters.cuda_graphs:run_cuda_graphs",
    ),
    Chapter(
        "torchscript",
        "TorchScript against torch.compile",
        "What happens to a branch that depends on data, when traced, scripted and compiled?",
        "compile_inspect.tour.chapters.torchscript:run_torchscript_comparison",
    ),
    Chapter(
        "solver",
        "The solver, with and without compile",
        "Does a solver that calls one function thousands of times gain from compiling it, and is the answer the same?",
        "nonsmooth.lesson:run_with_and_without_compile",
    ),
)


def everything() -> tuple[Chapter, ...]:
    """The five phases, then the chapters."""
    return PHASES + CHAPTERS
