"""Render records as text and HTML without a dependency of records on the report.

Records have `print(inspection)` and `inspection.to_html()`, but the report code, which depends on records, does the rendering.
When the package is imported, it registers one function per output format.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class OutputFormat(Enum):
    """A format in which a record can be rendered."""

    SUMMARY = "the summary of a capture as text"
    TIMING = "the tables of a timing as text"
    PAGE = "captures as one HTML page"


_RENDERERS: dict[OutputFormat, Callable[..., str]] = {}


def register(output_format: OutputFormat, renderer: Callable[..., str]) -> None:
    """Make `renderer` the function that `render` calls for this format."""
    _RENDERERS[output_format] = renderer


def render(output_format: OutputFormat, *arguments: object, **options: object) -> str:
    """Render records in a format.

    >>> from compile_inspect.records import Inspection
    >>> render(OutputFormat.SUMMARY, Inspection())
    'Nothing was compiled while this was recorded.'
    """
    return _RENDERERS[output_format](*arguments, **options)
