"""The unknowns: a tensor, a dict of tensors or a module for the user, one flat float64 array for the solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nonsmooth.arrays.memory import MIN_MMAP_ENTRIES, long_lived_copy, new_vector
from nonsmooth.errors import ProblemError

Vector = NDArray[np.float64]
_DOUBLE = torch.float64
Start = Tensor | Mapping[str, Tensor] | nn.Module | NDArray[Any] | Sequence[Any]


class Variables:
    """Converts between the user's form of x and a flat array.

    >>> variables = Variables({"a": torch.zeros(2), "b": torch.ones(1, 2, dtype=torch.float64)})
    >>> variables.start
    array([0., 0., 1., 1.])
    >>> variables.shaped(np.arange(4.0))["b"]
    tensor([[2., 3.]], dtype=torch.float64)
    """

    def __init__(self, start: Start) -> None:
        self._array = isinstance(start, np.ndarray | list | tuple)
        """Whether x is returned as a NumPy array."""
        if self._array:
            start = _from_numbers(start)
        self._start = start
        self.module = start if isinstance(start, nn.Module) else None
        named = _named(start)
        if not named:
            raise ProblemError("x0 has no variables: give a tensor, a dict of tensors, or a module with trainable parameters")
        for name, tensor in named.items():
            _check(name, tensor)
        self.names = tuple(named)
        self._templates = [tensor.detach() for tensor in named.values()]
        self._parameters = list(named.values()) if self.module is not None else []
        sizes = [tensor.numel() for tensor in self._templates]
        self._slices = [slice(stop - size, stop) for size, stop in zip(sizes, np.cumsum(sizes).tolist(), strict=True)]
        self.size = sum(sizes)
        self._on_cuda = all(tensor.device == self.device and tensor.device.type == "cuda" for tensor in self._templates)
        self.single_precision = any(torch.finfo(tensor.dtype).eps > 1e-12 for tensor in self._templates)
        """Whether any variable has less than double precision."""
        if self.size == 0:
            raise ProblemError("x0 is empty: there is nothing to minimize over")
        self.start = self.flat(self._templates)
        if not np.isfinite(self.start).all():
            raise ProblemError("x0 contains NaN or infinity; the start must be finite")

    @property
    def template(self) -> Start:
        """A start of the same form, from which the same variables can be created; for a module, the module itself."""
        if self.module is not None:
            return self.module
        if self._array:
            return self._templates[0].numpy()
        return self._templates[0] if isinstance(self._start, Tensor) else dict(zip(self.names, self._templates, strict=True))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only the form of x, and not a module, whose class may not be importable elsewhere."""
        state = {name: value for name, value in vars(self).items() if name != "_stage"}
        pieces = dict(zip(self.names, self._templates, strict=True))
        start = self._templates[0] if isinstance(self._start, Tensor) else pieces
        return {**state, "_start": start, "module": None, "_parameters": []}

    @property
    def layout(self) -> tuple[tuple[str, tuple[int, ...], str], ...]:
        """Name, shape and type of every variable."""
        templates = zip(self.names, self._templates, strict=True)
        return tuple((name, tuple(tensor.shape), str(tensor.dtype)) for name, tensor in templates)

    @property
    def device(self) -> torch.device:
        """The device of the variables."""
        return self._templates[0].device

    def rounded(self, x: Vector) -> Vector:
        """The nearest point that the variables' types can represent."""
        if not self.single_precision:
            return long_lived_copy(x) if len(x) >= MIN_MMAP_ENTRIES else x
        return self.flat([piece.detach() for piece in self._pieces(x)])

    def place(self, x: Vector) -> tuple[Any, list[Tensor]]:
        """The argument for the user's function at x, and the leaf tensors to differentiate with respect to."""
        if self.module is not None:
            whole, parts = self._stage
            with torch.no_grad():
                whole.copy_(torch.from_numpy(x))  # to another device in one transfer instead of many
                for parameter, part in zip(self._parameters, parts, strict=True):
                    parameter.copy_(part)
            return self.module, self._parameters
        leaves = [piece.requires_grad_() for piece in self._pieces(x)]
        return (leaves[0] if isinstance(self._start, Tensor) else dict(zip(self.names, leaves, strict=True))), leaves

    @cached_property
    def _stage(self) -> tuple[Tensor, list[Tensor]]:
        """A staging buffer for a module's parameters: the whole point, and one view for each parameter."""
        whole = torch.empty(self.size, dtype=_DOUBLE, device=self.device if self._on_cuda else "cpu")
        return whole, [
            whole[part].view(parameter.shape) for parameter, part in zip(self._parameters, self._slices, strict=True)
        ]

    @property
    def is_single(self) -> bool:
        """Whether the variables are one tensor."""
        return isinstance(self._start, Tensor)

    def assembler(self) -> Callable[[Tensor], tuple[Any, list[Tensor]]]:
        """A function like `place`, for flat tensors that may be symbolic in a tracer (not for a module, which it writes to).

        Its closure has only the layout, so that guards on it do not depend on the start.
        """
        names, single, module, parameters = self.names, isinstance(self._start, Tensor), self.module, self._parameters
        layout = [
            (part.start, part.stop, tuple(template.shape), template.dtype)
            for part, template in zip(self._slices, self._templates, strict=True)
        ]

        def assembled(x: Tensor) -> tuple[Any, list[Tensor]]:
            pieces = [x[start:stop].reshape(shape).to(dtype) for start, stop, shape, dtype in layout]
            if module is not None:
                with torch.no_grad():
                    for parameter, piece in zip(parameters, pieces, strict=True):
                        parameter.copy_(piece)
                return module, parameters
            leaves = [piece.detach().requires_grad_() for piece in pieces]
            return (leaves[0] if single else dict(zip(names, leaves, strict=True))), leaves

        return assembled

    def flat(self, tensors: Sequence[Tensor]) -> Vector:
        """One flat array from tensors in the order of the variables."""
        if len(tensors) > 1 and self._on_cuda:  # one transfer instead of many
            tensors = [torch.cat([tensor.detach().reshape(-1).to(self.device, torch.float64) for tensor in tensors])]
        pieces = [numbers(tensor).reshape(-1) for tensor in tensors]
        return np.concatenate(pieces, out=new_vector(self.size)) if len(pieces) != 1 else long_lived_copy(pieces[0])

    def rows(self, tensors: Sequence[Tensor], count: int) -> NDArray[np.float64]:
        """One array (count, n) from tensors that have a leading dimension of `count`."""
        pieces = [
            # torch returns zeros without the leading dimension for a variable that is not used
            tensor.detach().expand(count, *template.shape).reshape(count, -1).to("cpu", torch.float64).numpy()
            for tensor, template in zip(tensors, self._templates, strict=True)
        ]
        return np.concatenate(pieces, axis=1) if len(pieces) != 1 else np.ascontiguousarray(pieces[0])

    def shaped(self, x: Vector) -> Any:
        """x in the user's form: a tensor, an array, or a dict of tensors (for a module, its parameters by name)."""
        pieces = self._pieces(x)
        if self._array:
            return pieces[0].numpy()
        return pieces[0] if isinstance(self._start, Tensor) else dict(zip(self.names, pieces, strict=True))

    def answer(self, x: Vector) -> Any:
        """x in the user's form; for a module, the module itself with x as its parameters."""
        return self.place(x)[0] if self.module is not None else self.shaped(x)

    def flatten(self, form: Any, *, what: str) -> Vector:
        """A flat array from a number, a tensor, or values in the form of x0, as in bounds and in the user's own gradients."""
        if isinstance(form, int | float):
            return np.full(self.size, float(form))
        if isinstance(form, np.ndarray):
            form = torch.from_numpy(form)
        if isinstance(form, Mapping):
            missing = [name for name in self.names if name not in form]
            if missing:
                raise ProblemError(
                    f"{what} has no entry for the variable {missing[0]!r}; give one for each of {', '.join(self.names)}"
                )
            form = [form[name] for name in self.names]
        if isinstance(form, list | tuple):
            if len(form) == self.size != len(self.names) and all(isinstance(item, int | float) for item in form):
                return np.array(form, dtype=np.float64)
            if len(form) != len(self.names):
                variables = f"{len(self.names)} variable{'' if len(self.names) == 1 else 's'}"
                raise ProblemError(
                    f"{what} is a {type(form).__name__} of {len(form)}, and x0 has {variables} with {self.size} numbers: give "
                    "one number, or values in the form of x0"
                )
            return self.flat([self._part(part, template, what) for part, template in zip(form, self._templates, strict=True)])
        if isinstance(form, Tensor) and form.numel() in (1, self.size):
            return np.array(np.broadcast_to(form.detach().reshape(-1).to("cpu", torch.float64).numpy(), self.size))
        raise ProblemError(f"{what} must have the form of x0 ({self.size} numbers), not {_describe(form)}")

    @staticmethod
    def _part(part: Any, template: Tensor, what: str) -> Tensor:
        try:
            tensor = torch.as_tensor(part, dtype=torch.float64, device="cpu").detach()
        except (TypeError, ValueError, RuntimeError) as error:
            raise ProblemError(f"{what} has a part that is neither a number nor a tensor: {part!r}") from error
        if tensor.numel() == template.numel():
            return tensor.reshape(template.shape)
        if tensor.numel() == 1:
            return tensor.reshape(()).expand(template.shape)
        raise ProblemError(f"{what} has a part of shape {tuple(tensor.shape)} for a variable of shape {tuple(template.shape)}")

    def _pieces(self, x: Vector) -> list[Tensor]:
        if len(self._templates) > 1 and self._on_cuda:
            whole = torch.tensor(x, dtype=torch.float64, device=self.device)
            return [
                whole[part].reshape(template.shape).to(template.dtype, copy=True)
                for part, template in zip(self._slices, self._templates, strict=True)
            ]
        return [_piece(x[part], template) for part, template in zip(self._slices, self._templates, strict=True)]


