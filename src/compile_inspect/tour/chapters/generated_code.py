"""Generated code of two compilations, compared: are the kernels the same, and what differs around them."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

CALLS = re.compile(r"_fused_|extern_kernels|torch\.ops")
"""What a call of a kernel or a library looks like."""
_CALLED = re.compile(r"((?:[\w.]*_fused_\w*(?:\.run)?|extern_kernels\.\w+|torch\.ops\.[\w.]+))\(")
_CALLER = re.compile(r"\n(?=def partition_|def call\(|class Runner)")
"""Where the code that calls the kernels begins: a function, a method, or with CUDA graphs a function for each part."""
_BETWEEN = ("from ", "import ", "async_compile.wait", "del async_compile")
"""Lines between kernels and their calls that belong to neither."""
_DESCRIPTIONS = re.compile(r"(?m)^\s*(?:inductor_meta|triton_meta|autotune_hints)=.*$")
"""Lines of a Triton kernel's decorator that tell Inductor's settings and hints: another mode, but no other kernel."""


@dataclass(frozen=True)
class GeneratedCode:
    """Generated code in two parts, without comments, which number compilations, and descriptions of kernels."""

    kernels: tuple[str, ...]
    around: tuple[str, ...]

    @classmethod
    def of(cls, code: str) -> GeneratedCode:
        """Take code apart, of one graph or of several one after the other."""
        kernels: list[str] = []
        around: list[str] = []
        for module in re.split(r"(?m)^(?=# AOT ID)", _DESCRIPTIONS.sub("", code)):
            first, *rest = _CALLER.split(re.sub(r"(?m)^\s*#.*$|\s+#.*$", "", module), maxsplit=1)
            kernels += (line.rstrip() for line in first.splitlines() if line.strip() and not line.startswith(_BETWEEN))
            around += (line.strip() for part in rest for line in part.splitlines() if line.strip())
        return cls(tuple(kernels), tuple(around))

    def compared(self, other: GeneratedCode) -> tuple[bool, tuple[str, ...]]:
        """Whether the kernels are the same and called in the same order, and what differs around them."""
        changed = [line[2:] for line in difflib.ndiff(self.around, other.around) if line.startswith(("- ", "+ "))]
        return self.kernels == other.kernels and self.called == other.called, tuple(changed)

    @property
    def called(self) -> tuple[str, ...]:
        """The kernels and library functions that are called, in their order; in which memory they work is not looked at.

        >>> GeneratedCode((), ("buf1 = buf0; del buf0", "triton_poi_fused_sin_0.run(buf1, 8, stream=stream0)")).called
        ('triton_poi_fused_sin_0.run',)
        """
        return tuple(name for line in self.around for name in _CALLED.findall(line))
