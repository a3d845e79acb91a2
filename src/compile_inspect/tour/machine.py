"""The parts of a machine that matter to torch.compile."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from compile_inspect.wording.quantities import count


@dataclass(frozen=True)
class Machine:
    """The machine of a tour; `compiler` and `gpu` are empty where there is none."""

    torch: str
    processor: str
    cores: int
    threads: int
    gpu: str = ""
    triton: bool = False
    compiler: str = ""
    missing_requirement: str = ""
    """What Inductor needs and does not find, and how to install it; empty where nothing is missing."""

    @property
    def device(self) -> str:
        """Where models run: `cuda` where there is a GPU."""
        return "cuda" if self.gpu else "cpu"

    @property
    def inductor(self) -> bool:
        """Whether Inductor can generate code here."""
        return not self.missing_requirement

    def __str__(self) -> str:
        gpu = self.gpu or "no GPU"
        compiler = self.compiler or "no C++ compiler"
        size = f"{count(self.cores, 'core')}, {count(self.threads, 'thread')}"
        return f"torch {self.torch}, {self.processor}, {size}, {gpu}, {compiler}"


def this_machine() -> Machine:
    """Inspect the machine; imports torch."""
    import torch

    from compile_inspect import torch_private

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    compiler = torch_private.cpp_compiler()
    triton = torch_private.has_triton()
    return Machine(
        torch=str(torch.__version__),
        processor=platform.processor() or platform.machine(),
        cores=os.cpu_count() or 1,
        threads=torch.get_num_threads(),
        gpu=gpu,
        triton=triton,
        compiler=compiler,
        missing_requirement=_missing_requirement(gpu, compiler, triton),
    )


def _missing_requirement(gpu: str, compiler: str, triton: bool) -> str:
    if not compiler:
        instructions = {
            "Windows": "install the Build Tools for Visual Studio with the C++ workload and start from its command prompt",
            "Darwin": "run: xcode-select --install",
        }.get(platform.system(), "install g++ (Debian: apt install g++, Fedora: dnf install gcc-c++), or set CXX to one")
        return f"Inductor generates C++ but finds no C++ compiler on this machine: {instructions}"
    if gpu and not triton:
        return "Inductor generates Triton code for a GPU, but the package triton is missing: install a CUDA build of torch"
    return ""
