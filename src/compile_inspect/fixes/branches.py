"""Branches that depend on what is in a tensor."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import Fixer, Place, last_name
from compile_inspect.fixes.choices import Choice, indented
from compile_inspect.fixes.scopes import decision, function_of, lost_comments, statements
from compile_inspect.fixes.selection import as_cond, as_where
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.tensor_expressions import Template, Writer, conversions, in_one_line, is_plainly_python, is_truth
from compile_inspect.records.fixes import Proposal, Replacement

_BOTH = "Both sides are computed, whichever is chosen; a tensor that was changed in place becomes a new one."
_CHEAP = "Both sides are cheap, alike in shape and type, and finite whichever is chosen, and so are their gradients."
_ONE = "Only one side may be computed: it is expensive, or not defined where the other one is chosen."
_TELLING = ("print", "warn", "debug", "info", "warning", "error", "critical", "exception", "log")
_SLOW_IN_EAGER = "Without torch.compile the choice takes milliseconds: torch.cond is made for compiled code."
_UNCHECKED = "Compiled code does not check it any more; eager code does."
_CHECK_ELSEWHERE = "Check only where nothing is being compiled"


class Branches(Fixer):
    """Decisions that Python makes and that depend on tensors."""

    name = "branches"

    def concerns(self, place: Place) -> bool:
        """Whether Python asks there whether a tensor is true."""
        if isinstance(decision(place), (ast.While, ast.For)):
            return False
        if place.says("Data-dependent branching", "Data-dependent assertion", "generic_jump", "GB0170"):
            return True
        asks = isinstance(decision(place), (ast.If, ast.Assert)) or bool(_conditional(place)) or _announced(place) != []
        return asks and place.says("Tensor.item()", "Data dependent operator", "aten._local_scalar_dense", "aten.equal")

    def why(self, place: Place) -> str:
        """The reason."""
        return (
            "Python has to decide here by what is in a tensor, but while the function is compiled no tensor has a value yet: "
            "the graph ends, runs, Python looks at the result, and each way to go on is a graph of its own."
        )

    def proposals(self, place: Place) -> list[Proposal]:
        """The same choice made inside the graph; for checks, none while compiling."""
        source, statement = place.source, decision(place)
        if source is None or statement is None:
            return []
        if isinstance(statement, (ast.Assert, ast.If)) and is_plainly_python(statement.test):
            return []
        if isinstance(statement, ast.Assert):
            return self._assertion(source, statement)
        if isinstance(statement, ast.If):
            return self._check(source, statement) if _only_tells(statement) else self._chosen(source, statement)
        branches = _announced(place)
        if branches and isinstance(statement, ast.Assign):
            return self._chosen_later(source, statement, branches)
        return self._expressions(place, source)

    def _chosen(self, source: SourceFile, statement: ast.If) -> list[Proposal]:
        choice = Choice.of(source, statement)
        if choice is None:
            return []
        found, imported = [], Writer(source).import_torch()
        lines = as_where(choice)
        if lines is not None:
            replacements = choice.replaced(lines, imported)
            found.append(self.rewrite("Choose with torch.where", *replacements, changes=_BOTH, where=_CHEAP))
        lines = as_cond(choice)
        if lines is not None:
            found.append(
                self.rewrite("Choose with torch.cond", *choice.replaced(lines, imported), changes=_SLOW_IN_EAGER, where=_ONE)
            )
        return found

    def _chosen_later(self, source: SourceFile, statement: ast.Assign, branches: list[ast.If]) -> list[Proposal]:
        """A truth that has a name, and the branches on it."""
        writer = Writer(source)
        truth, name = writer.truth(statement.value), last_name(statement.targets[0])
        choices = [Choice.of(source, branch) for branch in branches]
        replacements = [None if truth is None else source.replace(statement.value, in_one_line(truth))]
        for choice in choices:
            lines = None if choice is None else as_where(choice, (name,))
            if choice is None or lines is None or truth is None:
                return []
            replacements += choice.replaced(lines)
        return [self.rewrite("Choose with torch.where", *replacements, writer.import_torch(), changes=_BOTH, where=_CHEAP)]

    def _expressions(self, place: Place, source: SourceFile) -> list[Proposal]:
        """Conditional expressions, and `and`, `or`, `not` between tensors."""
        nodes, writer = _conditional(place), Writer(source)
        for node in nodes:
            truth = writer.truth(node.test if isinstance(node, ast.IfExp) else node)
            if truth is None:
                return []
            template: Template = (truth,)
            if isinstance(node, ast.IfExp):
                template = (f"{writer.torch}.where({truth}, ", node.body, ", ", node.orelse, ")")
            writer.templates[node] = template
        outer = [node for node in nodes if not any(above in writer.templates for above in source.above(node))]
        if not outer:
            return []
        replacements = [source.replace(node, writer.written(node)) for node in outer]
        if any(lost_comments(source, node, node, writer.written(node)) for node in outer):
            return []
        if any(isinstance(node, ast.IfExp) for node in nodes):
            title, changes, where = "Choose with torch.where", _BOTH, _CHEAP
        else:
            title, where = "Combine the conditions as tensors", "The result is computed with, not branched on."
            changes = "All parts are computed, even where the first one decides; the result is a tensor of truth values."
        found = [self.rewrite(title, *replacements, writer.import_torch(), changes=changes, where=where)]
        return found + self._conditional_cond(source, outer, writer)

    def _conditional_cond(self, source: SourceFile, nodes: list[ast.expr], writer: Writer) -> list[Proposal]:
        node = nodes[0]
        if len(nodes) != 1 or not isinstance(node, ast.IfExp):
            return []
        if any(isinstance(item, ast.Constant) for item in (node.body, node.orelse)):
            return []
        plain, sides = Writer(source), []
        for item in (node.body, node.orelse):
            alias = isinstance(item, (ast.Name, ast.Attribute, ast.Subscript))
            sides.append(f"lambda: {plain.number(item)}{'.clone()' if alias else ''}")
        text = f"{plain.torch}.cond({plain.truth(node.test)}, {sides[0]}, {sides[1]})"
        replacements = [source.replace(node, text), writer.import_torch()]
        return [self.rewrite("Choose with torch.cond", *replacements, changes=_SLOW_IN_EAGER, where=_ONE)]

    def _check(self, source: SourceFile, statement: ast.If) -> list[Proposal]:
        """A branch that only tells or raises something."""
        writer = Writer(source)
        test = source.segment(statement.test)
        simple = isinstance(statement.test, (ast.Compare, ast.Call, ast.Name, ast.Attribute, ast.UnaryOp))
        text = f"not {writer.torch}.compiler.is_compiling() and {test if simple else f'({test})'}"
        found = []
        raised, truth = statement.body[0], writer.truth(statement.test)
        if truth is not None and isinstance(raised, ast.Raise) and isinstance(raised.exc, ast.Call):
            message = _message(source, raised.exc.args[0] if raised.exc.args else None)
            line = f"{writer.torch}._assert_async({writer.torch}.logical_not({truth}), {message})"
            choice = Choice(source, statement, statement, [], [statement.test], [])
            found.append(self._asserted(choice.replaced([line], writer.import_torch())))
        imported = writer.import_torch()
        return [*found, self.rewrite(_CHECK_ELSEWHERE, source.replace(statement.test, text), imported, changes=_UNCHECKED)]

    def _assertion(self, source: SourceFile, statement: ast.Assert) -> list[Proposal]:
        writer, found = Writer(source), []
        truth = writer.truth(statement.test)
        alone = source.lines[statement.lineno - 1].strip().startswith("assert")
        if truth is not None:
            line = f"{writer.torch}._assert_async({truth}, {_message(source, statement.msg)})"
            comments = lost_comments(source, statement, statement, line)
            if alone or not comments:
                replacement = source.replace_range(statement, statement, [*comments, line])
                found.append(self._asserted([replacement, writer.import_torch()]))
        if alone:
            head, *rest = source.segment(statement).split("\n")
            texts = [node for node in ast.walk(statement) if isinstance(node, (ast.Constant, ast.JoinedStr))]
            # What stands in a text of several lines must not be indented.
            step = "" if any(node.lineno != node.end_lineno for node in texts) else source.step
            inner = [f"{source.indent(statement)}{source.step}{head}", *indented(rest, step)]
            text = "\n".join([f"if not {writer.torch}.compiler.is_compiling():", *inner])
            replacements = [source.replace(statement, text), writer.import_torch()]
            found.append(self.rewrite(_CHECK_ELSEWHERE, *replacements, changes=_UNCHECKED))
        return found

    def _asserted(self, replacements: list[Replacement | None]) -> Proposal:
        changes = "A RuntimeError is raised where it was another one; on a GPU, some time after the operation that was wrong."
        where = "The check must hold in compiled code as well."
        return self.rewrite("Let the graph check it", *replacements, changes=changes, where=where)

    def hints(self, place: Place) -> tuple[str, ...]:
        """What to do by hand."""
        return (
            "torch.where(condition, a, b) chooses inside the graph; both sides are computed.",
            "torch.cond(condition, true_function, false_function, operands) computes one side; both must result in tensors "
            "of the same shapes and types, and change nothing in place.",
            "A decision that is the same for the whole run belongs in a Python argument or attribute, not in a tensor.",
            "Where the decision has to be Python's, make it outside the compiled function and compile both ways.",
        )


def _conditional(place: Place) -> list[ast.expr]:
    """The conditional expressions on the line that are not about Python objects; else what joins truths there."""
    if place.source is None:
        return []
    heads = [node for statement in statements(place) for node in place.source.head(statement)]
    chosen: list[ast.expr] = [node for node in heads if isinstance(node, ast.IfExp) and not is_plainly_python(node.test)]
    if chosen:
        return chosen
    joined: list[ast.expr] = [node for node in heads if isinstance(node, ast.BoolOp)]
    joined += [node for node in heads if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)]
    inner = {child for node in joined for child in ast.walk(node) if child is not node}
    return [node for node in joined if node not in inner and not is_plainly_python(node)]


def _announced(place: Place) -> list[ast.If]:
    """The branches on a name that the line gives a truth value to; none where the name is read for anything else."""
    source, statement = place.source, place.statement
    if source is None or not isinstance(statement, ast.Assign) or not conversions(statement.value):
        return []
    function, name = function_of(source, statement), last_name(statement.targets[0])
    if function is None or len(statement.targets) > 1 or not is_truth(statement.value):
        return []
    found = []
    for item in ast.walk(function):
        if isinstance(item, ast.Name) and item.id == name and item is not statement.targets[0]:
            branch = next((above for above in source.above(item) if isinstance(above, ast.stmt)), None)
            if not isinstance(branch, ast.If) or isinstance(item.ctx, ast.Store):
                return []
            found.append(branch)
    return list(dict.fromkeys(found))


def _only_tells(statement: ast.If) -> bool:
    """Whether an `if` without `else` only prints, logs, warns or raises."""
    return not statement.orelse and all(
        isinstance(item, ast.Raise)
        or (isinstance(item, ast.Expr) and isinstance(item.value, ast.Call) and last_name(item.value.func) in _TELLING)
        for item in statement.body
    )


def _message(source: SourceFile, node: ast.expr | None) -> str:
    """A message for a check; torch takes a text that is known while compiling."""
    known = isinstance(node, ast.Constant) and isinstance(node.value, str)
    if isinstance(node, ast.JoinedStr):
        parts = [item.value for item in node.values if isinstance(item, ast.FormattedValue)]
        known = all(is_plainly_python(item) for item in parts) and not conversions(node)
    text = source.segment(node) if known else '"a condition of the program does not hold"'
    return f"({text})" if "\n" in text else text
