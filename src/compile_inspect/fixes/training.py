"""Backward passes and optimizer steps inside compiled code."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import BreakSite, Fixer, last_name
from compile_inspect.fixes.edits import full_name, function_of, guard, module_name
from compile_inspect.fixes.source import SourceFile
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
    """Gradients computed and optimizers stepped inside the compiled function."""

    name = "training"

    def matches(self, site: BreakSite) -> bool:
        """Whether the line belongs to a training step."""
        if site.cause.kind.startswith(_KINDS) or site.cause.kind in (_RETAIN, _HOOKS):
            return True
        return self._is_untraced_optimizer(site) or self._functional_call(site) is not None

    def why(self, site: BreakSite) -> str:
        """Why the graph breaks."""
        if site.cause.kind == _RETAIN:
            return "The line retains the gradient of an intermediate value, which is not accessible outside the graph."
        if site.cause.kind == _HOOKS:
            return (
                "A module has a backward hook. Hooks are Python code that runs in the backward pass, which torch compiles "
                "without tracing them."
            )
        if self._is_untraced_optimizer(site) and not site.cause.kind.startswith(_KINDS):
            return (
                "The optimizer (or its scaler or scheduler) is Python code that torch keeps out of the graph on purpose: the "
                "graph ends before the call, and another one begins after it."
            )
        return (
            "The compiled function computes a gradient itself. Torch compiles a forward pass and derives the backward pass "
            "from it; a function that runs both is split where the backward pass begins."
        )

    def hints(self, site: BreakSite) -> tuple[str, ...]:
        """What you can do by hand."""
        if site.cause.kind == _RETAIN:
            return ("Also return the value, and call retain_grad() on it outside the compiled function.",)
        if site.cause.kind == _HOOKS:
            return ("Register hooks on the inputs or outputs of the compiled function instead.",)
        return (
            "Compile the model and the loss, torch.compile(lambda batch: loss(model(batch))), and leave backward(), step() and "
            "zero_grad() in the Python function around it: torch compiles the backward pass anyway.",
            "If you only need the gradient of a pure function, use torch.func.grad, vjp or jacrev, which torch traces.",
            "You can compile the step separately: torch.compile(optimizer.step). With a schedule, pass the learning rate as "
            "a tensor, lr=torch.tensor(1e-3): every new number would be compiled again.",
        )

    def proposals(self, site: BreakSite) -> list[Proposal]:
        """Use functions that torch traces, skip what is only observed, or change the settings that let torch trace it."""
        proposals: list[Proposal] = []
        source, statement = site.source, site.statement
        if source is not None and statement is not None:
            proposals += [
                *self._use_functional_transform(site, source),
                *self._skip_retain_grad(site, source, statement),
                *self._zero_by_model(site, source),
            ]
        if site.cause.kind.startswith(_KINDS):
            title = "Let torch trace the backward pass too"
            where = "The function computes the gradient of its own results."
            proposals.append(self.setting(title, _TRACE, where=where))
        if site.cause.kind == _HOOKS:
            title = "Compile the backward pass when it runs, including hooks"
            where = "Hooks only read or change gradients; their effects outside of tensors may occur during compilation."
            proposals.append(self.setting(title, "torch._dynamo.config.compiled_autograd = True", where=where))
        return proposals

    def _is_untraced_optimizer(self, site: BreakSite) -> bool:
        """Whether torch reports that it does not trace an optimizer, or the line calls something named like one."""
        is_reported = site.mentions(
            "torch/amp/grad_scaler", "torch/optim/", "Optimizer.zero_grad", "optimizer: pending mutation"
        )
        return is_reported or self._optimizer_call(site) is not None

    def _optimizer_call(self, site: BreakSite) -> ast.Call | None:
        for call in site.calls(*_METHODS):
            if isinstance(call.func, ast.Attribute):
                owner = last_name(call.func.value).lower()
                if owner in _OPTIMIZERS or owner.endswith(tuple(f"_{name}" for name in _OPTIMIZERS)):
                    return call
        return None

    def _functional_call(self, site: BreakSite) -> ast.Call | None:
        source = site.source
        if source is None:
            return None
        return next((call for call in site.calls() if full_name(source, call.func) in _FUNCTIONAL), None)

    def _use_functional_transform(self, site: BreakSite, source: SourceFile) -> list[Proposal]:
        call = self._functional_call(site)
        names = [] if call is None else [keyword.arg for keyword in call.keywords]
        if call is None or len(call.args) != 2 or set(names) - {"create_graph", "vectorize"}:
            return []
        if isinstance(call.args[1], (ast.Tuple, ast.List, ast.Starred)):
            return []
        create_graph = {keyword.arg: keyword.value for keyword in call.keywords}.get("create_graph")
        if create_graph is not None and not isinstance(create_graph, ast.Constant):
            return []
        torch, added = module_name(source, "torch")
        name = _FUNCTIONAL[full_name(source, call.func)]
        detached = "" if isinstance(create_graph, ast.Constant) and create_graph.value else ".detach()"
        text = f"{torch}.func.{name}({source.segment(call.args[0])})({source.segment(call.args[1])}){detached}"
        return [self.rewrite(f"Use torch.func.{name}", source.replace(call, text), added)]

    def _skip_retain_grad(self, site: BreakSite, source: SourceFile, statement: ast.stmt) -> list[Proposal]:
        if site.cause.kind != _RETAIN or not isinstance(statement, ast.Expr) or not site.calls("retain_grad"):
            return []
        torch, added = module_name(source, "torch")
        change = guard(source, statement, f"not {torch}.compiler.is_compiling()")
        if change is None:
            return []
        note = "Compiled code does not retain the gradient of this value; eager code does."
        return [self.rewrite("Retain the gradient only in eager mode", change, added, changes=note)]

    def _zero_by_model(self, site: BreakSite, source: SourceFile) -> list[Proposal]:
        """Replace `optimizer.zero_grad()` by `model.zero_grad()` if the function has exactly one model."""
        call, statement = self._optimizer_call(site), site.statement
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
        note = "The gradients of all parameters of the model are reset, not only of those that the optimizer updates."
        return [
            self.rewrite(
                "Reset the gradients with the model", source.replace(call, f"{models.pop()}.zero_grad()"), changes=note
            )
        ]
