"""Tensors that are resized or filled in place, and kinds of tensors that a graph cannot contain."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import BreakSite, Fixer
from compile_inspect.fixes.edits import full_name, function_of, module_name, uses, without_keyword
from compile_inspect.fixes.source import SourceFile
from compile_inspect.records.fixes import Proposal

_RESIZED = ("Unsupported Tensor.resize_() call", "Unsupported Tensor.resize_as_() call")
_OUT, _RANDOM_INTEGERS = "Shape mismatch with out=", "Tensor.random_ op"
_SPARSE = ("Attempted to wrap sparse Tensor", "Sparse tensor creation not supported", "Unsupported Tensor.sparse_resize_")
_RANDOM_STATE = ("torch.Generator method", "Tensor.uniform_ op")
_SEEDS = ("torch.manual_seed", "torch.seed", "torch.get_rng_state", "torch.set_rng_state", "torch.cuda.manual_seed_all")
_SPARSE_MAKERS = ("torch.sparse_coo_tensor", "torch.sparse_csr_tensor")
_TENSOR_MAKERS = ("torch.empty", "torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.tensor")


class Allocation(Fixer):
    """Tensors that are created first and get their shape or values later."""

    name = "allocation"

    def matches(self, site: BreakSite) -> bool:
        """Whether the line resizes a tensor, fills it with random numbers, or creates one that a graph cannot contain."""
        if site.cause.kind.startswith((*_RESIZED, _OUT, _RANDOM_INTEGERS, *_SPARSE, *_RANDOM_STATE)):
            return True
        return _calls(site, *_SEEDS, *_SPARSE_MAKERS, "torch.Generator") or site.mentions(
            "UserDefinedObjectVariable(Generator)"
        )

    def why(self, site: BreakSite) -> str:
        """Why the graph breaks."""
        kind = site.cause.kind
        if kind.startswith((*_RESIZED, _OUT)):
            return (
                "The line changes the shape of an existing tensor; in a graph, the shape of a tensor is fixed when it is "
                "created."
            )
        if kind.startswith(_SPARSE) or _calls(site, *_SPARSE_MAKERS):
            return "The line uses a sparse tensor. torch.compile traces dense tensors only and leaves the rest to Python."
        if kind.startswith(_RANDOM_INTEGERS):
            return (
                "The line draws random integers into an existing tensor; torch.compile supports only functions that return a "
                "new one."
            )
        return (
            "The line sets or uses the state of a random number generator. A graph draws from the global generator, whose "
            "state is not part of the graph."
        )

    def hints(self, site: BreakSite) -> tuple[str, ...]:
        """What you can do by hand."""
        kind = site.cause.kind
        if kind.startswith((*_RESIZED, _OUT)):
            return ("Create the tensor with its final shape, or assign the result to a new name instead of using out=.",)
        if kind.startswith(_SPARSE) or _calls(site, *_SPARSE_MAKERS):
            return (
                "Keep the indices and values as dense tensors and use index_add, scatter_add or torch.segment_reduce.",
                "Put the product with the sparse tensor into a torch.library.custom_op, or compute it outside the compiled "
                "function.",
            )
        return (
            "Set the seed before you call the compiled function, and draw from the global generator inside it.",
            "Draw the numbers outside with the generator, and pass them in as an argument.",
        )

    def proposals(self, site: BreakSite) -> list[Proposal]:
        """Create a new tensor instead of changing an existing one."""
        source, statement, kind = site.source, site.statement, site.cause.kind
        if source is None or statement is None:
            return []
        if kind.startswith(_RANDOM_INTEGERS):
            return self._draw_with_randint(site, source)
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call):
            return []
        if kind.startswith(_RESIZED):
            return self._make_new_tensor(source, statement, call)
        return self._assign_result(source, statement, call) if kind.startswith(_OUT) else []

    def _make_new_tensor(self, source: SourceFile, statement: ast.stmt, call: ast.Call) -> list[Proposal]:
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(owner, ast.Name) or not _is_fresh(source, statement, owner.id) or call.keywords or not call.args:
            return []
        shape = ", ".join(source.segment(item) for item in call.args)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "resize_as_":
            shape = f"{source.segment(call.args[0])}.shape"
        elif len(call.args) > 1:
            shape = f"({shape})"
        text = f"{owner.id} = {owner.id}.new_empty({shape})"
        return [self.rewrite("Create a tensor of that shape", source.replace(statement, text))]

    def _assign_result(self, source: SourceFile, statement: ast.stmt, call: ast.Call) -> list[Proposal]:
        out = next((item.value for item in call.keywords if item.arg == "out"), None)
        shorter = without_keyword(source, call, "out")
        if not isinstance(out, ast.Name) or shorter is None or not _is_fresh(source, statement, out.id):
            return []
        start = source.span(statement)[0]
        name = source.replace(statement, "")
        assignment = type(name)(name.file, start, start, "", f"{out.id} = ")
        return [self.rewrite("Assign the result to the name", assignment, shorter)]

    def _draw_with_randint(self, site: BreakSite, source: SourceFile) -> list[Proposal]:
        for call in site.calls("random_"):
            creation = call.func.value if isinstance(call.func, ast.Attribute) else None
            if not isinstance(creation, ast.Call) or call.keywords or len(call.args) not in (1, 2):
                continue
            torch, added = module_name(source, "torch")
            low, high = ["0", *(source.segment(item) for item in call.args)][-2:]
            if any(isinstance(item, ast.Starred) for item in [*creation.args, *call.args]) or not creation.args:
                continue
            options = [source.segment(item) for item in creation.keywords]
            keywords = {item.arg for item in creation.keywords}
            shape = ", ".join(source.segment(item) for item in creation.args)
            name = full_name(source, creation.func)
            is_size_list = len(creation.args) > 1 or isinstance(creation.args[0], ast.Constant)
            size = f"({shape},)" if is_size_list and len(creation.args) == 1 else f"({shape})" if is_size_list else shape
            if name in ("torch.empty_like", "torch.zeros_like", "torch.ones_like") and len(creation.args) == 1:
                text = f"{torch}.randint_like({', '.join([shape, low, high, *options])})"
                title = "Draw the integers with torch.randint_like"
            elif name in ("torch.empty", "torch.zeros", "torch.LongTensor"):
                if name != "torch.LongTensor" and "dtype" not in keywords:
                    options.append(f"dtype={torch}.get_default_dtype()")
                if not is_size_list and not isinstance(creation.args[0], (ast.Tuple, ast.List, ast.Attribute)):
                    continue
                text = f"{torch}.randint({', '.join([low, high, size, *options])})"
                title = "Draw the integers with torch.randint"
            else:
                continue
            return [self.rewrite(title, source.replace(call, text), added)]
        return []


def _calls(site: BreakSite, *names: str) -> bool:
    source = site.source
    return source is not None and any(full_name(source, call.func) in names for call in site.calls())


def _is_fresh(source: SourceFile, statement: ast.stmt, name: str) -> bool:
    """Whether a name refers to a tensor that the same function created and did not use before the statement."""
    function = function_of(source, statement)
    before = [] if function is None else [node for node in uses(function, name) if node.lineno < statement.lineno]
    if len(before) != 1 or not isinstance(before[0].ctx, ast.Store):
        return False
    assignment = source.parents[before[0]]
    same_block = source.parents.get(assignment) is source.parents.get(statement)
    return (
        same_block
        and isinstance(assignment, ast.Assign)
        and isinstance(assignment.value, ast.Call)
        and full_name(source, assignment.value.func) in _TENSOR_MAKERS
    )
