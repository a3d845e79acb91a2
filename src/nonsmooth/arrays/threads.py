"""One thread for numpy and scipy while the solver runs.

The solver's matrices are small. OpenBLAS would use one thread per core for them, and synchronizing these takes many times as
long as the products themselves: on 16 cores, a run took 7 s instead of 0.4 s. Torch has its own threads, which are not
affected, so the user's functions run as usual.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the BLAS of numpy and scipy to one thread within this context, if threadpoolctl can.

    This works in the main thread only: OpenBLAS ignores other threads, and overlapping runs could not restore the limit.
    """
    controller = _controller() if current_thread() is main_thread() else None
    if controller is None:
        yield
        return
    with controller.limit(limits=1):
        yield


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController

        controller = ThreadpoolController().select(internal_api="openblas")
        home = Path(torch.__file__).resolve().parent
        ours = [each.filepath for each in controller.lib_controllers if home not in Path(each.filepath).resolve().parents]
        return controller.select(filepath=ours) if ours else None
    except Exception:  # threadpoolctl is missing or fails: leave the threads as they are
        return None
