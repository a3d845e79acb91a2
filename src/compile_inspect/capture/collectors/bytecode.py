"""Bytecode before and after Dynamo."""

from __future__ import annotations

import dis
from typing import Any

from compile_inspect import torch_private
from compile_inspect.capture.collectors.base import Collector, Observations


class BytecodeCollector(Collector):
    """The bytecode of each compiled frame.

    Dynamo has a hook for this, but times what is registered there and so would show us in its own records.
    """

    name = "bytecode"

    def observations(self) -> Observations:
        """Observe the compile of a frame for what comes out of it."""
        return ((torch_private.COMPILE_FRAME, self._on_compiled, False),)

    def _on_compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        original, rewritten = args[0], result.bytecode
        self.tap.emit(
            "bytecode",
            {
                "function": original.co_name,
                "file": original.co_filename,
                "line": original.co_firstlineno,
                "original": dis.Bytecode(original).dis(),
                "rewritten": dis.Bytecode(rewritten).dis(),
            },
        )
