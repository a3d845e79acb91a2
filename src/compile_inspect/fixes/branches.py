"""Branches that depend on the values of a tensor."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import BreakSite, Fixer, last_name
from compile_inspect.fixes.branch_choices import Choice, indented
from compile_inspect.fixes.choice_rewrites import as_cond, as_where
from compile_inspect.fixes.scopes import deciding_statement, function_of, lost_comments, statements
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.tensor_expressions import (
    ExpressionWriter,
    Template,
    conversions,
    is_plainly_python,
    is_truth,
    parenthesize_lines,
)
from compile_inspect.records.fixes import Proposal, Replacement

_BOTH_SIDES_NOTE = "Both sides are always computed; a tensor that was changed in place becomes a new one."
_BOTH_SIDES_CONDITION = (
    "Both sides are cheap, have the same shape and dtype, and are finite whichever is chosen, as are their gradients."
)
_ONE_SIDE_CONDITION = "Only one side may be computed, because it is expensive or undefined where the other one is chosen."
_REPORTING_CALLS = ("print", "warn", "debug", "info", "warning", "error", "critical", "exception", "log")
_COND_NOTE = "Without torch.compile, the choice takes milliseconds: torch.cond is meant for compiled code."
_UNCHECKED_NOTE = "Compiled code no longer checks it; eager code does."
_CHECK_IN_EAGER_TITLE = "Check only in eager mode"


class Branches(Fixer):
    """Python control flow that depends on the values of tensors."""

    name = "branches"

    def matches(self, site: BreakSite) -> bool:
        """Whether Python tests the truth of a tensor on the line."""
        if isinstance(deciding_statement(site), (ast.While, ast.For)):
            return False
        if site.mentions("Data-dependent branching", "Data-dependent assertion", "generic_jump", "GB0170"):
            return True
        decides = (
            isinstance(deciding_statement(site), (ast.If, ast.Assert))
            or bool(_conditional_expressions(site))
            or _branches_on_name(site) != []
        )
        return decides and site.mentions("Tensor.item()", "Data dependent operator", "aten._local_scalar_dense", "aten.equal")

    def why(self, site: BreakSite) -> str:
        """Why the graph breaks."""
        return (
            "Python branches here on the values of a tensor, but tensors have no values while the function is compiled. The "
            "graph ends and runs, Python looks at the result, and each branch continues in a graph of its own."
        )

    def proposals(self, site: BreakSite) -> list[Proposal]:
        """Make the same choice inside the graph; check inside the graph or only in eager mode."""
        source, statement = site.source, deciding_statement(site)
        if source is None or statement is None:
            return []
        if isinstance(statement, (ast.Assert, ast.If)) and is_plainly_python(statement.test):
            return []
        if isinstance(statement, ast.Assert):
            return self._replace_assertion(source, statement)
        if isinstance(statement, ast.If):
            return self._replace_check(source, statement) if _only_reports(statement) else self._choose(source, statement)
        branches = _branches_on_name(site)
        if branches and isinstance(statement, ast.Assign):
            return self._choose_by_name(source, statement, branches)
        return self._choose_expressions(site, source)

    def _choose(self, source: SourceFile, statement: ast.If) -> list[Proposal]:
        choice = Choice.of(source, statement)
        if choice is None:
            return []
        proposals, torch_import = [], ExpressionWriter(source).import_torch()
        lines = as_where(choice)
        if lines is not None:
            replacements = choice.replacements(lines, torch_import)
            proposals.append(
                self.rewrite("Choose with torch.where", *replacements, changes=_BOTH_SIDES_NOTE, where=_BOTH_SIDES_CONDITION)
            )
        lines = as_cond(choice)
        if lines is not None:
            proposals.append(
                self.rewrite(
                    "Choose with torch.cond",
                    *choice.replacements(lines, torch_import),
                    changes=_COND_NOTE,
                    where=_ONE_SIDE_CONDITION,
                )
            )
        return proposals

    def _choose_by_name(self, source: SourceFile, statement: ast.Assign, branches: list[ast.If]) -> list[Proposal]:
        """Replace a named truth value and the branches on it."""
        writer = ExpressionWriter(source)
        truth, name = writer.truth(statement.value), last_name(statement.targets[0])
        choices = [Choice.of(source, branch) for branch in branches]
        replacements = [None if truth is None else source.replace(statement.value, parenthesize_lines(truth))]
        for choice in choices:
            lines = None if choice is None else as_where(choice, (name,))
            if choice is None or lines is None or truth is None:
                return []
            replacements += choice.replacements(lines)
        return [
            self.rewrite(
                "Choose with torch.where",
                *replacements,
                writer.import_torch(),
                changes=_BOTH_SIDES_NOTE,
                where=_BOTH_SIDES_CONDITION,
            )
        ]

    def _choose_expressions(self, site: BreakSite, source: SourceFile) -> list[Proposal]:
        """Replace conditional expressions, and `and`, `or`, `not` between tensors."""
        nodes, writer = _conditional_expressions(site), ExpressionWriter(source)
        for node in nodes:
            truth = writer.truth(node.test if isinstance(node, ast.IfExp) else node)
            if truth is None:
                return []
            template: Template = (truth,)
            if isinstance(node, ast.IfExp):
                template = (f"{writer.torch}.where({truth}, ", node.body, ", ", node.orelse, ")")
            writer.templates[node] = template
        outer = [node for node in nodes if not any(above in writer.templates for above in source.ancestors(node))]
        if not outer:
            return []
        replacements = [source.replace(node, writer.text_of(node)) for node in outer]
        if any(lost_comments(source, node, node, writer.text_of(node)) for node in outer):
            return []
        if any(isinstance(node, ast.IfExp) for node in nodes):
            title, changes, where = "Choose with torch.where", _BOTH_SIDES_NOTE, _BOTH_SIDES_CONDITION
        else:
            title, where = "Combine the conditions as tensors", "The result is used in computations, not to branch."
            changes = "All parts are computed, even where the first one decides; the result is a boolean tensor."
        proposals = [self.rewrite(title, *replacements, writer.import_torch(), changes=changes, where=where)]
        return proposals + self._choose_expression_with_cond(source, outer, writer)

    def _choose_expression_with_cond(
        self, source: SourceFile, nodes: list[ast.expr], writer: ExpressionWriter
    ) -> list[Proposal]:
        node = nodes[0]
        if len(nodes) != 1 or not isinstance(node, ast.IfExp):
            return []
        if any(isinstance(item, ast.Constant) for item in (node.body, node.orelse)):
            return []
        plain, sides = ExpressionWriter(source), []
        for item in (node.body, node.orelse):
            alias = isinstance(item, (ast.Name, ast.Attribute, ast.Subscript))
            sides.append(f"lambda: {plain.number(item)}{'.clone()' if alias else ''}")
        text = f"{plain.torch}.cond({plain.truth(node.test)}, {sides[0]}, {sides[1]})"
        replacements = [source.replace(node, text), writer.import_torch()]
        return [self.rewrite("Choose with torch.cond", *replacements, changes=_COND_NOTE, where=_ONE_SIDE_CONDITION)]

    def _replace_check(self, source: SourceFile, statement: ast.If) -> list[Proposal]:
        """Replace a branch that only prints, logs, warns or raises."""
        writer = ExpressionWriter(source)
        test = source.segment(statement.test)
        simple = isinstance(statement.test, (ast.Compare, ast.Call, ast.Name, ast.Attribute, ast.UnaryOp))
        text = f"not {writer.torch}.compiler.is_compiling() and {test if simple else f'({test})'}"
        proposals = []
        raised, truth = statement.body[0], writer.truth(statement.test)
        if truth is not None and isinstance(raised, ast.Raise) and isinstance(raised.exc, ast.Call):
            message = _message(source, raised.exc.args[0] if raised.exc.args else None)
            line = f"{writer.torch}._assert_async({writer.torch}.logical_not({truth}), {message})"
            choice = Choice(source, statement, statement, [], [statement.test], [])
            proposals.append(self._graph_assertion(choice.replacements([line], writer.import_torch())))
        torch_import = writer.import_torch()
        return [
            *proposals,
            self.rewrite(_CHECK_IN_EAGER_TITLE, source.replace(statement.test, text), torch_import, changes=_UNCHECKED_NOTE),
        ]

    def _replace_assertion(self, source: SourceFile, statement: ast.Assert) -> list[Proposal]:
        writer, proposals = ExpressionWriter(source), []
        truth = writer.truth(statement.test)
        starts_line = source.lines[statement.lineno - 1].strip().startswith("assert")
        if truth is not None:
            line = f"{writer.torch}._assert_async({truth}, {_message(source, statement.msg)})"
            comments = lost_comments(source, statement, statement, line)
            if starts_line or not comments:
                replacement = source.replace_range(statement, statement, [*comments, line])
                proposals.append(self._graph_assertion([replacement, writer.import_torch()]))
        if starts_line:
            head, *rest = source.segment(statement).split("\n")
            texts = [node for node in ast.walk(statement) if isinstance(node, (ast.Constant, ast.JoinedStr))]
            # The lines of a multi-line string must not be indented.
            step = "" if any(node.lineno != node.end_lineno for node in texts) else source.indent_unit
            inner = [f"{source.indent(statement)}{source.indent_unit}{head}", *indented(rest, step)]
            text = "\n".join([f"if not {writer.torch}.compiler.is_compiling():", *inner])
            replacements = [source.replace(statement, text), writer.import_torch()]
            proposals.append(self.rewrite(_CHECK_IN_EAGER_TITLE, *replacements, changes=_UNCHECKED_NOTE))
        return proposals

    def _graph_assertion(self, replacements: list[Replacement | None]) -> Proposal:
        changes = (
            "A RuntimeError is raised instead of the original exception; on a GPU, some time after the operation that failed."
        )
        where = "The check must hold in compiled code as well."
        return self.rewrite("Let the graph check it", *replacements, changes=changes, where=where)

    def hints(self, site: BreakSite) -> tuple[str, ...]:
        """What you can do by hand."""
        return (
            "torch.where(condition, a, b) chooses inside the graph; both sides are computed.",
            "torch.cond(condition, true_function, false_function, operands) computes one side; both must return tensors of the "
            "same shapes and dtypes, and change nothing in place.",
            "If the decision is the same for the whole run, use a Python argument or attribute instead of a tensor.",
            "If Python must decide, decide outside the compiled function and compile one function for each branch.",
        )


def _conditional_expressions(site: BreakSite) -> list[ast.expr]:
    """The conditional expressions on the line that are not about Python objects; otherwise its boolean operations."""
    if site.source is None:
        return []
    heads = [node for statement in statements(site) for node in site.source.head(statement)]
    ternaries: list[ast.expr] = [node for node in heads if isinstance(node, ast.IfExp) and not is_plainly_python(node.test)]
    if ternaries:
        return ternaries
    operations: list[ast.expr] = [node for node in heads if isinstance(node, ast.BoolOp)]
    operations += [node for node in heads if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)]
    inner = {child for node in operations for child in ast.walk(node) if child is not node}
    return [node for node in operations if node not in inner and not is_plainly_python(node)]


def _branches_on_name(site: BreakSite) -> list[ast.If]:
    """The branches on a name that the line assigns a truth value; none if the name is used for anything else."""
    source, statement = site.source, site.statement
    if source is None or not isinstance(statement, ast.Assign) or not conversions(statement.value):
        return []
    function, name = function_of(source, statement), last_name(statement.targets[0])
    if function is None or len(statement.targets) > 1 or not is_truth(statement.value):
        return []
    branches = []
    for item in ast.walk(function):
        if isinstance(item, ast.Name) and item.id == name and item is not statement.targets[0]:
            branch = next((above for above in source.ancestors(item) if isinstance(above, ast.stmt)), None)
            if not isinstance(branch, ast.If) or isinstance(item.ctx, ast.Store):
                return []
            branches.append(branch)
    return list(dict.fromkeys(branches))


def _only_reports(statement: ast.If) -> bool:
    """Whether an `if` without `else` only prints, logs, warns or raises."""
    return not statement.orelse and all(
        isinstance(item, ast.Raise)
        or (isinstance(item, ast.Expr) and isinstance(item.value, ast.Call) and last_name(item.value.func) in _REPORTING_CALLS)
        for item in statement.body
    )


def _message(source: SourceFile, node: ast.expr | None) -> str:
    """A message for a check; torch accepts a string that is known during compilation."""
    is_constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
    if isinstance(node, ast.JoinedStr):
        parts = [item.value for item in node.values if isinstance(item, ast.FormattedValue)]
        is_constant = all(is_plainly_python(item) for item in parts) and not conversions(node)
    text = source.segment(node) if is_constant else '"a condition of the program is not satisfied"'
    return f"({text})" if "\n" in text else text
