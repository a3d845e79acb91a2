"""Reporters: a capture as text, HTML, JSON or a trace. They only use records and never import torch.

from rich.console import Console
from compile_inspect.reporters.text import ShowOptions, render

render([inspection], "breaks", Console(), files=["step.inspection"], options=ShowOptions())
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "summary": "what happened, in a dozen lines",
        "failures": "compilations that failed, and the exception that ended the run",
        "graphs": "the graphs at every stage, with the operations they call",
        "breaks": "graph breaks: where, why, and what to do",
        "guards": "the conditions under which compiled code is reused",
        "recompiles": "frames compiled again, and the guard that failed",
        "kernels": "the kernels that Inductor generated, what they compute, and what was not fused",
        "code": "the code that Inductor generated",
        "time": "where the compile time went",
        "cache": "lookups in torch's compile caches",
        "cudagraphs": "CUDA graphs: used, or skipped and why",
        "bytecode": "the bytecode of each frame before and after Dynamo",
        "timing": "call times of every variant, and when its build pays back",
    }
)
"""The sections of a report, in the order they are listed, each with one line that describes it."""

__all__ = ["SECTIONS"]
