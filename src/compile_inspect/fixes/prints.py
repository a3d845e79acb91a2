"""Printing, logging and warning inside compiled code."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import Fixer, Place, dotted, last_name
from compile_inspect.fixes.side_work import guarded
from compile_inspect.records.fixes import Proposal

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
        found = []
        source, statement = place.source, place.statement
        call = _telling(place)
        if source is not None and isinstance(statement, ast.Expr) and call is statement.value:
            # None where the statement shares its line with another, or holds text that indenting would change.
            changes = guarded(source, [statement])
            if changes is not None:
                found.append(
                    self.rewrite(
                        "Tell it only where nothing is being compiled",
                        *changes,
                        source.insert_import("import torch") if source.names("torch") is None else None,
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
        return found


def _telling(place: Place) -> ast.Call | None:
    """The call in the statement that tells something."""
    for call in place.calls():
        name, whole = last_name(call.func), dotted(call.func)
        if name == "print" or whole in ("warnings.warn", "sys.stdout.write", "sys.stderr.write"):
            return call
        if name in _LOGGER_METHODS and whole.rpartition(".")[0].lower().rpartition(".")[2] in (
            "logging",
            "log",
            "logger",
            "_logger",
            "_log",
        ):
            return call
    return None
