"""PyGRANSO's published example problems, called as its users call them, through `nonsmooth.pygranso`.

Eleven problems in PyGRANSO's form: a dict of shapes or a module, a function that returns [f, ci, ce], and a struct of
options. Only the imports differ from a script written for PyGRANSO. Each answer is compared with a value that is known
from another source, and the certificate shows whether it was proven stationary.

PyGRANSO's own examples read files for A2 (a plant), C3 (flowers), D1 and D3 (images). Here all data are drawn from
fixed seeds; A2, D1 and D3 are smaller and B3 is larger, so that the whole set takes seconds and is not trivial.

    python examples/pygranso_problems.py
    python examples/pygranso_problems.py A1 C2
"""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.optimize
import torch
from torch import nn
from torch.nn.functional import cross_entropy, max_pool2d, relu

from nonsmooth.pygranso.pygranso import pygranso
from nonsmooth.pygranso.pygransoStruct import pygransoStruct

DOUBLE = torch.float64


@dataclass
class Example:
    """What a user of PyGRANSO writes for one problem, and what is known about its answer."""

    title: str
    var_spec: Any
    comb_fn: Callable[[Any], list[Any]]
    options: dict[str, Any] = field(default_factory=dict)
    known: tuple[float, ...] = ()
    """Values of minima; several where the problem has several local ones."""


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def uniform(*shape, seed):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def parameters(model):
    return nn.utils.parameters_to_vector(model.parameters()).detach().reshape(-1, 1)


def rosenbrock():
    """A1. The answer lies on the kink and on both constraints: (1/√2, 1/2)."""

    def comb_fn(variables):
        x1, x2 = variables.x1, variables.x2
        ci = pygransoStruct()
        ci.c1 = math.sqrt(2) * x1 - 1
        ci.c2 = 2 * x2 - 1
        return [8 * abs(x1**2 - x2) + (1 - x1) ** 2, ci, None]

    options = {"x0": torch.ones((2, 1), dtype=DOUBLE)}
    return Example("nonsmooth Rosenbrock", {"x1": [1], "x2": [1]}, comb_fn, options, ((1 - math.sqrt(0.5)) ** 2,))


def output_feedback(states=12, inputs=5, outputs=6):
    """A2. Complex eigenvalues of a real matrix come in pairs, so the smallest possible value is 0: all eigenvalues are real."""
    plant = normal(states, states, seed=4) / math.sqrt(states) - 0.5 * torch.eye(states, dtype=DOUBLE)
    control = normal(states, inputs, seed=5) / math.sqrt(states)
    measurement = normal(outputs, states, seed=6) / math.sqrt(states)

    def comb_fn(variables):
        eigenvalues = torch.linalg.eigvals(plant + control @ variables.X @ measurement)
        ci = pygransoStruct()
        ci.c1 = eigenvalues.real.max() + 0.3
        return [eigenvalues.imag.max(), ci, None]

    options = {"x0": torch.zeros((inputs * outputs, 1), dtype=DOUBLE), "maxit": 200}
    return Example("static output feedback", {"X": [inputs, outputs]}, comb_fn, options, (0.0,))


def dictionary_learning(n=30):
    """A3. With sparse independent rows, each unit vector is a local minimizer; its value is the mean of its row."""
    count = 10 * n**2
    data = normal(n, count, seed=1) * (uniform(n, count, seed=2) <= 0.3)

    def comb_fn(variables):
        q = variables.q
        ce = pygransoStruct()
        ce.c1 = q.T @ q - 1
        return [(q.T @ data).abs().sum() / count, None, ce]

    start = normal(n, 1, seed=3)
    known = tuple((data.abs().sum(dim=1) / count).tolist())
    return Example("dictionary learning", {"q": [n, 1]}, comb_fn, {"x0": start / start.norm(), "maxit": 500}, known)


def feasibility():
    """B1. A constant objective: any feasible point is a solution."""

    def comb_fn(variables):
        x, y = variables.x, variables.y
        ci = pygransoStruct()
        ci.c1 = (y + x**2) ** 2 + 0.1 * y**2 - 1
        ci.c2 = y - torch.exp(-x) - 3
        ci.c3 = y - x + 4
        return [0 * x + 0 * y, ci, None]

    options = {"x0": torch.zeros((2, 1), dtype=DOUBLE)}
    return Example("feasibility", {"x": [1, 1], "y": [1, 1]}, comb_fn, options, (0.0,))


