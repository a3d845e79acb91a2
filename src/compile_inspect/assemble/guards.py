"""Guards from the tree torch prints and the stacks behind them."""

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
_PLACE = re.compile(r"# (?P<file>[^\s#]+\.py):(?P<line>\d+) in ")
_COMMENT = re.compile(r"\s+# .*$")

# Interpreter and torch state that is compared on every call and that nobody sets by accident.
_NOISE_KINDS = frozenset(
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
# Interpreter internals, and how modules store their parts: true for every module that was not tampered with.
_NOISE_TEXT = re.compile(
    r"^not ___dict_contains|(?:_modules|_parameters|_buffers|__dict__) is of type dict|\.__defaults__"
    r"|__builtins_dict__|__import_|saved_tensors_hooks|_hooks\b|_dynamo_\w*_indices|__torch_dynamo|_dynamo_disable_hook"
)


def assemble_guards(events: Iterable[Event], stacks: StackTable) -> list[Guard]:
    """Every guard of every compiled frame."""
    behind: dict[str | None, dict[str, int]] = {}
    trees: list[Event] = []
    for event in events:
        if event["kind"] == "guard stacks":
            by_name = behind.setdefault(event["compilation"], {})
            for name, _, index in event["rows"]:
                number = stacks.number(index)
                if number is not None:
                    by_name.setdefault(name, number)
        elif event["kind"] == "guard tree":
            trees.append(event)
    return [
        guard
        for tree in trees
        for guard in parse_tree(tree["text"], tree["compilation"], behind.get(tree["compilation"], {}), stacks)
    ]


def parse_tree(tree: str, compilation: str | None, behind: dict[str, int], stacks: StackTable) -> Iterable[Guard]:
    """The guards of one printed tree; `behind` gives the stack of each guarded source."""
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
        # A guard made for its parent's sake (the dict that holds an attribute) has the parent's place.
        holders = [name for _, name in reversed(sources)] or [source, source.partition(".size()")[0]]
        number = next((behind[name] for name in holders if name in behind), None)
        yield Guard(
            compilation=compilation,
            kind=leaf["kind"],
            source=source,
            variable=readable_name(source),
            condition=condition,
            location=stacks.user_line(number) if number is not None else stacks.find(*_commented_place(leaf["text"])),
            stack=number,
            is_internal=leaf["kind"] in _NOISE_KINDS or any(map(_NOISE_TEXT.search, (source, text, condition))),
        )


def _commented_place(text: str) -> tuple[str, int]:
    """The end of a file's name and the line in it that torch wrote behind a guard."""
    match = _PLACE.search(text)
    return (match["file"], int(match["line"])) if match else ("", 0)


def _first_source(text: str) -> str:
    """The first variable in a condition that stands at the root, such as one on the size of a tensor."""
    match = _SOURCE.search(text)
    return match[0] if match else ""
