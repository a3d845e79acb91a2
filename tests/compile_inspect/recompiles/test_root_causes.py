"""Recompiles by root cause: one change of an input is one cause, and no sentence is about something without a name."""

from __future__ import annotations

import ast

import pytest

from compile_inspect.recompiles.root_causes import NO_REASON, root_causes
from compile_inspect.records import GuardFailure, Inspection, Recompile


def size(variable: str, expected: str, actual: str, dimension: int = 0) -> GuardFailure:
    reason = f"tensor '{variable}' size mismatch at index {dimension}. expected {expected}, actual {actual}"
    return GuardFailure("0/0", variable, reason, expected, actual)


def value(variable: str, expected: str, actual: str) -> GuardFailure:
    return GuardFailure("0/0", variable, f"{variable} == {expected}", expected, actual)


def state(expected: str, actual: str) -> GuardFailure:
    return GuardFailure("0/0", "grad_mode", "GLOBAL_STATE changed: grad_mode", expected, actual)


def capture(*events: tuple[str, GuardFailure | None]) -> Inspection:
    """Recompiles of named functions, in order."""
    made = []
    for number, (function, failure) in enumerate(events):
        failures = () if failure is None else (failure,)
        made.append(Recompile(f"{number}/1", function, "model.py", sum(map(ord, function)), failures))
    return Inspection(recompiles=tuple(made))


def grouped(*events: tuple[str, GuardFailure | None]) -> list[int]:
    return [len(item.recompiles) for item in root_causes(capture(*events))]


def test_one_size_seen_by_four_functions_is_one_cause_told_of_the_first() -> None:
    names = ("kwargs['ids']", "ids", "labels", "logits")
    functions = ("wrapper", "forward", "loss", "__init__")
    events = [(function, size(name, "32", "48", 1)) for function, name in zip(functions, names, strict=True)]
    (cause,) = root_causes(capture(*events))
    assert cause.variable == "kwargs['ids']" and cause.values == ("32", "48") and len(cause.recompiles) == 4
    assert cause.reason.startswith("The size of dimension 1 of kwargs['ids'] changed from 32 to 48")
    assert cause.remedies[0].code == "torch._dynamo.mark_dynamic(kwargs['ids'], 1)"


@pytest.mark.parametrize(
    ("events", "sizes"),
    [
        # One dimension that takes many sizes.
        ([("f", size("x", "4", "6")), ("f", size("x", "6", "7")), ("f", size("x", "7", "9"))], [3]),
        # Two dimensions of one tensor.
        ([("f", size("x", "4", "6", 0)), ("f", size("x", "4", "6", 1))], [1, 1]),
        # Another change in another function.
        ([("f", size("x", "4", "6")), ("g", size("y", "8", "9"))], [1, 1]),
        # A size and a number of the same values.
        ([("f", size("x", "4", "6")), ("g", value("n", "4", "6"))], [1, 1]),
        # Two flags that happen to change alike.
        ([("f", value("flag", "True", "False")), ("g", value("other", "True", "False"))], [1, 1]),
        # One attribute seen by two functions.
        ([("f", value("self.step", "0", "1")), ("g", value("self.block.step", "0", "1"))], [2]),
        # A state of torch, which all functions see.
        ([("f", state("True", "False")), ("g", state("True", "False")), ("h", state("False", "True"))], [2, 1]),
        # A later recompile shows that two groups are one.
        ([("f", size("x", "4", "6")), ("g", size("y", "6", "7")), ("f", size("x", "6", "7"))], [3]),
        # No reason at all.
        ([("f", None), ("g", None), ("f", size("x", "4", "6"))], [2, 1]),
    ],
)
def test_recompiles_are_grouped_by_what_changed(events: list[tuple[str, GuardFailure | None]], sizes: list[int]) -> None:
    assert grouped(*events) == sizes


def test_values_are_told_in_order_and_once() -> None:
    (cause,) = root_causes(capture(("f", size("x", "4", "6")), ("g", size("y", "4", "6")), ("f", size("x", "6", "7"))))
    assert cause.values == ("4", "6", "7")


@pytest.mark.parametrize(
    "failure",
    [
        GuardFailure("0/0", "", "tensor '' size mismatch at index 0. expected 4, actual 6", "4", "6"),
        GuardFailure("0/0", "", "tensor '' dtype mismatch. expected Float, actual Double", "Float", "Double"),
        GuardFailure("0/0", "", "___check_type_id(something)"),
        GuardFailure("0/0", "", "GLOBAL_STATE changed: "),
        GuardFailure("0/0", "", ""),
        None,
    ],
)
def test_what_has_no_name_gets_no_sentence_with_a_gap_and_no_code(failure: GuardFailure | None) -> None:
    (cause,) = root_causes(capture(("f", failure)))
    assert "of  " not in cause.reason and "of ;" not in cause.reason and cause.reason.strip()
    assert all("(," not in item.code for item in cause.remedies)
    assert cause.reason == NO_REASON or failure is not None


def test_every_code_of_a_remedy_parses() -> None:
    failures = (
        size("x", "4", "6"),
        value("n", "4", "6"),
        value("self.k", "2", "3"),
        value("flag", "True", "False"),
        state("a", "b"),
    )
    for failure in failures:
        (cause,) = root_causes(capture(("f", failure)))
        for remedy in cause.remedies:
            ast.parse(remedy.code)