def is_plain(tensor: Tensor) -> bool:
    """Whether NumPy can share a tensor's memory."""
    return tensor.dtype is _DOUBLE and tensor.is_cpu


def numbers(tensor: Tensor) -> NDArray[np.float64]:
    """The values of a tensor, without a copy where NumPy can share its memory."""
    if not is_plain(tensor):
        return tensor.detach().to("cpu", torch.float64).numpy()
    if tensor.is_neg():  # like the imaginary part of a conjugate, which torch stores with the opposite sign
        tensor = tensor.resolve_neg()
    return tensor.detach().numpy()


def _piece(values: Vector, template: Tensor) -> Tensor:
    if is_plain(template):
        return torch.from_numpy(values.reshape(template.shape)).clone()  # in memory aligned by torch
    return torch.tensor(values, dtype=template.dtype, device=template.device).reshape(template.shape)


def _from_numbers(start: Any) -> Tensor:
    """A NumPy array, or a list of numbers, as a new tensor."""
    try:
        numbers = np.asarray(start)
    except (TypeError, ValueError, RuntimeError) as error:  # rows of different lengths, or tensors in a list
        raise ProblemError(f"x0 is a {type(start).__name__} that is not an array of numbers: {error}") from error
    if numbers.dtype.kind not in "fiu" or _has_tensors(start):
        raise ProblemError(
            f"x0 is a {type(start).__name__} of {'tensors' if _has_tensors(start) else numbers.dtype}; give a list of numbers, "
            "a dict of tensors by name, or one tensor, as from torch.stack"
        )
    return torch.from_numpy(np.array(numbers, dtype=np.float64))


def _has_tensors(start: Any) -> bool:
    return isinstance(start, list | tuple) and any(isinstance(item, Tensor) or _has_tensors(item) for item in start)


def _named(start: Any) -> dict[str, Tensor]:
    if isinstance(start, Tensor):
        return {"x": start}
    if isinstance(start, nn.Module):
        return {name: parameter for name, parameter in start.named_parameters() if parameter.requires_grad}
    if isinstance(start, Mapping):
        return dict(start)
    raise ProblemError(
        f"x0 must be a tensor, a dict of tensors, a module, an array or a list of numbers, not {_describe(start)}"
    )


def _check(name: str, tensor: object) -> None:
    if not isinstance(tensor, Tensor):
        raise ProblemError(f"the variable {name!r} must be a tensor, not {_describe(tensor)}")
    if not tensor.is_floating_point():
        raise ProblemError(f"the variable {name!r} has type {tensor.dtype}; use float64 (or float32), as in x0.double()")


def _describe(value: object) -> str:
    return f"{type(value).__name__} of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
