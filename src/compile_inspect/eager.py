"""Run a target in eager mode first: what fails there has nothing to do with the compiler."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from compile_inspect.capture.backward import run_backward
from compile_inspect.capture.collectors.exceptions import program_rows
from compile_inspect.errors import TargetError
from compile_inspect.records import Location, Stack
from compile_inspect.silence import silence
from compile_inspect.target import Inputs, Target


def require_eager(target: Target) -> Target:
    """Return the target if eager mode runs it at all of its inputs; otherwise raise `TargetError` with exception and line.

    It runs on copies of the inputs. What it holds, and the random generators, are restored afterward.

    >>> require_eager(Target(max, (1, 2))).function(3, 4)
    4
    >>> require_eager(Target(dict.pop, ({}, "x")))
    Traceback (most recent call last):
    compile_inspect.errors.TargetError: the target fails in eager mode: KeyError: 'x'
    """
    for number, inputs in enumerate(target.all_inputs()):
        error = eager_failure(target, inputs)
        if error is not None:
            which = f" at its further inputs {number}" if number else ""
            message = f"the target fails in eager mode{which}: {describe_error(error)}"
            if target.gradients is None and eager_failure(replace(target, gradients=False), inputs) is None:
                message += "\n  Without gradients it runs: add --no-grad, or give a Target gradients=False."
            raise TargetError(message) from error
    return target


def eager_failure(target: Target, inputs: Inputs) -> Exception | None:
    """The exception of a call in eager mode, or of its backward; None if both work."""
    import torch

    from compile_inspect.agreement.inputs import clone_inputs
    from compile_inspect.agreement.run_outcome import preserve_state, seed_generators
    from compile_inspect.variants import Task

    args, kwargs = clone_inputs(inputs)
    mode = torch.no_grad() if target.gradients is False else nullcontext()
    with preserve_state(Task(target.function, *inputs)), seed_generators(0), silence(), mode:
        try:
            result = target.function(*args, **kwargs)
            if target.gradients is not False:
                run_backward(result, required=target.gradients is True)
        except TargetError:
            raise
        except Exception as error:
            return error
    return None


def describe_error(error: Exception) -> str:
    """An exception's type and message, with the innermost line of the program that led to it."""
    message = f"{type(error).__name__}: {error}".removesuffix(": ")
    stack = Stack(tuple(Location(*row) for row in program_rows(error)))
    line = stack.own_line or stack.user_line
    if line is None:
        return message
    return f"{message}\n  {line}{f' in {line.function}' if line.function else ''}{f': {line.code}' if line.code else ''}"
