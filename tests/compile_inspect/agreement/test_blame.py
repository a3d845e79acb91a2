"""How blame is found: by leaving out parts of a compiler, by prefixes, and what may be said on what evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compile_inspect import verify
from compile_inspect.agreement import make_reference
from compile_inspect.agreement.blame import find_blame
from compile_inspect.agreement.evidence import Evidence
from compile_inspect.agreement.graph_prefixes import is_wrong_alone
from compile_inspect.agreement.part_search import PartSearch, SearchTimeoutError
from compile_inspect.agreement.stage_search import StageTrial
from compile_inspect.records import BlameStage, Verdict
from compile_inspect.torch_private import LOWERINGS, PASSES, CompilerPart, GraphNode
from compile_inspect.variants import Prepared, RefusalError, Task, variant

pytestmark = pytest.mark.usefixtures("unhurried")

PARTS = [CompilerPart(LOWERINGS, f"node_{number}", f"aten.op_{number}.default") for number in range(9)]


def search(is_right: Callable[[set[str]], bool], parts: list[CompilerPart] = PARTS) -> PartSearch:
    """A search over a compiler that is only told of; `is_right` gets the names of what is left out."""

    def run(decide: Callable[[CompilerPart], bool]) -> bool:
        return is_right({part.name for part in parts if decide(part)})

    made = PartSearch(run)
    assert not made.list_parts()
    return made


@pytest.mark.parametrize("number", range(9))
def test_one_wrong_part_is_found(number: int) -> None:
    name = f"node_{number}"
    made = search(lambda out: name in out)
    found = made.find(LOWERINGS)
    assert found is not None and found.part.name == name and found.sole and found.partner is None
    assert made.runs <= 2 + 2 * 4 + 1


def test_two_parts_that_are_wrong_together_are_found() -> None:
    found = search(lambda out: "node_2" in out or "node_6" in out).find(LOWERINGS)
    assert found is not None and found.part.name == "node_6" and found.needs_both
    assert found.partner is not None and found.partner.name == "node_2"


def test_two_parts_that_are_wrong_each_are_found() -> None:
    found = search(lambda out: {"node_2", "node_6"} <= out).find(LOWERINGS)
    assert found is not None and found.part.name == "node_2" and not found.sole and not found.needs_both
    assert found.partner is not None and found.partner.name == "node_6"


def test_nothing_is_found_where_nothing_helps() -> None:
    assert search(lambda out: False).find(LOWERINGS) is None
    assert search(lambda out: bool(out)).find(PASSES) is None


def test_a_pass_is_found_with_what_it_changed() -> None:
    def node(name: str, text: str, *inputs: str) -> GraphNode:
        return GraphNode(name, f"aten.{name}.default", "", text, inputs, "", name)

    before = (node("zeros", "zeros()"), node("add", "x + zeros", "zeros"), node("exp", "exp(add)", "add"))
    after = (node("exp", "exp(x)"),)
    parts = [CompilerPart(PASSES, "first", nodes=before), CompilerPart(PASSES, "second", nodes=before)]
    parts.append(CompilerPart(PASSES, "last", nodes=after))
    found = search(lambda out: "second" in out, parts).find(PASSES)
    assert found is not None and found.part.name == "second"
    # What others still read comes first; zeros were only read by what went with them.
    assert [item.name for item in found.changed_nodes] == ["add", "exp", "zeros"]


def test_a_search_ends_when_its_time_is_up() -> None:
    with pytest.raises(SearchTimeoutError, match="time limit at compilation 0"):
        PartSearch(lambda decide: False, seconds=-1.0).list_parts()


WRONG = StageTrial("aot_eager", BlameStage.AOT_AUTOGRAD, wrong=True)


def traced_node() -> Any:
    graph = torch.fx.symbolic_trace(lambda x: torch.relu(x))
    return next(node for node in graph.graph.nodes if node.op == "call_function")


def test_an_operation_is_named_only_on_evidence() -> None:
    node = traced_node()
    assert Evidence([WRONG], node=node, shortest_prefix=True).blame().operation == "torch.relu"
    assert Evidence([WRONG], node=node, wrong_alone=True).blame().operation == "torch.relu"
    denied = Evidence([WRONG], node=node, wrong_alone=False).blame()
    assert denied.operation == "" and "so several together cause it" in denied.message


def test_a_search_that_ends_early_says_so_and_keeps_the_stage() -> None:
    found = Evidence([WRONG], failure="ValueError: no").blame()
    assert found.stage is BlameStage.AOT_AUTOGRAD
    assert "the operation is not known" in found.message
    assert found.evidence == ("backend='aot_eager' is wrong", "the search stopped early: ValueError: no")


def test_where_no_stage_is_wrong_the_stages_are_listed() -> None:
    task = Task(lambda x: x.sin(), (torch.ones(3),))
    reference = make_reference(task, samples=0)
    found = find_blame(reference, variant("aot_eager"), None, reference.points[0], task)
    assert found.stage is BlameStage.UNKNOWN
    assert found.message == "no stage reproduces the fault by itself: backend='eager' is right; backend='aot_eager' is right"


def test_one_operation_is_compiled_alone_on_the_values_it_gets() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        y.mul_(2)
        return torch.relu(y)

    graph = torch.fx.symbolic_trace(function)
    given: list[Any] = []

    def prepare(task: Task) -> Prepared:
        given.extend(task.args)
        raise RefusalError("as if it could not be compiled")

    last = [node for node in graph.graph.nodes if node.op == "call_function"][-1]
    assert is_wrong_alone(graph, last, [torch.ones(2)], prepare, gradients=False) is True
    assert torch.equal(given[0], torch.full((2,), 4.0))  # changed in place before it was read


def half_sum(x: torch.Tensor) -> torch.Tensor:
    doubled = x * 2
    return torch.sum(doubled.half(), dtype=torch.bool)


def test_a_variant_that_raises_is_said_to_raise() -> None:
    """pytorch#197106: eager gives a truth value, and Inductor writes a kernel that is not C++."""
    found = verify(half_sum, torch.ones(3, 4), variants=["inductor"]).variant("inductor")
    if found.verdict is not Verdict.REFUSED:
        pytest.skip("this torch can compile it")
    assert found.blame is not None and found.blame.stage is BlameStage.INDUCTOR
    assert "it raises CppCompileError: " in found.blame.message and "where eager does not" in found.blame.message
    assert "failed" not in str(found.blame)
    assert found.blame.location is not None and found.blame.location.code.startswith("return torch.sum")
    assert found.blame.operation == "torch.sum"


def spread(x: torch.Tensor) -> torch.Tensor:
    centered = x - 1
    return centered.std(dim=1)


def test_a_decomposition_of_a_traced_graph_is_found() -> None:
    found = verify(spread, torch.tensor([[1.0, 2.0, 1e30]]), variants=["inductor-callable"]).variant("inductor-callable")
    assert found.verdict is Verdict.DISAGREES and found.blame is not None
    assert found.blame.stage is BlameStage.DECOMPOSITIONS and found.blame.operation == "aten.std.correction"
    assert found.blame.location is not None and found.blame.location.code == "return centered.std(dim=1)"
    assert found.blame.evidence[:2] == ("the traced graph is right", "the same graph decomposed is wrong")
