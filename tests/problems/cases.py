"""All cases, by name and by kind, and the families that can be built in other sizes."""

from __future__ import annotations

from collections.abc import Callable

from .case import Case
from .catalog import catalog
from .chained import CHAINED, chained_cb3_1, chained_cb3_2, chained_lq, nesterov_chebyshev_rosenbrock
from .constrained import CONSTRAINED as CONSTRAINED_NONSMOOTH
from .constrained import chained_lq_mad, maxq_mad
from .constrained_minimax import CONSTRAINED_MINIMAX
from .hock_schittkowski import HOCK_SCHITTKOWSKI
from .hock_schittkowski_equalities import EQUALITIES
from .hock_schittkowski_inequalities import INEQUALITIES
from .minimax import MINIMAX
from .scalable import (
    SCALABLE,
    active_faces,
    brown2,
    chained_crescent_1,
    chained_crescent_2,
    chained_mifflin2,
    goffin,
    lovasz_theta,
    max_hilbert,
    maxl,
    sum_hilbert,
)
from .unconstrained import UNCONSTRAINED as SMALL
from .unconstrained import maxq

COLLECTIONS = (
    SMALL,
    MINIMAX,
    CHAINED,
    SCALABLE,
    CONSTRAINED_NONSMOOTH,
    CONSTRAINED_MINIMAX,
    HOCK_SCHITTKOWSKI,
    EQUALITIES,
    INEQUALITIES,
)

ALL: dict[str, Case] = catalog(*(case for collection in COLLECTIONS for case in collection.values()))
UNCONSTRAINED = {name: case for name, case in ALL.items() if not case.inequalities and not case.equalities}
CONSTRAINED = {name: case for name, case in ALL.items() if case.inequalities or case.equalities}
SMOOTH = {name: case for name, case in ALL.items() if case.smooth}

FAMILIES: dict[str, Callable[[int], Case]] = {
    "maxq": maxq,
    "chained_lq": chained_lq,
    "chained_cb3_1": chained_cb3_1,
    "chained_cb3_2": chained_cb3_2,
    "nesterov_chebyshev_rosenbrock": nesterov_chebyshev_rosenbrock,
    "active_faces": active_faces,
    "brown2": brown2,
    "chained_crescent_1": chained_crescent_1,
    "chained_crescent_2": chained_crescent_2,
    "chained_mifflin2": chained_mifflin2,
    "goffin": goffin,
    "lovasz_theta": lovasz_theta,
    "max_hilbert": max_hilbert,
    "maxl": maxl,
    "sum_hilbert": sum_hilbert,
    "chained_lq_mad": chained_lq_mad,
    "maxq_mad": maxq_mad,
}


def build(family: str, n: int) -> Case:
    """A case of a scalable family in n variables, such as `build("chained_lq", 1000)`."""
    return FAMILIES[family](n)
