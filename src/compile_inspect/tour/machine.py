"""What the machine of a tour has, as far as torch.compile needs it."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from compile_inspect.wording.quantities import count


@dataclass(frozen=True)
class Machine:
    """Where the tour runs; `compiler` and `gpu` are empty where there is none."""

    torch: str
    processor: str
    cores: int
    threads: int
    gpu: str = ""
    triton: bool = False
    compiler: str = ""
    lacking: str = ""
    """What Inductor misses here, and how to get it; empty where it has all it needs."""

    @property
    def device(self) -> str:
        """Where models run: `cuda` where there is a GPU."""
        return "cuda" if self.gpu else "cpu"

    @property
    def inductor(self) -> bool:
        """Whether Inductor can generate code here."""
        return not self.lacking

    def __str__(self) -> str:
        where = self.gpu or "no GPU"
        compiler = self.compiler or "no C++ compiler"
        size = f"{count(self.cores, 'core')}, {count(self.threads, 'thread')}"
        return f"torch {self.torch}, {self.processor}, {size}, {where}, {compiler}"


def this_machine() -> Machine:
    """Look at the machine; imports torch."""
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
        lacking=_lacking(gpu, compiler, triton),
    )


def _lacking(gpu: str, compiler: str, triton: bool) -> str:
    if not compiler:
        how = {
            "Windows": "install the Build Tools for Visual Studio with the C++ workload and start from its prompt",
            "Darwin": "run: xcode-select --install",
        }.get(platform.system(), "install g++ (Debian: apt install g++, Fedora: dnf install gcc-c++), or name one in CXX")
        return f"Inductor writes C++ and finds no compiler for it on this machine: {how}"
    if gpu and not triton:
        return "Inductor writes Triton for a GPU, and the package triton is missing: install a torch with CUDA, which brings it"
    return ""
