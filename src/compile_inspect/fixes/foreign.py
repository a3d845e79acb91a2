"""Calls of code that torch cannot look into, and breaks that were asked for."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import Fixer, Place, last_name
from compile_inspect.fixes.operators import expression_as_operator, function_as_operator
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.writing import comments, defined, delete, free_name, full_name, guard, module_name, top_level
from compile_inspect.records.fixes import Proposal, Replacement

_DISABLED = ("Skip calling `torch.compiler.disable()`d function", "Skip inlining `torch.compiler.disable()`d function")
_ASKED = "Call to `torch._dynamo.graph_break()`"
_BUILTIN = "Failed to trace builtin operator"
_KINDS = (
    *_DISABLED,
    _ASKED,
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
_MARKS = ("torch.compiler.disable", "torch._dynamo.disable")
_CLOCKS = {
    f"time.{name}{suffix}": value
    for name in ("time", "perf_counter", "monotonic", "process_time", "thread_time")
    for suffix, value in (("", "0.0"), ("_ns", "0"))
}
_ASIDE = {
    *("gc.collect", "gc.disable", "gc.enable", "gc.freeze", "time.sleep", "sys.stdout.flush", "sys.stderr.flush"),
    *("torch.save", "numpy.save", "numpy.savez", "numpy.savetxt", "pickle.dump", "json.dump", "torchvision.utils.save_image"),
    *("tracemalloc.start", "tracemalloc.stop", "wandb.log", "mlflow.log_metric", "mlflow.log_metrics", "faulthandler.enable"),
}
_ASIDE_METHODS = {"add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure", "add_text"}
_PURE = {
    *("zlib.crc32", "zlib.adler32", "binascii.crc32", "bisect.bisect", "bisect.bisect_left", "bisect.bisect_right"),
    *("json.dumps", "json.loads", "base64.b64encode", "base64.b64decode", "platform.system", "platform.machine"),
    *("os.path.exists", "os.path.isfile", "os.path.isdir", "os.cpu_count", "shutil.which", "socket.gethostname"),
    *("torch.get_num_threads", "math.comb", "math.perm"),
}


class Foreign(Fixer):
    """Calls into C extensions and libraries that are not traced."""

    name = "foreign"

    def concerns(self, place: Place) -> bool:
        """Whether torch met a function that it cannot or may not look into."""
        return place.cause.kind.startswith(_KINDS)

    def why(self, place: Place) -> str:
        """The reason."""
        if place.cause.kind == _ASKED and self._asked(place) is not None:
            return "The code asks for a break here: the graph ends, and another one begins."
        if place.cause.kind in _DISABLED:
            return (
                "The function that is called is marked as one that must not be compiled: the graph ends before the call, "
                "Python makes it, and another graph begins after it."
            )
        return (
            "The line calls code that is not Python, or that belongs to a library torch does not look into. A graph can only "
            "hold operations that torch knows: it ends before the call, Python makes it, and another graph begins after it."
        )

    def hints(self, place: Place) -> tuple[str, ...]:
        """What to do by hand."""
        if place.cause.kind in _DISABLED or place.cause.kind == _ASKED:
            return ("Take the mark away and see whether the reason for it is still there; the break stays as long as it does.",)
        return (
            "Call it before or after the compiled function, and pass what it gives as an argument.",
            "Register it as an operator with torch.library.custom_op, register_fake and, where a gradient flows through it, "
            "register_autograd.",
            "Where the break has to stay, mark the function with @torch.compiler.disable, so that it is where one expects it.",
        )

    def proposals(self, place: Place) -> list[Proposal]:
        """The mark taken away; the call made elsewhere or not at all; an operator."""
        source, statement = place.source, place.statement
        if source is None or statement is None:
            return []
        found: list[Proposal] = []
        asked = self._asked(place)
        if asked is not None:
            found.append(self.rewrite("Take the asked-for break away", delete(source, asked)))
        if place.cause.kind in _DISABLED:
            found += self._unmarked(place, source)
            return found
        found += [*self._clocks(place, source), *self._aside(source, statement), *self._once(place, source)]
        if not found and not isinstance(statement, ast.With) and place.cause.kind not in (_ASKED, _BUILTIN):
            found += self._operators(place, source, statement)
        return found

    def _asked(self, place: Place) -> ast.stmt | None:
        statement, source = place.statement, place.source
        if source is None or not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return None
        return statement if full_name(source, statement.value.func) == "torch._dynamo.graph_break" else None

    def _unmarked(self, place: Place, source: SourceFile) -> list[Proposal]:
        changes: list[Replacement] = []
        for call in place.calls():
            inner = call.func
            if isinstance(inner, ast.Call) and full_name(source, inner.func) in _MARKS and len(inner.args) == 1:
                changes.append(source.replace(inner, source.segment(inner.args[0])))
            functions = defined(source, last_name(call.func))
            if len(functions) == 1:
                changes += [_undecorated(source, item) for item in functions[0].decorator_list if _is_mark(source, item)]
        if not changes:
            return []
        title = "Let the function be compiled with its callers"
        where = "Right where the reason why it was left out has gone, or was only that it broke the graph."
        return [self.rewrite(title, *dict.fromkeys(changes), changes="Its operations are part of the graph.", where=where)]

    def _clocks(self, place: Place, source: SourceFile) -> list[Proposal]:
        if not any(full_name(source, call.func) in _CLOCKS for call in place.calls()) or place.statement is None:
            return []
        # All of them, or a difference would be taken between a time and nothing.
        scope = top_level(source, place.statement)
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
        title = "Take the time only where nothing is being compiled"
        told = "Compiled code measures nothing and finds 0; measure around the call of the compiled function."
        return [self.rewrite(title, *changes, changes=told)]

    def _aside(self, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return []
        name = full_name(source, statement.value.func)
        if name not in _ASIDE and name.rpartition(".")[2] not in _ASIDE_METHODS:
            return []
        torch, added = module_name(source, "torch")
        change = guard(source, statement, f"not {torch}.compiler.is_compiling()")
        if change is None:
            return []
        title = "Call it only where nothing is being compiled"
        return [self.rewrite(title, change, added, changes=f"Compiled code does not call {name} any more; eager code does.")]

    def _once(self, place: Place, source: SourceFile) -> list[Proposal]:
        for call in place.calls():
            name = full_name(source, call.func)
            outer = top_level(source, call)
            if (
                name in _PURE
                and outer is not None
                and all(map(_is_constant, [*call.args, *(item.value for item in call.keywords)]))
            ):
                constant = free_name(source, f"_{name.rpartition('.')[2].upper()}")
                text = source.segment(call)
                lines = [f"{constant} = {text}", "", ""]
                told = "It is worked out once, when the module is loaded, instead of at every call."
                title = f"Call {name} once, outside the function"
                return [self.rewrite(title, source.insert_before(outer, lines), source.replace(call, constant), changes=told)]
        return []

    def _operators(self, place: Place, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        where = (
            "Right where the result is a new tensor of the shape and type of the first one, as the fake version says, and "
            "where no gradient flows through it."
        )
        told = "The code runs as one operator in the middle of the graph; torch does not optimize what is in it."
        changed = expression_as_operator(source, statement)
        if changed:
            return [self.rewrite("Make the call an operator of its own", *changed, changes=told, where=where)]
        function = source.function_at(place.line)
        changed = [] if function is None else function_as_operator(source, function)
        if not changed:
            return []
        return [self.rewrite("Make the function an operator of its own", *changed, changes=told, where=where)]


def _is_mark(source: SourceFile, decorator: ast.expr) -> bool:
    return full_name(source, decorator.func if isinstance(decorator, ast.Call) else decorator) in _MARKS


def _undecorated(source: SourceFile, decorator: ast.expr) -> Replacement:
    """A decorator taken away, comments on its lines excepted."""
    (line, _), (last, _) = source.span(decorator)
    text = source.lines[line - 1]
    indent = text[: len(text) - len(text.lstrip())]
    kept = "".join(f"{indent}{comment.rstrip()}{source.newline}" for comment in comments(source, line, last))
    return Replacement(source.file, (line, 0), (last + 1, 0), source.between((line, 0), (last + 1, 0)), kept)


def _is_constant(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True
