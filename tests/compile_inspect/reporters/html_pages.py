"""Pages of captures made by hand, and what is in them."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import re
from typing import Any

from samples import MODEL, everything

from compile_inspect import report
from compile_inspect.records import (
    BreakEffect,
    Compilation,
    Environment,
    GraphBreak,
    Inspection,
    Location,
    Node,
    Outcome,
    Process,
)
from compile_inspect.records.agreement import Agreement, Blame, BlameStage, VariantAgreement, Verdict
from compile_inspect.records.fixes import Advice, Finding, Proof, Proposal, Replacement, Standing

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u2028\u202e\x00\x1b[31m\ud800"


def data_of(page: str) -> dict[str, Any]:
    packed = re.search(r'id="data">([^<]*)</script>', page)
    assert packed is not None
    return json.loads(gzip.decompress(base64.b64decode(packed[1])))


def capture_of(inspection: Inspection, **more: Any) -> dict[str, Any]:
    return data_of(report.html([("a.inspection", inspection)], **more))["captures"][0]


def full() -> Inspection:
    """Everything, with a comparison that failed and fixes that were tried."""
    sample = everything()
    first = sample.breaks[0]
    change = Replacement(MODEL, (6, 8), (6, 22), "print(y.sum())", "pass")
    proposal = Proposal("prints", "Leave it out", (change,), changes="It is not said.")
    other = Proposal("prints", "Another way")
    finding = Finding(
        first,
        Advice("It prints.", (other, proposal), ("a hint",)),
        ((other, Proof(Standing.UNCHANGED)), (proposal, Proof(Standing.PROVEN, "Values agree.", seconds=(0.002, 0.001)))),
    )
    blame = Blame(BlameStage.INDUCTOR, "the kernels are wrong", location=Location(MODEL, 5))
    agreement = Agreement(
        "forward",
        True,
        ("the example",),
        (
            VariantAgreement("inductor", Verdict.DISAGREES, "it differs by 1", blame=blame),
            VariantAgreement("aot-inductor", Verdict.REFUSED, "it cannot"),
        ),
    )
    return dataclasses.replace(sample, findings=(finding,), agreements=(agreement,))


def hostile() -> Inspection:
    sample = everything()
    place = Location(MODEL, 6, HOSTILE, HOSTILE)
    return dataclasses.replace(
        sample,
        environment=Environment(torch=HOSTILE, variables={HOSTILE: HOSTILE}),
        process=Process(command=(HOSTILE,)),
        notes=(HOSTILE,),
        compilations=(Compilation("0/0", HOSTILE, HOSTILE, 1, Outcome.FAILED, failure=HOSTILE),),
        graphs=tuple(
            dataclasses.replace(graph, nodes=(Node(HOSTILE, "call_function", HOSTILE, (), HOSTILE, module=HOSTILE),))
            for graph in sample.graphs
        ),
        breaks=(GraphBreak(HOSTILE, place, place, BreakEffect.SPLIT, link="javascript:alert(1)", explanation=HOSTILE),),
        sources={MODEL: f"x = 1\n# {HOSTILE}\n" * 5},
    )
