"""Printing, logging and warnings inside compiled code."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from compile_inspect.fixes.base import BreakSite, Fixer, dotted, last_name
from compile_inspect.fixes.edits import module_name
from compile_inspect.fixes.side_effects import guard_statements
from compile_inspect.fixes.source import SourceFile
from compile_inspect.records.fixes import Proposal, Replacement

_IS_COMPILING = "torch.compiler.is_compiling()"
_LOGGER_METHOD = re.compile(r"^method: <.*?>\.(?P<name>\w+),")
_READ_ONLY_CALLS = frozenset(
    {
        "len", "str", "repr", "type", "float", "int", "bool", "list", "tuple", "dict", "round", "format", "join", "sum", "min",
        "max", "abs", "sorted", "id", "item", "tolist", "size", "dim", "numel", "mean", "std", "var", "norm", "any", "all",
        "detach", "cpu", "numpy", "clone", "isnan", "isfinite", "isinf", "shape", "keys", "values", "items", "get",
        "argmax", "argmin", "view", "reshape", "flatten", "squeeze", "unsqueeze", "to", "stride", "zip", "range",
    }
)  # fmt: skip
_LOGGER_METHODS = ("debug", "info", "warning", "error", "critical", "exception", "log")


class Prints(Fixer):
    """Calls that only print, log or warn."""

    name = "prints"

    def matches(self, site: BreakSite) -> bool:
        """Whether the statement prints, logs or warns."""
        if site.in_library:
            # torch's message for any C function mentions warnings.warn as an example: only its context names the function.
            return site.mentions("logging.Logger method") or "module: _warnings, qualname: warn," in site.cause.context
        return _output_call(site) is not None or site.mentions("logging.Logger method not supported")

    def why(self, site: BreakSite) -> str:
        """Why the graph breaks."""
        return (
            "The line prints, logs or warns, and a compiled graph contains only tensor operations: the graph ends before the "
            "call, Python makes the call, and another graph begins after it."
        )

    def proposals(self, site: BreakSite) -> list[Proposal]:
        """Print or log only in eager mode, or let torch do it after the graph."""
        proposals: list[Proposal] = []
        source = site.source
        statement, call = _output_call(site) or (None, None)
        if source is not None and isinstance(statement, ast.Expr) and call is statement.value and _reads_only(call):
            changes = _guard_call(source, statement)
            torch, imported = module_name(source, "torch")
            if changes is not None:
                changes = [
                    replace(item, new=item.new.replace(_IS_COMPILING, f"{torch}.{_IS_COMPILING.partition('.')[2]}"))
                    for item in changes
                ]
                proposals.append(
                    self.rewrite(
                        "Print or log only in eager mode",
                        *changes,
                        imported,
                        changes="Compiled code no longer prints or logs it; eager code does.",
                    )
                )
        name = "" if call is None else dotted(call.func)
        if name in ("print", "warnings.warn"):
            proposals.append(
                self.setting(
                    f"Let torch call {name} after the graph",
                    f"torch._dynamo.config.reorderable_logging_functions.add({name})",
                    changes="The call runs after the operations of the graph instead of among them.",
                    where="The arguments are constants and tensors that are not changed afterward.",
                )
            )
        method = _LOGGER_METHOD.search(site.cause.context) if site.mentions("logging.Logger method") else None
        if method is not None:
            proposals.append(
                self.setting(
                    f"Let torch ignore calls to Logger.{method['name']}",
                    f"torch._dynamo.config.ignore_logger_methods.add(logging.Logger.{method['name']})",
                    changes="Compiled code no longer logs it, wherever it is called.",
                )
            )
        return proposals


def _guard_call(source: SourceFile, statement: ast.stmt) -> list[Replacement] | None:
    """Put the statement under a condition: an `if` block or, if it shares its line, a boolean expression."""
    if source.shares_its_line(statement):
        return [source.replace(statement, f"{_IS_COMPILING} or {source.segment(statement)}")]
    return guard_statements(source, [statement])


def _reads_only(call: ast.Call) -> bool:
    """Whether the arguments only read values: a call among them may have an effect that must not be skipped."""
    parts = [node for argument in (*call.args, *(item.value for item in call.keywords)) for node in ast.walk(argument)]
    if any(isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for node in parts):
        return False
    return all(
        last_name(node.func) in _READ_ONLY_CALLS or dotted(node.func).startswith("torch.")
        for node in parts
        if isinstance(node, ast.Call)
    )


def _output_call(site: BreakSite) -> tuple[ast.stmt, ast.Call] | None:
    """The statement, and the call in it that prints, logs or warns."""
    if site.source is None:
        return None
    for statement in site.statements:
        for call in site.source.head(statement):
            if isinstance(call, ast.Call) and _is_output_call(call):
                return statement, call
    return None


def _is_output_call(call: ast.Call) -> bool:
    name, full_name = last_name(call.func), dotted(call.func)
    if name == "print" or full_name in ("warnings.warn", "sys.stdout.write", "sys.stderr.write"):
        return True
    holder = full_name.rpartition(".")[0].lower().rpartition(".")[2]
    return name in _LOGGER_METHODS and holder in ("logging", "log", "logger", "_logger", "_log")
