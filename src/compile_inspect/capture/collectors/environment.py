"""Where the program runs and how torch is configured."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from compile_inspect import torch_private
from compile_inspect.capture.collectors.base import Collector

if TYPE_CHECKING:
    from compile_inspect.capture.tap import Tap

# Only variables that steer the compiler: an environment also holds secrets.
_PREFIXES = ("TORCH", "PYTORCH_", "INDUCTOR_", "TRITON_", "AOT_", "CUDA_VISIBLE", "OMP_", "MKL_", "KMP_", "CUBLAS_")
_NAMES = ("CXX", "CC", "RANK", "LOCAL_RANK", "WORLD_SIZE", "ENABLE_PERSISTENT_TMA_MATMUL")
_PACKAGES = ("numpy", "triton", "transformers", "timm", "sympy", "networkx")


class EnvironmentCollector(Collector):
    """Versions, devices, environment variables and changed settings, read when the first frame is compiled."""

    name = "environment"
    trace_names: ClassVar[frozenset[str]] = frozenset({"dynamo_start"})

    def __init__(self, tap: Tap) -> None:
        super().__init__(tap)
        self._done = False

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Read the environment as it is at the first compilation, which is when it matters."""
        self.flush()

    def on_listener(self) -> None:
        """Tell the environment again, for the recording that has just begun."""
        self._done = False

    def flush(self) -> None:
        """Read the environment now if nothing was compiled."""
        if not self._done:
            self._done = True
            self.tap.emit("environment", describe_environment())


def describe_environment() -> dict[str, Any]:
    """The environment as plain data; a program that never imported torch does not get it imported by us."""
    described: dict[str, Any] = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": _package_versions(),
        "variables": {
            name: value for name, value in sorted(os.environ.items()) if name.startswith(_PREFIXES) or name in _NAMES
        },
    }
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        described |= {
            "torch": str(torch.__version__),
            "torch_known": torch_private.is_known_version(),
            "devices": _devices(torch),
            "cpu": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
            "configuration": {
                name: value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)[:500]
                for name, value in torch_private.changed_configuration()
            },
        }
    return described


def _package_versions() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        if name in sys.modules:
            try:
                versions[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
    return versions


def _devices(torch: Any) -> list[str]:
    # Asking for the name of a GPU would start CUDA in a program that does not use it.
    if not torch.cuda.is_initialized():
        return []
    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
