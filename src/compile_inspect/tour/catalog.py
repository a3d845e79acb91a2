"""The lessons of the tour, in order: five phases, then topics that build on them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from compile_inspect.errors import InspectError


@dataclass(frozen=True)
class LessonPlan:
    """A lesson before it is run: its question, and the function that answers it.

    The function takes the user's `Target` (or None, for the models of the tour) and the keyword `guide`. It returns its
    measurements, which have a method `answer`.
    """

    key: str
    title: str
    question: str
    entry_point: str

    @property
    def theory(self) -> tuple[str, ...]:
        """The paragraphs that `--explain` prints: `texts/KEY.txt`."""
        text = (files("compile_inspect.tour") / "texts" / f"{self.key}.txt").read_text(encoding="utf-8")
        return tuple(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))

    def load_function(self) -> Callable[..., Any]:
        """Import the function that runs the lesson."""
        module, _, name = self.entry_point.partition(":")
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return function


PHASES = (
    LessonPlan(
        "basics",
        "Phase 1: what torch.compile does",
        "Why is the first call of a compiled model so much slower than later calls? What happens during it?",
        "compile_inspect.tour.phases.basics:run_backend_comparison",
    ),
    LessonPlan(
        "dynamo_capture",
        "Phase 2: what Dynamo captures",
        "How do the nodes of the graph relate to the lines of the model? Does every line become exactly one node?",
        "compile_inspect.tour.phases.dynamo_capture:run_dynamo_exploration",
    ),
    LessonPlan(
        "graph_breaks",
        "Phase 3: graph breaks and how to remove them",
        "Why do graph breaks matter? What does Dynamo do with code that it cannot put into a graph?",
        "compile_inspect.tour.phases.graph_breaks:run_fix_graph_breaks",
    ),
    LessonPlan(
        "inductor_codegen",
        "Phase 4: the code that Inductor generates",
        "How does Inductor decide what to fuse into one kernel? Which operations did it fuse here?",
        "compile_inspect.tour.phases.inductor_codegen:run_inductor_inspection",
    ),
    LessonPlan(
        "benchmark",
        "Phase 5: when torch.compile pays off",
        "From which batch size on does torch.compile help? Why does it not help, or even hurt, below that size?",
        "compile_inspect.tour.phases.benchmark:run_benchmark_suite",
    ),
)

TOPICS: tuple[LessonPlan, ...] = (
    LessonPlan(
        "modes",
        "Modes",
        "What do the modes of torch.compile change, and what effect does that have on this machine?",
        "compile_inspect.tour.topics.modes:run_mode_comparison",
    ),
    LessonPlan(
        "dynamic",
        "Dynamic shapes and guards",
        "When does an input of a different size trigger a recompile, and which guard detects it?",
        "compile_inspect.tour.topics.dynamic:run_dynamic_shapes",
    ),
    LessonPlan(
        "stances",
        "Stances",
        "How can you keep a running program from compiling without changing its code?",
        "compile_inspect.tour.topics.stances:run_stances",
    ),
    LessonPlan(
        "caches",
        "Caches, cold and warm",
        "How much time does a second process save when it compiles the same code, and what does a reset clear?",
        "compile_inspect.tour.topics.caches:run_cache_comparison",
    ),
    LessonPlan(
        "autograd",
        "AOTAutograd: the forward and backward graphs",
        "Where does the backward graph come from, and what does the forward save for it?",
        "compile_inspect.tour.topics.autograd:run_autograd_graphs",
    ),
    LessonPlan(
        "backend",
        "A custom backend",
        "What does Dynamo pass to a backend, how often, and what may the backend do with it?",
        "compile_inspect.tour.topics.backend:run_custom_backend",
    ),
    LessonPlan(
        "cuda_graphs",
        "CUDA graphs, and padding to static shapes",
        "What does a CUDA graph fix at recording time, and how can it serve inputs of many lengths?",
        "compile_inspect.tour.topics.cuda_graphs:run_cuda_graphs",
    ),
    LessonPlan(
        "torchscript",
        "TorchScript compared with torch.compile",
        "What happens to a data-dependent branch under tracing, scripting, and torch.compile?",
        "compile_inspect.tour.topics.torchscript:run_torchscript_comparison",
    ),
    LessonPlan(
        "solver",
        "The solver, with and without torch.compile",
        "Does a solver that calls one function thousands of times gain from compiling it, and is the answer the same?",
        "nonsmooth.lesson:run_with_and_without_compile",
    ),
)


def lesson_plans() -> tuple[LessonPlan, ...]:
    """The five phases, then the topics."""
    return PHASES + TOPICS


def select_lessons(keys: Sequence[str]) -> tuple[LessonPlan, ...]:
    """The lessons with these keys, in the tour's order; all of them for no keys."""
    plans = {plan.key: plan for plan in lesson_plans()}
    unknown = [key for key in keys if key not in plans]
    if unknown:
        raise InspectError(f"there is no lesson {unknown[0]!r}: choose from {', '.join(plans)}")
    return tuple(plan for plan in plans.values() if not keys or plan.key in keys)
