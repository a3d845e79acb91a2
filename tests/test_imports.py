"""Who may import whom, read from the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"
MODULES = sorted(SOURCE.rglob("*.py"))
PRIVATE_TORCH = "torch._"


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every imported module, and whether the import runs when the module is imported."""
    tree = ast.parse(path.read_text())
    inside = {id(child) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for child in ast.walk(node)}
    checking = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in checking:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) not in inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, id(node) not in inside


def allowed(name: str, *, internal: tuple[str, ...], external: tuple[str, ...] = ()) -> bool:
    top = name.partition(".")[0]
    if top == "compile_inspect":
        return any(name == item or name.startswith(item + ".") for item in internal)
    return top in sys.stdlib_module_names or top in external


RULES = {
    "compile_inspect.rendering": (),
    "compile_inspect.records": ("compile_inspect.records", "compile_inspect.rendering"),
    "compile_inspect.errors": (),
    "compile_inspect.journal": (),
    "compile_inspect.serialization": ("compile_inspect.errors", "compile_inspect.records"),
    "compile_inspect.assemble": (
        "compile_inspect.assemble",
        "compile_inspect.records",
        "compile_inspect.journal",
        "compile_inspect.serialization",
    ),
    "compile_inspect.wording": ("compile_inspect.wording", "compile_inspect.records"),
    "compile_inspect.advice": ("compile_inspect.advice", "compile_inspect.records", "compile_inspect.wording"),
    "compile_inspect.reporters": (
        "compile_inspect.reporters",
        "compile_inspect.advice",
        "compile_inspect.wording",
        "compile_inspect.records",
        "compile_inspect.serialization",
        "compile_inspect.errors",
    ),
}
EXTERNAL = {"compile_inspect.reporters": ("rich", "pygments")}


@pytest.mark.parametrize("package", RULES)
def test_layers_import_only_what_they_may(package: str) -> None:
    checked = 0
    for path in MODULES:
        if name_of(path) == package or name_of(path).startswith(package + "."):
            checked += 1
            for name, _ in imports(path):
                assert allowed(name, internal=RULES[package], external=EXTERNAL.get(package, ())), f"{path}: {name}"
    assert checked


def test_only_one_module_of_each_package_reaches_into_torch() -> None:
    offenders = [
        f"{name_of(path)}: {name}"
        for path in MODULES
        if not name_of(path).startswith(("compile_inspect.torch_private", "nonsmooth.evaluate.engine"))
        for name, _ in imports(path)
        if name.startswith(PRIVATE_TORCH)
    ]
    assert offenders == []


def test_torch_is_never_imported_when_a_module_of_the_inspector_is_imported() -> None:
    offenders = [
        name_of(path)
        for path in MODULES
        if name_of(path).startswith("compile_inspect")
        and not name_of(path).startswith(
            "compile_inspect.tour.models."
        )  # files as users write them, copied before they are loaded
        for name, at_import in imports(path)
        if at_import and name.split(".")[0] == "torch"
    ]
    assert offenders == []


# Arithmetic on arrays: it can be tested without torch, and knows nothing of the loop above it.
ARITHMETIC = {
    "arrays": ("loop", "step", "kinks", "certify", "hessian", "qp", "evaluate", "compile"),
    "native": ("loop", "step", "kinks", "certify", "hessian", "qp", "evaluate", "compile"),
    "qp": ("loop", "step", "kinks", "certify", "hessian", "evaluate", "compile"),
    "hessian": ("loop", "step", "kinks", "certify", "evaluate", "compile"),
    "kinks": ("loop", "step", "certify", "hessian", "compile"),
    "step": ("certify", "compile", "loop.run", "loop.recovery"),
    "certify": ("loop", "step", "kinks", "hessian", "qp", "compile"),
}
FRONT = ("minimize", "result", "pygranso", "report.progress", "report.plotting")
TORCH = ("nonsmooth.arrays.threads", "nonsmooth.hessian.device", "nonsmooth.certify.recheck")
"""Modules of these packages that handle the user's tensors."""


@pytest.mark.parametrize("part", ARITHMETIC)
def test_the_arithmetic_of_the_solver_sees_arrays_only(part: str) -> None:
    above = tuple(f"nonsmooth.{name}" for name in (*ARITHMETIC[part], *FRONT))
    paths = [path for path in MODULES if name_of(path).startswith(f"nonsmooth.{part}")]
    assert paths
    for path in paths:
        for name, _ in imports(path):
            assert name_of(path) in TORCH or name.split(".")[0] != "torch", f"{path}: {name}"
            assert not any(name == other or name.startswith(other + ".") for other in above), f"{path}: {name}"


OPTIONAL = {"daqp", "osqp", "proxsuite", "gurobipy", "matplotlib", "rich", "compile_inspect"}


def test_the_solver_imports_optional_packages_only_when_they_are_used() -> None:
    offenders = [
        f"{name_of(path)}: {name}"
        for path in MODULES
        if name_of(path).startswith("nonsmooth")
        for name, at_import in imports(path)
        if at_import and name.split(".")[0] in OPTIONAL
    ]
    assert offenders == []


def test_the_solver_uses_the_public_face_of_compile_inspect() -> None:
    offenders = [
        f"{name_of(path)}: {name}"
        for path in MODULES
        if name_of(path).startswith("nonsmooth") and name_of(path) != "nonsmooth.lesson"  # a lesson of the tour
        for name, _ in imports(path)
        if name.split(".")[0] == "compile_inspect" and name not in ("compile_inspect", "compile_inspect.packages")
    ]
    assert offenders == []


def test_compile_inspect_does_not_know_the_solver() -> None:
    offenders = [
        name_of(path)
        for path in MODULES
        if name_of(path).startswith("compile_inspect")
        for name, _ in imports(path)
        if name.split(".")[0] == "nonsmooth"
    ]
    assert offenders == []


def test_modules_stay_readable() -> None:
    long = {name_of(path): lines for path in MODULES if (lines := len(path.read_text().splitlines())) > 400}
    assert long == {}
