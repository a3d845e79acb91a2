"""Context managers that compiled code cannot enter."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import Fixer, Place, dotted, last_name
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.writing import (
    callee,
    delete,
    full_name,
    function_of,
    guard,
    is_unused,
    module_name,
    uses,
    with_items,
)
from compile_inspect.records.fixes import Proposal, Replacement

_KINDS = (
    *("Unsupported context manager", "Graph break under GenericContextWrappingVariable", "unsupported contextlib.* API"),
    *("attempted to trace contextlib.contextmanager", "non-generator contextlib.contextmanager"),
    *("reconstructing @contextmanager object", "torch.profiler object escaped", "record_function escaped"),
    *("Attempt to trace generator", "infinite generator detected", "call_method on generator", "Generator reconstruction"),
)
_QUIET = {
    *("torch.autograd.set_detect_anomaly", "torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly"),
    *("torch.profiler.profile", "torch.profiler.record_function", "torch.autograd.profiler.profile"),
    *("torch.autograd.profiler.record_function", "torch.autograd.profiler.emit_nvtx", "torch.cuda.nvtx.range"),
    *("torch.utils.flop_counter.FlopCounterMode", "warnings.catch_warnings", "numpy.errstate", "numpy.printoptions"),
}
_HARMLESS = {
    *("print", "round", "len", "max", "min", "str", "float", "int", "format", "append", "update", "setdefault", "get", "sum"),
    *("debug", "info", "warning", "warn", "error", "add_scalar", "synchronize", "Event", "record", "elapsed_time", "super"),
    *("time", "perf_counter", "monotonic", "process_time", "time_ns", "perf_counter_ns", "monotonic_ns", "process_time_ns"),
    *("memory_allocated", "max_memory_allocated", "reset_peak_memory_stats", "is_available", "range_push", "range_pop"),
}


class Contexts(Fixer):
    """`with` statements, and the managers they enter."""

    name = "contexts"

    def concerns(self, place: Place) -> bool:
        """Whether a `with` statement is at the line, or the line belongs to a context manager."""
        if place.cause.kind.startswith(_KINDS) or place.says("WithExitFunctionVariable"):
            return True
        if isinstance(place.statement, (ast.With, ast.AsyncWith)) and place.statement.body[0].lineno != place.line:
            return True
        return _manager(place) is not None or _entered(place) is not None or _filtering(place) is not None

    def why(self, place: Place) -> str:
        """The reason."""
        if "enerator" in place.cause.kind:
            return "A generator is used in a way that torch cannot follow: it cannot be left and entered again within a graph."
        return (
            "A context manager is Python that runs before and after the code it holds. Torch knows some of them "
            "(torch.no_grad, torch.autocast); at one that it cannot look into it compiles nothing of the function that holds "
            "it, because a break inside a `with` cannot be continued afterwards."
        )

    def hints(self, place: Place) -> tuple[str, ...]:
        """What to do by hand."""
        if "enerator" in place.cause.kind:
            return ("Build a list in a plain function and return it.",)
        statement = place.statement
        names = [full_name(place.source, callee(item.context_expr)) for item in with_items(statement)] if place.source else []
        if "torch.device" in names:
            return ("Pass device= to the functions that make tensors, instead of a `with torch.device(...)` around them.",)
        if "open" in names:
            return ("Read the file before the compiled function is called, and pass what was read; write after it.",)
        return (
            "Enter the context manager around the call of the compiled function instead of inside it.",
            "Where the code that it holds needs no tensors, move it with all it holds out of the compiled function.",
        )

    def proposals(self, place: Place) -> list[Proposal]:
        """The manager left out where it only looks on; a stack of managers written as one `with`."""
        source, statement = place.source, place.statement
        if source is None or statement is None:
            return []
        return [
            *self._looking_on(place, source, statement),
            *self._own_manager(place, source),
            *self._stack(place, source),
            *self._writing(source, statement),
        ]

    def _left_out(self, source: SourceFile, items: list[ast.withitem], *others: Replacement | None, changes: str) -> Proposal:
        torch, torch_added = module_name(source, "torch")
        contextlib, contextlib_added = module_name(source, "contextlib")
        replaced = []
        for item in items:
            text = source.segment(item.context_expr)
            replaced.append(
                source.replace(item.context_expr, f"{contextlib}.nullcontext() if {torch}.compiler.is_compiling() else {text}")
            )
        title = "Enter the context manager only where nothing is being compiled"
        return self.rewrite(title, *replaced, *others, torch_added, contextlib_added, changes=changes)

    def _looking_on(self, place: Place, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        others: list[Replacement | None] = []
        holder = _filtering(place) or statement
        if isinstance(holder, ast.With):
            torch, _ = module_name(source, "torch")
            for inner in holder.body:
                if _is_filter(source, inner):
                    others.append(guard(source, inner, f"not {torch}.compiler.is_compiling()"))
        if None in others:
            return []
        items = [item for item in with_items(holder) if full_name(source, callee(item.context_expr)) in _QUIET]
        if not items or not all(is_unused(source, holder, item) for item in items):
            return []
        names = " and ".join(dict.fromkeys(dotted(callee(item.context_expr)) for item in items))
        told = f"Compiled code runs without {names}, which does not change what is computed; eager code runs with it."
        return [self._left_out(source, items, *others, changes=told)]

    def _own_manager(self, place: Place, source: SourceFile) -> list[Proposal]:
        """Managers of the user's that only measure or tell something."""
        manager = _manager(place)
        if manager is None or any(isinstance(n, ast.Call) and last_name(n.func) not in _HARMLESS for n in ast.walk(manager)):
            return []
        if not _only_keeps_to_itself(manager):
            return []
        held = [
            (node, item)
            for node in ast.walk(source.tree)
            for item in with_items(node)
            if last_name(callee(item.context_expr)) == manager.name
        ]
        if not held or not all(is_unused(source, node, item) for node, item in held):
            return []
        told = f"Compiled code runs without {manager.name}, which only measures or tells something; eager code runs with it."
        return [self._left_out(source, [item for _, item in held], changes=told)]

    def _stack(self, place: Place, source: SourceFile) -> list[Proposal]:
        """An ExitStack whose managers are all entered at the beginning."""
        held = _entered(place)
        if held is None or len(held.items) != 1 or not isinstance(held.items[0].optional_vars, ast.Name):
            return []
        stack = held.items[0].optional_vars.id
        if full_name(source, callee(held.items[0].context_expr)) != "contextlib.ExitStack":
            return []
        contextlib, added = module_name(source, "contextlib")
        managers: list[str] = []
        for inner in held.body:
            entering = inner.body[0] if isinstance(inner, ast.If) and len(inner.body) == 1 and not inner.orelse else inner
            call = entering.value if isinstance(entering, ast.Expr) else None
            if not (isinstance(call, ast.Call) and dotted(call.func) == f"{stack}.enter_context" and len(call.args) == 1):
                break
            text = source.segment(call.args[0])
            if isinstance(inner, ast.If):
                text = f"{text} if {source.segment(inner.test)} else {contextlib}.nullcontext()"
            managers.append(text)
        function = function_of(source, held)
        if (
            not managers
            or len(managers) == len(held.body)
            or function is None
            or len(uses(function, stack)) != len(managers) + 1
        ):
            return []
        if any("\n" in text for text in managers):
            return []
        first, last = held.items[0].context_expr, held.items[0].optional_vars
        start, end = source.span(first)[0], source.span(last)[1]
        head = Replacement(source.file, start, end, source.between(start, end), ", ".join(managers))
        conditional = any(isinstance(inner, ast.If) for inner in held.body[: len(managers)])
        gone = [delete(source, inner) for inner in held.body[: len(managers)]]
        return [self.rewrite("Enter the managers in the `with` itself", head, *gone, added if conditional else None)]

    def _writing(self, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        """A file written on the way, and nothing else."""
        function = function_of(source, statement)
        if not isinstance(statement, ast.With) or len(statement.items) != 1 or function is None:
            return []
        call = statement.items[0].context_expr
        if not isinstance(call, ast.Call) or full_name(source, call.func) != "open" or len(call.args) < 2:
            return []
        mode = call.args[1]
        written = isinstance(mode, ast.Constant) and isinstance(mode.value, str) and mode.value[:1] in ("w", "a", "x")
        inside = set(ast.walk(statement))
        stored = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        leaving = any(isinstance(node, (ast.Return, ast.Yield, ast.Break, ast.Continue, ast.Raise)) for node in inside)
        kept = any(isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store) for node in inside)
        if not written or leaving or kept or any(node not in inside for name in stored for node in uses(function, name)):
            return []
        torch, added = module_name(source, "torch")
        change = guard(source, statement, f"not {torch}.compiler.is_compiling()")
        if change is None:
            return []
        told = "Compiled code does not write the file any more; eager code does."
        return [self.rewrite("Write the file only where nothing is being compiled", change, added, changes=told)]


