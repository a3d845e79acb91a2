"""No text says "1 causes" or "1 inputs": by the source of all texts, and by texts made for 0, 1 and 2 of everything."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import samples
from rich.console import Console

import compile_inspect
from compile_inspect.records import Inspection
from compile_inspect.records.agreement import Agreement, VariantAgreement, Verdict
from compile_inspect.records.fixes import Advice, Finding, Proof
from compile_inspect.reporters import SECTIONS
from compile_inspect.reporters.conclusions import conclude_agreement
from compile_inspect.reporters.counts import Counts
from compile_inspect.reporters.text import ShowOptions, findings, render, summary

SOURCE = Path(compile_inspect.__file__).parent
_PLURAL = re.compile(r"^ (?:[a-z]+ )?[a-z]{2,}[^s]s\b")
_WRONG = re.compile(
    r"(?<![\d.,:/])\b1 (?!(?:miss|pass|process|s|ms|less|has|is|was|does|this)\b)(?:[a-z]+ )?([a-z]{2,}[^su]s)\b"
)
_VERBS = re.compile(r"\b1 (?:[a-z]+) (?:fails|takes|runs|uses|needs|gives|remains)\b")


def counts_without_a_noun_for_one() -> Iterator[str]:
    """Places where a number made by `len`, `sum` or `int` is followed by a plural, whatever the number is."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        chosen = {id(part) for node in ast.walk(tree) if isinstance(node, ast.IfExp) for part in ast.walk(node)}
        checked = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.If | ast.Raise)
            for part in ast.walk(node)
            if isinstance(node, ast.Raise) or ">" in ast.unparse(node.test)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.JoinedStr) or id(node) in chosen | checked:
                continue
            for number, noun in zip(node.values, node.values[1:], strict=False):
                if isinstance(number, ast.FormattedValue) and isinstance(noun, ast.Constant):
                    made = re.match(r"(len|sum|int)\(", ast.unparse(number.value))
                    if made and _PLURAL.match(str(noun.value)):
                        yield f"{path.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(number.value)}{noun.value}"


def test_numbers_in_texts_have_a_noun_that_goes_with_them() -> None:
    known = {"reporters/html/highlighting.py", "reporters/html/texts.py", "reporters/text/process.py"}  # always several
    assert [item for item in counts_without_a_noun_for_one() if item.partition(":")[0] not in known] == []


def wrong_plurals(text: str) -> list[str]:
    return [match[0] for match in _WRONG.finditer(text) if not _VERBS.match(match[0])]


def test_the_check_sees_what_it_is_for() -> None:
    assert wrong_plurals("1 causes and 1 graph breaks; 11 causes, 2.1 inputs, 1 miss, 1 s, 1 process") == [
        "1 causes",
        "1 graph breaks",
    ]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_verdicts(number: int) -> None:
    names = ("failed", "limits", "breaks", "skipped", "unfinished", "recompiles", "kernels", "graphs", "raised")
    for name in names:
        for compilations in (0, 1, 2):
            told, _ = summary.verdict(Counts(compilations=compilations, **{name: number}))
            assert not wrong_plurals(told), told


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("section", SECTIONS)
def test_sections(section: str, number: int) -> None:
    whole = samples.everything()
    listed = {name: value[:number] for name, value in vars(whole).items() if isinstance(value, tuple) and name != "stacks"}
    console = Console(file=io.StringIO(), width=300, color_system=None)
    for inspection in (replace(whole, **listed), replace(Inspection(), **listed)):
        for everything in (False, True):
            options = ShowOptions(all=everything, limit=None if everything else 1)
            render([inspection], section, console, files=["a.inspection"], options=options)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert not wrong_plurals(text), wrong_plurals(text)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_proofs_and_comparisons(number: int) -> None:
    after = max(number - 1, 0)
    for values in (1, 2):
        proof = Proof.of(breaks=(number, after), graphs=(number, 1), inputs=max(number, 1), values=values, gradients=number)
        assert not wrong_plurals(findings.proof_details(proof))
    cause = samples.everything().breaks[0]
    console = Console(file=io.StringIO(), width=300, color_system=None)
    causes = [Finding(replace(cause, hits=number), Advice("why"))] * (number + 1)
    findings.render(causes, console, {}, lambda proposal: "", tried=False, limit=number or None)
    items = (VariantAgreement("inductor", Verdict.AGREES, "it agrees"),) * number
    text = console.file.getvalue() + conclude_agreement(Agreement("f", True, ("x",) * number, items))  # type: ignore[attr-defined]
    assert not wrong_plurals(text), text
