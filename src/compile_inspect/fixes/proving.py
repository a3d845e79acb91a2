"""A proposal is tried on a copy: is the break gone, are the results the same, is it faster."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from typing import Any

from compile_inspect.agreement.judge import judge
from compile_inspect.agreement.observation import observe
from compile_inspect.agreement.reference import Point, Reference, make_reference
from compile_inspect.capture import torch_private
from compile_inspect.capture.inspecting import inspect
from compile_inspect.errors import InspectError, TargetError
from compile_inspect.fixes.loading import load_target
from compile_inspect.fixes.reaching import lines_run, not_reached
from compile_inspect.fixes.source import apply, read
from compile_inspect.records import BreakEffect, GraphBreak, Inspection, Stage
from compile_inspect.records.fixes import Proof, Proposal, Standing
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
    ) -> None:
        self._specification, self._inputs, self._backend = specification, inputs, backend
        self._samples, self._seconds = samples, seconds
        try:
            with silence():
                target = load_target(specification, inputs)
                gradients = _has_gradient(target) if target.gradients is None else target.gradients
        except SystemExit as error:
            raise TargetError(f"calling {specification} ended the program: SystemExit({error.code})") from error
        self.target = replace(target, gradients=gradients)
        self.task = Task.of(self.target)

    @cached_property
    def inspection(self) -> Inspection:
        """What happens when it is compiled as it is."""
        return self._inspected(self.target)

    @cached_property
    def _reference(self) -> Reference:
        return make_reference(self.task, samples=self._samples)

    @cached_property
    def _before(self) -> Callable[..., Any]:
        return self._compiled(self.target)

    def _inspected(self, target: Target) -> Inspection:
        # A backward where there is one: that it is missing is for the comparison to say.
        target = replace(target, gradients=None if target.gradients else False)
        torch_private.forget_compiled_code()
        with torch_private.suppressed_compiler_output(), silence():
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
        return self._tried(proposal, lambda texts, after: _Left.of(cause, proposal, texts, self.inspection, after))

    def prove_together(self, causes: Sequence[GraphBreak], proposal: Proposal) -> Proof:
        """Try a proposal that is to remove several causes at once."""

        def left(texts: Mapping[str, str], after: Inspection) -> _Left:
            parts = [_Left.of(cause, proposal, texts, self.inspection, after) for cause in causes]
            return _Left([item for part in parts for item in part.same], [item for part in parts for item in part.new])

        return self._tried(proposal, left)

    def whole(self, proposal: Proposal | None = None) -> str | None:
        """Whether `fullgraph=True` works, with a proposal or as it is: None, or the first thing that prevents it."""
        with torch_private.preserved_configuration(), silence(), torch_private.suppressed_compiler_output():
            for setting in () if proposal is None else proposal.settings:
                torch_private.run_setting(setting.code)
            try:
                target = load_target(self._specification, self._inputs, {} if proposal is None else self.texts(proposal))
                torch_private.forget_compiled_code()
                found = inspect(replace(target, gradients=None), backend=self._backend, fullgraph=True)
            except Exception as error:
                return one_line(error)
        return next((note for note in found.notes if note.startswith("The call raised")), None)

    def _tried(self, proposal: Proposal, look: Callable[[Mapping[str, str], Inspection], _Left]) -> Proof:
        before = self.inspection
        # Compiled code does not remember the settings it was made with: its time is taken before they are changed.
        earlier = self._alone(self._before) if proposal.settings else None
        with torch_private.preserved_configuration(), silence():
            for setting in proposal.settings:
                torch_private.run_setting(setting.code)
            try:
                texts = self.texts(proposal)
                target = load_target(self._specification, self._inputs, texts)
                target = replace(target, gradients=self.target.gradients)
                self._share_state(target)
                after = self._inspected(target)
            except Exception as error:
                return Proof(Standing.FAILED, one_line(error), breaks=(len(before.breaks), 0))
            if not after.compilations:
                return Proof(Standing.FAILED, "nothing was compiled")
            counts = ((len(before.breaks), len(after.breaks)), (_graphs(before), _graphs(after)))
            left = look(texts, after)
            if left.same:
                return Proof(Standing.UNCHANGED, f"{left.same[0].kind} at {left.same[0].location}", *counts)
            if left.new:
                return Proof(Standing.WORSE, f"{left.new[0].kind} at {left.new[0].location}", *counts)
            raised = next((note for note in after.notes if note.startswith("The call raised")), None)
            if raised is not None:
                return Proof(Standing.FAILED, raised, *counts)
            wrong = self._disagreement(target)
            if wrong is not None:
                return Proof(Standing.DISAGREES, wrong, *counts)
            missed = not_reached(proposal, self._reached) if proposal.is_rewrite else []
            unreached = tuple(line for _, line in missed)
            return Proof(Standing.PROVEN, self._words(unreached), *counts, self._timed(target, earlier), unreached)

    def _words(self, unreached: tuple[int, ...]) -> str:
        gradients = "values and gradients agree" if self.task.gradients else "values agree (there are no gradients)"
        count = len(self._reference.points)
        told = f"{gradients} with the original in eager mode at {count} input{'s' if count != 1 else ''}"
        if unreached:
            told += f"; but none of them reaches line {unreached[0]}, of which nothing is proven: give inputs that do"
        return told

    @cached_property
    def _reached(self) -> set[tuple[str, int]]:
        """The lines that the original runs at the inputs it is compared at."""
        task = self.task

        def call(point: Point) -> Callable[[], object]:
            run = lambda *args, **kwargs: task.run(task.function, args, kwargs)  # noqa: E731
            return lambda: observe(task, run, point.inputs, point.seed)

        return lines_run(call(point) for point in self._reference.points)

    def _share_state(self, target: Target) -> None:
        """Give a copy the parameters and buffers of the original, whatever was drawn while it was loaded."""
        import torch

        own = {item.name: item.now() for item in self.task.held}
        with torch.no_grad():
            for item in Task.of(target).held:
                tensor, right = item.now(), own.get(item.name)
                if right is not None and right.shape == tensor.shape and right.dtype == tensor.dtype:
                    tensor.copy_(right)

    def _disagreement(self, target: Target) -> str | None:
        """What the changed program does otherwise, eagerly or compiled; None where nothing is."""
        task = Task.of(target)
        for name, function in (("in eager mode", target.function), ("compiled", self._compiled(target))):
            for point in self._reference.points:

                def run(*args: Any, _function: Any = function, **kwargs: Any) -> Any:
                    return task.run(_function, args, kwargs)

                seen = observe(task, run, point.inputs, point.seed)
                found = judge(seen, self._reference.bystanders(point))
                if found.differences:
                    different = found.differences[0]
                    return f"{name}, at {point.name}, {different.name}: {different.message}"
        return None

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
        for once in calls.values():
            for _ in range(WARM_UPS):
                once()
        return interleave(calls, device=self.task.device, seconds=self._seconds)


@dataclass(frozen=True)
class _Left:
    """Breaks of a changed program that have to do with the change."""

    same: list[GraphBreak]
    new: list[GraphBreak]

    @classmethod
    def of(
        cls, cause: GraphBreak, proposal: Proposal, texts: Mapping[str, str], before: Inspection, after: Inspection
    ) -> _Left:
        place = cause.own_location or cause.location
        file, line = (place.file, place.line) if place is not None else ("", 0)
        written = {name: _written(name, text) for name, text in texts.items()}
        mapped = _mapped(file, texts, line)
        places = [item.own_location or item.location for item in before.breaks]
        known = {(here.file, _mapped(here.file, texts, here.line)) for here in places if here is not None}
        # A setting may well move other breaks than this one; then it counts whether there are fewer in all.
        strict = proposal.is_rewrite or len(after.breaks) >= len(before.breaks)
        same: list[GraphBreak] = []
        new: list[GraphBreak] = []
        for item in after.breaks:
            here = item.own_location or item.location
            if here is None:
                continue
            touched = here.line in written.get(here.file, ()) or (here.file == file and here.line == mapped)
            if touched:
                (same if item.kind == cause.kind and here.file == file else new).append(item)
            elif here.file == file and _goes_on(cause) and (here.file, here.line) not in known:
                # Tracing went on after the cause before, so this one was not there: it has only moved to another line.
                new += [item] if strict or not _goes_on(item) else []
        return cls(same, new)


def _goes_on(item: GraphBreak) -> bool:
    """Whether the rest of the function was compiled after a break; torch also splits and then skips all that follows."""
    return item.effect is BreakEffect.SPLIT and "skipping the rest of the function" not in item.text


def _written(file: str, text: str) -> set[int]:
    """The lines of a text that are not in the file as it is."""
    source = read(file)
    old = source.text.split("\n") if source is not None else []
    matcher = difflib.SequenceMatcher(None, old, text.split("\n"), autojunk=False)
    return {
        line + 1
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag in ("replace", "insert")
        for line in range(start, end)
    }


def _mapped(file: str, texts: Mapping[str, str], line: int) -> int | None:
    """Where a line of a file is after the change; None where it is no more."""
    if file not in texts:
        return line
    source = read(file)
    old = source.text.split("\n") if source is not None else []
    matcher = difflib.SequenceMatcher(None, old, texts[file].split("\n"), autojunk=False)
    for block in matcher.get_matching_blocks():
        if block.a < line <= block.a + block.size:
            return line - block.a + block.b
    return None


def _has_gradient(target: Target) -> bool:
    """Whether any result of the target has a gradient."""
    task = Task.of(replace(target, gradients=False))
    seen = observe(
        task, lambda *args, **kwargs: Step(_requiring(target.function(*args, **kwargs)), ()), (target.args, target.kwargs), 0
    )
    return any(value is True for value in seen.values.values())


def _requiring(result: Any) -> list[bool]:
    leaves = torch_private.flatten(result)[0]
    return [torch_private.is_tensor(leaf) and leaf.requires_grad for leaf in leaves]


def _graphs(inspection: Inspection) -> int:
    return len(inspection.graphs_at(Stage.DYNAMO))
