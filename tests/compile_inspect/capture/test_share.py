"""How much of what torch traced runs compiled, held against torch's own counters."""

from __future__ import annotations

import pytest
import torch
import torch._dynamo
from torch._dynamo.utils import counters

import compile_inspect
from compile_inspect.records import CompiledShare, Inspection, Stage
from compile_inspect.reporters.counts import count
from compile_inspect.reporters.text.summary import verdict
from conftest import fresh_function


def recorded(body: str, *, helper: str = "return x", dynamic: bool | None = None, calls: int = 1) -> Inspection:
    torch._dynamo.reset()
    counters.clear()
    function = fresh_function(body, torch=torch, helper=fresh_function(helper, torch=torch))
    compiled = torch.compile(function, backend="eager", dynamic=dynamic)
    with compile_inspect.record() as recording:
        for size in range(2, 2 + calls):
            compiled(torch.ones(size))
    return recording.inspection


LOOP = "for _ in range(2):\n    x = x * 2\n    torch._dynamo.graph_break()"


@pytest.mark.parametrize(
    ("body", "helper", "share"),
    [
        ("return (x + 1).relu()", "return x", CompiledShare(2, 0)),
        ("y = x + 1\ntorch._dynamo.graph_break()\nreturn y * 2", "return x", CompiledShare(2, 0)),
        (f"x = x + 1\n{LOOP}\nreturn x", "return x", CompiledShare(0, 2)),
        (f"x = helper(x)\n{LOOP}\nreturn x", "return x.sin().cos()", CompiledShare(2, 1)),
        (f"{LOOP}\nreturn helper(x)", "return x.sin().cos().tan()", CompiledShare(3, 1)),
        ("return helper(x + 1)", f"{LOOP}\nreturn x", CompiledShare(1, 1)),
    ],
)
def test_operations_in_graphs_and_operations_given_up(body: str, helper: str, share: CompiledShare) -> None:
    inspection = recorded(body, helper=helper)
    assert inspection.share == share
    assert counters["stats"]["calls_captured"] == share.compiled
    assert counters["stats"]["unique_graphs"] == inspection.graph_count == len(inspection.graphs_at(Stage.DYNAMO))


def test_only_the_newest_version_of_a_frame_counts() -> None:
    inspection = recorded("return x + 1", dynamic=False, calls=3)
    assert counters["stats"]["calls_captured"] == 3
    assert inspection.share == CompiledShare(1, 0)


def test_nothing_is_said_where_compilation_failed_or_there_was_none() -> None:
    with compile_inspect.record() as recording:
        torch.ones(2).sum()
    assert recording.inspection.share is None

    def broken(graph: object, inputs: object) -> object:
        raise RuntimeError("no")

    with compile_inspect.record() as recording, pytest.raises(Exception, match="no"):
        torch.compile(fresh_function("return x + 1", torch=torch), backend=broken)(torch.ones(2))
    assert recording.inspection.share is None


@pytest.mark.parametrize(
    ("share", "sentence", "style"),
    [
        (None, "1 graph break.", "yellow"),
        (CompiledShare(5, 0), "1 graph break.", "yellow"),
        (CompiledShare(3, 1), "75 % of the operations that torch traced run compiled (3 of 4).", "yellow"),
        (CompiledShare(1, 30), "Almost nothing runs compiled: 3 % of", "red"),
        (CompiledShare(0, 7), "Almost nothing runs compiled: 0 % of", "red"),
    ],
)
def test_the_headline_says_the_share(share: CompiledShare | None, sentence: str, style: str) -> None:
    from compile_inspect.reporters.counts import Counts

    told, color = verdict(Counts(compilations=2, graphs=1, breaks=1, share=share))
    assert sentence in told
    assert color == style


@pytest.mark.parametrize("body", [f"x = x + 1\n{LOOP}\nreturn x", "print(x)\nreturn x", "return x", "return len(x)"])
def test_no_graph_is_counted_that_is_not_shown(body: str) -> None:
    inspection = recorded(body)
    assert count(inspection).graphs == len(inspection.graphs_at(Stage.DYNAMO)) == counters["stats"]["unique_graphs"]
    if not inspection.graphs:
        assert str(inspection).startswith("Nothing runs compiled")
