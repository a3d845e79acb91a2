"""Targets loaded with some files written otherwise."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from compile_inspect.fixes.program import fresh_user_modules, load_target, source_overrides

HELPER = "def factor():\n    return 2\n"
MODEL = "from .helper import factor\nimport torch\nWEIGHT = torch.randn(3)\n\ndef target(x):\n    return x * factor()\n"


def package(folder: Path) -> Path:
    home = folder / "lib_of_mine"
    home.mkdir()
    (home / "__init__.py").write_text("")
    (home / "helper.py").write_text(HELPER)
    (home / "model.py").write_text(MODEL)
    return home


def test_a_helper_is_replaced_and_nothing_is_left_behind(tmp_path: Path, monkeypatch: object) -> None:
    home = package(tmp_path)
    sys.path.insert(0, str(tmp_path))
    try:
        before = set(sys.modules)
        inputs = f"{home.parent / 'inputs.py'}:inputs"
        (home.parent / "inputs.py").write_text("import torch\ninputs = (torch.ones(3),)\n")
        original = load_target("lib_of_mine.model:target", inputs)
        changed = load_target("lib_of_mine.model:target", inputs, {str(home / "helper.py"): HELPER.replace("2", "5")})
        again = load_target("lib_of_mine.model:target", inputs)
        assert [target.function(torch.tensor(1.0)).item() for target in (original, changed, again)] == [2.0, 5.0, 2.0]
        assert not {name for name in set(sys.modules) - before if name.startswith("lib_of_mine")}
        assert (home / "helper.py").read_text() == HELPER
    finally:
        sys.path.remove(str(tmp_path))


def test_weights_that_are_drawn_while_loading_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "drawn.py"
    text = "import torch\nWEIGHT = torch.randn(3)\ndef target():\n    return WEIGHT\n"
    path.write_text(text)
    one, other = load_target(f"{path}:target"), load_target(f"{path}:target", None, {str(path): "# more\n" + text})
    assert torch.equal(one.function(), other.function())


def test_compiled_files_do_not_stand_in_for_the_text(tmp_path: Path) -> None:
    """Python keeps what it compiled beside the file; with another text that must not be used, nor be written."""
    path = tmp_path / "kept_compiled.py"
    path.write_text("VALUE = 1\ndef target():\n    return VALUE\n")
    sys.path.insert(0, str(tmp_path))
    try:
        import kept_compiled  # type: ignore[import-not-found]

        assert kept_compiled.VALUE == 1
        assert load_target("kept_compiled:target", None, {str(path): path.read_text().replace("1", "7")}).function() == 7
        assert load_target("kept_compiled:target").function() == 1
        assert sys.modules["kept_compiled"] is kept_compiled
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("kept_compiled", None)


def test_an_exception_leaves_everything_as_it_was(tmp_path: Path) -> None:
    from importlib.machinery import SourceFileLoader

    get_data, modules = SourceFileLoader.get_data, dict(sys.modules)
    try:
        with source_overrides({"x.py": ""}), fresh_user_modules():
            raise ValueError
    except ValueError:
        pass
    assert SourceFileLoader.get_data is get_data and sys.modules == modules
