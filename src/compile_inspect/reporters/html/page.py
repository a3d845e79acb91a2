"""One HTML file: the page's own script and style, and the data of the captures, all of it inside.

The page may run its own script, known by its hash, and nothing else: no address is loaded, no style or script of another
origin or from the data, not even an image. Everything from the user's program is packed and written in letters and digits
that no HTML parser can take for anything else; the script shows it as text nodes.
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

from compile_inspect.reporters.html.capture import Limits, Shown, capture_data
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
<div id="page"><p id="waiting">{verdict} The rest of this page is shown by a script: if this line stays, the browser does not \
run it. {elsewhere}</p></div>
<script type="application/gzip" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


_ELSEWHERE = {
    "program": "compile-inspect show reads the capture in a terminal.",
    "comparison": "compile-inspect show reads the captures in a terminal.",
    "tour": "compile-inspect tour shows the lessons in a terminal.",
}
_REST_OF_A_MODEL = "`compile-inspect inspect` records the model alone, `compile-inspect report --whole` shows all of that."


def render(
    captures: Sequence[Shown],
    *,
    title: str,
    generator: str = "",
    comparison: bool = False,
    limits: Limits | None = None,
    tour: Tour | None = None,
) -> str:
    """The page of some captures: processes of one program, two to hold against each other, or the models of a tour."""
    chosen = limits or Limits()
    return document(page_data(captures, title=title, generator=generator, comparison=comparison, limits=chosen, tour=tour))


def page_data(
    captures: Sequence[Shown], *, title: str, generator: str, comparison: bool, limits: Limits, tour: Tour | None = None
) -> dict[str, Any]:
    """What the page's script reads; frontend/src/data.ts describes it."""
    named = [(shown.label, shown.inspection) for shown in captures]
    several = len(captures) > 1 and not comparison
    frame: dict[str, Any] = {"version": 1, "title": words(title), "generator": generator}
    if tour is not None:
        # A tour leaves no file behind that the rest could be read from.
        limits = replace(limits, rest=_REST_OF_A_MODEL)
        return {
            **frame,
            "kind": "tour",
            "sentence": tour.told(),
            "origin": words(tour.origin),
            "lessons": lessons_of(tour.lessons),
            "together": models_of(named) if several else None,
            "first": 0,
            "captures": [capture_data(shown, limits) for shown in captures],
        }
    together = together_of(named) if several else None
    data = [capture_data(shown, limits) for shown in captures]
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
    """The page for some data."""
    script, style = asset("report.js"), asset("report.css")
    # The name of a tour is that of every other tour: what this one was tells two tabs apart.
    title = f"{data['title']} · {data['sentence'].rstrip('.')}" if data["kind"] == "tour" else data["title"]
    return _DOCUMENT.format(
        policy=escape(_POLICY.format(script=_hash(script), style=_hash(style))),
        title=escape(title),
        style=style,
        verdict=escape(data["sentence"]),
        elsewhere=_ELSEWHERE[data["kind"]],
        data=_packed(data),
        script=script,
    )


def asset(name: str) -> str:
    """A built part of the page, as the package ships it."""
    return (files("compile_inspect.reporters.html") / "assets" / name).read_text(encoding="utf-8")


def _packed(data: dict[str, Any]) -> str:
    """Data as gzipped JSON in base64: a sixth of the size, and not one character that means something in HTML."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    # Without a time in the header, the same capture gives the same page.
    return base64.b64encode(gzip.compress(text.encode("ascii"), compresslevel=9, mtime=0)).decode("ascii")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
