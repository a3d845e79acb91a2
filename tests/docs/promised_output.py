"""Whether what was printed is what a page shows.

It must be the same, except for what differs from run to run and from machine to machine:

- `…` stands for anything; alone on a line, for any number of lines.
- A number with a unit of time or size, or a ratio or percentage, stands for any number with such a unit: `4.1 s` agrees with
  `380 ms` and `1 min 15 s`, not with `4.1 MB`; `26.5–26.6 µs` with any interval.
- The versions of torch and Python stand for any version.
- Spaces stand for any number of them, and a line of ─ for one of any length: columns are as wide as their contents.
"""

from __future__ import annotations

import re

_NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
_UNITS = (r"ns|µs|ms|s|min|h", r"B|kB|KB|MB|GB|KiB|MiB|GiB", r"×|times as fast", r"%")
_LOOSE = "|".join(
    [
        *(
            rf"(?P<unit{number}>(?<![\w.,])(?:{_NUMBER}–)?{_NUMBER} ?(?:{units})(?!\w)(?: {_NUMBER} (?:{units})(?!\w))*)"
            for number, units in enumerate(_UNITS)
        ),
        r"(?P<version>(?:torch|Python) \d+\.\d+(?:\.\d+)?(?:\+\w+)?)",
        r"(?P<rule>─{3,})",
        r"(?P<space> +)",
        r"(?P<lines>(?<=\n)…\n)",
        r"(?P<anything>…)",
    ]
)


def _pattern_of(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    if kind.startswith("unit"):
        units = _UNITS[int(kind.removeprefix("unit"))]
        return rf"{f'(?:{_NUMBER}–)?' if '–' in match[0] else ''}{_NUMBER} *(?:{units})(?: {_NUMBER} (?:{units}))*"
    if kind == "version":
        return rf"{match[0].split()[0]} \d+\.\d+(?:\.\d+)?\w*(?:\+\w+)?"
    return {"rule": "─+", "space": " +", "lines": r"(?:[^\n]*\n)*?", "anything": "(?s:.*?)"}[kind]


def pattern(promised: str) -> re.Pattern[str]:
    """The regular expression for what a page shows."""
    text = "\n" + "\n".join(line.rstrip() for line in promised.strip("\n").split("\n")) + "\n"
    made, position = "", 0
    for match in re.finditer(_LOOSE, text):
        made += re.escape(text[position : match.start()]) + _pattern_of(match)
        position = match.end()
    return re.compile(made + re.escape(text[position:]))


def agrees(promised: str, printed: str) -> bool:
    """Whether the output is as promised."""
    text = "\n" + "\n".join(line.rstrip() for line in printed.strip("\n").split("\n")) + "\n"
    return pattern(promised).fullmatch(text) is not None
