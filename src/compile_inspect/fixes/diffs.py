"""Proposals as diffs of the current files or of their recorded text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compile_inspect.errors import InspectError
from compile_inspect.fixes.source import apply, read, unified_diff
from compile_inspect.records.fixes import Proposal
from compile_inspect.wording.locations import short_path


def differ(sources: Mapping[str, str], *, disk: bool = False) -> Callable[[Proposal], str]:
    """Return a function that formats a proposal as a unified diff; empty if it changes no line or the file has changed.

    >>> from compile_inspect.records.fixes import Replacement
    >>> change = Replacement("model.py", (1, 4), (1, 5), "1", "2")
    >>> print(differ({"model.py": "x = 1\\n"})(Proposal("shapes", "Two", (change,))), end="")
    --- model.py
    +++ model.py
    @@ -1 +1 @@
    -x = 1
    +x = 2
    """

    def diff(proposal: Proposal) -> str:
        parts = []
        for file in dict.fromkeys(item.file for item in proposal.replacements):
            source = read(file, sources.get(file), disk=disk)
            if source is None:
                continue
            try:
                after = apply(source.text, [item for item in proposal.replacements if item.file == file])
            except InspectError:
                continue
            parts.append(unified_diff(short_path(file), source.text, after))
        return "".join(parts)

    return diff
