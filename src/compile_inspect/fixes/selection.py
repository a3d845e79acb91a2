"""A choice between values written as torch can compute it inside a graph: with `torch.where`, or with `torch.cond`."""

from __future__ import annotations

import ast
from collections.abc import Collection

from compile_inspect.fixes.choices import Branch, Choice, Value, indented
from compile_inspect.fixes.scopes import bound_before, names, plain_names, unused
from compile_inspect.fixes.tensor_expressions import Writer, in_one_line

_VIEWS = (ast.Name, ast.Attribute, ast.Subscript)


def as_where(choice: Choice, truths: Collection[str] = ()) -> list[str] | None:
    """The lines of a choice with `torch.where`; None where there is no certain way to write it."""
    writer, order = Writer(choice.source, truths), choice.names()
    conditions = [writer.truth(test) for test in choice.tests]
    if order is None or None in conditions or (len(conditions) > 1 and len(order) > 1):
        return None
    before, wanted, lines = bound_before(choice.source, choice.first), choice.kept(), []
    if len(order) > 1:
        name = unused(choice.source, choice.first, "condition")
        lines, conditions = [f"{name} = {in_one_line(conditions[0] or '')}"], [name]
    values: list[str] = []
    for name in order:
        texts = [value_text(writer, name, branch.get(name)) for branch in choice.branches]
        missing = any(name not in branch for branch in choice.branches)
        if missing and name not in before:
            if name in wanted or len(conditions) > 1:
                return None
            text = next(value_text(writer, name, branch[name]) for branch in choice.branches if name in branch)
        else:
            text = texts[-1]
            for condition, value in zip(reversed(conditions), reversed(texts[:-1]), strict=True):
                text = f"{writer.torch}.where({condition}, {value}, {text})"
        values.append(text)
        if not choice.returns:
            lines.append(f"{name} = {in_one_line(text) if missing and name not in before else text}")
    return [*lines, f"return {', '.join(values)}"] if choice.returns else lines


def value_text(writer: Writer, name: str, value: Value | None) -> str:
    """What a name is given in a branch; without a value it stays what it is."""
    if value is None:
        return name
    if not value.sign:
        return writer.number(value.node)
    simple = isinstance(value.node, (*_VIEWS, ast.Call, ast.Constant))
    return f"{name} {value.sign} {writer.number(value.node) if simple else f'({writer.number(value.node)})'}"


def as_cond(choice: Choice) -> list[str] | None:
    """The lines of a choice with `torch.cond`, which computes one side only; None where there is no certain way."""
    writer, order = Writer(choice.source), choice.names()
    condition = writer.truth(choice.tests[0])
    if order is None or condition is None or len(choice.tests) > 1:
        return None
    wanted = order if choice.returns else choice.kept()
    before = bound_before(choice.source, choice.first)
    if not wanted or any(name not in branch and name not in before for branch in choice.branches for name in wanted):
        return None
    if any(isinstance(value.node, ast.Constant) and not value.sign for branch in choice.branches for value in branch.values()):
        return None
    operands = _operands(choice, before, wanted)
    given = f"({operands[0]},)" if len(operands) == 1 else f"({', '.join(operands)})"
    results = [_results(writer, branch, wanted, choice.returns) for branch in choice.branches]
    start = "return " if choice.returns else f"{', '.join(wanted)} = "
    if len(order) == 1 or (choice.returns and all(len(lines) == 1 for lines in results)):
        head = f"lambda {', '.join(operands)}: " if operands else "lambda: "
        sides = [f"{head}{result[-1]}" for result in results]
        line = f"{start}{writer.torch}.cond({condition}, {sides[0]}, {sides[1]}, {given})"
        if "\n" not in line and len(line) + len(choice.source.indent(choice.first)) <= 120:
            return [line]
    lines, functions = [], []
    for wish, result in zip(("when_true", "when_false"), results, strict=True):
        functions.append(unused(choice.source, choice.first, wish))
        body = [*result[:-1], f"return {in_one_line(result[-1])}"]
        lines += [f"def {functions[-1]}({', '.join(operands)}):", *indented(body, choice.source.step), ""]
    return [*lines, f"{start}{writer.torch}.cond({in_one_line(condition)}, {', '.join(functions)}, {given})"]


def _operands(choice: Choice, before: set[str], wanted: list[str]) -> list[str]:
    """The local names that the branches read, without those that are called or hold plain numbers."""
    read: list[str] = []
    plain = {"self", "cls", *plain_names(choice.source, choice.first)}
    for branch in choice.branches:
        own: set[str] = set()
        for name, value in branch.items():
            functions = [item.func for item in ast.walk(value.node) if isinstance(item, ast.Call)]
            called = {item.id for item in functions if isinstance(item, ast.Name)}
            read += [item for item in names(value.node) if item not in own and item not in called]
            read += [name] if value.sign and name not in own else []
            own.add(name)
        read += [name for name in wanted if name not in branch and not choice.returns]
    return [name for name in dict.fromkeys(read) if name in before and name not in plain]


def _results(writer: Writer, branch: Branch, wanted: list[str], returns: bool) -> list[str]:
    """The statements of a branch, and last of all what it results in. No result may be an operand itself."""
    if returns or (len(branch) == 1 and list(branch) == wanted):
        texts = [_copied(value_text(writer, name, value), value) for name, value in branch.items()]
        return [texts[0] if len(texts) == 1 else f"({', '.join(texts)})"]
    lines = [f"{name} = {in_one_line(value_text(writer, name, value))}" for name, value in branch.items()]
    ends = [name if name in branch and not is_view(branch[name]) else f"{name}.clone()" for name in wanted]
    return [*lines, ends[0] if len(ends) == 1 else f"({', '.join(ends)})"]


def is_view(value: Value) -> bool:
    """Whether a value may be a tensor that exists already, or part of one."""
    return isinstance(value.node, _VIEWS) and not value.sign


def _copied(text: str, value: Value) -> str:
    return f"{text}.clone()" if is_view(value) else text