def _manager(place: Place) -> ast.ClassDef | ast.FunctionDef | None:
    """The context manager of the user's that holds the line."""
    source, statement = place.source, place.statement
    function = None if source is None or statement is None else function_of(source, statement)
    if source is None or not isinstance(function, ast.FunctionDef):
        return None
    parent = source.parents.get(function)
    if function.name in ("__enter__", "__exit__") and isinstance(parent, ast.ClassDef):
        return parent
    managed = any(full_name(source, item) == "contextlib.contextmanager" for item in function.decorator_list)
    return function if managed else None


def _entered(place: Place) -> ast.With | None:
    """The `with` whose stack is given another manager at the line."""
    source = place.source
    if source is None or not place.calls("enter_context"):
        return None
    above = source.above(place.statement) if place.statement is not None else iter(())
    return next((node for node in above if isinstance(node, ast.With)), None)


def _filtering(place: Place) -> ast.With | None:
    """The `with warnings.catch_warnings()` whose filters are set at the line."""
    source, statement = place.source, place.statement
    if source is None or statement is None or not _is_filter(source, statement):
        return None
    parent = source.parents.get(statement)
    caught = any(full_name(source, callee(item.context_expr)) == "warnings.catch_warnings" for item in with_items(parent))
    return parent if caught and isinstance(parent, ast.With) else None


def _is_filter(source: SourceFile, statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and full_name(source, call.func) in ("warnings.simplefilter", "warnings.filterwarnings")


def _only_keeps_to_itself(manager: ast.AST) -> bool:
    """Whether a manager writes to nothing but itself, and swallows no exception."""
    for node in ast.walk(manager):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            return False
        if (
            isinstance(node, (ast.Attribute, ast.Subscript))
            and isinstance(node.ctx, ast.Store)
            and dotted(node.value) != "self"
        ):
            return False
        if isinstance(node, ast.FunctionDef) and node.name == "__exit__":
            answers = [item.value for item in ast.walk(node) if isinstance(item, ast.Return) and item.value is not None]
            if any(not (isinstance(answer, ast.Constant) and not answer.value) for answer in answers):
                return False
    return True
