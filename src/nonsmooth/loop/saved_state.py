"""Saved states: arrays and numbers in one file, written and checked according to the declared roles of a state's fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.errors import StateError
from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.scaling import Scales
from nonsmooth.hessian import FullMemory, LimitedMemory
from nonsmooth.kinks.bundle import Bundle
from nonsmooth.kinks.pieces import ConstraintPieces
from nonsmooth.loop.incumbents import Incumbents
from nonsmooth.loop.schema import Kind, roles

if TYPE_CHECKING:
    from nonsmooth.loop.state import State

Vector = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]

FORMAT = 8
COLUMN_COUNT = 9
PARTS = {
    "bundle": Bundle, "pieces": ConstraintPieces, "current": Trial, "better": Trial, "incumbents": Incumbents, "scales": Scales,
}  # fmt: skip
OPTIONAL = ("better", "scales")
MATRICES = {kind.__name__: kind for kind in (FullMemory, LimitedMemory)}


def save(state: State, path: Path) -> None:
    """Write a state to a file."""
    arrays: Arrays = {"history": np.array(state.history, dtype=np.float64).reshape(-1, COLUMN_COUNT)}
    numbers: dict[str, Any] = {"format": FORMAT, "hessian": type(state.hessian).__name__}
    numbers["generator"] = state.generator.bit_generator.state
    for name, role in roles(type(state)).items():
        value = getattr(state, name)
        if role.kind is Kind.NUMBER:
            numbers[name] = value
        elif role.kind is Kind.COUNTS:
            numbers[name] = vars(value)
        elif role.kind is Kind.VECTOR:
            arrays[name] = value
        elif (role.kind is Kind.PART or name in PARTS) and value is not None:
            arrays |= {f"{name}.{part}": np.asarray(array) for part, array in value.arrays().items()}
    for name, hint in zip(("bundle.weights", "pieces.weights", "multipliers"), state.hints or (), strict=False):
        if name == "multipliers" or len(hint) == len(arrays[name]):
            arrays[name] = hint
    arrays["numbers"] = np.frombuffer(json.dumps(numbers).encode(), dtype=np.uint8)
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:  # array by array, which avoids a second copy in memory
        np.savez(file, **arrays)  # type: ignore[arg-type]
    partial.replace(path)  # a reader never sees an incomplete file


def load(path: Path, kind: type[State]) -> SavedState:
    """Read a file that `save` wrote, for a state of this class."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        numbers = json.loads(arrays.pop("numbers").tobytes().decode())
    except FileNotFoundError as error:
        raise StateError(f"there is no file {path}: write one with result.state.save(path)") from error
    except Exception as error:  # a damaged archive may raise any exception
        raise StateError(f"{path} is not a saved state: {error}") from error
    if not isinstance(numbers, dict):
        raise StateError(f"{path} is not a saved state: its numbers have no names")
    if numbers.get("format") != FORMAT:
        raise StateError(f"{path} was written by another version of nonsmooth (format {numbers.get('format')!r})")
    saved = SavedState(arrays, numbers, kind)
    saved.check(path)
    return saved


def _part(arrays: Mapping[str, Any], group: str) -> dict[str, Any]:
    return {name.partition(".")[2]: value for name, value in arrays.items() if name.startswith(group + ".")}


