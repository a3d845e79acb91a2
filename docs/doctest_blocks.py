"""An extension for mkdocstrings: examples in docstrings, which begin with >>>, become code blocks.

Without it, Markdown would render them as quotations, and a printed list as a link.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class DoctestBlocks(Extension):
    """Put a fence around every example of a docstring."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(
                lambda match: f"{match[1]}```pycon\n{match[0]}\n{match[1]}```", obj.docstring.value
            )
