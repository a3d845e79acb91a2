"""The records of one compilation only."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from compile_inspect.errors import InspectError
from compile_inspect.records import Inspection


def select(inspections: Sequence[Inspection], compilation: str | None) -> list[Inspection]:
    """Keep what belongs to one compile id; None keeps everything.

    >>> from compile_inspect.records import Phase
    >>> inspection = Inspection(phases=(Phase("0/0", "dynamo", 0.0, 1.0), Phase("0/1", "dynamo", 1.0, 1.0)))
    >>> [phase.compilation for phase in select([inspection], "0/1")[0].phases]
    ['0/1']
    """
    if compilation is None:
        return list(inspections)
    # torch's own messages write the id in brackets, which people paste.
    wanted = compilation.strip().strip("[]")
    known = dict.fromkeys(identifier for inspection in inspections for identifier in _identifiers(inspection))
    if wanted not in known:
        raise InspectError(f"there is no compilation {wanted!r} in this capture; {_list_known(list(known))}")
    return [_only(inspection, wanted) for inspection in inspections]


def _list_known(known: list[str]) -> str:
    if not known:
        return "it holds no compilation at all"
    more = f" and {len(known) - 12} more" if len(known) > 12 else ""
    # An error goes to the terminal as it is, so nothing unprintable of the capture may be in it.
    names = ["".join(filter(str.isprintable, name)) for name in known[:12]]
    return f"it holds {', '.join(names)}{more}"


def _identifiers(inspection: Inspection) -> Iterable[str]:
    yield from (item.id for item in inspection.compilations)
    # A partial capture can hold records of a compilation that never ended.
    for records in (inspection.graphs, inspection.lowerings, inspection.phases):
        yield from (item.compilation for item in records if item.compilation is not None)


def _only(inspection: Inspection, wanted: str) -> Inspection:
    return dataclasses.replace(
        inspection,
        compilations=tuple(item for item in inspection.compilations if item.id == wanted),
        failures=tuple(item for item in inspection.failures if item.compilation == wanted),
        graphs=tuple(item for item in inspection.graphs if item.compilation == wanted),
        # What a break of another compilation led to stands by itself here.
        breaks=tuple(dataclasses.replace(item, parent=None) for item in inspection.breaks if wanted in item.compilations),
        guards=tuple(item for item in inspection.guards if item.compilation == wanted),
        recompiles=tuple(item for item in inspection.recompiles if item.compilation == wanted),
        limits=tuple(item for item in inspection.limits if item.compilation == wanted),
        lowerings=tuple(item for item in inspection.lowerings if item.compilation == wanted),
        phases=tuple(item for item in inspection.phases if item.compilation == wanted),
        caches=tuple(item for item in inspection.caches if item.compilation == wanted),
        cuda_graphs=tuple(item for item in inspection.cuda_graphs if item.compilation == wanted),
        bytecode=tuple(item for item in inspection.bytecode if item.compilation == wanted),
    )
