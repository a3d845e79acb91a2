"""Bytecode before and after Dynamo."""

from __future__ import annotations

import dis
import functools
from types import CodeType
from typing import TYPE_CHECKING, Any

from compile_inspect.capture import torch_private
from compile_inspect.capture.collectors.base import Collector

if TYPE_CHECKING:
    from compile_inspect.capture.tap import Tap


class BytecodeCollector(Collector):
    """The bytecode of each compiled frame, through Dynamo's own hook."""

    name = "bytecode"

    def __init__(self, tap: Tap) -> None:
        super().__init__(tap)
        self._handle: Any = None

    def on_import(self) -> None:
        """Register the hook once Dynamo is there."""
        if self._handle is None and torch_private.bytecode_hooks_ready():
            # The hook returns None, which tells Dynamo to keep its own code.
            hook = functools.partial(self.tap.guard, self, self._on_rewrite)
            self._handle = torch_private.register_bytecode_hook(hook)

    def detach(self) -> None:
        """Take the hook out again."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _on_rewrite(self, original: CodeType, rewritten: CodeType) -> None:
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
