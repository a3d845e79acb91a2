"""Functions that torch.compile gets wrong: the results of torch 2.13 on a CPU, with what is at fault."""

from known_faults import accuracy, autograd, capture, decompositions, kernels, lost_checks, memory, passes
from known_faults.entry import GALLERY, TORCH, KnownFault, known_fault, text_of

__all__ = [
    "GALLERY",
    "TORCH",
    "KnownFault",
    "accuracy",
    "autograd",
    "capture",
    "decompositions",
    "kernels",
    "known_fault",
    "lost_checks",
    "memory",
    "passes",
    "text_of",
]
