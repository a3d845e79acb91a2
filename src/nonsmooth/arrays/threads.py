"""One thread for numpy and scipy while the solver runs.

Its matrices are small. OpenBLAS starts as many threads as there are cores for them, and on a machine with many cores waiting
for these takes many times as long as the products: with 16 cores, a run that takes 0.4 s took 7 s. Torch has threads of its
own and keeps them, so the user's functions run as they always do.
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
    """Limit the BLAS of numpy and scipy to one thread for a while, where threadpoolctl can.

    Only in the main thread: OpenBLAS does not listen to others, and runs that overlap could not tell what to go back to.
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
    except Exception:  # it is not there, or cannot tell: the threads stay as they are
        return None
