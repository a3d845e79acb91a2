"""Functions with state of their own, or that act on something besides their result: none of them may be frozen."""

from __future__ import annotations

import collections
import datetime
import io
import itertools
import logging
import os
import queue
import random
import secrets
import threading
import time
import uuid
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

LOG: list[float] = []
SEEN: dict[str, int] = {"calls": 0}
NAMES: set[int] = set()
COUNT = 0
TOTAL = torch.zeros(())
ITERATOR = iter(range(10**6))
COUNTER = itertools.count()
CYCLE = itertools.cycle([1.0, 2.0, 3.0])
DEQUE: collections.deque[float] = collections.deque(maxlen=3)
QUEUE: queue.Queue[float] = queue.Queue()
TALLY: collections.Counter[str] = collections.Counter()
LOCAL = threading.local()
ARRAY = np.zeros(3)
STREAM = io.StringIO()
GENERATOR = torch.Generator().manual_seed(0)
RANDOM = random.Random(0)
NUMPY_RANDOM = np.random.default_rng(0)
logger = logging.getLogger("stateful")


class Thing:
    """Something with attributes."""

    total = 0

    def __init__(self) -> None:
        self.calls = 0
        self.cache: dict[int, Tensor] = {}
        self.last: Any = None


THING = Thing()


def appends(x: Tensor) -> Tensor:
    LOG.append(1.0)
    return x + len(LOG)


def appends_only(x: Tensor) -> Tensor:
    LOG.append(1.0)
    return x + 1


def counts_in_a_dictionary(x: Tensor) -> Tensor:
    SEEN["calls"] += 1
    return x * SEEN["calls"]


def adds_to_a_set(x: Tensor) -> Tensor:
    NAMES.add(len(NAMES))
    return x + len(NAMES)


def counts_globally(x: Tensor) -> Tensor:
    global COUNT
    COUNT += 1
    return x + COUNT


def adds_to_a_tensor(x: Tensor) -> Tensor:
    TOTAL.add_(x.sum())
    return x + TOTAL


def adds_through_data(x: Tensor) -> Tensor:
    TOTAL.data.add_(1.0)
    return x * 2


def changes_its_input(x: Tensor) -> Tensor:
    x.mul_(1.5)
    return x + 1


def changes_a_view_of_its_input(x: Tensor) -> Tensor:
    x[0].fill_(3.0)
    return x.sum()


def next_of_an_iterator(x: Tensor) -> Tensor:
    return x + next(ITERATOR)


def next_of_a_counter(x: Tensor) -> Tensor:
    return x + next(COUNTER)


def next_of_a_cycle(x: Tensor) -> Tensor:
    return x * next(CYCLE)


def appends_to_a_deque(x: Tensor) -> Tensor:
    DEQUE.append(1.0)
    return x + len(DEQUE)


def puts_into_a_queue(x: Tensor) -> Tensor:
    QUEUE.put(1.0)
    return x + QUEUE.qsize()


def tallies(x: Tensor) -> Tensor:
    TALLY["calls"] += 1
    return x + TALLY["calls"]


def counts_on_an_object(x: Tensor) -> Tensor:
    THING.calls += 1
    return x + THING.calls


def counts_on_a_class(x: Tensor) -> Tensor:
    Thing.total += 1
    return x + Thing.total


def keeps_the_last_result(x: Tensor) -> Tensor:
    THING.last = x * 2
    return THING.last + 1


def caches_by_size(x: Tensor) -> Tensor:
    if x.shape[0] not in THING.cache:
        THING.cache[x.shape[0]] = torch.ones(x.shape[0], 1)
    THING.cache[x.shape[0]] = THING.cache[x.shape[0]] + 1
    return x + THING.cache[x.shape[0]]


def reads_the_clock(x: Tensor) -> Tensor:
    return x * time.time()


def reads_a_counter_of_time(x: Tensor) -> Tensor:
    return x * time.perf_counter()


def reads_the_date(x: Tensor) -> Tensor:
    return x * datetime.datetime.now().microsecond


def draws_from_random(x: Tensor) -> Tensor:
    return x * random.random()


def draws_from_a_generator_of_random(x: Tensor) -> Tensor:
    return x * RANDOM.random()


def chooses_at_random(x: Tensor) -> Tensor:
    return x * random.choice([1.0, 2.0])


def draws_from_numpy(x: Tensor) -> Tensor:
    return x * np.random.rand()


def draws_from_a_generator_of_numpy(x: Tensor) -> Tensor:
    return x * float(NUMPY_RANDOM.random())


def draws_from_torch(x: Tensor) -> Tensor:
    return x + torch.rand(6)


