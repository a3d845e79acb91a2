"""Documented code uses only public names: what the reference lists, and no module behind it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from page_blocks import blocks, pages

import compile_inspect
import nonsmooth
import nonsmooth.terms

TOUR = ("basics", "benchmark", "dynamo_capture", "graph_breaks", "inductor_codegen", "main")
PUBLIC = {
    "compile_inspect": {*compile_inspect.__all__, "records", *TOUR},
    "nonsmooth": {*nonsmooth.__all__, "terms", "pygranso"},
}
"""The names of each package, and the modules behind it that may be imported."""
PUBLIC_MODULES = {
    *(f"compile_inspect.{name}" for name in ("records", *TOUR)),
    "nonsmooth.terms",
    "nonsmooth.pygranso",
}


def private_names(code: str) -> Iterator[str]:
    """Names of the two packages that are not public, as the code imports or reads them."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if not is_public_module(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and not is_public_module(node.module):
            yield node.module
        elif isinstance(node, ast.ImportFrom) and node.module in PUBLIC:
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name not in PUBLIC[node.module])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            package, name = node.value.id, node.attr
            if package in PUBLIC and name not in PUBLIC[package] and not name.startswith("__"):
                yield f"{package}.{name}"


def is_public_module(name: str) -> bool:
    """Whether a module belongs to neither package, or may be imported.

    All of `nonsmooth.pygranso` is public, since its modules are named as those of PyGRANSO.
    """
    top = name.partition(".")[0]
    return top not in PUBLIC or name in (*PUBLIC, *PUBLIC_MODULES) or name.startswith("nonsmooth.pygranso.")


@pytest.mark.parametrize("page", pages())
def test_pages_use_public_names_only(page: str) -> None:
    for block in blocks(page):
        if block.language == "python" and block.not_run is None:
            assert list(private_names(block.text)) == [], block.place


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("from compile_inspect.fixes.api import breaks", ["compile_inspect.fixes.api"]),
        ("import compile_inspect.recompiles", ["compile_inspect.recompiles"]),
        ("from compile_inspect import Target, fixes", ["compile_inspect.fixes"]),
        ("import nonsmooth\nnonsmooth.loop.run", ["nonsmooth.loop"]),
        ("from nonsmooth.kinks import visible", ["nonsmooth.kinks"]),
        ("from nonsmooth.pygranso.private.getNvar import getNvarTorch\nfrom nonsmooth.terms import Abs", []),
        ("import compile_inspect\nfrom compile_inspect.records import Proof\ncompile_inspect.breaks, torch.nn.Linear", []),
    ],
)
def test_private_names_are_recognized(code: str, names: list[str]) -> None:
    assert list(private_names(code)) == names
