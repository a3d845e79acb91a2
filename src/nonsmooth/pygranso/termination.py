"""PyGRANSO's termination codes."""

from __future__ import annotations

from nonsmooth.result import Status

CODES = {
    Status.STATIONARY: 0,
    Status.RELATIVE_DECREASE: 1,
    Status.TARGET_REACHED: 2,
    Status.USER_STOP: 3,
    Status.ITERATION_LIMIT: 4,
    Status.EVALUATION_LIMIT: 4,
    Status.TIME_LIMIT: 5,
    Status.SEARCH_FAILED_FEASIBLE: 6,
    Status.SEARCH_FAILED_INFEASIBLE: 7,
    Status.INFEASIBLE: 7,
    Status.UNBOUNDED: 8,
    Status.FUNCTION_ERROR: 11,
    Status.QP_FAILURE: 12,
    Status.SOLVER_ERROR: 13,
}
"""The code of each status. Codes 9 and 10 are not used."""

MEANINGS = {
    0: "feasible, and proven stationary to opt_tol",
    1: "feasible, and the relative decrease is below rel_tol",
    2: "feasible, and the objective has reached fvalquit",
    3: "stopped by halt_log_fn or a keyboard interrupt",
    4: "the iteration limit maxit was reached",
    5: "the time limit maxclocktime was reached",
    6: "no better point was found from a feasible point that could not be proven stationary",
    7: "no better point was found from an infeasible point",
    8: "the objective seems to be unbounded below on the feasible set",
    11: "the function raised an exception",
    12: "a quadratic program could not be solved",
    13: "the solver itself failed",
}


def describe(code: int) -> str:
    """The meaning of a code.

    >>> describe(4)
    'the iteration limit maxit was reached'
    """
    return MEANINGS[code]
