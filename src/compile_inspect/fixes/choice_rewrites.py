"""Rewrite a choice between values with `torch.where` or `torch.cond`, which torch computes inside a graph."""

from __future__ import annotations

import ast
from collections.abc import Collection

from compile_inspect.fixes.branch_choices import Branch, Choice, Value, indented
from compile_inspect.fixes.scopes import names, names_bound_before, python_value_names, unused_name
from compile_inspect.fixes.tensor_expressions import ExpressionWriter, parenthesize_lines

_VIEWS = (ast.Name, ast.Attribute, ast.Subscript)


def as_where(choice: Choice, truths: Collection[str] = ()) -> list[str] | None:
    """The lines of a choice with `torch.where`; None if there is no safe rewrite."""
    writer, order = ExpressionWriter(choice.source, truths), choice.names()
    conditions = [writer.truth(test) for test in choice.tests]
    if order is None or None in conditions or (len(conditions) > 1 and len(order) > 1):
        return None
    before, result_names, lines = names_bound_before(choice.source, choice.first), choice.live_names(), []
    if len(order) > 1:
        name = unused_name(choice.source, choice.first, "condition")
        lines, conditions = [f"{name} = {parenthesize_lines(conditions[0] or '')}"], [name]
    values: list[str] = []
    for name in order:
        texts = [value_text(writer, name, branch.get(name)) for branch in choice.branches]
        missing = any(name not in branch for branch in choice.branches)
        if missing and name not in before:
            if name in result_names or len(conditions) > 1:
                return None
            text = next(value_text(writer, name, branch[name]) for branch in choice.branches if name in branch)
        else:
            text = texts[-1]
            for condition, value in zip(reversed(conditions), reversed(texts[:-1]), strict=True):
                text = f"{writer.torch}.where({condition}, {value}, {text})"
        values.append(text)
        if not choice.returns:
            lines.append(f"{name} = {parenthesize_lines(text) if missing and name not in before else text}")
    return [*lines, f"return {', '.join(values)}"] if choice.returns else lines


def value_text(writer: ExpressionWriter, name: str, value: Value | None) -> str:
    """The text of the value that a branch assigns to a name; without a value, the name itself."""
    if value is None:
        return name
    if not value.sign:
        return writer.number(value.node)
    simple = isinstance(value.node, (*_VIEWS, ast.Call, ast.Constant))
    return f"{name} {value.sign} {writer.number(value.node) if simple else f'({writer.number(value.node)})'}"


def as_cond(choice: Choice) -> list[str] | None:
    """The lines of a choice with `torch.cond`, which computes only one side; None if there is no safe rewrite."""
    writer, order = ExpressionWriter(choice.source), choice.names()
    condition = writer.truth(choice.tests[0])
    if order is None or condition is None or len(choice.tests) > 1:
        return None
    result_names = order if choice.returns else choice.live_names()
    before = names_bound_before(choice.source, choice.first)
    if not result_names or any(
        name not in branch and name not in before for branch in choice.branches for name in result_names
    ):
        return None
    if any(isinstance(value.node, ast.Constant) and not value.sign for branch in choice.branches for value in branch.values()):
        return None
    operands = _operands(choice, before, result_names)
    operand_tuple = f"({operands[0]},)" if len(operands) == 1 else f"({', '.join(operands)})"
    results = [_results(writer, branch, result_names, choice.returns) for branch in choice.branches]
    start = "return " if choice.returns else f"{', '.join(result_names)} = "
    if len(order) == 1 or (choice.returns and all(len(lines) == 1 for lines in results)):
        head = f"lambda {', '.join(operands)}: " if operands else "lambda: "
        sides = [f"{head}{result[-1]}" for result in results]
        line = f"{start}{writer.torch}.cond({condition}, {sides[0]}, {sides[1]}, {operand_tuple})"
        if "\n" not in line and len(line) + len(choice.source.indent(choice.first)) <= 120:
            return [line]
    lines, functions = [], []
    for name, result in zip(("when_true", "when_false"), results, strict=True):
        functions.append(unused_name(choice.source, choice.first, name))
        body = [*result[:-1], f"return {parenthesize_lines(result[-1])}"]
        lines += [f"def {functions[-1]}({', '.join(operands)}):", *indented(body, choice.source.indent_unit), ""]
    return [*lines, f"{start}{writer.torch}.cond({parenthesize_lines(condition)}, {', '.join(functions)}, {operand_tuple})"]


def _operands(choice: Choice, before: set[str], result_names: list[str]) -> list[str]:
    """The local names that the branches read, except those that are called or are Python numbers."""
    read: list[str] = []
    plain = {"self", "cls", *python_value_names(choice.source, choice.first)}
    for branch in choice.branches:
        own: set[str] = set()
        for name, value in branch.items():
            functions = [item.func for item in ast.walk(value.node) if isinstance(item, ast.Call)]
            called = {item.id for item in functions if isinstance(item, ast.Name)}
            read += [item for item in names(value.node) if item not in own and item not in called]
            read += [name] if value.sign and name not in own else []
            own.add(name)
        read += [name for name in result_names if name not in branch and not choice.returns]
    return [name for name in dict.fromkeys(read) if name in before and name not in plain]


def _results(writer: ExpressionWriter, branch: Branch, result_names: list[str], returns: bool) -> list[str]:
    """The statements of a branch, followed by its result. No result may be an operand itself."""
    if returns or (len(branch) == 1 and list(branch) == result_names):
        texts = [_clone_if_view(value_text(writer, name, value), value) for name, value in branch.items()]
        return [texts[0] if len(texts) == 1 else f"({', '.join(texts)})"]
    lines = [f"{name} = {parenthesize_lines(value_text(writer, name, value))}" for name, value in branch.items()]
    ends = [name if name in branch and not is_view(branch[name]) else f"{name}.clone()" for name in result_names]
    return [*lines, ends[0] if len(ends) == 1 else f"({', '.join(ends)})"]


def is_view(value: Value) -> bool:
    """Whether a value may be an existing tensor or part of one."""
    return isinstance(value.node, _VIEWS) and not value.sign


def _clone_if_view(text: str, value: Value) -> str:
    return f"{text}.clone()" if is_view(value) else text
