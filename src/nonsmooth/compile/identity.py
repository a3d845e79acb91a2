"""Whether two runs are of the same functions."""

from __future__ import annotations

import inspect
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nonsmooth.evaluate.evaluator import Evaluator


def identity(evaluator: Evaluator) -> Hashable:
    """A key shared by runs of the same functions: their code, and the size of x. Closures may differ; packages detect that."""
    problem = evaluator.problem
    functions: list[Any] = [*problem.functions]
    codes: list[Hashable] = [problem.function is None, problem.inequalities is None, problem.equalities is None]
    codes += [(type(term).__name__, str(term.weight)) for term in problem.terms]
    for function in functions:  # the list grows during the iteration
        plain = inspect.unwrap(function) if callable(function) else function
        code = getattr(plain, "__code__", None)
        if code is None or code in codes:
            codes.append(type(function).__qualname__)
            continue
        codes.append(code)
        assert plain is not None
        cells = [cell.cell_contents for cell in plain.__closure__ or () if _is_filled(cell)]
        functions += [value for value in cells if inspect.isfunction(value)]
        codes += [repr(value) for value in cells if isinstance(value, bool | int | float | str)]
    variables = evaluator.variables
    return (*codes, variables.size, str(variables.device), variables.single_precision)


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 (an empty cell raises)
    except ValueError:
        return False
    return True
