"""Try proposals on a copy of the program: is the break gone, are the results the same, is it faster?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from statistics import median
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.reference import Point
from compile_inspect.agreement.run_outcome import observe, preserve_state
from compile_inspect.capture.api import inspect
from compile_inspect.eager import require_eager
from compile_inspect.errors import InspectError, TargetError
from compile_inspect.fixes.break_matching import BreakMatching, match_breaks
from compile_inspect.fixes.comparison import Original, requires_gradient
from compile_inspect.fixes.fullgraph_check import fullgraph_failure, fullgraph_failure_in_new_process, pickled_inputs
from compile_inspect.fixes.program import Program
from compile_inspect.fixes.source import apply, read
from compile_inspect.fixes.unreached import executed_lines, unreached_lines
from compile_inspect.records import GraphBreak, Inspection, Stage
from compile_inspect.records.fixes import Proof, Proposal
from compile_inspect.silence import silence
from compile_inspect.target import Target
from compile_inspect.variants import Step, Task
from compile_inspect.variants.base import one_line

WARM_UP_CALLS = 4
"""Calls before timing starts: the second and third call may compile a function again."""


class TrialRunner:
    """Compiles a target and tries proposed changes to it."""

    def __init__(
        self,
        specification: str,
        inputs: str | None = None,
        *,
        backend: str = "inductor",
        samples: int = 2,
        seconds: float = 0.5,
        no_grad: bool = False,
        example: Target | None = None,
    ) -> None:
        self.backend, self._seconds = backend, seconds
        try:
            with silence():
                self._program = Program.load(specification, inputs, no_grad=no_grad, example=example)
                target = self._program.target
                with self._program.installed():
                    require_eager(target)
                    gradients = _has_gradient(target) if target.gradients is None else target.gradients
        except SystemExit as error:
            raise TargetError(f"calling {specification} exited the program: SystemExit({error.code})") from error
        self.target = replace(target, gradients=gradients)
        self.task = Task.of(self.target)
        with self._program.installed():
            self._original = Original(self.task, samples)

    @cached_property
    def inspection(self) -> Inspection:
        """The capture of the unchanged program."""
        with self._program.installed():
            return self._inspect(self.target)

    @property
    def compile_error(self) -> str | None:
        """What torch.compile raises for the unchanged program; None if it runs."""
        return _error_of(self.inspection)

    @cached_property
    def _compiled_original(self) -> Callable[..., Any]:
        return self._compile(self.target)

    def _inspect(self, target: Target) -> Inspection:
        # Run a backward if there is one; the comparison reports one that is missing. Only the user's own False disables
        # gradients: a function whose results have none may compute some inside.
        target = replace(target, gradients=False if self._program.target.gradients is False else None)
        torch_private.forget_compiled_code()
        # Changes made by a call, such as running means, must be undone before results are compared.
        with preserve_state(Task.of(target)), torch_private.suppressed_compiler_output(), silence():
            return inspect(target, backend=self.backend)

    def _compile(self, target: Target) -> Callable[..., Any]:
        import torch

        compiled: Callable[..., Any] = torch.compile(target.function, backend=self.backend)
        return compiled

    def texts(self, proposal: Proposal) -> dict[str, str]:
        """The files of a proposal with its changes applied; raises InspectError if a file has changed since."""
        files: dict[str, str] = {}
        for file in {item.file for item in proposal.replacements}:
            source = read(file)
            if source is None:
                raise InspectError(f"{file} cannot be read")
            files[file] = apply(source.text, [item for item in proposal.replacements if item.file == file])
        return files

    def prove(self, cause: GraphBreak, proposal: Proposal) -> Proof:
        """Try a proposal."""
        return self.prove_all([cause], proposal)

    def prove_all(self, causes: Sequence[GraphBreak], proposal: Proposal) -> Proof:
        """Try a proposal that should remove several causes at once."""
        before = self.inspection
        with self._program.installed(), silence():
            _ = self._original.points  # with the original's modules, including those imported during a call
        # Compiled code does not remember the settings it was compiled with, so it is timed before they change.
        seconds_before = self._time_alone(self._compiled_original) if proposal.settings else None
        with torch_private.preserve_configuration(), silence():
            for setting in proposal.settings:
                torch_private.run_setting(setting.code)
            try:
                texts = self.texts(proposal)
                program = self._program.with_texts(texts)
                target = replace(program.target, gradients=self.target.gradients)
                self._share_state(target)
                with program.installed():
                    after = self._inspect(target)
            except Exception as error:
                return Proof.of(breaks=(len(before.breaks), 0), failure=one_line(error))
            with program.installed():
                return self._assess(
                    proposal, match_breaks(causes, proposal, texts, before, after), after, target, seconds_before
                )

    def _assess(
        self, proposal: Proposal, matching: BreakMatching, after: Inspection, target: Target, seconds_before: float | None
    ) -> Proof:
        """The proof of a trial; results are compared only if the break is gone."""
        before = self.inspection
        breaks = (len(before.breaks), len(after.breaks))
        numbers: dict[str, Any] = {
            "graphs": (_graphs(before), _graphs(after)),
            "remaining_breaks": len(matching.remaining),
            "new_breaks": len(matching.new_breaks),
            "revealed_breaks": len(matching.revealed),
        }
        if not after.compilations:
            return Proof.of(breaks=breaks, failure="nothing was compiled", **numbers)
        blocking = next(iter((*matching.remaining, *matching.new_breaks)), None)
        if blocking is not None:
            return Proof.of(breaks=breaks, reason=_describe_break(blocking), **numbers)
        error = _error_of(after)
        if error is not None:
            as_before = "as without the change: " if self.compile_error is not None else ""
            return Proof.of(breaks=breaks, failure=f"{as_before}{error}", **numbers)
        if breaks[1] - len(matching.revealed) >= breaks[0]:
            return Proof.of(breaks=breaks, reason="there are as many breaks as before", **numbers)
        calls = (("in eager mode", target.function), ("compiled", self._compile(target)))
        result = self._original.compare(Task.of(target), calls)
        numbers |= {
            "inputs": result.inputs,
            "values": result.values,
            "gradients": result.gradients,
            "largest_error": result.largest_error,
            "nondeterministic_results": tuple(sorted(result.nondeterministic)),
        }
        if result.difference or not (result.values or result.gradients):
            return Proof.of(breaks=breaks, reason=result.reason, difference=result.difference, **numbers)
        with self._program.installed():
            unreached = unreached_lines(proposal, self._executed_lines) if proposal.is_rewrite else []
        revealed_text = f"the next break is {_describe_break(matching.revealed[0])}" if matching.revealed else ""
        return Proof.of(
            breaks=breaks,
            reason=revealed_text,
            seconds=self._time_both(target, seconds_before),
            unreached_lines=tuple(line for _, line in unreached),
            **numbers,
        )

    def fullgraph_failure(self, proposal: Proposal | None = None) -> str | None:
        """The first error with `fullgraph=True`, of the unchanged program or with a proposal; None if it works.

        Without a proposal, the program itself is compiled. With one, a copy is compiled, and if that fails, the check runs
        again in a new process, where nothing was loaded twice.
        """
        codes = [setting.code for setting in proposal.settings] if proposal is not None else []
        if proposal is None:
            with self._program.installed(), preserve_state(self.task):
                return fullgraph_failure(self._program.target, self.backend)
        try:
            texts = self.texts(proposal)
        except InspectError as error:
            return str(error)
        try:
            program = self._program.with_texts(texts)
            with program.installed():
                failure = fullgraph_failure(program.target, self.backend, codes)
        except Exception as error:
            failure = one_line(error)
        if failure is None:
            return None
        loaded = self._program
        example = None if loaded.example is None else pickled_inputs(loaded.example)
        if loaded.example is not None and example is None:
            return failure
        return fullgraph_failure_in_new_process(
            loaded.specification, loaded.inputs, texts, codes, self.backend, no_grad=loaded.no_grad, example=example
        )

    @cached_property
    def _executed_lines(self) -> set[tuple[str, int]]:
        """The lines that the original executes at the inputs of the comparison."""
        task = self.task

        def call(point: Point) -> Callable[[], object]:
            run = lambda *args, **kwargs: task.run(task.function, args, kwargs)  # noqa: E731
            return lambda: observe(task, run, point.inputs, point.seed)

        return executed_lines(call(point) for point in self._original.points)

    def _share_state(self, target: Target) -> None:
        """Give a copy the parameters and buffers of the original, regardless of what was drawn while it was loaded."""
        import torch

        original_tensors = {item.name: item.now() for item in self.task.held_tensors}
        with torch.no_grad():
            for item in Task.of(target).held_tensors:
                tensor, original = item.now(), original_tensors.get(item.name)
                if original is not None and original.shape == tensor.shape and original.dtype == tensor.dtype:
                    tensor.copy_(original)

    def _time_both(self, target: Target, seconds_before: float | None) -> tuple[float, float] | None:
        """Median seconds per call before and after: interleaved or, if settings changed, one after the other."""
        if self._seconds <= 0:
            return None
        after = self._compile(target)
        if seconds_before is not None:
            return seconds_before, self._time_alone(after) or 0.0
        samples = self._sample({"before": self._compiled_original, "after": after})
        return median(samples["before"]), median(samples["after"])

    def _time_alone(self, function: Callable[..., Any]) -> float | None:
        if self._seconds <= 0:
            return None
        with silence():
            return median(self._sample({"function": function})["function"])

    def _sample(self, functions: Mapping[str, Callable[..., Any]]) -> dict[str, tuple[float, ...]]:
        from compile_inspect.timing.sampling import interleave

        def call(function: Callable[..., Any]) -> Callable[[], object]:
            return lambda: function(*self.target.args, **self.target.kwargs)

        calls = {name: call(function) for name, function in functions.items()}
        with preserve_state(self.task):
            for run_once in calls.values():
                for _ in range(WARM_UP_CALLS):
                    run_once()
            return interleave(calls, device=self.task.device, seconds=self._seconds)


def _describe_break(item: GraphBreak) -> str:
    return f"{item.kind} at {item.own_location or item.location}"


def _error_of(inspection: Inspection) -> str | None:
    """What the compiled call raised; None if it ran."""
    return None if inspection.uncaught_failure is None else inspection.uncaught_failure.summary


def _has_gradient(target: Target) -> bool:
    """Whether any result of the target has a gradient."""
    task = Task.of(replace(target, gradients=False))
    outcome = observe(
        task,
        lambda *args, **kwargs: Step(requires_gradient(target.function(*args, **kwargs)), ()),
        (target.args, target.kwargs),
        0,
    )
    return any(value is True for value in outcome.values.values())


def _graphs(inspection: Inspection) -> int:
    return len(inspection.graphs_at(Stage.DYNAMO))
