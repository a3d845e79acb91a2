"""Compare the generated code of two compilations: whether the kernels are the same, and what differs in the wrapper."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

CALLS = re.compile(r"_fused_|extern_kernels|torch\.ops")
"""A call of a kernel or a library."""
_CALL_NAME = re.compile(r"((?:[\w.]*_fused_\w*(?:\.run)?|extern_kernels\.\w+|torch\.ops\.[\w.]+))\(")
_WRAPPER_START = re.compile(r"\n(?=def partition_|def call\(|class Runner)")
"""Where the wrapper code that calls the kernels begins: a function, a method, or with CUDA graphs a function per partition."""
_NEITHER = ("from ", "import ", "async_compile.wait", "del async_compile")
"""Lines between kernels and wrapper that belong to neither."""
_DESCRIPTIONS = re.compile(r"(?m)^\s*(?:inductor_meta|triton_meta|autotune_hints)=.*$")
"""Lines of a Triton kernel's decorator with Inductor's settings and hints: they depend on the mode, not on the kernel."""


@dataclass(frozen=True)
class GeneratedCode:
    """Generated code in two parts, without comments (which number compilations) and without kernel metadata."""

    kernels: tuple[str, ...]
    wrapper: tuple[str, ...]

    @classmethod
    def of(cls, code: str) -> GeneratedCode:
        """Split the code of one graph, or of several in sequence."""
        kernels: list[str] = []
        wrapper: list[str] = []
        for module in re.split(r"(?m)^(?=# AOT ID)", _DESCRIPTIONS.sub("", code)):
            first, *rest = _WRAPPER_START.split(re.sub(r"(?m)^\s*#.*$|\s+#.*$", "", module), maxsplit=1)
            kernels += (line.rstrip() for line in first.splitlines() if line.strip() and not line.startswith(_NEITHER))
            wrapper += (line.strip() for part in rest for line in part.splitlines() if line.strip())
        return cls(tuple(kernels), tuple(wrapper))

    def compare(self, other: GeneratedCode) -> tuple[bool, tuple[str, ...]]:
        """Whether the kernels are the same and called in the same order, and the wrapper lines that differ."""
        changed = [line[2:] for line in difflib.ndiff(self.wrapper, other.wrapper) if line.startswith(("- ", "+ "))]
        return self.kernels == other.kernels and self.kernel_calls == other.kernel_calls, tuple(changed)

    @property
    def kernel_calls(self) -> tuple[str, ...]:
        """The kernels and library functions that are called, in order, regardless of their buffers.

        >>> GeneratedCode((), ("buf1 = buf0; del buf0", "triton_poi_fused_sin_0.run(buf1, 8, stream=stream0)")).kernel_calls
        ('triton_poi_fused_sin_0.run',)
        """
        return tuple(name for line in self.wrapper for name in _CALL_NAME.findall(line))
