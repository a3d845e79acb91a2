"""Points, and what two of them have in common."""

from __future__ import annotations

import numpy as np

from nonsmooth.evaluate import Trial


def point(jacobian: list[list[float]]) -> Trial:
    return Trial.stored(np.zeros(2), 1.0, np.zeros(len(jacobian)), 0, np.ones(2), np.array(jacobian).reshape(-1, 2))


def test_every_gradient_has_a_key_of_its_own() -> None:
    one, other = point([[1.0, 0.0], [0.0, 1.0]]), point([[1.0, 0.0], [0.0, 2.0]])
    assert len({*one.keys.tolist(), *other.keys.tolist()}) == 6


def test_gradients_that_are_the_same_are_kept_once() -> None:
    before, after, curved = (point([[1.0, 0.0], [0.0, slope]]) for slope in (1.0, 1.0, 2.0))
    after.share_rows(before)
    assert after.jacobian is before.jacobian and after.keys[1:].tolist() == before.keys[1:].tolist()
    assert after.keys[0] != before.keys[0]  # that of f is another
    curved.share_rows(after)
    assert not set(curved.keys.tolist()) & set(before.keys.tolist())
    later = point([[1.0, 0.0], [0.0, 1.0]])
    later.share_rows(after)
    assert later.keys[1:].tolist() == before.keys[1:].tolist()
    free = point([])
    free.share_rows(before)
    assert len(free.keys) == 1
