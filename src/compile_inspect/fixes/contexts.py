"""Context managers that torch cannot trace."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import BreakSite, Fixer, dotted, last_name
from compile_inspect.fixes.edits import (
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
from compile_inspect.fixes.source import SourceFile
from compile_inspect.records.fixes import Proposal, Replacement

_KINDS = (
    *("Unsupported context manager", "Graph break under GenericContextWrappingVariable", "unsupported contextlib.* API"),
    *("attempted to trace contextlib.contextmanager", "non-generator contextlib.contextmanager"),
    *("reconstructing @contextmanager object", "torch.profiler object escaped", "record_function escaped"),
    *("Attempt to trace generator", "infinite generator detected", "call_method on generator", "Generator reconstruction"),
)
_OBSERVING_MANAGERS = {
    *("torch.autograd.set_detect_anomaly", "torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly"),
    *("torch.profiler.profile", "torch.profiler.record_function", "torch.autograd.profiler.profile"),
    *("torch.autograd.profiler.record_function", "torch.autograd.profiler.emit_nvtx", "torch.cuda.nvtx.range"),
    *("torch.utils.flop_counter.FlopCounterMode", "warnings.catch_warnings", "numpy.errstate", "numpy.printoptions"),
}
_HARMLESS_CALLS = {
    *("print", "round", "len", "max", "min", "str", "float", "int", "format", "append", "update", "setdefault", "get", "sum"),
    *("debug", "info", "warning", "warn", "error", "add_scalar", "synchronize", "Event", "record", "elapsed_time", "super"),
    *("time", "perf_counter", "monotonic", "process_time", "time_ns", "perf_counter_ns", "monotonic_ns", "process_time_ns"),
    *("memory_allocated", "max_memory_allocated", "reset_peak_memory_stats", "is_available", "range_push", "range_pop"),
}


class Contexts(Fixer):
    """`with` statements and the context managers they enter."""

    name = "contexts"

    def matches(self, site: BreakSite) -> bool:
        """Whether the line has a `with` statement or belongs to a context manager."""
        if site.cause.kind.startswith(_KINDS) or site.mentions("WithExitFunctionVariable"):
            return True
        if isinstance(site.statement, (ast.With, ast.AsyncWith)) and site.statement.body[0].lineno != site.line:
            return True
        return (
            _enclosing_manager(site) is not None
            or _exit_stack_block(site) is not None
            or _warning_filter_block(site) is not None
        )

    def why(self, site: BreakSite) -> str:
        """Why the graph breaks."""
        if "enerator" in site.cause.kind:
            return "A generator is used in a way that torch cannot trace: a graph cannot suspend and resume it."
        return (
            "A context manager is Python code that runs before and after its block. Torch supports some of them "
            "(torch.no_grad, torch.autocast). If a function uses one that torch cannot trace, none of the function is "
            "compiled, because compilation cannot resume inside a `with` block."
        )

    def hints(self, site: BreakSite) -> tuple[str, ...]:
        """What you can do by hand."""
        if "enerator" in site.cause.kind:
            return ("Build a list in a plain function and return it.",)
        statement = site.statement
        names = [full_name(site.source, callee(item.context_expr)) for item in with_items(statement)] if site.source else []
        if "torch.device" in names:
            return (
                "Pass device= to the functions that create tensors, instead of using `with torch.device(...)` around them.",
            )
        if "open" in names:
            return ("Read the file before you call the compiled function and pass the content in; write files after the call.",)
        return (
            "Enter the context manager around the call of the compiled function instead of inside it.",
            "If its block needs no tensors, move the whole `with` statement out of the compiled function.",
        )

    def proposals(self, site: BreakSite) -> list[Proposal]:
        """Skip managers that only observe; write a stack of managers as one `with`."""
        source, statement = site.source, site.statement
        if source is None or statement is None:
            return []
        return [
            *self._skip_observers(site, source, statement),
            *self._skip_user_manager(site, source),
            *self._flatten_exit_stack(site, source),
            *self._skip_file_write(source, statement),
        ]

    def _skip_when_compiling(
        self, source: SourceFile, items: list[ast.withitem], *others: Replacement | None, changes: str
    ) -> Proposal:
        torch, torch_added = module_name(source, "torch")
        contextlib, contextlib_added = module_name(source, "contextlib")
        replaced = []
        for item in items:
            text = source.segment(item.context_expr)
            replaced.append(
                source.replace(item.context_expr, f"{contextlib}.nullcontext() if {torch}.compiler.is_compiling() else {text}")
            )
        title = "Enter the context manager only in eager mode"
        return self.rewrite(title, *replaced, *others, torch_added, contextlib_added, changes=changes)

    def _skip_observers(self, site: BreakSite, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        others: list[Replacement | None] = []
        holder = _warning_filter_block(site) or statement
        if isinstance(holder, ast.With):
            torch, _ = module_name(source, "torch")
            for inner in holder.body:
                if _is_filter(source, inner):
                    others.append(guard(source, inner, f"not {torch}.compiler.is_compiling()"))
        if None in others:
            return []
        items = [item for item in with_items(holder) if full_name(source, callee(item.context_expr)) in _OBSERVING_MANAGERS]
        if not items or not all(is_unused(source, holder, item) for item in items):
            return []
        names = " and ".join(dict.fromkeys(dotted(callee(item.context_expr)) for item in items))
        note = f"Compiled code runs without {names}, which does not change what is computed; eager code runs with it."
        return [self._skip_when_compiling(source, items, *others, changes=note)]

    def _skip_user_manager(self, site: BreakSite, source: SourceFile) -> list[Proposal]:
        """Skip the user's own managers that only measure or print something."""
        manager = _enclosing_manager(site)
        if manager is None or any(
            isinstance(n, ast.Call) and last_name(n.func) not in _HARMLESS_CALLS for n in ast.walk(manager)
        ):
            return []
        if not _has_no_outside_effect(manager):
            return []
        blocks = [
            (node, item)
            for node in ast.walk(source.tree)
            for item in with_items(node)
            if last_name(callee(item.context_expr)) == manager.name
        ]
        if not blocks or not all(is_unused(source, node, item) for node, item in blocks):
            return []
        note = f"Compiled code runs without {manager.name}, which only measures or prints something; eager code runs with it."
        return [self._skip_when_compiling(source, [item for _, item in blocks], changes=note)]

    def _flatten_exit_stack(self, site: BreakSite, source: SourceFile) -> list[Proposal]:
        """Replace an ExitStack whose managers are all entered at the start of its block."""
        block = _exit_stack_block(site)
        if block is None or len(block.items) != 1 or not isinstance(block.items[0].optional_vars, ast.Name):
            return []
        stack = block.items[0].optional_vars.id
        if full_name(source, callee(block.items[0].context_expr)) != "contextlib.ExitStack":
            return []
        contextlib, added = module_name(source, "contextlib")
        managers: list[str] = []
        for inner in block.body:
            entering = inner.body[0] if isinstance(inner, ast.If) and len(inner.body) == 1 and not inner.orelse else inner
            call = entering.value if isinstance(entering, ast.Expr) else None
            if not (isinstance(call, ast.Call) and dotted(call.func) == f"{stack}.enter_context" and len(call.args) == 1):
                break
            text = source.segment(call.args[0])
            if isinstance(inner, ast.If):
                text = f"{text} if {source.segment(inner.test)} else {contextlib}.nullcontext()"
            managers.append(text)
        function = function_of(source, block)
        if (
            not managers
            or len(managers) == len(block.body)
            or function is None
            or len(uses(function, stack)) != len(managers) + 1
        ):
            return []
        if any("\n" in text for text in managers):
            return []
        first, last = block.items[0].context_expr, block.items[0].optional_vars
        start, end = source.span(first)[0], source.span(last)[1]
        head = Replacement(source.file, start, end, source.between(start, end), ", ".join(managers))
        conditional = any(isinstance(inner, ast.If) for inner in block.body[: len(managers)])
        removals = [delete(source, inner) for inner in block.body[: len(managers)]]
        return [self.rewrite("Enter the managers in the `with` itself", head, *removals, added if conditional else None)]

    def _skip_file_write(self, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        """Skip a `with open(…)` block that only writes a file."""
        function = function_of(source, statement)
        if not isinstance(statement, ast.With) or len(statement.items) != 1 or function is None:
            return []
        call = statement.items[0].context_expr
        if not isinstance(call, ast.Call) or full_name(source, call.func) != "open" or len(call.args) < 2:
            return []
        mode = call.args[1]
        opens_for_writing = isinstance(mode, ast.Constant) and isinstance(mode.value, str) and mode.value[:1] in ("w", "a", "x")
        inside = set(ast.walk(statement))
        stored = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        leaves_block = any(isinstance(node, (ast.Return, ast.Yield, ast.Break, ast.Continue, ast.Raise)) for node in inside)
        stores_elsewhere = any(
            isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store) for node in inside
        )
        if (
            not opens_for_writing
            or leaves_block
            or stores_elsewhere
            or any(node not in inside for name in stored for node in uses(function, name))
        ):
            return []
        torch, added = module_name(source, "torch")
        change = guard(source, statement, f"not {torch}.compiler.is_compiling()")
        if change is None:
            return []
        note = "Compiled code no longer writes the file; eager code does."
        return [self.rewrite("Write the file only in eager mode", change, added, changes=note)]