def sphere(n=300):
    """B2. The largest eigenvalue."""
    matrix = normal(n, n, seed=0)
    matrix = (matrix + matrix.T) / 2

    def comb_fn(variables):
        x = variables.x
        ce = pygransoStruct()
        ce.c1 = x.T @ x - 1
        return [-x.T @ matrix @ x, None, ce]

    options = {"x0": normal(n, 1, seed=1), "mu0": 0.1, "opt_tol": 1e-6}
    return Example("sphere", {"x": [n, 1]}, comb_fn, options, (-torch.linalg.eigvalsh(matrix)[-1].item(),))


def trace(n=20, columns=5):
    """B3. The largest eigenvalues: k² equalities, of which k(k+1)/2 differ."""
    matrix = normal(n, n, seed=0)
    matrix = (matrix + matrix.T) / 2

    def comb_fn(variables):
        V = variables.V  # noqa: N806
        ce = pygransoStruct()
        ce.c1 = V.T @ V - torch.eye(columns, dtype=DOUBLE)
        return [-torch.trace(V.T @ matrix @ V), None, ce]

    options = {"x0": normal(n * columns, 1, seed=1), "opt_tol": 5e-6}
    known = -torch.linalg.eigvalsh(matrix)[-columns:].sum().item()
    return Example("trace over orthonormal V", {"V": [n, columns]}, comb_fn, options, (known,))


def robust_components(rows=3, columns=4):
    """C1. M = 0 is optimal here: 0.05·sign(Y) has a largest singular value of at most 0.05·√12 < 1."""
    observed = normal(rows, columns, seed=1)

    def comb_fn(variables):
        M, S = variables.M, variables.S  # noqa: N806
        ce = pygransoStruct()
        ce.c1 = M + S - observed
        return [torch.norm(M, p="nuc") + 0.05 * torch.norm(S, p=1), None, ce]

    shape = [rows, columns]
    options = {"x0": 0.2 * torch.ones((2 * rows * columns, 1), dtype=DOUBLE), "opt_tol": 1e-6}
    return Example("robust PCA", {"M": shape, "S": shape}, comb_fn, options, (0.05 * observed.abs().sum().item(),))


def generalized_lasso(n=80):
    """C2. Its dual is a least-squares problem in a box."""
    signal = uniform(n, 1, seed=1)
    differences = torch.diff(torch.eye(n, dtype=DOUBLE), dim=0)

    def comb_fn(variables):
        x = variables.x
        return [(x - signal).T @ (x - signal) + 0.5 * torch.norm(differences @ x, p=1), None, None]

    dual = scipy.optimize.lsq_linear(differences.numpy().T / 2, signal.numpy()[:, 0], bounds=(-0.5, 0.5), tol=1e-14)
    known = signal.square().sum().item() - 2 * dual.cost
    return Example("generalized LASSO", {"x": [n, 1]}, comb_fn, {"x0": torch.ones((n, 1), dtype=DOUBLE)}, (known,))


def logistic(weight=1 / 7.36):
    """C3. With w = p − q for p, q ≥ 0 it is smooth, which is how the known value is computed."""
    centers = torch.tensor([[5.0, 3.4, 1.5, 0.2]] * 50 + [[5.9, 2.8, 4.3, 1.3]] * 50, dtype=DOUBLE)
    points = (centers + 0.4 * normal(100, 4, seed=3)) / 7
    labels = torch.cat([-torch.ones(50, 1, dtype=DOUBLE), torch.ones(50, 1, dtype=DOUBLE)])

    def comb_fn(variables):
        w = variables.w
        return [torch.log(torch.exp(-labels * (points @ w)) + 1).sum() + weight * torch.norm(w, p=1), None, None]

    rows = (labels * points).numpy()

    def split(pair):
        margins = rows @ (pair[:4] - pair[4:])
        gradient = -rows.T @ (1 / (1 + np.exp(margins)))
        return np.logaddexp(0, -margins).sum() + weight * pair.sum(), np.concatenate([gradient, -gradient]) + weight

    smooth = scipy.optimize.minimize(
        split, np.zeros(8), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 8, options={"ftol": 1e-15, "gtol": 1e-9}
    )
    options = {"x0": torch.zeros((4, 1), dtype=DOUBLE), "opt_tol": 1e-6}
    return Example("logistic regression, L1", {"w": [4, 1]}, comb_fn, options, (float(smooth.fun),))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.ModuleList([nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)])
        self.layers = nn.ModuleList([nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)])

    def forward(self, images):
        for convolution in self.convolutions:
            images = max_pool2d(relu(convolution(images)), 2)
        features = images.flatten(1)
        for layer in self.layers[:-1]:
            features = relu(layer(features))
        return self.layers[-1](features)


