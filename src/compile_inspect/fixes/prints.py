"""Printing, logging and warning inside compiled code."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from compile_inspect.fixes.base import Fixer, Place, dotted, last_name
from compile_inspect.fixes.side_work import guarded
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.writing import module_name
from compile_inspect.records.fixes import Proposal, Replacement

_GUARD = "torch.compiler.is_compiling()"
_METHOD = re.compile(r"^method: <.*?>\.(?P<name>\w+),")
_LOOKING = frozenset(
    {
        "len", "str", "repr", "type", "float", "int", "bool", "list", "tuple", "dict", "round", "format", "join", "sum", "min",
        "max", "abs", "sorted", "id", "item", "tolist", "size", "dim", "numel", "mean", "std", "var", "norm", "any", "all",
        "detach", "cpu", "numpy", "clone", "isnan", "isfinite", "isinf", "shape", "keys", "values", "items", "get",
        "argmax", "argmin", "view", "reshape", "flatten", "squeeze", "unsqueeze", "to", "stride", "zip", "range",
    }
)  # fmt: skip
_LOGGER_METHODS = ("debug", "info", "warning", "error", "critical", "exception", "log")


class Prints(Fixer):
    """Calls that only tell something."""

    name = "prints"

    def concerns(self, place: Place) -> bool:
        """Whether the statement prints, logs or warns."""
        if place.in_library:
            # What torch says of any C function mentions warnings.warn as an example: only its context names the function.
            return place.says("logging.Logger method") or "module: _warnings, qualname: warn," in place.cause.context
        return _telling(place) is not None or place.says("logging.Logger method not supported")

    def why(self, place: Place) -> str:
        """The reason."""
        return (
            "Something is told while the function runs, and a compiled graph holds operations on tensors only: the graph ends "
            "before the call, Python makes it, and another graph begins after it."
        )

    def proposals(self, place: Place) -> list[Proposal]:
        """Tell it only where nothing is compiled; or let torch tell it after the graph."""
        found: list[Proposal] = []
        source = place.source
        statement, call = _telling(place) or (None, None)
        if source is not None and isinstance(statement, ast.Expr) and call is statement.value and _only_looks(call):
            changes = _guarded(source, statement)
            torch, imported = module_name(source, "torch")
            if changes is not None:
                changes = [
                    replace(item, new=item.new.replace(_GUARD, f"{torch}.{_GUARD.partition('.')[2]}")) for item in changes
                ]
                found.append(
                    self.rewrite(
                        "Tell it only where nothing is being compiled",
                        *changes,
                        imported,
                        changes="Compiled code does not say it any more; eager code does.",
                    )
                )
        name = "" if call is None else dotted(call.func)
        if name in ("print", "warnings.warn"):
            found.append(
                self.setting(
                    f"Let torch call {name} after the graph",
                    f"torch._dynamo.config.reorderable_logging_functions.add({name})",
                    changes="It is said after the operations of the graph instead of among them.",
                    where="What is told are constants and tensors that are not changed afterwards.",
                )
            )
        method = _METHOD.search(place.cause.context) if place.says("logging.Logger method") else None
        if method is not None:
            found.append(
                self.setting(
                    f"Let torch leave out calls of Logger.{method['name']}",
                    f"torch._dynamo.config.ignore_logger_methods.add(logging.Logger.{method['name']})",
                    changes="Compiled code does not log it any more, wherever it is called.",
                )
            )
        return found


def _guarded(source: SourceFile, statement: ast.stmt) -> list[Replacement] | None:
    """The statement under a condition, as a block of its own or, where it shares its line, within an expression."""
    if source.shares_its_line(statement):
        return [source.replace(statement, f"{_GUARD} or {source.segment(statement)}")]
    return guarded(source, [statement])


def _only_looks(call: ast.Call) -> bool:
    """Whether what is told is only looked at: a call among the arguments may do something that has to be done."""
    parts = [node for argument in (*call.args, *(item.value for item in call.keywords)) for node in ast.walk(argument)]
    if any(isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for node in parts):
        return False
    return all(
        last_name(node.func) in _LOOKING or dotted(node.func).startswith("torch.")
        for node in parts
        if isinstance(node, ast.Call)
    )


def _telling(place: Place) -> tuple[ast.stmt, ast.Call] | None:
    """The statement and the call in it that tells something."""
    if place.source is None:
        return None
    for statement in place.statements:
        for call in place.source.head(statement):
            if isinstance(call, ast.Call) and _tells(call):
                return statement, call
    return None


def _tells(call: ast.Call) -> bool:
    name, whole = last_name(call.func), dotted(call.func)
    if name == "print" or whole in ("warnings.warn", "sys.stdout.write", "sys.stderr.write"):
        return True
    holder = whole.rpartition(".")[0].lower().rpartition(".")[2]
    return name in _LOGGER_METHODS and holder in ("logging", "log", "logger", "_logger", "_log")
