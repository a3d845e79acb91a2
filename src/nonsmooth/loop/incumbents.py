"""The best points evaluated so far, whether or not they became iterates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.candidate import Candidate
from nonsmooth.options import Tolerances

Vector = NDArray[np.float64]


class Incumbents:
    """The lowest feasible point and the most feasible point among all evaluated points."""

    def __init__(self, tolerances: Tolerances) -> None:
        self._tolerances = tolerances
        self.best: Candidate | None = None
        self.most_feasible: Candidate | None = None
        self._key = (np.inf, np.inf)

    def feasible(self, trial: Trial) -> bool:
        """Whether a point satisfies all constraints to tolerance."""
        return (
            trial.finite
            and trial.inequality_violation <= self._tolerances.inequality
            and trial.equality_violation <= self._tolerances.equality
        )

    def consider(self, trial: Trial) -> None:
        """Store a point if it is better than the earlier ones."""
        if not trial.finite:
            return
        if self.feasible(trial) and (self.best is None or trial.f < self.best.f):
            self.best = Candidate.of(trial)
        if (trial.violation, trial.f) < self._key:
            self._key = (trial.violation, trial.f)
            self.most_feasible = Candidate.of(trial)

    def clear(self) -> None:
        """Remove all points."""
        self.best, self.most_feasible, self._key = None, None, (np.inf, np.inf)

    def arrays(self) -> dict[str, Any]:
        """All arrays that `restore` needs."""
        points = {"best": self.best, "most_feasible": self.most_feasible}
        return {
            f"{name}.{part}": getattr(point, part)
            for name, point in points.items()
            if point is not None
            for part in ("x", "f", "c", "equalities")
        }

    @staticmethod
    def shapes(arrays: dict[str, Any], variables: int, constraints: int) -> dict[str, tuple[int, ...]]:
        """The expected shapes of `arrays`."""
        expected = {"x": (variables,), "f": (), "c": (constraints,), "equalities": ()}
        names = {name.partition(".")[0] for name in arrays}
        return {f"{name}.{part}": shape for name in names for part, shape in expected.items()}

    def restore(self, arrays: dict[str, Any], units: Vector | None = None) -> None:
        """Restore the points from `arrays`; `units` are the factors of prescaling."""
        self.clear()
        for name in {name.partition(".")[0] for name in arrays}:
            x, f, c, equalities = (arrays[f"{name}.{part}"] for part in ("x", "f", "c", "equalities"))
            setattr(self, name, Candidate(np.array(x), float(f), np.array(c), int(equalities)))
        if self.most_feasible is not None:
            point = self.most_feasible
            point = point if units is None else replace(point, c=point.c / units)  # points are compared in these units
            self._key = (max(point.inequality_violation, point.equality_violation), point.f)
