"""The peer's published examples with a module for their variables, and the table of all published examples."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from .case import Constant
from .data import image_data, sequence_data
from .published import (
    Published,
    StructuredValues,
    dictionary_learning,
    feasibility,
    generalized_lasso,
    logistic,
    many_constraints,
    nonsmooth_rosenbrock,
    output_feedback,
    robust_components,
    sphere,
    trace,
)


class ConvolutionalNetwork(nn.Module):
    """LeNet-5 for images of 3 x 32 x 32; nonsmooth by its rectifiers and pools."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList([nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)])
        self.layers = nn.ModuleList([nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)])

    def forward(self, images: Tensor) -> Tensor:
        for convolution in self.convolutions:
            images = functional.max_pool2d(functional.relu(convolution(images)), 2)
        features = torch.flatten(images, 1)
        for layer in self.layers[:-1]:
            features = functional.relu(layer(features))
        return self.layers[-1](features)


class RecurrentNetwork(nn.Module):
    """One recurrent layer and a linear one, for sequences."""

    def __init__(self, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.recurrent = nn.RNN(width, hidden, 1, batch_first=True)
        self.output = nn.Linear(hidden, classes)

    def forward(self, sequences: Tensor) -> Tensor:
        outputs, _ = self.recurrent(sequences)
        return self.output(outputs[:, -1, :])


def built(make: Callable[[], nn.Module]) -> nn.Module:
    """A module with the parameters that seed 0 gives, in float64; torch's global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make().double()


def flat_parameters(module: nn.Module) -> Tensor:
    """All parameters in one column."""
    return nn.utils.parameters_to_vector(module.parameters()).detach().reshape(-1, 1)


def convolutional_network(batch: int = 100) -> Published:
    """D1: training without constraints."""
    module = built(ConvolutionalNetwork)
    images, labels = image_data(batch)
    inputs, classes = Constant(images), Constant(labels)

    def function(network: nn.Module) -> StructuredValues:
        like = next(network.parameters())
        return functional.cross_entropy(network(inputs(like)), classes(like)), None, None

    return Published(
        name="D1",
        variables=module,
        function=function,
        start=flat_parameters(module),
        options={"opt_tol": 1e-3, "limited_mem_size": 100, "maxit": 150, "maxclocktime": 60},
        peer_objective=4.2e-6 if batch == 100 else None,
        peer_violation=0.0 if batch == 100 else None,
    )


def recurrent_network(hidden: int = 30, *, folded: bool = True, batch: int = 50, iterations: int = 100) -> Published:
    """D3: training with an orthogonal recurrent matrix; the equations folded into one norm, or (D3u) each by itself."""
    sequences, labels = sequence_data(batch)
    module = built(lambda: RecurrentNetwork(sequences.shape[2], hidden, 10))
    inputs, identity, classes = Constant(sequences), Constant(torch.eye(hidden)), Constant(labels)

    def function(network: RecurrentNetwork) -> StructuredValues:
        matrix = network.recurrent.weight_hh_l0
        residual = matrix.T @ matrix - identity(matrix)
        equality = torch.linalg.vector_norm(residual) if folded else residual
        return functional.cross_entropy(network(inputs(matrix)), classes(matrix)), None, [equality]

    peer = {(30, True): ("D3", 6.59e-4, 8e-4), (10, False): ("D3u", 1.018533, 3e-6)}
    name, objective, violation = peer.get((hidden, folded), (f"D3_{hidden}", None, None))
    return Published(
        name=name,
        variables=module,
        function=function,
        start=flat_parameters(module),
        options={"opt_tol": 1e-3, "viol_eq_tol": 1e-4, "maxit": iterations, "maxclocktime": 60},
        peer_objective=objective,
        peer_violation=violation,
    )


PUBLISHED: dict[str, Callable[[], Published]] = {
    "A1": nonsmooth_rosenbrock,
    "A1r": lambda: nonsmooth_rosenbrock(random_start=True),
    "A2": output_feedback,
    "A3": dictionary_learning,
    "B1": feasibility,
    "B2": sphere,
    "B3": trace,
    "B3big": lambda: trace(20, 5, 300),
    "C1": robust_components,
    "C1big": lambda: robust_components(10, 12, 200),
    "C2": generalized_lasso,
    "C3": logistic,
    "D1": convolutional_network,
    "D3": recurrent_network,
    "D3u": lambda: recurrent_network(10, folded=False),
    "MC": many_constraints,
}
"""Functions that make each example anew, by the peer suite's names."""
