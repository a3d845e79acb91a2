"""Repeats the independent check of an answer, also for a copy of the result or in another process."""

from __future__ import annotations

import copy
import pickle
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch

from nonsmooth.certify.certificate import Certificate, check, unknown
from nonsmooth.errors import ProblemError
from nonsmooth.evaluate import Evaluator, FunctionFailed, SkippedErrors
from nonsmooth.evaluate.problem_reading import concatenate_constraints, read_problem
from nonsmooth.structure import Arguments, Structure, summarize
from nonsmooth.variables import Variables

if TYPE_CHECKING:
    from nonsmooth.evaluate.candidate import Candidate
    from nonsmooth.evaluate.scaling import Reference
    from nonsmooth.options import Tolerances
    from nonsmooth.problem import Problem
    from nonsmooth.variables import Start


class Recheck:
    """Checks the answer of a run from x alone, without any data of the run.

    Pickling includes the problem if pickle can handle it: pickle stores functions by name. If they have no importable name,
    like lambdas and nested functions, everything else is still pickled and only the check itself raises.
    """

    def __init__(
        self,
        problem: Problem,
        variables: Variables,
        answer: Candidate,
        tolerances: Tolerances,
        reference: Reference,
        *,
        skip_errors: bool,
        structured: bool,
        watch: bool,
    ) -> None:
        self._problem: tuple[Problem, Variables] | bytes | str = (problem, variables)
        """The problem with its variables; the pickle of both; or the reason why they could not be pickled."""
        self._structured, self._watch = structured, watch
        self._answer, self._tolerances, self._reference, self._skip_errors = answer, tolerances, reference, skip_errors

    def __call__(self) -> Certificate:
        """A new certificate of the answer."""
        problem, variables = self._unpacked()
        evaluator = Evaluator(problem, variables)
        try:
            evaluator.scales, evaluator.structured = self._reference.scales, self._structured
            evaluator.watching = self._structured and self._watch
            at = evaluator(evaluator.in_solver_units(self._answer.x))
            evaluator.skipped_errors = SkippedErrors() if self._skip_errors else None
            return check(evaluator, at, self._tolerances, self._reference, evaluator.box).certificate
        except FunctionFailed as failure:
            reason = f"undecided, the function raised {type(failure.original).__name__}: {failure.original}"
            return unknown(self._answer, self._tolerances, reason)
        finally:
            variables.place(self._answer.x)  # a module must still have the answer as its parameters

    def structure(self) -> Structure:
        """The kinks of the problem at the answer, as far as they can be read from the program."""
        problem, variables = self._unpacked()
        if problem.gradients:
            return Structure(False, (), ("the function computes its own gradients",))
        arguments = Arguments(lines=True)
        try:
            with torch.inference_mode(False), torch.enable_grad():
                argument, leaves = variables.place(self._answer.x)
                with arguments if self._watch else nullcontext():
                    f, inequalities, equalities = problem.values(argument, arguments.declare)
                reading = read_problem(f, concatenate_constraints(equalities, inequalities), leaves, variables, arguments)
                return summarize(reading, arguments, followed=self._structured, radius=2.0 * self._tolerances.radius)
        except Exception as error:
            return Structure(False, (), (f"{type(error).__name__} while reading it",))
        finally:
            variables.place(self._answer.x)

    def _unpacked(self) -> tuple[Problem, Variables]:
        if isinstance(self._problem, bytes):
            try:
                problem, start = pickle.loads(self._problem)
                self._problem = problem, Variables(start)
            except Exception as error:  # the name is unknown here, or refers to something else
                raise _problem_missing(f"{type(error).__name__}: {error}") from error
        if isinstance(self._problem, str):
            raise _problem_missing(self._problem)
        return self._problem

    def __getstate__(self) -> dict[str, Any]:
        packed = self._problem
        if isinstance(packed, tuple):
            problem, variables = packed
            try:
                packed = pickle.dumps((problem, variables.template))
            except Exception as error:  # objects may raise any exception when they cannot be pickled
                packed = f"{type(error).__name__}: {error}"
        return {**vars(self), "_problem": packed}

    def __deepcopy__(self, memo: dict[int, Any]) -> Recheck:
        """A copy within the process: it shares the functions and their arguments, but not the variables."""
        duplicate = Recheck.__new__(Recheck)
        memo[id(self)] = duplicate
        vars(duplicate).update({**vars(self), "_answer": copy.deepcopy(self._answer, memo)})
        if isinstance(self._problem, tuple):
            problem, variables = self._problem
            start: Start = copy.deepcopy(variables.template, memo)
            duplicate._problem = problem, Variables(start)
        return duplicate


def _problem_missing(reason: str) -> ProblemError:
    return ProblemError(
        f"the function could not be pickled with the result ({reason}), so the answer cannot be checked again here; call "
        "check() in the process of the run, or define the function at the top level of a module that both processes import"
    )
