"""What counts as the output that a page shows, and what does not."""

from __future__ import annotations

import pytest
from page_blocks import blocks, commands
from promised_output import agrees

TABLE = """\
  Variant    Median  95 % interval   Build
  ────────────────────────────────────────
  eager     26.6 µs   26.5–26.6 µs
  inductor    52 µs   52.4–53.0 µs  3.42 s
"""


@pytest.mark.parametrize(
    ("promised", "printed"),
    [
        ("a … c", "a b\nb c"),
        ("a\n…\nc", "a\nb\nb\nc"),
        ("a\n…\nc", "a\nc"),
        ("took 4.1 s", "took 380 ms"),
        ("took 4.1 s once", "took 1 min 15 s once"),
        ("1,024 B", "0.2 MB"),
        ("torch 2.13.0+cpu · Python 3.11.7", "torch 2.11.0+cu130 · Python 3.13.1"),
        (TABLE, TABLE.replace("52 µs ", "1.25 ms").replace("──────", "────────")),
    ],
)
def test_what_differs_from_run_to_run_agrees(promised: str, printed: str) -> None:
    assert agrees(promised, printed)


@pytest.mark.parametrize(
    ("promised", "printed"),
    [
        ("a", "b"),
        ("a\nb", "a\nb\nc"),
        ("a\n…\nc", "a\nc\nd"),
        ("took 4.1 s", "took 4.1 MB"),
        ("took 4.1 s", "took long"),
        ("1 graph break", "2 graph breaks"),
        ("3 kernels", "4 kernels"),
        ("0.0857", "0.0858"),
        ("float32[1, 16]", "float32[1, 8]"),
        (TABLE, TABLE.replace("inductor", "aot_eager")),
        ("a b", "ab"),
    ],
)
def test_what_is_wrong_does_not(promised: str, printed: str) -> None:
    assert not agrees(promised, printed)


PAGE = """\
Take `a.py`, a file:

```python
print(1)
```

Text with `code` in it.

```python
print(2)
```

```text
2
```

<!-- not run: it needs a GPU -->
```console
$ nvidia-smi
```

<!-- stands alone -->
```python
print(3)
```

```console
$ false
$ echo $?
1
$ echo a \\
> b
a b
```
"""


def test_what_a_block_is_for() -> None:
    written, run, output, left_out, alone, console = blocks("page", PAGE)
    assert (written.file, written.line, written.promised) == ("a.py", 4, None)
    assert (run.file, run.promised, run.alone, run.not_run) == (None, "2\n", False, None)
    assert output.is_output
    assert left_out.not_run == "it needs a GPU"
    assert alone.alone
    assert [(item.text, item.status, item.shown) for item in commands(console)] == [
        ("false", 1, None),
        ("echo a b", 0, "a b\n"),
    ]
    assert [item.line for item in commands(console)] == [28, 31]
