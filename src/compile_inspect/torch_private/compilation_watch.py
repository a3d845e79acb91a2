"""Watch what Dynamo does while a compiled function is called: the graphs it makes, and whether it reaches its limit."""

from __future__ import annotations

from typing import Any, Self

from compile_inspect import torch_private
from compile_inspect.torch_private import dynamo_state


class CompilationWatch:
    """Watches this process's compilations while it is open.

    with CompilationWatch() as watch:
        compiled(x)
    watch.frames, watch.operations, watch.reached_limit
    """

    def __init__(self) -> None:
        self.reached_limit = False
        """Whether a function was compiled as often as torch allows, and runs eagerly where no compiled version fits."""
        self._limit = torch_private.Hook(torch_private.EXCEEDS_LIMIT, self._on_limit_check)
        self._frames = self._operations = 0

    def __enter__(self) -> Self:
        import torch._dynamo.cache_size
        import torch._dynamo.convert_frame  # noqa: F401 - which imported the function by name

        self._frames, self._operations = _compiled_frames(), _captured_operations()
        self._limit.install()
        return self

    def __exit__(self, *error: object) -> None:
        self._limit.remove()

    @property
    def frames(self) -> int:
        """Frames that Dynamo began to compile, including recompilations."""
        return _compiled_frames() - self._frames

    @property
    def operations(self) -> int:
        """Operations in the graphs that Dynamo has made."""
        return _captured_operations() - self._operations

    def _on_limit_check(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self.reached_limit = self.reached_limit or bool(result[0])


def _compiled_frames() -> int:
    # Torch's own frame counter does not include frames compiled with fullgraph=True.
    return sum(dynamo_state.frame_counts().values())


def _captured_operations() -> int:
    from torch._dynamo.utils import counters

    return int(counters["stats"]["calls_captured"])
