"""Memory that is resized or filled in place, and tensors of kinds that a graph does not hold."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import Fixer, Place
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.writing import full_name, function_of, module_name, uses, without_keyword
from compile_inspect.records.fixes import Proposal

_RESIZED = ("Unsupported Tensor.resize_() call", "Unsupported Tensor.resize_as_() call")
_OUT, _RANDOM = "Shape mismatch with out=", "Tensor.random_ op"
_SPARSE = ("Attempted to wrap sparse Tensor", "Sparse tensor creation not supported", "Unsupported Tensor.sparse_resize_")
_DRAWN = ("torch.Generator method", "Tensor.uniform_ op")
_SEEDS = ("torch.manual_seed", "torch.seed", "torch.get_rng_state", "torch.set_rng_state", "torch.cuda.manual_seed_all")
_SPARSE_MAKERS = ("torch.sparse_coo_tensor", "torch.sparse_csr_tensor")
_EMPTY = ("torch.empty", "torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.tensor")


class Allocation(Fixer):
    """Tensors made first and given their shape or their values later."""

    name = "allocation"

    def concerns(self, place: Place) -> bool:
        """Whether the line resizes memory, draws into it, or makes a tensor of a kind that a graph does not hold."""
        if place.cause.kind.startswith((*_RESIZED, _OUT, _RANDOM, *_SPARSE, *_DRAWN)):
            return True
        return _calls(place, *_SEEDS, *_SPARSE_MAKERS, "torch.Generator") or place.says("UserDefinedObjectVariable(Generator)")

    def why(self, place: Place) -> str:
        """The reason."""
        kind = place.cause.kind
        if kind.startswith((*_RESIZED, _OUT)):
            return (
                "A tensor gets another shape while the function runs; in a graph every tensor has one shape from its making on."
            )
        if kind.startswith(_SPARSE) or _calls(place, *_SPARSE_MAKERS):
            return "A sparse tensor is used; torch.compile holds dense tensors only, and leaves code with others to Python."
        if kind.startswith(_RANDOM):
            return (
                "Integers are drawn into memory that is already there; torch.compile knows only those that make a new tensor."
            )
        return (
            "The line sets or uses the state of a generator of random numbers; a graph draws from the global one, whose state "
            "is not part of it."
        )

    def hints(self, place: Place) -> tuple[str, ...]:
        """What to do by hand."""
        kind = place.cause.kind
        if kind.startswith((*_RESIZED, _OUT)):
            return ("Make the tensor with the shape it will have, or give the result a new name instead of out=.",)
        if kind.startswith(_SPARSE) or _calls(place, *_SPARSE_MAKERS):
            return (
                "Keep the indices and values as dense tensors and use index_add, scatter_add or torch.segment_reduce.",
                "Put the product with the sparse tensor into a torch.library.custom_op, or call it outside.",
            )
        return (
            "Set the seed before the compiled function is called, and draw from the global generator inside.",
            "Draw the numbers outside, with the generator, and pass them as an argument.",
        )

    def proposals(self, place: Place) -> list[Proposal]:
        """A new tensor instead of an old one that is changed."""
        source, statement, kind = place.source, place.statement, place.cause.kind
        if source is None or statement is None:
            return []
        if kind.startswith(_RANDOM):
            return self._drawn(place, source)
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call):
            return []
        if kind.startswith(_RESIZED):
            return self._made(source, statement, call)
        return self._named(source, statement, call) if kind.startswith(_OUT) else []

    def _made(self, source: SourceFile, statement: ast.stmt, call: ast.Call) -> list[Proposal]:
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(owner, ast.Name) or not _is_fresh(source, statement, owner.id) or call.keywords or not call.args:
            return []
        shape = ", ".join(source.segment(item) for item in call.args)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "resize_as_":
            shape = f"{source.segment(call.args[0])}.shape"
        elif len(call.args) > 1:
            shape = f"({shape})"
        text = f"{owner.id} = {owner.id}.new_empty({shape})"
        return [self.rewrite("Make a tensor of that shape", source.replace(statement, text))]

    def _named(self, source: SourceFile, statement: ast.stmt, call: ast.Call) -> list[Proposal]:
        out = next((item.value for item in call.keywords if item.arg == "out"), None)
        shorter = without_keyword(source, call, "out")
        if not isinstance(out, ast.Name) or shorter is None or not _is_fresh(source, statement, out.id):
            return []
        start = source.span(statement)[0]
        name = source.replace(statement, "")
        named = type(name)(name.file, start, start, "", f"{out.id} = ")
        return [self.rewrite("Give the result its name", named, shorter)]

    def _drawn(self, place: Place, source: SourceFile) -> list[Proposal]:
        for call in place.calls("random_"):
            made = call.func.value if isinstance(call.func, ast.Attribute) else None
            if not isinstance(made, ast.Call) or call.keywords or len(call.args) not in (1, 2):
                continue
            torch, added = module_name(source, "torch")
            low, high = ["0", *(source.segment(item) for item in call.args)][-2:]
            if any(isinstance(item, ast.Starred) for item in [*made.args, *call.args]) or not made.args:
                continue
            options = [source.segment(item) for item in made.keywords]
            named = {item.arg for item in made.keywords}
            shape = ", ".join(source.segment(item) for item in made.args)
            name = full_name(source, made.func)
            several = len(made.args) > 1 or isinstance(made.args[0], ast.Constant)
            size = f"({shape},)" if several and len(made.args) == 1 else f"({shape})" if several else shape
            if name in ("torch.empty_like", "torch.zeros_like", "torch.ones_like") and len(made.args) == 1:
                text = f"{torch}.randint_like({', '.join([shape, low, high, *options])})"
                title = "Draw the integers with torch.randint_like"
            elif name in ("torch.empty", "torch.zeros", "torch.LongTensor"):
                if name != "torch.LongTensor" and "dtype" not in named:
                    options.append(f"dtype={torch}.get_default_dtype()")
                if not several and not isinstance(made.args[0], (ast.Tuple, ast.List, ast.Attribute)):
                    continue
                text = f"{torch}.randint({', '.join([low, high, size, *options])})"
                title = "Draw the integers with torch.randint"
            else:
                continue
            return [self.rewrite(title, source.replace(call, text), added)]
        return []


def _calls(place: Place, *names: str) -> bool:
    source = place.source
    return source is not None and any(full_name(source, call.func) in names for call in place.calls())


def _is_fresh(source: SourceFile, statement: ast.stmt, name: str) -> bool:
    """Whether a name stands for memory that the same function has made and not used before the statement."""
    function = function_of(source, statement)
    before = [] if function is None else [node for node in uses(function, name) if node.lineno < statement.lineno]
    if len(before) != 1 or not isinstance(before[0].ctx, ast.Store):
        return False
    made = source.parents[before[0]]
    same = source.parents.get(made) is source.parents.get(statement)
    return (
        same
        and isinstance(made, ast.Assign)
        and isinstance(made.value, ast.Call)
        and full_name(source, made.value.func) in _EMPTY
    )