def convolutional_network(batch=20):
    """D1. 62,006 variables, so the quasi-Newton matrix is kept as pairs. The loss can get arbitrarily close to 0."""
    torch.manual_seed(0)
    model = LeNet().to(DOUBLE)
    labels = torch.arange(batch) % 10
    images = 0.5 * normal(10, 3, 32, 32, seed=5)[labels] + 0.5 * normal(batch, 3, 32, 32, seed=6)

    def comb_fn(model):
        return [cross_entropy(model(images), labels), None, None]

    options = {"x0": parameters(model), "opt_tol": 1e-3, "limited_mem_size": 20, "maxit": 150}
    return Example("LeNet, L-BFGS", model, comb_fn, options, (0.0,))


class Recurrent(nn.Module):
    def __init__(self, width, hidden, classes):
        super().__init__()
        self.layer = nn.RNN(width, hidden, 1, batch_first=True)
        self.output = nn.Linear(hidden, classes)

    def forward(self, sequences):
        return self.output(self.layer(sequences)[0][:, -1])


def recurrent_network(hidden=10, batch=30):
    """D3. The recurrent matrix must be orthogonal: 100 separate equalities."""
    torch.manual_seed(0)
    model = Recurrent(14, hidden, 10).to(DOUBLE)
    labels = torch.arange(batch) % 10
    sequences = uniform(10, 14, 14, seed=6)[labels] + 0.3 * normal(batch, 14, 14, seed=7)

    def comb_fn(model):
        matrix = model.layer.weight_hh_l0
        ce = pygransoStruct()
        ce.c1 = matrix.T @ matrix - torch.eye(hidden, dtype=DOUBLE)
        return [cross_entropy(model(sequences), labels), None, ce]

    options = {"x0": parameters(model), "opt_tol": 1e-3, "viol_eq_tol": 1e-4, "maxit": 150}
    return Example("orthogonal RNN", model, comb_fn, options, (0.0,))


PROBLEMS = {
    "A1": rosenbrock,
    "A2": output_feedback,
    "A3": dictionary_learning,
    "B1": feasibility,
    "B2": sphere,
    "B3": trace,
    "C1": robust_components,
    "C2": generalized_lasso,
    "C3": logistic,
    "D1": convolutional_network,
    "D3": recurrent_network,
}


def main(names):
    unknown = [name for name in names if name not in PROBLEMS]
    if unknown:
        sys.exit(f"there is no problem {unknown[0]!r}; there are {', '.join(PROBLEMS)}")
    print(f"{'':3} {'problem':25} {'value found':>16} {'known value':>16} {'violation':>9}  {'certificate':11} {'seconds':>7}")
    for name in names or PROBLEMS:
        example = PROBLEMS[name]()
        opts = pygransoStruct()
        opts.print_level = 0
        opts.torch_device = "cpu"
        for option, value in example.options.items():
            setattr(opts, option, value)
        start = time.perf_counter()
        soln = pygranso(example.var_spec, example.comb_fn, opts)
        seconds = time.perf_counter() - start
        known = min(example.known, key=lambda value: abs(value - soln.final.f))
        verdict = "stationary" if soln.result.certificate.stationary else "not proven"
        print(
            f"{name:3} {example.title:25} {soln.final.f:16.9f} {known:16.9f} {soln.final.tv:9.1e}  {verdict:11} {seconds:7.2f}"
            f"{'' if soln.termination_code == 0 else f'  code {soln.termination_code}'}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
