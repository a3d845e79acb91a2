"""What to inspect: a callable with its inputs, given in Python or named on a command line."""

from __future__ import annotations

import importlib
import importlib.util
import inspect as python_inspect
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from compile_inspect.errors import TargetError
from compile_inspect.literal_inputs import make_inputs, names_an_object

Inputs = tuple[tuple[Any, ...], Mapping[str, Any]]


@dataclass(frozen=True)
class Target:
    """A callable, example inputs, further inputs of other shapes or values, and whether gradients matter.

    `gradients=None` means: run the backward where an output has a gradient; False: compute without gradients, as under
    `torch.no_grad()`.

    >>> target = Target(max, (1, 2), further=(((3, 4), {}),))
    >>> [target.function(*args, **kwargs) for args, kwargs in target.all_inputs()]
    [2, 4]
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    further: tuple[Inputs, ...] = ()
    gradients: bool | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TargetError(f"a target needs a callable, not {self.function!r:.80}")
        if not isinstance(self.args, tuple):
            raise TargetError(f"args must be a tuple, not {type(self.args).__name__}: write (x,) for one input")

    def all_inputs(self) -> tuple[Inputs, ...]:
        """The example inputs, then the further ones."""
        return ((self.args, self.kwargs), *self.further)


def target_of_call(
    function: Callable[..., Any] | Target,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    caller: str,
    options: Collection[str],
) -> Target:
    """The target of a call such as `breaks(function, *args, **kwargs)`; `options` are the caller's own keyword arguments.

    >>> target_of_call(max, (1, 2), {}, caller="breaks", options=()).args
    (1, 2)
    """
    if isinstance(function, Target):
        if args or kwargs:
            raise TargetError(f"a Target has its own inputs; call {caller}(target) without further arguments")
        return function
    if not callable(function):
        raise TargetError(f"{caller} needs a callable, not {function!r:.80}")
    try:
        parameters = set(python_inspect.signature(getattr(function, "forward", function)).parameters)
    except (TypeError, ValueError):
        parameters = set()
    shared = sorted(parameters.intersection(options))
    if shared:
        raise TargetError(
            f"{', '.join(shared)} is both a parameter of the function and an option of {caller}: "
            "pass the inputs as Target(function, args, kwargs)"
        )
    return Target(function, args, kwargs)


def find_target(specification: str, inputs: str | None = None, *, no_grad: bool = False) -> Target:
    """The target that `module:attribute` or `file.py:attribute` names.

    The attribute is a `Target`, a callable that needs no arguments, or a callable or module whose inputs
    `inputs` names in the same way: a tuple of arguments, a mapping of keyword arguments, one tensor, or a
    function that returns one of these. You can also write inputs directly: `float32[16, 8], int64[16], scale=0.5`.
    With `no_grad` it runs without gradients, as under `torch.no_grad()`.
    """
    target = _find_target(specification, inputs)
    return replace(target, gradients=False) if no_grad else target


def _find_target(specification: str, inputs: str | None) -> Target:
    target_object = find_object(specification)
    if isinstance(target_object, Target):
        if inputs is not None:
            raise TargetError(f"{specification} is a Target and has its own inputs; leave out --inputs {inputs}")
        return target_object
    if not callable(target_object):
        raise TargetError(
            f"{specification} is a {type(target_object).__name__}, which cannot be called; name a function, module or Target"
        )
    if isinstance(target_object, type) and (inputs is None or hasattr(target_object, "forward")):
        target_object = _instantiate(specification, target_object)
    if inputs is not None:
        args, kwargs = as_inputs(find_object(inputs)) if names_an_object(inputs) else make_inputs(inputs)
        return Target(target_object, args, kwargs)
    raise_if_inputs_needed(specification, target_object)
    return Target(target_object)


def find_object(specification: str) -> Any:
    """Import what `module:attribute` or `file.py:attribute` names."""
    location, separator, attribute = specification.rpartition(":")
    if not separator or not location or not attribute:
        raise TargetError(f"{specification!r} does not name a target: write module:attribute or file.py:attribute")
    module = _import_file(Path(location)) if location.endswith(".py") else _import_module(location)
    value: Any = module
    for name in attribute.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            public = ", ".join(sorted(item for item in vars(module) if not item.startswith("_"))[:12]) or "nothing"
            raise TargetError(f"{location} has no attribute {name!r}; it defines {public}") from None
        except Exception as error:
            raise TargetError(f"reading {name!r} of {location} raised {type(error).__name__}: {error}") from error
    return value


def as_inputs(value: Any) -> Inputs:
    """Inputs in any of the accepted forms as positional and keyword arguments.

    >>> as_inputs({"x": 1})
    ((), {'x': 1})
    >>> as_inputs(lambda: (1, 2))
    ((1, 2), {})
    """
    if callable(value) and not hasattr(value, "shape"):
        try:
            value = value()
        except Exception as error:
            raise TargetError(f"making the inputs raised {type(error).__name__}: {error}") from error
    if isinstance(value, Mapping):
        return (), dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(value), {}
    return (value,), {}


def raise_if_inputs_needed(specification: str, function: Callable[..., Any]) -> None:
    """Raise if `function` cannot be called without arguments."""
    forward = getattr(function, "forward", function)
    try:
        parameters = python_inspect.signature(forward).parameters.values()
    except (TypeError, ValueError):  # built in C: calling it will show
        return
    needed = [
        item.name
        for item in parameters
        if item.default is item.empty and item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
    ]
    if needed:
        raise TargetError(
            f"{specification} needs {', '.join(needed)}: give inputs with --inputs module:attribute, or name a Target"
        )


def _instantiate(specification: str, kind: type) -> Any:
    try:
        return kind()
    except Exception as error:
        raise TargetError(
            f"{specification} is a class that cannot be built without arguments ({error}); name an instance"
        ) from error


def _import_file(path: Path) -> Any:
    if not path.is_file():
        raise TargetError(f"there is no file {path}")
    # As an absolute path: code that is found under two forms of one path would look like two files.
    path = Path(os.path.abspath(path))  # noqa: PTH100 - a link stays what the user named
    loaded_module = sys.modules.get(path.stem)
    if (
        loaded_module is not None
        and getattr(loaded_module, "__file__", None)
        and Path(str(loaded_module.__file__)).resolve() == path.resolve()
    ):
        return loaded_module  # the target and its inputs may be in one file, which runs once
    # Like `python file.py`, so that its neighbors can be imported.
    sys.path.insert(0, str(path.absolute().parent))
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None:
        raise TargetError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(specification)
    sys.modules.setdefault(path.stem, module)
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise TargetError(f"importing {path} raised {type(error).__name__}: {error}") from error
    return module


def _import_module(name: str) -> Any:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise TargetError(f"there is no module {error.name!r}; run from its directory, or write file.py:attribute") from error
    except Exception as error:
        raise TargetError(f"importing {name} raised {type(error).__name__}: {error}") from error
