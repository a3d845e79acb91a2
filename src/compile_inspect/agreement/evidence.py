"""Collect what is known about a wrong result, and derive the blame that this evidence supports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compile_inspect.agreement.divergence import Divergence
from compile_inspect.agreement.part_search import Culprit
from compile_inspect.agreement.source_lines import line_of_stack
from compile_inspect.agreement.stage_search import StageTrial
from compile_inspect.records.agreement import Blame, BlameStage
from compile_inspect.records.locations import Location
from compile_inspect.torch_private import DECOMPOSITIONS, LOWERINGS, CompilerPart, GraphNode


@dataclass
class Evidence:
    """Every experiment of one search. `blame` claims only what they support."""

    trials: list[StageTrial] = field(default_factory=list)
    culprit: Culprit | None = None
    """A part of the compiler without which the result is right."""
    node: Any = None
    """The node of Dynamo's graph that is blamed."""
    shortest_prefix: bool = False
    """Whether the graph up to that node is wrong, and right up to the one before."""
    wrong_alone: bool | None = None
    """Whether the node, compiled alone on eager's values, is wrong too; None where that was not possible."""
    divergence: Divergence | None = None
    exception: str | None = None
    """The innermost cause, where the compiled function raises and eager does not."""
    exception_location: Location | None = None
    eager_raises: str | None = None
    location: Location | None = None
    """The line, where it was found in another way than from a node's stack trace."""
    failure: str | None = None
    """Why the search ended early, if it did."""
    graph: str = ""

    @property
    def faulty_stage(self) -> StageTrial | None:
        """The first stage that differs from eager."""
        return next((trial for trial in self.trials if trial.wrong), None)

    def blame(self) -> Blame:
        """The conclusion."""
        faulty_stage = self.faulty_stage
        if faulty_stage is None:
            trial_list = "; ".join(map(str, self.trials)) or f"none could be tried: {self.failure}"
            return Blame(BlameStage.UNKNOWN, f"no stage reproduces the fault by itself: {trial_list}")
        location, node, operation = self._find_location()
        location = location or self.location
        where = "" if location is None else f", at {location}" + (f": {location.code}" if location.code else "")
        message = f"{faulty_stage.stage.value}: {self._describe(operation)}{where}"
        return Blame(faulty_stage.stage, message, node, operation, location, self.graph, tuple(self._sentences()))

    def _find_location(self) -> tuple[Location | None, str, str]:
        """The line, the node and the operation that the experiments point to."""
        if self.divergence is not None:
            return self.divergence.location, "", self.divergence.eager or self.divergence.graph
        if self.culprit is not None:
            node = self.culprit.changed_nodes[0] if self.culprit.changed_nodes else None
            if node is not None and not self.shortest_prefix:
                return line_of_stack(node.stack_trace), node.name, self._operator_name(node)
            part = self.culprit.part
            if part.operation:
                return line_of_stack(part.stack_trace), part.name, self._operator_name(part)
        if self.node is not None and (self.shortest_prefix or self.wrong_alone):
            return line_of_stack(self.node.meta.get("stack_trace")), str(self.node.name), name_of_target(self.node)
        return self.exception_location, "", ""

    def _operator_name(self, item: CompilerPart | GraphNode) -> str:
        """An operator, with the one that the user called where the two differ."""
        origin = item.original or ("" if self.node is None else name_of_target(self.node))
        same = not origin or "_functorch" in origin or base_name(origin) == base_name(item.operation)
        return item.operation if same else f"{item.operation} (of {origin})"

    def _describe(self, operation: str) -> str:
        if self.exception is not None:
            during = f" while it compiles {operation}" if operation else ""
            return f"it raises {self.exception} where eager does not{during}"
        accepted = f"it accepts what eager rejects ({self.eager_raises})" if self.eager_raises else ""
        if not operation:
            return accepted or self._without_operation()
        partner = self.culprit.partner if self.culprit is not None and self.culprit.needs_both else None
        partner_text = f" together with {partner.name}" if partner is not None and partner.operation else ""
        subject = f"the operation {operation}{partner_text}"
        return f"{accepted}, from {subject} on" if accepted else f"wrong from {subject} on"

    def _without_operation(self) -> str:
        if self.failure is not None:
            return "the operation is not known"
        if self.faulty_stage is not None and self.faulty_stage.stage is BlameStage.DYNAMO:
            return "the first operation of its graph that differs is not known"
        return "no operation is wrong by itself, so several together cause it"

    def _sentences(self) -> list[str]:
        sentences = [str(trial) for trial in self.trials]
        if self.divergence is not None:
            sentences.append(str(self.divergence))
        if self.culprit is not None:
            sentences.append(_describe_cure(self.culprit))
        if self.shortest_prefix and self.node is not None:
            fails = "raises" if self.exception is not None else "is wrong"
            sentences.append(f"the graph up to {self.node.name} {fails}, and up to the node before it is right")
        if self.wrong_alone is not None and self.node is not None:
            fails = "raises too" if self.exception is not None else "is wrong too"
            alone = fails if self.wrong_alone else "is right, so the fault needs other operations too"
            sentences.append(f"{self.node.name} compiled alone on eager's values {alone}")
        if self.failure is not None:
            sentences.append(f"the search stopped early: {self.failure}")
        return sentences


def name_of_target(node: Any) -> str:
    """The name of what a node calls: `torch.relu`, `add_`, `aten.mul.Tensor`."""
    return str(node._pretty_print_target(node.target)).removeprefix("torch.ops.")


def base_name(operation: str) -> str:
    """The name that all overloads of an operator share.

    >>> base_name("aten.add_.Tensor"), base_name("torch.add"), base_name("torch._C._nn.softshrink")
    ('add', 'add', 'softshrink')
    """
    parts = operation.split(".")
    return (parts[1] if parts[0] in ("aten", "prims") and len(parts) > 2 else parts[-1]).strip("_")


def _describe_cure(culprit: Culprit) -> str:
    part = culprit.part
    backward = " of the backward" if part.backward else ""
    if part.kind == LOWERINGS:
        change = f"with aten's kernel for {part.name} ({part.operation}){backward}"
    elif part.kind == DECOMPOSITIONS:
        change = f"without the decomposition of {part.operation}{backward}"
    else:
        change = f"without the pass {part.name}"
    if culprit.sole and culprit.partner is None:
        return f"{change} alone it is right"
    if culprit.sole and culprit.partner is not None:
        return f"{change} alone it is right, and so it is without {culprit.partner.name}"
    other = "others" if culprit.partner is None else culprit.partner.name
    return f"{change} and {other} it is right, and with one of them it is wrong"
