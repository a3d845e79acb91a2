"""Render records as text and pages without an import of the report from the records.

`print(inspection)` and `inspection.to_html()` are methods of records, but the report does the rendering, and imports records.
The package connects the two when it is imported: it registers one function for each format.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class Format(Enum):
    """An output format of a record."""

    SUMMARY = "the summary of a capture as text"
    TIMING = "the tables of a timing as text"
    BREAKS = "graph breaks with their fixes as text"
    FIX = "a proven fix as text"
    FORECAST = "a prediction of recompiles as text"
    PAGE = "captures as one HTML page"


_RENDERERS: dict[Format, Callable[..., str]] = {}


def register(format: Format, renderer: Callable[..., str]) -> None:
    """Register `renderer` as the function that `render` calls for this format."""
    _RENDERERS[format] = renderer


def render(format: Format, *arguments: object, **options: object) -> str:
    """Render records in a format.

    >>> from compile_inspect.records import Inspection
    >>> render(Format.SUMMARY, Inspection())
    'Nothing was compiled during the recording.'
    """
    return _RENDERERS[format](*arguments, **options)
