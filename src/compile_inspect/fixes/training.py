"""Backward passes and optimizer steps inside compiled code."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import Fixer, Place, last_name
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.writing import full_name, function_of, guard, module_name
from compile_inspect.records.fixes import Proposal

_KINDS = (
    "Unsupported Tensor.backward() call",
    "backward() with",
    "autograd.grad ",
    "_autograd_grad",
    "using `torch.autograd.grad`",
)
_TRACE = "torch._dynamo.config.trace_autograd_ops = True"
_FUNCTIONAL = {"torch.autograd.functional.jacobian": "jacrev", "torch.autograd.functional.hessian": "hessian"}
_RETAIN = "Tensor.retain_grad() with AOTDispatcher"
_HOOKS = "Module-level backwards hooks require compiled autograd."
_OPTIMIZERS = ("optimizer", "optim", "opt", "scaler", "scheduler", "lr_scheduler")
_METHODS = ("step", "zero_grad", "scale", "unscale_", "update")


class Training(Fixer):
    """Gradients asked for, and parameters stepped, in the function that is compiled."""

    name = "training"

    def concerns(self, place: Place) -> bool:
        """Whether the line belongs to a training step."""
        if place.cause.kind.startswith(_KINDS) or place.cause.kind in (_RETAIN, _HOOKS):
            return True
        return self._is_kept_out(place) or self._functional(place) is not None

    def why(self, place: Place) -> str:
        """The reason."""
        if place.cause.kind == _RETAIN:
            return "A gradient is to be kept on a value inside the graph, and what is inside a graph cannot be reached later."
        if place.cause.kind == _HOOKS:
            return (
                "A module on the way has a backward hook. Hooks are Python that runs in the backward pass, which is compiled "
                "without looking into them."
            )
        if self._is_kept_out(place) and not place.cause.kind.startswith(_KINDS):
            return (
                "The optimizer (or what scales or schedules it) is Python that torch keeps out of the graph on purpose: the "
                "graph ends before the call, and another one begins after it."
            )
        return (
            "A gradient is asked for inside the function that is compiled. Torch compiles a forward pass and derives the "
            "backward pass from it; a function that runs both itself is split at the place where the backward pass begins."
        )

    def hints(self, place: Place) -> tuple[str, ...]:
        """What to do by hand."""
        if place.cause.kind == _RETAIN:
            return ("Return the value as well and call retain_grad() on it outside the compiled function.",)
        if place.cause.kind == _HOOKS:
            return ("Register a hook on the tensors that go into or come out of the compiled function instead.",)
        return (
            "Compile the model and the loss, torch.compile(lambda batch: loss(model(batch))), and leave backward(), step() and "
            "zero_grad() in the Python function around it: the backward pass is compiled all the same.",
            "Where only the gradient of a pure function is needed, torch.func.grad, vjp and jacrev are traced.",
            "The step itself can be compiled on its own: torch.compile(optimizer.step). With a schedule, give the learning "
            "rate as a tensor, lr=torch.tensor(1e-3): a new number is compiled again.",
        )

    def proposals(self, place: Place) -> list[Proposal]:
        """The functions that are traced instead; what is only looked at left out; the settings that let torch trace it."""
        found: list[Proposal] = []
        source, statement = place.source, place.statement
        if source is not None and statement is not None:
            found += [*self._transform(place, source), *self._kept(place, source, statement), *self._zeroed(place, source)]
        if place.cause.kind.startswith(_KINDS):
            title = "Let torch trace the backward pass as well"
            where = "Right where the gradient is taken of what the same function has computed."
            found.append(self.setting(title, _TRACE, where=where))
        if place.cause.kind == _HOOKS:
            title = "Compile the backward pass where it runs, hooks included"
            where = "Hooks change or only look at gradients; what they do outside of tensors may happen while it is compiled."
            found.append(self.setting(title, "torch._dynamo.config.compiled_autograd = True", where=where))
        return found

    def _is_kept_out(self, place: Place) -> bool:
        """Whether torch says that it leaves an optimizer alone, or the line steps what is named like one."""
        said = place.says("torch/amp/grad_scaler", "torch/optim/", "Optimizer.zero_grad", "optimizer: pending mutation")
        return said or self._stepped(place) is not None

    def _stepped(self, place: Place) -> ast.Call | None:
        for call in place.calls(*_METHODS):
            if isinstance(call.func, ast.Attribute):
                owner = last_name(call.func.value).lower()
                if owner in _OPTIMIZERS or owner.endswith(tuple(f"_{name}" for name in _OPTIMIZERS)):
                    return call
        return None

    def _functional(self, place: Place) -> ast.Call | None:
        source = place.source
        if source is None:
            return None
        return next((call for call in place.calls() if full_name(source, call.func) in _FUNCTIONAL), None)

    def _transform(self, place: Place, source: SourceFile) -> list[Proposal]:
        call = self._functional(place)
        names = [] if call is None else [keyword.arg for keyword in call.keywords]
        if call is None or len(call.args) != 2 or set(names) - {"create_graph", "vectorize"}:
            return []
        if isinstance(call.args[1], (ast.Tuple, ast.List, ast.Starred)):
            return []
        kept = {keyword.arg: keyword.value for keyword in call.keywords}.get("create_graph")
        if kept is not None and not isinstance(kept, ast.Constant):
            return []
        torch, added = module_name(source, "torch")
        name = _FUNCTIONAL[full_name(source, call.func)]
        detached = "" if isinstance(kept, ast.Constant) and kept.value else ".detach()"
        text = f"{torch}.func.{name}({source.segment(call.args[0])})({source.segment(call.args[1])}){detached}"
        return [self.rewrite(f"Write it with torch.func.{name}", source.replace(call, text), added)]

    def _kept(self, place: Place, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        if place.cause.kind != _RETAIN or not isinstance(statement, ast.Expr) or not place.calls("retain_grad"):
            return []
        torch, added = module_name(source, "torch")
        change = guard(source, statement, f"not {torch}.compiler.is_compiling()")
        if change is None:
            return []
        told = "In compiled code the gradient is not kept on this value; in eager code it is."
        return [self.rewrite("Keep the gradient only where nothing is being compiled", change, added, changes=told)]

    def _zeroed(self, place: Place, source: SourceFile) -> list[Proposal]:
        """`optimizer.zero_grad()` as the gradients of a model forgotten, where the function has exactly one model."""
        call, statement = self._stepped(place), place.statement
        if call is None or last_name(call.func) != "zero_grad" or call.args or call.keywords or statement is None:
            return []
        function = function_of(source, statement)
        if function is None:
            return []
        models = {
            source.segment(node.func)
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and last_name(node.func) in ("model", "net", "network", "module")
        }
        if len(models) != 1:
            return []
        told = "The gradients of all parameters of the model are forgotten, not only of those that the optimizer has."
        return [
            self.rewrite("Forget the gradients by the model", source.replace(call, f"{models.pop()}.zero_grad()"), changes=told)
        ]