def draws_from_a_generator(x: Tensor) -> Tensor:
    return x + torch.rand(6, generator=GENERATOR)


def drops_at_random(x: Tensor) -> Tensor:
    return torch.nn.functional.dropout(x, 0.5, training=True)


def draws_secrets(x: Tensor) -> Tensor:
    return x * secrets.randbelow(100)


def makes_a_uuid(x: Tensor) -> Tensor:
    return x * (uuid.uuid4().int % 7)


def reads_the_environment(x: Tensor) -> Tensor:
    return x * float(os.environ.get("STATEFUL_FACTOR", "2"))


def prints(x: Tensor) -> Tensor:
    print("called")
    return x * 2


def writes_to_a_stream(x: Tensor) -> Tensor:
    STREAM.write("called")
    return x * 2


def logs(x: Tensor) -> Tensor:
    logger.warning("called")
    return x * 2


def warns(x: Tensor) -> Tensor:
    warnings.warn("called", stacklevel=1)
    return x * 2


def writes_to_an_array(x: Tensor) -> Tensor:
    ARRAY[0] += 1
    return x + float(ARRAY[0])


def counts_in_a_closure() -> Callable[[Tensor], Tensor]:
    calls = 0

    def function(x: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return x + calls

    return function


def runs_a_generator() -> Callable[[Tensor], Tensor]:
    def numbers() -> Any:
        n = 0
        while True:
            n += 1
            yield n

    running = numbers()
    return lambda x: x + next(running)


def counts_in_a_default(x: Tensor, seen: list[int] = []) -> Tensor:  # noqa: B006 (this is the point)
    seen.append(1)
    return x + len(seen)


def counts_on_itself(x: Tensor) -> Tensor:
    counts_on_itself.calls = getattr(counts_on_itself, "calls", 0) + 1  # type: ignore[attr-defined]
    return x + counts_on_itself.calls  # type: ignore[attr-defined]


def branches_on_a_value(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x * 3


def takes_an_item(x: Tensor) -> Tensor:
    return x * int(x.abs().max().item())


def sets_a_mode(x: Tensor) -> Tensor:
    torch.manual_seed(0)
    return x * 2


class Counting(nn.Module):
    """Counts its calls in a buffer and in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.number = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x + self.calls


class Attribute(nn.Module):
    """Counts its calls in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    def forward(self, x: Tensor) -> Tensor:
        self.number += 1
        return x + self.number


class Remembering(nn.Module):
    """Adds what it was given the time before."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(4, 6)

    def forward(self, x: Tensor) -> Tensor:
        result = x + self.last
        self.last = x
        return result


def lazily_made() -> Callable[[Tensor], Tensor]:
    class Lazy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight: Tensor | None = None

        def forward(self, x: Tensor) -> Tensor:
            if self.weight is None:
                self.weight = torch.ones(6)
            else:
                self.weight = self.weight + 1
            return x * self.weight

    return Lazy()


def weak() -> Callable[[Tensor], Tensor]:
    table: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def function(x: Tensor) -> Tensor:
        table[THING] = table.get(THING, 0) + 1
        return x + table[THING]

    return function


STATEFUL: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        appends, appends_only, counts_in_a_dictionary, adds_to_a_set, counts_globally, adds_to_a_tensor, adds_through_data,
        changes_its_input, changes_a_view_of_its_input, next_of_an_iterator, next_of_a_counter, next_of_a_cycle,
        appends_to_a_deque, puts_into_a_queue, tallies, counts_on_an_object, counts_on_a_class, keeps_the_last_result,
        caches_by_size, reads_the_clock, reads_a_counter_of_time, reads_the_date, draws_from_random,
        draws_from_a_generator_of_random, chooses_at_random, draws_from_numpy, draws_from_a_generator_of_numpy,
        draws_from_torch, draws_from_a_generator, drops_at_random, draws_secrets, makes_a_uuid, prints, writes_to_a_stream,
        logs, warns, writes_to_an_array, counts_in_a_default, counts_on_itself, branches_on_a_value, takes_an_item,
        sets_a_mode,
    )
}  # fmt: skip
STATEFUL |= {
    "counts_in_a_closure": counts_in_a_closure(),
    "runs_a_generator": runs_a_generator(),
    "Counting": Counting(),
    "Attribute": Attribute(),
    "Remembering": Remembering(),
    "lazily_made": lazily_made(),
    "weak": weak(),
    "train_mode_batch_norm": nn.BatchNorm1d(6).train(),
    "train_mode_dropout": nn.Dropout(0.5).train(),
}
