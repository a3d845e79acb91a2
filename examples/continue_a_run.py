"""Stop a run from a callback, save it, continue it, and plot it.

A continued run takes the same steps as one that was never stopped; the example checks this at the end.

    python examples/continue_a_run.py

It writes run.state and, if matplotlib is installed, run.png to the current folder.
"""

import importlib.util

import torch

from nonsmooth import State, minimize


def largest(x):
    """The largest of n terms: one of the classical nonsmooth test functions."""
    weights = torch.arange(1, len(x) + 1, dtype=x.dtype)
    return (weights * (x - 1).abs()).max() + 0.1 * x.square().sum()


def stop_early(state):
    """Called at the start and after every iteration; a true return value ends the run."""
    print(f"iteration {state.iteration:2}  f = {state.f:.6f}  stationarity {state.stationarity:.1e}")
    state.save("run.state")  # a killed process could continue from here
    return state.iteration == 2


def main():
    start = torch.zeros(8, dtype=torch.float64)
    stopped = minimize(largest, start, callback=stop_early)
    print(f"{stopped.status.name}: f = {stopped.f:.6f}\n")

    continued = minimize(largest, start, state=State.load("run.state"))
    print(continued)

    whole = minimize(largest, start)
    assert torch.equal(continued.x, whole.x) and continued.evaluations == whole.evaluations
    print(f"\nwithout a stop: the same x after the same {whole.evaluations} evaluations")

    if importlib.util.find_spec("matplotlib"):
        continued.plot("run.png")
        print("plot: run.png")


if __name__ == "__main__":
    main()
