"""Select the records of one compilation."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from compile_inspect.errors import InspectError
from compile_inspect.records import Inspection


def select(inspections: Sequence[Inspection], compilation: str | None) -> list[Inspection]:
    """Keep the records of one compile id; None keeps everything.

    >>> from compile_inspect.records import Phase
    >>> inspection = Inspection(phases=(Phase("0/0", "dynamo", 0.0, 1.0), Phase("0/1", "dynamo", 1.0, 1.0)))
    >>> [phase.compilation for phase in select([inspection], "0/1")[0].phases]
    ['0/1']
    """
    if compilation is None:
        return list(inspections)
    # torch's messages write the id in brackets, and people paste it.
    identifier = compilation.strip().strip("[]")
    known = dict.fromkeys(name for inspection in inspections for name in _identifiers(inspection))
    if identifier not in known:
        raise InspectError(f"there is no compilation {identifier!r} in this capture; {_list_known(list(known))}")
    return [_only(inspection, identifier) for inspection in inspections]


def _list_known(known: list[str]) -> str:
    if not known:
        return "it contains no compilations"
    more = f" and {len(known) - 12} more" if len(known) > 12 else ""
    # The error is printed without cleaning, so it must not contain unprintable characters of the capture.
    names = ["".join(filter(str.isprintable, name)) for name in known[:12]]
    return f"it contains {', '.join(names)}{more}"


def _identifiers(inspection: Inspection) -> Iterable[str]:
    yield from (item.id for item in inspection.compilations)
    # A partial capture can contain records of a compilation that never ended.
    for records in (inspection.graphs, inspection.lowerings, inspection.phases):
        yield from (item.compilation for item in records if item.compilation is not None)


def _only(inspection: Inspection, identifier: str) -> Inspection:
    return dataclasses.replace(
        inspection,
        compilations=tuple(item for item in inspection.compilations if item.id == identifier),
        failures=tuple(item for item in inspection.failures if item.compilation == identifier),
        graphs=tuple(item for item in inspection.graphs if item.compilation == identifier),
        # A break that follows from one in another compilation counts by itself here.
        breaks=tuple(dataclasses.replace(item, follows=None) for item in inspection.breaks if identifier in item.compilations),
        guards=tuple(item for item in inspection.guards if item.compilation == identifier),
        recompiles=tuple(item for item in inspection.recompiles if item.compilation == identifier),
        limits=tuple(item for item in inspection.limits if item.compilation == identifier),
        lowerings=tuple(item for item in inspection.lowerings if item.compilation == identifier),
        phases=tuple(item for item in inspection.phases if item.compilation == identifier),
        caches=tuple(item for item in inspection.caches if item.compilation == identifier),
        cuda_graphs=tuple(item for item in inspection.cuda_graphs if item.compilation == identifier),
        bytecode=tuple(item for item in inspection.bytecode if item.compilation == identifier),
    )
