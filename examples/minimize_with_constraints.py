"""Minimize a function with a curved kink under an inequality and bounds, and read the result.

The valley of the objective is the parabola x2 = x1**2, along which the function has a kink. An upper bound cuts
off the valley before its lowest point (1, 1). The disk is a constraint too; its multiplier 0 shows that it is not active.

    python examples/minimize_with_constraints.py
"""

import torch

from nonsmooth import minimize


def valley(x):
    return 8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2


def disk(x):
    return x.square().sum() - 1  # at most 0


def main():
    start = torch.tensor([-0.5, 1.5], dtype=torch.float64)
    lower, upper = torch.tensor([-1.0, 0.0]), torch.tensor([1.0, 0.5])
    result = minimize(None, start, objective=valley, inequalities=disk, bounds=(lower, upper))
    print(result)

    print(f"\nx = {result.x.tolist()}")
    print(f"disk: value {result.point.inequalities:.1e}, multiplier {result.multipliers.inequalities:.4f}")
    print(f"upper bounds: multipliers {[round(value, 4) for value in result.multipliers.upper.tolist()]}")

    # Check whether the answer is stationary from x alone, without any data from the run.
    certificate = result.check()
    print(f"checked again: {certificate.reason}")
    assert result.success and certificate.stationary
    assert abs(result.f - (1 - 0.5**0.5) ** 2) < 1e-6  # the valley meets x2 = 0.5 at x1 = sqrt(0.5)


if __name__ == "__main__":
    main()
