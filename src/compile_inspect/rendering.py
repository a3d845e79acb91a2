"""Text and pages of records, without records that know how to make them.

`print(inspection)` and `inspection.to_html()` belong to records; how they look belongs to the report, which is made of records.
The package puts the two together when it is imported: it registers one function for each form.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class Form(Enum):
    """A form in which people read a record."""

    SUMMARY = "the summary of a capture as text"
    TIMING = "the tables of a timing as text"
    BREAKS = "graph breaks with their fixes as text"
    FIX = "a proven fix as text"
    FORECAST = "a prediction of recompiles as text"
    PAGE = "captures as one HTML page"


_RENDERERS: dict[Form, Callable[..., str]] = {}


def register(form: Form, renderer: Callable[..., str]) -> None:
    """Make `renderer` the function that `render` calls for this form."""
    _RENDERERS[form] = renderer


def render(form: Form, *arguments: object, **options: object) -> str:
    """Bring records into a form.

    >>> from compile_inspect.records import Inspection
    >>> render(Form.SUMMARY, Inspection())
    'Nothing was compiled while this was recorded.'
    """
    return _RENDERERS[form](*arguments, **options)
