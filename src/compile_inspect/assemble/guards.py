"""Assemble guards from the tree that torch prints and from their stacks."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compile_inspect.assemble.names import readable_condition, readable_name
from compile_inspect.assemble.stacks import StackTable
from compile_inspect.journal import Event
from compile_inspect.records import Guard

_LINE = re.compile(r"^(?P<indent>(?:\| ?)*)\+- (?P<rest>.*)$")
_MANAGER = re.compile(r"^\w+: source=(?P<source>.*?), accessed_by=")
_LEAF = re.compile(r"^(?P<kind>[A-Z][A-Z0-9_]+): (?P<text>.*)$")
_SOURCE = re.compile(r"[LG]\['[^']+'\](?:\.\w+(?:\(\))?|\['[^']+'\]|\[\d+\])*")
_LOCATION = re.compile(r"# (?P<file>[^\s#]+\.py):(?P<line>\d+) in ")
_COMMENT = re.compile(r"\s+# .*$")

# Interpreter and torch state that is compared on every call and that programs rarely change unintentionally.
_INTERNAL_KINDS = frozenset(
    {
        "DIMENSION_DYNAMIC_MARKING_GUARD",
        "TORCH_FUNCTION_MODE_STACK",
        "DEFAULT_DEVICE",
        "GLOBAL_STATE",
        "DETERMINISTIC_ALGORITHMS",
        "FSDP_TRAINING_STATE",
        "AUTOGRAD_SAVED_TENSORS_HOOKS",
        "NO_TENSOR_ALIASING",
        "DICT_VERSION",
        "GRAD_MODE",
        "EMPTY_NN_MODULE_HOOKS_DICT",
    }
)
# Interpreter internals, and how modules store their attributes: true for every module that was not modified internally.
_INTERNAL_TEXT = re.compile(
    r"^not ___dict_contains|(?:_modules|_parameters|_buffers|__dict__) is of type dict|\.__defaults__"
    r"|__builtins_dict__|__import_|saved_tensors_hooks|_hooks\b|_dynamo_\w*_indices|__torch_dynamo|_dynamo_disable_hook"
)


def assemble_guards(events: Iterable[Event], stacks: StackTable) -> list[Guard]:
    """All guards of all compiled frames."""
    guard_stacks: dict[str | None, dict[str, int]] = {}
    trees: list[Event] = []
    for event in events:
        if event["kind"] == "guard stacks":
            by_name = guard_stacks.setdefault(event["compilation"], {})
            for name, _, index in event["rows"]:
                number = stacks.number(index)
                if number is not None:
                    by_name.setdefault(name, number)
        elif event["kind"] == "guard tree":
            trees.append(event)
    return [
        guard
        for tree in trees
        for guard in parse_tree(tree["text"], tree["compilation"], guard_stacks.get(tree["compilation"], {}), stacks)
    ]


def parse_tree(tree: str, compilation: str | None, source_stacks: dict[str, int], stacks: StackTable) -> Iterable[Guard]:
    """The guards of one printed tree; `source_stacks` has the stack of each guarded source."""
    sources: list[tuple[int, str]] = []
    for line in tree.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        depth, rest = len(match["indent"]), match["rest"]
        while sources and sources[-1][0] >= depth:
            sources.pop()
        manager = _MANAGER.match(rest)
        if manager is not None:
            sources.append((depth, manager["source"]))
            continue
        leaf = _LEAF.match(rest)
        if leaf is None:
            continue
        source = sources[-1][1] if sources else _first_source(leaf["text"])
        text = _COMMENT.sub("", leaf["text"]).strip()
        condition = readable_condition(leaf["kind"], text)
        # A guard that exists for its parent (the dict that contains an attribute) has the parent's location.
        containers = [name for _, name in reversed(sources)] or [source, source.partition(".size()")[0]]
        number = next((source_stacks[name] for name in containers if name in source_stacks), None)
        yield Guard(
            compilation=compilation,
            kind=leaf["kind"],
            source=source,
            variable=readable_name(source),
            condition=condition,
            location=stacks.user_line(number) if number is not None else stacks.find(*_location_in_comment(leaf["text"])),
            stack=number,
            is_internal=leaf["kind"] in _INTERNAL_KINDS or any(map(_INTERNAL_TEXT.search, (source, text, condition))),
        )


def _location_in_comment(text: str) -> tuple[str, int]:
    """The end of a file name and the line number that torch wrote after a guard."""
    match = _LOCATION.search(text)
    return (match["file"], int(match["line"])) if match else ("", 0)


def _first_source(text: str) -> str:
    """The first variable in a condition at the root of the tree, such as a condition on the size of a tensor."""
    match = _SOURCE.search(text)
    return match[0] if match else ""
