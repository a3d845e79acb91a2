"""Calls to code that torch cannot trace, and explicit graph breaks."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import BreakSite, Fixer, last_name
from compile_inspect.fixes.edits import (
    comments_on_lines,
    delete,
    free_name,
    full_name,
    functions_named,
    guard,
    module_name,
    top_level_statement,
)
from compile_inspect.fixes.operators import expression_as_operator, function_as_operator
from compile_inspect.fixes.source import SourceFile
from compile_inspect.records.fixes import Proposal, Replacement

_DISABLED = ("Skip calling `torch.compiler.disable()`d function", "Skip inlining `torch.compiler.disable()`d function")
_REQUESTED = "Call to `torch._dynamo.graph_break()`"
_BUILTIN = "Failed to trace builtin operator"
_KINDS = (
    *_DISABLED,
    _REQUESTED,
    "Attempted to call function marked as skipped",
    "Attempted to inline function marked as skipped",
    "Unsupported function call",
    "Unsupported method call",
    "can't handle functions not implemented in python",
    "Unsupported python_type() call",
    "Unsupported ndarray",
    "attempted to trace numpy function unsupported",
    "Failed to convert args/kwargs to proxy",
    _BUILTIN,
)
_DISABLE_DECORATORS = ("torch.compiler.disable", "torch._dynamo.disable")
_CLOCKS = {
    f"time.{name}{suffix}": value
    for name in ("time", "perf_counter", "monotonic", "process_time", "thread_time")
    for suffix, value in (("", "0.0"), ("_ns", "0"))
}
_SIDE_CALLS = {
    *("gc.collect", "gc.disable", "gc.enable", "gc.freeze", "time.sleep", "sys.stdout.flush", "sys.stderr.flush"),
    *("torch.save", "numpy.save", "numpy.savez", "numpy.savetxt", "pickle.dump", "json.dump", "torchvision.utils.save_image"),
    *("tracemalloc.start", "tracemalloc.stop", "wandb.log", "mlflow.log_metric", "mlflow.log_metrics", "faulthandler.enable"),
}
_SIDE_CALL_METHODS = {"add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure", "add_text"}
_PURE_CALLS = {
    *("zlib.crc32", "zlib.adler32", "binascii.crc32", "bisect.bisect", "bisect.bisect_left", "bisect.bisect_right"),
    *("json.dumps", "json.loads", "base64.b64encode", "base64.b64decode", "platform.system", "platform.machine"),
    *("os.path.exists", "os.path.isfile", "os.path.isdir", "os.cpu_count", "shutil.which", "socket.gethostname"),
    *("torch.get_num_threads", "math.comb", "math.perm"),
}


class ForeignCalls(Fixer):
    """Calls to C extensions and to libraries that torch does not trace."""

    name = "foreign"

    def matches(self, site: BreakSite) -> bool:
        """Whether torch reached a function that it cannot or must not trace."""
        return site.cause.kind.startswith(_KINDS)

    def why(self, site: BreakSite) -> str:
        """Why the graph breaks."""
        if site.cause.kind == _REQUESTED and self._requested_break(site) is not None:
            return "The code requests a graph break here: the graph ends, and another one begins."
        if site.cause.kind in _DISABLED:
            return (
                "The called function is marked as one that must not be compiled: the graph ends before the call, Python makes "
                "the call, and another graph begins after it."
            )
        return (
            "The line calls code that is not Python, or that belongs to a library torch does not trace. A graph can only "
            "contain operations that torch knows: it ends before the call, Python makes the call, and another graph begins "
            "after it."
        )

    def hints(self, site: BreakSite) -> tuple[str, ...]:
        """What you can do by hand."""
        if site.cause.kind in _DISABLED or site.cause.kind == _REQUESTED:
            return (
                "Remove the marker and check whether the reason for it still exists; the graph breaks as long as the marker "
                "is there.",
            )
        return (
            "Call it before or after the compiled function, and pass its result as an argument.",
            "Register it as an operator with torch.library.custom_op, register_fake and, if a gradient flows through it, "
            "register_autograd.",
            "If the break has to stay, mark the function with @torch.compiler.disable to make the break explicit.",
        )

    def proposals(self, site: BreakSite) -> list[Proposal]:
        """Remove the marker, move or skip the call, or register an operator."""
        source, statement = site.source, site.statement
        if source is None or statement is None:
            return []
        proposals: list[Proposal] = []
        request = self._requested_break(site)
        if request is not None:
            proposals.append(self.rewrite("Remove the explicit graph break", delete(source, request)))
        if site.cause.kind in _DISABLED:
            proposals += self._remove_disable(site, source)
            return proposals
        proposals += [
            *self._skip_clocks(site, source),
            *self._skip_side_call(source, statement),
            *self._hoist_constant_call(site, source),
        ]
        if not proposals and not isinstance(statement, ast.With) and site.cause.kind not in (_REQUESTED, _BUILTIN):
            proposals += self._make_operator(site, source, statement)
        return proposals

    def _requested_break(self, site: BreakSite) -> ast.stmt | None:
        statement, source = site.statement, site.source
        if source is None or not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return None
        return statement if full_name(source, statement.value.func) == "torch._dynamo.graph_break" else None

    def _remove_disable(self, site: BreakSite, source: SourceFile) -> list[Proposal]:
        changes: list[Replacement] = []
        for call in site.calls():
            inner = call.func
            if isinstance(inner, ast.Call) and full_name(source, inner.func) in _DISABLE_DECORATORS and len(inner.args) == 1:
                changes.append(source.replace(inner, source.segment(inner.args[0])))
            functions = functions_named(source, last_name(call.func))
            if len(functions) == 1:
                changes += [
                    _without_decorator(source, item) for item in functions[0].decorator_list if _is_disable(source, item)
                ]
        if not changes:
            return []
        title = "Compile the function with its callers"
        where = "The reason for excluding it no longer exists, or was only that it broke the graph."
        return [self.rewrite(title, *dict.fromkeys(changes), changes="Its operations are part of the graph.", where=where)]

    def _skip_clocks(self, site: BreakSite, source: SourceFile) -> list[Proposal]:
        if not any(full_name(source, call.func) in _CLOCKS for call in site.calls()) or site.statement is None:
            return []
        # Replace all of them; otherwise the code would subtract 0 from a time.
        scope = top_level_statement(source, site.statement)
        if scope is None:
            return []
        torch, added = module_name(source, "torch")
        changes: list[Replacement | None] = [added]
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and full_name(source, node.func) in _CLOCKS:
                value = _CLOCKS[full_name(source, node.func)]
                text = f"{value} if {torch}.compiler.is_compiling() else {source.segment(node)}"
                direct = isinstance(source.parents[node], (ast.Assign, ast.AnnAssign, ast.Return))
                changes.append(source.replace(node, text if direct else f"({text})"))
        title = "Measure time only in eager mode"
        note = "Compiled code measures nothing and gets 0; measure around the call of the compiled function."
        return [self.rewrite(title, *changes, changes=note)]

    def _skip_side_call(self, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return []
        name = full_name(source, statement.value.func)
        if name not in _SIDE_CALLS and name.rpartition(".")[2] not in _SIDE_CALL_METHODS:
            return []
        torch, added = module_name(source, "torch")
        change = guard(source, statement, f"not {torch}.compiler.is_compiling()")
        if change is None:
            return []
        title = "Call it only in eager mode"
        return [self.rewrite(title, change, added, changes=f"Compiled code no longer calls {name}; eager code does.")]

    def _hoist_constant_call(self, site: BreakSite, source: SourceFile) -> list[Proposal]:
        for call in site.calls():
            name = full_name(source, call.func)
            outer = top_level_statement(source, call)
            if (
                name in _PURE_CALLS
                and outer is not None
                and all(map(_is_constant, [*call.args, *(item.value for item in call.keywords)]))
            ):
                constant = free_name(source, f"_{name.rpartition('.')[2].upper()}")
                text = source.segment(call)
                lines = [f"{constant} = {text}", "", ""]
                note = "It is computed once, when the module is imported, instead of at every call."
                title = f"Call {name} once, outside the function"
                return [self.rewrite(title, source.insert_before(outer, lines), source.replace(call, constant), changes=note)]
        return []

    def _make_operator(self, site: BreakSite, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        where = (
            "The result is a new tensor with the shape and dtype of the first argument, as the fake implementation says, and "
            "no gradient flows through it."
        )
        note = "The code runs as one opaque operator in the graph; torch does not optimize inside it."
        edits = expression_as_operator(source, statement)
        if edits:
            return [self.rewrite("Register the call as a custom operator", *edits, changes=note, where=where)]
        function = source.function_at(site.line)
        edits = [] if function is None else function_as_operator(source, function)
        if not edits:
            return []
        return [self.rewrite("Register the function as a custom operator", *edits, changes=note, where=where)]


def _is_disable(source: SourceFile, decorator: ast.expr) -> bool:
    return full_name(source, decorator.func if isinstance(decorator, ast.Call) else decorator) in _DISABLE_DECORATORS


def _without_decorator(source: SourceFile, decorator: ast.expr) -> Replacement:
    """Remove a decorator but not the comments on its lines."""
    (line, _), (last, _) = source.span(decorator)
    text = source.lines[line - 1]
    indent = text[: len(text) - len(text.lstrip())]
    comment_lines = "".join(f"{indent}{comment.rstrip()}{source.newline}" for comment in comments_on_lines(source, line, last))
    return Replacement(source.file, (line, 0), (last + 1, 0), source.between((line, 0), (last + 1, 0)), comment_lines)


def _is_constant(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True
