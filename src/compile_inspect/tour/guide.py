"""The guide of a tour: shows a lesson while it is taught, and keeps what was shown for the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from compile_inspect.records.lessons import Lesson, Listing, Remark, Table
from compile_inspect.wording.quantities import count

if TYPE_CHECKING:
    from rich.console import Console

    from compile_inspect.records import Inspection
    from compile_inspect.target import Target
    from compile_inspect.tour.machine import Machine
    from compile_inspect.tour.workshop import Workshop

_MOST_LINES = 40
_LETTERS = "abcdefgh"


@dataclass
class _Guess:
    choices: tuple[str, ...]
    said: int | None


@dataclass
class Guide:
    """Shows tables, listings and answers in a terminal, asks where it is told to, and remembers all of it.

    >>> guide = Guide.silent()
    >>> guide.table("Calls", ["Backend", ">First"], [["inductor", "9.1 s"]])
    >>> guide.shown[0].rows
    (('inductor', '9.1 s'),)
    """

    console: Console
    machine: Machine
    workshop: Workshop
    explain: bool = False
    quiz: bool = False
    ask: Callable[[str], str] = input
    own: tuple[str, str | None] | None = None
    """How the user named their own target and its inputs, where they did."""
    usual_cache: str = ""
    """Torch's cache folder outside the tour, which has one of its own."""
    shown: list[Remark | Table | Listing] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    captures: dict[str, Inspection] = field(default_factory=dict)
    """What goes into the report beside the lessons, by the name it is shown under."""
    waited: float = 0.0
    """Seconds that were spent waiting for answers, in all lessons."""
    _guess: _Guess | None = None
    _theory: tuple[str, ...] = ()
    """What is to be explained once the question of a quiz was asked: it would give the answer away."""

    @classmethod
    def silent(cls) -> Guide:
        """A guide that shows nothing, for those who want a lesson's figures only."""
        import io

        from rich.console import Console

        from compile_inspect.tour.machine import this_machine
        from compile_inspect.tour.workshop import Workshop

        return cls(Console(file=io.StringIO(), width=100), this_machine(), Workshop.temporary())

    def model(self, name: str) -> Target:
        """A model of the tour, on the machine's GPU where it has one."""
        return self.workshop.target(name, device=self.machine.device)

    def say(self, sentence: str) -> None:
        """A sentence between pieces of evidence."""
        self.shown.append(Remark(sentence))
        self._print(sentence)
        self.console.print()

    def note(self, sentence: str) -> None:
        """What cannot be run here, and why."""
        self.notes.append(sentence)
        self._print(f"Not here: {sentence}", style="yellow")
        self.console.print()

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Rows of evidence; a column whose name starts with `>` is aligned to the right."""
        from compile_inspect.reporters.text.tables import add_row, new_table, print_table

        self.shown.append(Table(title, tuple(columns), tuple(tuple(row) for row in rows)))
        self.console.print(f"  {title}", style="bold")
        table = new_table(*columns)
        for row in rows:
            add_row(table, *row)
        print_table(self.console, table, indent=4)
        self.console.print()

    def listing(self, title: str, text: str, *, language: str = "text", most: int = _MOST_LINES) -> None:
        """A piece of code; the terminal shows the first lines, the report all of them."""
        from rich.padding import Padding
        from rich.syntax import Syntax

        text = text.strip("\n")
        self.shown.append(Listing(title, text, language))
        lines = text.split("\n")
        self.console.print(f"  {title}", style="bold")
        code = Syntax("\n".join(lines[:most]), language, theme="ansi_light", background_color="default", word_wrap=True)
        self.console.print(Padding(code, (0, 0, 0, 4), expand=False))
        if len(lines) > most:
            where = ", in the report" if self.workshop.lasting else ""
            self.console.print(f"    … {count(len(lines) - most, 'more line')}{where}")
        self.console.print()

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Say what is being done while it is: a moving line in a terminal, a plain one elsewhere."""
        if not self.console.is_terminal:
            self.console.print(f"  {what} …", style="dim")
            yield
            return
        with self.console.status(f"{what} …"):
            yield

    def guess(self, question: str, choices: Sequence[str]) -> None:
        """Ask before it is measured, in a quiz; an empty line or the end of input is no guess.

        A choice is named by its letter or in its own words.
        """
        if not self.quiz:
            return
        self._print(f"Before it runs: {question}", style="bold cyan")
        for letter, choice in zip(_LETTERS, choices, strict=False):
            self.console.print(f"    {letter}) {choice}")
        started = perf_counter()
        try:
            said = self.ask(f"  Your guess (a to {_LETTERS[len(choices) - 1]}, or nothing): ").strip().lower()
        except EOFError:
            said = ""
            self.console.print()
        finally:
            self.waited += perf_counter() - started
        known = {
            **dict(zip(_LETTERS, range(len(choices)), strict=False)),
            **{item.lower(): i for i, item in enumerate(choices)},
        }
        position = known.get(said.rstrip(")."))
        if said and position is None:
            self._print(f"{said!r:.40} is none of them: no guess, then.", style="yellow")
        self._guess = _Guess(tuple(choices), position)
        self.console.print()
        self._explain()

    def settle(self, right: int) -> None:
        """Tell which choice the run has shown to be right, where there was a quiz."""
        guess, self._guess = self._guess, None
        if guess is None:
            return
        letter, choice = _LETTERS[right], guess.choices[right]
        if guess.said is None:
            self._print(f"The run says {letter}) {choice}.", style="cyan")
        elif guess.said == right:
            self._print(f"You guessed right: {letter}) {choice}.", style="green")
        else:
            said = f"{_LETTERS[guess.said]}) {guess.choices[guess.said]}"
            self._print(f"You guessed {said}; the run says {letter}) {choice}.", style="yellow")
        self.console.print()

    def begin(self, title: str, question: str, theory: Sequence[str]) -> None:
        """The head of a lesson."""
        self.shown, self.notes, self._guess = [], [], None
        self.console.rule(title, style="blue", align="left")
        self._print(f"Question: {question}", style="bold")
        self.console.print()
        self._theory = tuple(theory) if self.explain else ()
        if not self.quiz:
            self._explain()

    def _explain(self) -> None:
        """Tell the theory, where it is wanted and was not told yet."""
        theory, self._theory = self._theory, ()
        for paragraph in theory:
            self._print(paragraph, style="italic")
            self.console.print()

    def conclude(self, lesson: Lesson) -> Lesson:
        """Show the answer; the lesson comes back with everything that was shown."""
        from dataclasses import replace

        self._explain()  # a lesson that had nothing to ask
        self._print("Answer, from this run", style="bold green")
        for sentence in lesson.answer:
            self._print(sentence, indent=4)
        self.console.print()
        return replace(lesson, evidence=tuple(self.shown), notes=tuple(self.notes))

    def _print(self, text: str, *, style: str = "", indent: int = 2) -> None:
        """A paragraph, set in as a whole."""
        from rich.padding import Padding
        from rich.text import Text

        self.console.print(Padding(Text(text, style=style), (0, 0, 0, indent), expand=False))
