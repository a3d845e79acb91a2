"""The guide of a tour: prints a lesson while it runs, and collects what it printed for the report."""

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
    from compile_inspect.tour.folder import TourFolder
    from compile_inspect.tour.machine import Machine

_MAX_LISTING_LINES = 40
_LETTERS = "abcdefgh"


@dataclass
class _Guess:
    choices: tuple[str, ...]
    position: int | None
    """The choice of the reader; None without one."""


@dataclass
class Guide:
    """Prints tables, listings and answers, asks the quiz questions, and collects all evidence.

    >>> guide = Guide.silent()
    >>> guide.table("Calls", ["Backend", ">First"], [["inductor", "9.1 s"]])
    >>> guide.evidence[0].rows
    (('inductor', '9.1 s'),)
    """

    console: Console
    machine: Machine
    folder: TourFolder
    explain: bool = False
    quiz: bool = False
    read_answer: Callable[[str], str] = input
    user_target: tuple[str, str | None] | None = None
    """The user's own target and its inputs, as given on the command line."""
    user_cache_folder: str = ""
    """Torch's cache folder outside the tour; the tour uses its own."""
    evidence: list[Remark | Table | Listing] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    captures: dict[str, Inspection] = field(default_factory=dict)
    """Captures for the report, by the name they are shown under."""
    waiting_seconds: float = 0.0
    """Time spent waiting for the reader's answers, in all lessons."""
    _guess: _Guess | None = None
    _theory: tuple[str, ...] = ()
    """Theory that is printed only after the quiz question: it would give the answer away."""

    @classmethod
    def silent(cls) -> Guide:
        """A guide that prints nothing, for callers who only want a lesson's measurements."""
        import io

        from rich.console import Console

        from compile_inspect.tour.folder import TourFolder
        from compile_inspect.tour.machine import this_machine

        return cls(Console(file=io.StringIO(), width=100), this_machine(), TourFolder.temporary())

    def model(self, name: str) -> Target:
        """A model of the tour, on the GPU if the machine has one."""
        return self.folder.target(name, device=self.machine.device)

    def remark(self, sentence: str) -> None:
        """Print a sentence between pieces of evidence."""
        self.evidence.append(Remark(sentence))
        self._print(sentence)
        self.console.print()

    def note(self, sentence: str) -> None:
        """Print what cannot run on this machine, and why."""
        self.notes.append(sentence)
        self._print(f"Not available here: {sentence}", style="yellow")
        self.console.print()

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print rows of evidence; a column whose name starts with `>` is aligned to the right."""
        from compile_inspect.reporters.text.tables import add_row, new_table, print_table

        self.evidence.append(Table(title, tuple(columns), tuple(tuple(row) for row in rows)))
        self.console.print(f"  {title}", style="bold")
        table = new_table(*columns)
        for row in rows:
            add_row(table, *row)
        print_table(self.console, table, indent=4)
        self.console.print()

    def listing(self, title: str, text: str, *, language: str = "text", max_lines: int = _MAX_LISTING_LINES) -> None:
        """Print the first lines of a piece of code; the report shows all of them."""
        from rich.padding import Padding
        from rich.syntax import Syntax

        text = text.strip("\n")
        self.evidence.append(Listing(title, text, language))
        lines = text.split("\n")
        self.console.print(f"  {title}", style="bold")
        code = Syntax("\n".join(lines[:max_lines]), language, theme="ansi_light", background_color="default", word_wrap=True)
        self.console.print(Padding(code, (0, 0, 0, 4), expand=False))
        if len(lines) > max_lines:
            where = " in the report" if self.folder.permanent else ""
            self.console.print(f"    … {count(len(lines) - max_lines, 'more line')}{where}")
        self.console.print()

    @contextmanager
    def working(self, task: str) -> Iterator[None]:
        """Print the current task: a spinner in a terminal, a plain line elsewhere."""
        if not self.console.is_terminal:
            self.console.print(f"  {task} …", style="dim")
            yield
            return
        with self.console.status(f"{task} …"):
            yield

    def ask(self, question: str, choices: Sequence[str]) -> None:
        """Ask for a prediction, in a quiz; an empty line or the end of input is no guess.

        The reader answers with a letter or with the words of a choice.
        """
        if not self.quiz:
            return
        self._print(f"Before it runs: {question}", style="bold cyan")
        for letter, choice in zip(_LETTERS, choices, strict=False):
            self.console.print(f"    {letter}) {choice}")
        start = perf_counter()
        try:
            reply = self.read_answer(f"  Your guess (a to {_LETTERS[len(choices) - 1]}, or Enter to skip): ").strip().lower()
        except EOFError:
            reply = ""
            self.console.print()
        finally:
            self.waiting_seconds += perf_counter() - start
        positions = {
            **dict(zip(_LETTERS, range(len(choices)), strict=False)),
            **{item.lower(): i for i, item in enumerate(choices)},
        }
        position = positions.get(reply.rstrip(")."))
        if reply and position is None:
            self._print(f"{reply!r:.40} is not one of the choices, so it does not count as a guess.", style="yellow")
        self._guess = _Guess(tuple(choices), position)
        self.console.print()
        self._explain()

    def reveal(self, correct: int) -> None:
        """Print which choice the run showed to be correct, in a quiz."""
        guess, self._guess = self._guess, None
        if guess is None:
            return
        letter, choice = _LETTERS[correct], guess.choices[correct]
        if guess.position is None:
            self._print(f"The correct answer in this run is {letter}) {choice}.", style="cyan")
        elif guess.position == correct:
            self._print(f"Correct: {letter}) {choice}.", style="green")
        else:
            wrong = f"{_LETTERS[guess.position]}) {guess.choices[guess.position]}"
            self._print(f"You guessed {wrong}. The correct answer in this run is {letter}) {choice}.", style="yellow")
        self.console.print()

    def begin(self, title: str, question: str, theory: Sequence[str]) -> None:
        """Print the head of a lesson."""
        self.evidence, self.notes, self._guess = [], [], None
        self.console.rule(title, style="blue", align="left")
        self._print(f"Question: {question}", style="bold")
        self.console.print()
        self._theory = tuple(theory) if self.explain else ()
        if not self.quiz:
            self._explain()

    def _explain(self) -> None:
        """Print the theory, if it was requested and not printed yet."""
        theory, self._theory = self._theory, ()
        for paragraph in theory:
            self._print(paragraph, style="italic")
            self.console.print()

    def conclude(self, lesson: Lesson) -> Lesson:
        """Print the answer and return the lesson with all evidence."""
        from dataclasses import replace

        self._explain()  # for a lesson without a quiz question
        self._print("Answer from this run", style="bold green")
        for sentence in lesson.answer:
            self._print(sentence, indent=4)
        self.console.print()
        return replace(lesson, evidence=tuple(self.evidence), notes=tuple(self.notes))

    def _print(self, text: str, *, style: str = "", indent: int = 2) -> None:
        """Print an indented paragraph."""
        from rich.padding import Padding
        from rich.text import Text

        self.console.print(Padding(Text(text, style=style), (0, 0, 0, indent), expand=False))
