"""The page's data held against frontend/src/data.ts: the types that the front end is compiled with, read as a schema."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from conftest import ROOT

DATA = ROOT / "frontend" / "src" / "data.ts"
_WORD = re.compile(r"\"[^\"]*\"|\d+|[A-Za-z_]\w*|\.\.\.|[{}\[\]();:|=<>,?]")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)

Type = tuple[Any, ...]


class Schema:
    """The interfaces and types of a file, in the subset of TypeScript that the file uses."""

    def __init__(self, path: Path = DATA) -> None:
        self._words = _WORD.findall(_COMMENT.sub("", path.read_text()))
        self._at = 0
        self.types: dict[str, Type] = {}
        while self._at < len(self._words):
            word = self._next()
            if word == "interface":
                name = self._next()
                self.types[name] = self._object()
            elif word == "type" and self._words[self._at + 1] == "=":
                name = self._next()
                self._next()
                self.types[name] = self._union()

    def _next(self) -> str:
        self._at += 1
        return self._words[self._at - 1]

    def _peek(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _object(self) -> Type:
        assert self._next() == "{"
        fields = {}
        while self._peek() != "}":
            name = self._next()
            assert self._next() == ":", name
            fields[name] = self._union()
            if self._peek() in (";", ","):
                self._next()
        self._next()
        return ("object", fields)

    def _union(self) -> Type:
        if self._peek() == "|":
            self._next()
        parts = [self._array()]
        while self._peek() == "|":
            self._next()
            parts.append(self._array())
        return parts[0] if len(parts) == 1 else ("union", parts)

    def _array(self) -> Type:
        found = self._single()
        while self._peek() == "[" and self._words[self._at + 1] == "]":
            self._at += 2
            found = ("array", found)
        return found

    def _single(self) -> Type:
        word = self._peek()
        if word == "{":
            return self._object()
        self._next()
        if word == "[":
            return self._tuple()
        if word.startswith('"') or word.isdigit():
            return ("literal", word.strip('"') if word.startswith('"') else int(word))
        return ("name", word)

    def _tuple(self) -> Type:
        items, rest = [], None
        while self._peek() != "]":
            spread = self._peek() == "..."
            if spread:
                self._next()
            if self._words[self._at + 1] == ":":
                self._at += 2
            found = self._union()
            if spread:
                rest = found[1]
            else:
                items.append(found)
            if self._peek() == ",":
                self._next()
        self._next()
        return ("tuple", items, rest)

    def faults(self, value: Any, kind: Type | str, where: str = "page") -> list[str]:
        """What in a value is not as its type says."""
        if isinstance(kind, str):
            kind = ("name", kind)
        return getattr(self, f"_check_{kind[0]}")(value, kind, where)

    def _check_name(self, value: Any, kind: Type, where: str) -> list[str]:
        name = kind[1]
        plain = {"string": (str,), "number": (int, float), "boolean": (bool,), "null": (type(None),)}
        if name in plain:
            right = isinstance(value, plain[name]) and not (name == "number" and isinstance(value, bool))
            return [] if right else [f"{where} is {value!r:.60}, not a {name}"]
        return self.faults(value, self.types[name], where)

    def _check_literal(self, value: Any, kind: Type, where: str) -> list[str]:
        return [] if value == kind[1] else [f"{where} is {value!r:.60}, not {kind[1]!r}"]

    def _check_union(self, value: Any, kind: Type, where: str) -> list[str]:
        found = [self.faults(value, part, where) for part in kind[1]]
        return [] if not all(found) else max(found, key=len)

    def _check_array(self, value: Any, kind: Type, where: str) -> list[str]:
        if not isinstance(value, list):
            return [f"{where} is {value!r:.60}, not a list"]
        return [fault for number, item in enumerate(value) for fault in self.faults(item, kind[1], f"{where}[{number}]")]

    def _check_tuple(self, value: Any, kind: Type, where: str) -> list[str]:
        items, rest = kind[1], kind[2]
        if not isinstance(value, list) or len(value) < len(items) or (rest is None and len(value) > len(items)):
            return [f"{where} is {value!r:.60}, not a list of {len(items)}"]
        kinds = [*items, *[rest] * (len(value) - len(items))]
        return [fault for number, item in enumerate(value) for fault in self.faults(item, kinds[number], f"{where}[{number}]")]

    def _check_object(self, value: Any, kind: Type, where: str) -> list[str]:
        if not isinstance(value, dict):
            return [f"{where} is {value!r:.60}, not an object"]
        found = [f"{where}.{name} is missing" for name in kind[1] if name not in value]
        found += [f"{where}.{name} is not in data.ts" for name in value if name not in kind[1]]
        for name, part in kind[1].items():
            if name in value:
                found += self.faults(value[name], part, f"{where}.{name}")
        return found
