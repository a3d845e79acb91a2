"""Parts of torch without a public name that the lessons of the tour show."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def mode_settings() -> dict[str, Mapping[str, Any]]:
    """Every mode of torch.compile, and the Inductor settings that it changes."""
    import torch._inductor

    return dict(torch._inductor.list_mode_options())


@contextlib.contextmanager
def registered_backend(name: str, compiler: Callable[..., Any]) -> Iterator[None]:
    """Register a backend by name for a while; torch itself cannot unregister one."""
    import torch._dynamo
    from torch._dynamo.backends import registry

    torch._dynamo.register_backend(compiler, name=name)
    try:
        yield
    finally:
        registry._COMPILER_FNS.pop(name, None)
        registry._BACKENDS.pop(name, None)


@contextlib.contextmanager
def fresh_stance() -> Iterator[None]:
    """Let the stance eager_then_compile start with no recorded calls, and forget those it records inside.

    Torch stores the inputs of first calls by file and line until the process ends; a reset does not clear them.
    """
    from torch._dynamo import eval_frame

    before = eval_frame._EXAMPLE_INPUTS
    eval_frame._EXAMPLE_INPUTS = None
    try:
        yield
    finally:
        eval_frame._EXAMPLE_INPUTS = before


def cache_folder() -> str:
    """Inductor's cache folder; torch's own function would also create the folder and set a variable."""
    return os.environ.get("TORCHINDUCTOR_CACHE_DIR") or default_cache_folder()


def default_cache_folder() -> str:
    """Inductor's cache folder if no variable names one."""
    from torch._inductor.runtime import cache_dir_utils

    return str(cache_dir_utils.default_cache_dir())


@contextlib.contextmanager
def collect_torch_messages() -> Iterator[list[str]]:
    """Collect warnings, and messages of torch's loggers at warning level or above; the terminal shows none of them.

    Warnings that Python hides by default, such as those about deprecated functions, are left out.
    """
    messages: list[str] = []

    class MessageHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(" ".join(record.getMessage().split()))

    # Loggers without a handler either propagate records or are switched off; the trace logger belongs to a recorder.
    names = [name for name in logging.root.manager.loggerDict if name == "torch" or name.startswith("torch.")]
    loggers = [logging.getLogger(name) for name in names if name != "torch.__trace"]
    before = [(logger, logger.handlers, logger.level) for logger in loggers if logger.handlers or logger.level]
    try:
        for logger, handlers, level in before:
            logger.handlers = [MessageHandler(logging.WARNING)] if handlers else []
            if level > logging.ERROR:  # silenced for the terminal, which shows nothing now
                logger.setLevel(logging.WARNING)
        with warnings.catch_warnings(record=True) as warning_records:
            warnings.simplefilter("always")
            for hidden in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
                warnings.simplefilter("ignore", hidden)
            yield messages
    finally:
        for logger, handlers, level in before:
            logger.handlers = handlers
            logger.setLevel(level)
    messages += (" ".join(str(item.message).split()) for item in warning_records)
