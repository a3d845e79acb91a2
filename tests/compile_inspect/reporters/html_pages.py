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
    CompilationOutcome,
    Environment,
    GraphBreak,
    Inspection,
    Location,
    Node,
    Process,
)
from compile_inspect.records.agreement import Agreement, Blame, BlameStage, VariantAgreement, Verdict
from compile_inspect.records.fixes import Advice, Finding, Proof, Proposal, Replacement
from compile_inspect.records.lessons import Lesson, Listing, Remark, Table

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
    proposal = Proposal("prints", "Leave it out", (change,), behavior_change="It is not said.")
    other = Proposal("prints", "Another way")
    finding = Finding(
        first,
        Advice("It prints.", (other, proposal), ("a hint",)),
        (
            (other, Proof.of(breaks=(1, 1), remaining_breaks=1)),
            (proposal, Proof.of(breaks=(1, 0), inputs=2, values=1, seconds=(0.002, 0.001))),
        ),
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
        compilations=(Compilation("0/0", HOSTILE, HOSTILE, 1, CompilationOutcome.FAILED, failure=HOSTILE),),
        graphs=tuple(
            dataclasses.replace(graph, nodes=(Node(HOSTILE, "call_function", HOSTILE, (), HOSTILE, module=HOSTILE),))
            for graph in sample.graphs
        ),
        breaks=(GraphBreak(HOSTILE, place, place, BreakEffect.SPLIT, link="javascript:alert(1)", explanation=HOSTILE),),
        sources={MODEL: f"x = 1\n# {HOSTILE}\n" * 5},
    )


def lessons() -> tuple[Lesson, ...]:
    """Three lessons with every kind of evidence; the last could not run, and has nothing to show."""
    return (
        Lesson(
            "basics",
            "Phase 1: what torch.compile does",
            "Why is the first call of a compiled model so much slower than later ones?",
            theory=("torch.compile returns at once. `inductor` is the default.", "Backends stop at different stages."),
            evidence=(
                Remark("Each backend compiles the same `MLP`."),
                Table(
                    "MLP under each backend",
                    ("Backend", ">First call", ">Later call"),
                    (("eager", "81.5 ms", "92.0 µs"), ("inductor", "9.12 s", "61.3 µs")),
                ),
            ),
            answer=(
                "With inductor 2.13 the first call took 9.12 s and a later one 61.3 µs. It compiles.",
                "Of its time Inductor has the largest part, 71 %.",
            ),
            seconds=12.5,
        ),
        Lesson(
            "graph_breaks",
            "Phase 3: graph breaks, and how to be rid of them",
            "Why do graph breaks matter?",
            theory=("Where Dynamo cannot go on, it compiles what it has.",),
            evidence=(
                Listing("The model", "import torch\n\n\ndef f(x):\n    print(x.sum())\n    return x + 1\n", "python"),
                Listing(
                    "The change",
                    "--- model.py\n+++ model.py\n@@ -4,3 +4,2 @@\n def f(x):\n-    print(x.sum())\n     return x + 1",
                    "diff",
                ),
                Listing("The kernel", "for (int64_t x0 = 0; x0 < 8; x0 += 1) { out[x0] = 1.0f; }", "cpp"),
                Listing("What torch says", "Graph break: call to print", "text"),
            ),
            answer=("One print made 2 graphs of 1, and a call took 1.4 times as long.",),
            notes=("the variant with CUDA graphs needs a GPU",),
            seconds=61.0,
        ),
        Lesson(
            "stances",
            "Stances",
            "What does a stance change?",
            answer=("There is none: nothing was measured.",),
            notes=("Inductor writes C++ and finds no compiler for it on this machine",),
        ),
    )


def hostile_lessons() -> tuple[Lesson, ...]:
    """Two lessons of the same name with markup in every text."""
    listings = tuple(
        Listing(HOSTILE, f"x = '{HOSTILE}'\n+{HOSTILE}", kind) for kind in ("python", "cpp", "diff", "text", HOSTILE)
    )
    table = Table(HOSTILE, (HOSTILE, f">{HOSTILE}"), ((HOSTILE, HOSTILE), (HOSTILE,)))
    texts = (HOSTILE, f"`{HOSTILE}`")
    lesson = Lesson(HOSTILE, HOSTILE, HOSTILE, texts, (Remark(HOSTILE), table, *listings), texts, texts, float("nan"))
    return lesson, lesson
