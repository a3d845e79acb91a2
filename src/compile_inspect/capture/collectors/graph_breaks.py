"""Graph breaks, with the exception torch raised for them."""

from __future__ import annotations

from typing import Any

from compile_inspect import torch_private
from compile_inspect.capture.collectors.base import Collector, Observations, rows_of_summary


class GraphBreakCollector(Collector):
    """Every graph break at the moment Dynamo logs it, the data-dependent branch included.

    Breaks that make Dynamo give up on a whole frame are not logged there; they are read from the frame's
    metrics when the capture is assembled.
    """

    name = "graph breaks"

    def observations(self) -> Observations:
        """Observe the logging of a break."""
        return ((torch_private.LOG_GRAPH_BREAK, self._on_break, True),)

    def _on_break(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        names = ("translator", "code_options", "reason", "exc")
        call = {**dict(zip(names, args, strict=False)), **kwargs}
        error = call["exc"]
        if getattr(error, "logged", False):
            return
        kind = getattr(error, "gb_type", None)
        summary = getattr(error, "real_stack", None)
        if summary is None:
            summary = torch_private.tracing_stack()
        stack = self.tap.intern(rows_of_summary(summary))
        # What was traced so far: if the frame is given up, these operations stay in eager mode.
        operations = [self.tap.intern(text) for text in torch_private.traced_stacks(call["translator"])]
        identifier, link = torch_private.graph_break_identifier(kind) if kind else (None, None)
        self.tap.emit(
            "graph break",
            {
                "type": kind or type(error).__name__,
                "identifier": identifier,
                "link": link,
                "reason": str(call["reason"]),
                "message": str(error),
                "stack": stack,
                "operations": operations,
            },
            stacks=(stack, *operations),
        )
