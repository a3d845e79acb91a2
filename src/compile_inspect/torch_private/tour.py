"""Parts of torch without a public name that the lessons of the tour show."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def mode_settings() -> dict[str, Mapping[str, Any]]:
    """Every mode of torch.compile, and the settings of Inductor that it changes."""
    import torch._inductor

    return dict(torch._inductor.list_mode_options())


@contextlib.contextmanager
def registered_backend(name: str, compiler: Callable[..., Any]) -> Iterator[None]:
    """A backend that torch.compile knows by name for a while; torch itself has no way to unregister one."""
    import torch._dynamo
    from torch._dynamo.backends import registry

    torch._dynamo.register_backend(compiler, name=name)
    try:
        yield
    finally:
        registry._COMPILER_FNS.pop(name, None)
        registry._BACKENDS.pop(name, None)


@contextlib.contextmanager
def own_examples() -> Iterator[None]:
    """The stance eager_then_compile has seen no call yet, and forgets those it sees meanwhile.

    Torch keeps the inputs of first calls by file and line until the process ends; a reset does not clear them.
    """
    from torch._dynamo import eval_frame

    before = eval_frame._EXAMPLE_INPUTS
    eval_frame._EXAMPLE_INPUTS = None
    try:
        yield
    finally:
        eval_frame._EXAMPLE_INPUTS = before


def cache_folder() -> str:
    """Where Inductor keeps its caches; torch's own function would also create the folder and set a variable."""
    return os.environ.get("TORCHINDUCTOR_CACHE_DIR") or default_cache_folder()


def default_cache_folder() -> str:
    """Where Inductor keeps its caches if no variable names a folder."""
    from torch._inductor.runtime import cache_dir_utils

    return str(cache_dir_utils.default_cache_dir())


@contextlib.contextmanager
def said_by_torch() -> Iterator[list[str]]:
    """Warnings, and what torch's loggers would show at a warning or more, as a list; the terminal shows none of it.

    Warnings that Python hides by itself, such as those about deprecated functions, are left out.
    """
    said: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(" ".join(record.getMessage().split()))

    # Loggers without a handler of their own either pass records on or are switched off; that of traces is a recorder's.
    names = [name for name in logging.root.manager.loggerDict if name == "torch" or name.startswith("torch.")]
    loggers = [logging.getLogger(name) for name in names if name != "torch.__trace"]
    before = [(logger, logger.handlers, logger.level) for logger in loggers if logger.handlers or logger.level]
    try:
        for logger, handlers, level in before:
            logger.handlers = [Keeping(logging.WARNING)] if handlers else []
            if level > logging.ERROR:  # quiet for the terminal's sake, which sees nothing now
                logger.setLevel(logging.WARNING)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for hidden in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
                warnings.simplefilter("ignore", hidden)
            yield said
    finally:
        for logger, handlers, level in before:
            logger.handlers = handlers
            logger.setLevel(level)
    said += (" ".join(str(item.message).split()) for item in caught)