@dataclass(frozen=True)
class SavedState:
    """A state read from a file: arrays and numbers to load into a new run."""

    arrays: Arrays
    numbers: dict[str, Any]
    kind: type[State]

    def check(self, path: Path) -> None:
        """Raise StateError unless the data is complete and consistent."""
        arrays = self.arrays
        for name, role in roles(self.kind).items():
            missing = role.kind in (Kind.NUMBER, Kind.COUNTS) and name not in self.numbers
            if missing or (name == "current" and "current.x" not in arrays):
                raise StateError(f"{path} is not a complete saved state: {name!r} is missing")
            if role.kind is Kind.NUMBER and not _like(self.numbers[name], role.default):
                raise StateError(f"{path} is damaged: {name!r} is {self.numbers[name]!r}")
        for name, shape in self._shapes(path).items():
            if name not in arrays or arrays[name].shape != shape or arrays[name].dtype.kind not in "fi":
                raise StateError(f"{path} is damaged: {name!r} should be numbers of shape {shape}")

    def _shapes(self, path: Path) -> dict[str, tuple[int, ...]]:
        """The expected shape of every array; native code relies on these lengths."""
        arrays = self.arrays
        variables, constraints = (len(np.atleast_1d(arrays.get(f"current.{name}", np.zeros(0)))) for name in ("x", "c"))
        parts: dict[str, Any] = dict(PARTS)
        parts["hessian"] = MATRICES.get(str(self.numbers.get("hessian")))
        if parts["hessian"] is None:
            raise StateError(f"{path} is not a complete saved state: 'hessian' is missing")
        shapes: dict[str, tuple[int, ...]] = {"history": (len(np.atleast_1d(arrays.get("history", 0))), COLUMN_COUNT)}
        for group, part in parts.items():
            members = _part(arrays, group)
            if group in OPTIONAL and not members:
                continue
            try:
                expected = part.shapes(members, variables, constraints)
            except ValueError as error:
                raise StateError(f"{path} is damaged: {group}.{error}") from error
            shapes |= {f"{group}.{name}": shape for name, shape in expected.items()}
        sizes = {"variables": variables, "constraints": constraints}
        for name, role in roles(self.kind).items():
            if role.kind is Kind.VECTOR:
                shapes[name] = (0,) if name in arrays and arrays[name].shape == (0,) else (sizes[role.length],)
        return shapes

    @property
    def scales(self) -> Scales | None:
        """The units of the run; None if they are the user's."""
        arrays = _part(self.arrays, "scales")
        return Scales.restored(arrays) if arrays else None

    def check_sizes(self, start: Trial) -> None:
        """Raise StateError unless the state belongs to a problem with the same numbers of variables and constraints."""
        variables, constraints = len(self.arrays["current.x"]), len(self.arrays["current.c"])
        if (variables, constraints) != (len(start.x), len(start.c)):
            raise StateError(
                f"the saved state has {variables} variables and {constraints} constraints, "
                f"this problem has {len(start.x)} and {len(start.c)}"
            )

    def fill(self, state: State, units: Vector | None = None) -> None:
        """Load the saved values into the state of a new run; `units` are the factors of prescaling."""
        try:
            self._fill(state, units)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            raise StateError(f"the saved state is damaged: {error}") from error

    def _fill(self, state: State, units: Vector | None) -> None:
        arrays, numbers = self.arrays, self.numbers
        self.check_sizes(state.current)
        if numbers["hessian"] != type(state.hessian).__name__:
            raise StateError(
                f"the saved state uses {numbers['hessian']} and these options {type(state.hessian).__name__}; use the same "
                "memory"
            )
        for name, role in roles(type(state)).items():
            if role.kind is Kind.NUMBER:
                setattr(state, name, numbers[name])
            elif role.kind is Kind.COUNTS:
                setattr(state, name, type(getattr(state, name))(**numbers[name]))
            elif role.kind is Kind.VECTOR:
                setattr(state, name, np.array(arrays[name], dtype=np.float64))
            elif role.kind is Kind.PART:
                getattr(state, name).restore(_part(arrays, name))
        state.current = Trial.restored(_part(arrays, "current"), units)
        better = _part(arrays, "better")
        state.better = Trial.restored(better, units) if better else None
        state.incumbents.restore(_part(arrays, "incumbents"), units)
        state.generator.bit_generator.state = numbers["generator"]
        state.history = [tuple(row) for row in arrays["history"].tolist()]


def _like(value: object, default: object) -> bool:
    """Whether a number has the type of a default: an int for an int, any number for a float."""
    if isinstance(default, bool):
        return isinstance(value, bool)
    return isinstance(value, int | float if isinstance(default, float) else int) and not isinstance(value, bool)
