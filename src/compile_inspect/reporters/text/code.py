"""The code that Inductor generated, ready to copy into a file."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Inspection
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.messages import print_empty
from compile_inspect.reporters.text.source import print_code
from compile_inspect.wording.compilations import by_identifier, title
from compile_inspect.wording.plain import one_line
from compile_inspect.wording.quantities import count

_MAX_MODULES = 4


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print the generated module of every graph; `--compilation` selects one."""
    generated = [lowering for lowering in inspection.lowerings if lowering.code]
    if not generated:
        print_empty(console, inspection, "No generated code: Inductor generated none, or it was not recorded.")
        return
    compilations = by_identifier(inspection)
    visible = options.first(generated, _MAX_MODULES)
    for lowering in visible:
        facts = [*title(lowering.compilation, compilations, inspection), lowering.direction.value]
        facts.append(count(lowering.code.count("\n") + (not lowering.code.endswith("\n")), "line"))
        if lowering.from_cache:
            facts.append("from a cache")
        language = "cpp" if lowering.code_path.endswith((".cpp", ".cu", ".h")) else "python"
        _print_comment(console, " · ".join(facts), "bold", language)
        if lowering.code_path:
            _print_comment(console, lowering.code_path, "dim", language)
        print_code(console, lowering.code, language)
        console.print()
    if len(visible) < len(generated):
        folded = count(len(generated) - len(visible), "more module")
        _print_comment(console, f"… {folded} (use --all, or select one with --compilation ID)", "dim")
        console.print()


def _print_comment(console: Console, words: str, style: str, language: str = "python") -> None:
    # A comment, so that the output can be piped into a Python or C++ file.
    mark = "#" if language == "python" else "//"
    console.print(Text(f"{mark} {one_line(words)}", style=style), soft_wrap=True)
