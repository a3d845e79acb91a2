"""One self-contained HTML file: the page's script and style, and the data of the captures.

The page may only run its own script, identified by its hash: it loads no URL, no style or script from another
origin or from the data, not even an image. All data from the user's program is compressed and base64-encoded,
which no HTML parser can misread; the script shows it as text nodes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any

from compile_inspect.reporters.html.capture import CaptureReport, Limits, capture_data
from compile_inspect.reporters.html.lessons import Tour, lessons_of
from compile_inspect.reporters.html.texts import words
from compile_inspect.reporters.html.verdict import first_of, models_of, together_of

_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'; connect-src 'none'"
)
_DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="page"><p id="waiting">{verdict} A script shows the rest of this page. If this line remains, the browser does not \
run it. {elsewhere}</p></div>
<script type="application/gzip" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


_ELSEWHERE = {
    "program": "compile-inspect show displays the capture in a terminal.",
    "comparison": "compile-inspect show displays the captures in a terminal.",
    "tour": "compile-inspect tour runs the lessons in a terminal.",
}
_REST_OF_A_MODEL = (
    "`compile-inspect inspect` records the model by itself; `compile-inspect report --whole` then shows everything."
)


def render(
    captures: Sequence[CaptureReport],
    *,
    title: str,
    generator: str = "",
    comparison: bool = False,
    limits: Limits | None = None,
    tour: Tour | None = None,
) -> str:
    """The page of some captures: processes of one program, two captures to compare, or the models of a tour."""
    page_limits = limits or Limits()
    return document(page_data(captures, title=title, generator=generator, comparison=comparison, limits=page_limits, tour=tour))


def page_data(
    captures: Sequence[CaptureReport], *, title: str, generator: str, comparison: bool, limits: Limits, tour: Tour | None = None
) -> dict[str, Any]:
    """The data of the page's script; frontend/src/data.ts describes it."""
    named = [(report.label, report.inspection) for report in captures]
    several = len(captures) > 1 and not comparison
    frame: dict[str, Any] = {"version": 1, "title": words(title), "generator": generator}
    if tour is not None:
        # A tour leaves no file from which the rest could be read.
        limits = replace(limits, rest=_REST_OF_A_MODEL)
        return {
            **frame,
            "kind": "tour",
            "sentence": tour.summary(),
            "origin": words(tour.origin),
            "lessons": lessons_of(tour.lessons),
            "together": models_of(named) if several else None,
            "first": 0,
            "captures": [capture_data(report, limits) for report in captures],
        }
    together = together_of(named) if several else None
    data = [capture_data(report, limits) for report in captures]
    return {
        **frame,
        "kind": "comparison" if comparison else "program",
        "sentence": together["sentence"] if together else " ".join(item["verdict"]["sentence"] for item in data),
        "origin": "",
        "lessons": [],
        "together": together,
        "first": 0 if together is None else first_of([inspection for _, inspection in named]),
        "captures": data,
    }


def document(data: dict[str, Any]) -> str:
    """The HTML page for some data."""
    script, style = asset("report.js"), asset("report.css")
    # All tours have the same name; the sentence distinguishes browser tabs.
    title = f"{data['title']} · {data['sentence'].rstrip('.')}" if data["kind"] == "tour" else data["title"]
    return _DOCUMENT.format(
        policy=escape(_POLICY.format(script=_hash(script), style=_hash(style))),
        title=escape(title),
        style=style,
        verdict=escape(data["sentence"]),
        elsewhere=_ELSEWHERE[data["kind"]],
        data=_compress(data),
        script=script,
    )


def asset(name: str) -> str:
    """A built part of the page, as shipped with the package."""
    return (files("compile_inspect.reporters.html") / "assets" / name).read_text(encoding="utf-8")


def _compress(data: dict[str, Any]) -> str:
    """Data as gzipped JSON in base64: a sixth of the size, and without special characters of HTML."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    # Without a timestamp in the header, the same capture gives the same page.
    return base64.b64encode(gzip.compress(text.encode("ascii"), compresslevel=9, mtime=0)).decode("ascii")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
