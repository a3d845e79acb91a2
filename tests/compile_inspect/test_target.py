"""Finding targets by name."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from compile_inspect.errors import TargetError
from compile_inspect.target import Target, as_inputs, find_target


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    # Another module name for each test: modules stay imported.
    path = tmp_path / f"targets_{abs(hash(request.node.name))}.py"
    path.write_text(
        textwrap.dedent(
            """
            from compile_inspect import Target
            runs = []
            runs.append(1)

            def ready(): return 7
            def needy(x, y=2): return x + y
            target = Target(needy, (1,))
            arguments = (1, 5)
            keywords = {"x": 3}
            def make(): return (4,)
            number = 3

            class Model:
                def __init__(self): self.a = 1
                def __call__(self): return 11

            class Picky:
                def __init__(self, size): pass

            class holder:
                class inner:
                    function = staticmethod(lambda: 13)
            """
        )
    )
    return path


def call(target: Target) -> object:
    return target.function(*target.args, **target.kwargs)


@pytest.mark.parametrize(
    ("attribute", "inputs", "expected"),
    [
        ("target", None, 3),
        ("ready", None, 7),
        ("needy", "arguments", 6),
        ("needy", "keywords", 5),
        ("needy", "make", 6),
        ("needy", "number", 5),
        ("Model", None, 11),
        ("holder.inner.function", None, 13),
    ],
)
def test_what_a_file_can_hold(file: Path, attribute: str, inputs: str | None, expected: object) -> None:
    target = find_target(f"{file}:{attribute}", f"{file}:{inputs}" if inputs else None)
    assert call(target) == expected


def test_one_file_runs_once(file: Path) -> None:
    target = find_target(f"{file}:needy", f"{file}:arguments")
    assert target.function.__globals__["runs"] == [1]


def test_a_module_by_name() -> None:
    assert call(find_target("os:getcwd")) == str(Path.cwd())


@pytest.mark.parametrize(
    ("specification", "inputs", "sentence"),
    [
        ("{file}", None, "does not name a target"),
        ("{file}:", None, "does not name a target"),
        (":x", None, "does not name a target"),
        ("missing.py:x", None, "there is no file missing.py"),
        ("no_such_module:x", None, "there is no module 'no_such_module'"),
        ("{file}:nothing", None, "has no attribute 'nothing'; it defines"),
        ("{file}:number", None, "is a int, which cannot be called"),
        ("{file}:needy", None, "needs x: give inputs with --inputs"),
        ("{file}:Picky", None, "cannot be built without arguments"),
        ("{file}:target", "{file}:arguments", "has its own inputs"),
    ],
)
def test_mistakes_are_explained(file: Path, specification: str, inputs: str | None, sentence: str) -> None:
    with pytest.raises(TargetError, match=sentence):
        find_target(specification.format(file=file), inputs.format(file=file) if inputs else None)


def test_a_file_that_raises(tmp_path: Path) -> None:
    (tmp_path / "raising_target.py").write_text("1 / 0")
    with pytest.raises(TargetError, match="raised ZeroDivisionError"):
        find_target(f"{tmp_path / 'raising_target.py'}:x")


def test_target_checks_itself() -> None:
    with pytest.raises(TargetError, match="needs a callable"):
        Target(3)  # type: ignore[arg-type]
    with pytest.raises(TargetError, match="write \\(x,\\)"):
        Target(max, [1, 2])  # type: ignore[arg-type]


def test_inputs_in_every_form() -> None:
    assert as_inputs([1, 2]) == ((1, 2), {})
    assert as_inputs("text") == (("text",), {})
    assert as_inputs(lambda: {"a": 1}) == ((), {"a": 1})