def _enclosing_manager(site: BreakSite) -> ast.ClassDef | ast.FunctionDef | None:
    """The user's own context manager that contains the line."""
    source, statement = site.source, site.statement
    function = None if source is None or statement is None else function_of(source, statement)
    if source is None or not isinstance(function, ast.FunctionDef):
        return None
    parent = source.parents.get(function)
    if function.name in ("__enter__", "__exit__") and isinstance(parent, ast.ClassDef):
        return parent
    is_generator_manager = any(full_name(source, item) == "contextlib.contextmanager" for item in function.decorator_list)
    return function if is_generator_manager else None


def _exit_stack_block(site: BreakSite) -> ast.With | None:
    """The `with` block whose ExitStack enters another manager on the line."""
    source = site.source
    if source is None or not site.calls("enter_context"):
        return None
    above = source.ancestors(site.statement) if site.statement is not None else iter(())
    return next((node for node in above if isinstance(node, ast.With)), None)


def _warning_filter_block(site: BreakSite) -> ast.With | None:
    """The `with warnings.catch_warnings()` block whose filters are set on the line."""
    source, statement = site.source, site.statement
    if source is None or statement is None or not _is_filter(source, statement):
        return None
    parent = source.parents.get(statement)
    catches_warnings = any(
        full_name(source, callee(item.context_expr)) == "warnings.catch_warnings" for item in with_items(parent)
    )
    return parent if catches_warnings and isinstance(parent, ast.With) else None


def _is_filter(source: SourceFile, statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and full_name(source, call.func) in ("warnings.simplefilter", "warnings.filterwarnings")


def _has_no_outside_effect(manager: ast.AST) -> bool:
    """Whether a manager writes only to its own attributes and suppresses no exception."""
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
            return_values = [item.value for item in ast.walk(node) if isinstance(item, ast.Return) and item.value is not None]
            if any(not (isinstance(answer, ast.Constant) and not answer.value) for answer in return_values):
                return False
    return True
