"""A proposal is tried on a copy: is the break gone, are the results the same, is it faster."""

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
from compile_inspect.fixes.comparing import Original, requiring
from compile_inspect.fixes.loading import Program
from compile_inspect.fixes.matching import Matching, match_breaks
from compile_inspect.fixes.source import apply, read
from compile_inspect.fixes.unreached import lines_run, not_reached
from compile_inspect.fixes.whole import fullgraph_failure, fullgraph_failure_elsewhere
from compile_inspect.records import GraphBreak, Inspection, Stage
from compile_inspect.records.fixes import Proof, Proposal
from compile_inspect.silence import silence
from compile_inspect.target import Target
from compile_inspect.variants import Step, Task
from compile_inspect.variants.base import one_line

WARM_UPS = 4
"""Calls before any are timed: a function may be compiled again at its second and third."""


class Laboratory:
    """A target, what torch.compile does with it, and trials of what could be changed."""

    def __init__(
        self,
        specification: str,
        inputs: str | None = None,
        *,
        backend: str = "inductor",
        samples: int = 2,
        seconds: float = 0.5,
        no_grad: bool = False,
    ) -> None:
        self._backend, self._seconds = backend, seconds
        try:
            with silence():
                self._program = Program.load(specification, inputs, no_grad=no_grad)
                target = self._program.target
                with self._program.installed():
                    require_eager(target)
                    gradients = _has_gradient(target) if target.gradients is None else target.gradients
        except SystemExit as error:
            raise TargetError(f"calling {specification} ended the program: SystemExit({error.code})") from error
        self.target = replace(target, gradients=gradients)
        self.task = Task.of(self.target)
        with self._program.installed():
            self._original = Original(self.task, samples)

    @cached_property
    def inspection(self) -> Inspection:
        """What happens when it is compiled as it is."""
        with self._program.installed():
            return self._inspected(self.target)

    @property
    def raised(self) -> str | None:
        """What torch.compile raises with the program as it is; None where it runs."""
        return _raised(self.inspection)

    @cached_property
    def _before(self) -> Callable[..., Any]:
        return self._compiled(self.target)

    def _inspected(self, target: Target) -> Inspection:
        # A backward where there is one: that it is missing is for the comparison to say. Only the user's own False means
        # without gradients: a function that has none to give may compute some inside.
        target = replace(target, gradients=False if self._program.target.gradients is False else None)
        torch_private.forget_compiled_code()
        # What a call changes, such as running means, must not be there when results are compared.
        with preserve_state(Task.of(target)), torch_private.suppressed_compiler_output(), silence():
            return inspect(target, backend=self._backend)

    def _compiled(self, target: Target) -> Callable[..., Any]:
        import torch

        compiled: Callable[..., Any] = torch.compile(target.function, backend=self._backend)
        return compiled

    def texts(self, proposal: Proposal) -> dict[str, str]:
        """The files of a proposal with its changes; raises InspectError where they have changed since."""
        files: dict[str, str] = {}
        for file in {item.file for item in proposal.replacements}:
            source = read(file)
            if source is None:
                raise InspectError(f"{file} cannot be read")
            files[file] = apply(source.text, [item for item in proposal.replacements if item.file == file])
        return files

    def prove(self, cause: GraphBreak, proposal: Proposal) -> Proof:
        """Try a proposal."""
        return self.prove_together([cause], proposal)

    def prove_together(self, causes: Sequence[GraphBreak], proposal: Proposal) -> Proof:
        """Try a proposal that is to remove several causes at once."""
        before = self.inspection
        with self._program.installed(), silence():
            _ = self._original.points  # with the original's modules: those that are imported at a call, too
        # Compiled code does not remember the settings it was made with: its time is taken before they are changed.
        earlier = self._alone(self._before) if proposal.settings else None
        with torch_private.preserve_configuration(), silence():
            for setting in proposal.settings:
                torch_private.run_setting(setting.code)
            try:
                texts = self.texts(proposal)
                program = self._program.changed(texts)
                target = replace(program.target, gradients=self.target.gradients)
                self._share_state(target)
                with program.installed():
                    after = self._inspected(target)
            except Exception as error:
                return Proof.of(breaks=(len(before.breaks), 0), failure=one_line(error))
            with program.installed():
                return self._seen(proposal, match_breaks(causes, proposal, texts, before, after), after, target, earlier)

    def _seen(self, proposal: Proposal, matching: Matching, after: Inspection, target: Target, earlier: float | None) -> Proof:
        """What a trial has shown; results are compared only where the break is gone."""
        before = self.inspection
        breaks = (len(before.breaks), len(after.breaks))
        numbers: dict[str, Any] = {
            "graphs": (_graphs(before), _graphs(after)),
            "remaining": len(matching.remaining),
            "arrived": len(matching.arrived),
            "revealed": len(matching.revealed),
        }
        if not after.compilations:
            return Proof.of(breaks=breaks, failure="nothing was compiled", **numbers)
        met = next(iter((*matching.remaining, *matching.arrived)), None)
        if met is not None:
            return Proof.of(breaks=breaks, reason=_where(met), **numbers)
        raised = _raised(after)
        if raised is not None:
            as_before = "as it does without the change: " if self.raised is not None else ""
            return Proof.of(breaks=breaks, failure=f"{as_before}{raised}", **numbers)
        if breaks[1] - len(matching.revealed) >= breaks[0]:
            return Proof.of(breaks=breaks, reason="there are as many causes as before", **numbers)
        ways = (("in eager mode", target.function), ("compiled", self._compiled(target)))
        found = self._original.compare(Task.of(target), ways)
        numbers |= {
            "inputs": found.inputs,
            "values": found.values,
            "gradients": found.gradients,
            "largest_error": found.largest_error,
            "unsteady": tuple(sorted(found.unsteady)),
        }
        if found.difference or not (found.values or found.gradients):
            return Proof.of(breaks=breaks, reason=found.reason, difference=found.difference, **numbers)
        with self._program.installed():
            missed = not_reached(proposal, self._reached) if proposal.is_rewrite else []
        hidden = f"{_where(matching.revealed[0])} is met now" if matching.revealed else ""
        return Proof.of(
            breaks=breaks,
            reason=hidden,
            seconds=self._timed(target, earlier),
            unreached=tuple(line for _, line in missed),
            **numbers,
        )

    def whole(self, proposal: Proposal | None = None) -> str | None:
        """Whether `fullgraph=True` works, with a proposal or as it is: None, or the first thing that prevents it.

        As it is, the program itself is compiled. With a proposal a copy is, and where that fails, once more in a process of
        its own: there nothing was loaded twice.
        """
        codes = [setting.code for setting in proposal.settings] if proposal is not None else []
        if proposal is None:
            with self._program.installed(), preserve_state(self.task):
                return fullgraph_failure(self._program.target, self._backend)
        try:
            texts = self.texts(proposal)
        except InspectError as error:
            return str(error)
        try:
            program = self._program.changed(texts)
            with program.installed():
                failure = fullgraph_failure(program.target, self._backend, codes)
        except Exception as error:
            failure = one_line(error)
        if failure is None:
            return None
        loaded = self._program
        return fullgraph_failure_elsewhere(
            loaded.specification, loaded.inputs, texts, codes, self._backend, no_grad=loaded.no_grad
        )

    @cached_property
    def _reached(self) -> set[tuple[str, int]]:
        """The lines that the original runs at the inputs it is compared at."""
        task = self.task

        def call(point: Point) -> Callable[[], object]:
            run = lambda *args, **kwargs: task.run(task.function, args, kwargs)  # noqa: E731
            return lambda: observe(task, run, point.inputs, point.seed)

        return lines_run(call(point) for point in self._original.points)

    def _share_state(self, target: Target) -> None:
        """Give a copy the parameters and buffers of the original, whatever was drawn while it was loaded."""
        import torch

        own = {item.name: item.now() for item in self.task.held_tensors}
        with torch.no_grad():
            for item in Task.of(target).held_tensors:
                tensor, right = item.now(), own.get(item.name)
                if right is not None and right.shape == tensor.shape and right.dtype == tensor.dtype:
                    tensor.copy_(right)

    def _timed(self, target: Target, earlier: float | None) -> tuple[float, float] | None:
        """Median seconds of a call before and after: in turns, or where settings were changed one after the other."""
        if self._seconds <= 0:
            return None
        after = self._compiled(target)
        if earlier is not None:
            return earlier, self._alone(after) or 0.0
        samples = self._samples_of({"before": self._before, "after": after})
        return median(samples["before"]), median(samples["after"])

    def _alone(self, function: Callable[..., Any]) -> float | None:
        if self._seconds <= 0:
            return None
        with silence():
            return median(self._samples_of({"it": function})["it"])

    def _samples_of(self, functions: Mapping[str, Callable[..., Any]]) -> dict[str, tuple[float, ...]]:
        from compile_inspect.timing.sampling import interleave

        def call(function: Callable[..., Any]) -> Callable[[], object]:
            return lambda: function(*self.target.args, **self.target.kwargs)

        calls = {name: call(function) for name, function in functions.items()}
        with preserve_state(self.task):
            for once in calls.values():
                for _ in range(WARM_UPS):
                    once()
            return interleave(calls, device=self.task.device, seconds=self._seconds)


def _where(item: GraphBreak) -> str:
    return f"{item.kind} at {item.own_location or item.location}"


def _raised(inspection: Inspection) -> str | None:
    """What the compiled call raised; None where it ran."""
    return None if inspection.raised is None else inspection.raised.told


def _has_gradient(target: Target) -> bool:
    """Whether any result of the target has a gradient."""
    task = Task.of(replace(target, gradients=False))
    seen = observe(
        task, lambda *args, **kwargs: Step(requiring(target.function(*args, **kwargs)), ()), (target.args, target.kwargs), 0
    )
    return any(value is True for value in seen.values.values())


def _graphs(inspection: Inspection) -> int:
    return len(inspection.graphs_at(Stage.DYNAMO))
