"""Code as lines with highlighting as numbers instead of markup, so that the page only ever shows text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token, _TokenType

from compile_inspect.wording.plain import clean

Line = list[str | int]
"""The text, then pairs of a class and a length that cover it; only the text if all of it is plain."""

CLASSES = (
    "plain", "keyword", "string", "number", "comment", "name", "function", "type", "builtin", "decorator", "operator",
)  # fmt: skip
"""The page identifies these by position: frontend/src/data.ts has the same list."""

_MAX_LINE_CHARACTERS = 4_000
_KINDS: tuple[tuple[_TokenType, int], ...] = (
    (Token.Comment, 4),
    (Token.Keyword.Type, 7),
    (Token.Keyword.Constant, 8),
    (Token.Keyword, 1),
    (Token.Literal.String, 2),
    (Token.Literal.Number, 3),
    (Token.Name.Function, 6),
    (Token.Name.Class, 7),
    (Token.Name.Decorator, 9),
    (Token.Name.Builtin, 8),
    (Token.Operator.Word, 1),
    (Token.Operator, 10),
)


@cache
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


@cache
def _class(kind: _TokenType) -> int:
    return next((number for known, number in _KINDS if kind in known), 0)


@lru_cache(maxsize=256)
def highlighted(text: str, language: str = "python") -> list[Line]:
    """The lines of a text. The result is cached and shared, so callers must copy it before changing it.

    >>> highlighted("x = 1\\n")
    [['x = 1', 0, 2, 10, 1, 0, 1, 3, 1]]
    >>> highlighted("<b>", "text")
    [['<b>']]
    """
    text = clean(text.replace("\r\n", "\n")).replace("\t", "    ")
    if text.endswith("\n"):
        text = text[:-1]
    if language == "text":
        return [[_bounded(line)] for line in text.split("\n")]
    return list(_lines(_lexer(language).get_tokens(text), text))


def _lines(tokens: Iterable[tuple[_TokenType, str]], text: str) -> Iterable[Line]:
    runs: list[list[tuple[int, int]]] = [[]]
    for kind, value in tokens:
        for number, part in enumerate(value.split("\n")):
            if number:
                runs.append([])
            if part:
                token_class, run = _class(kind), runs[-1]
                if run and run[-1][0] == token_class:
                    run[-1] = (token_class, run[-1][1] + len(part))
                else:
                    run.append((token_class, len(part)))
    for line, covered in zip(text.split("\n"), runs, strict=False):
        visible_line = _bounded(line)
        plain = visible_line != line or all(kind == 0 for kind, _ in covered)
        yield [visible_line] if plain else [visible_line, *(number for run in covered for number in run)]


def _bounded(line: str) -> str:
    """A line of limited length: generated code can contain a constant of a megabyte."""
    return (
        line
        if len(line) <= _MAX_LINE_CHARACTERS
        else f"{line[:_MAX_LINE_CHARACTERS]} … {len(line) - _MAX_LINE_CHARACTERS:,} more characters"
    )
