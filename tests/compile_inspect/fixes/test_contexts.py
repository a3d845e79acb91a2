"""What is written in the place of context managers that cannot be entered."""

from __future__ import annotations

from changes import changed

from compile_inspect.fixes.contexts import Contexts

UNSUPPORTED = "Unsupported context manager"
SKIPPED = "Attempted to call function marked as skipped"
ONLY = "Enter the context manager only in eager mode"
EITHER = "contextlib.nullcontext() if torch.compiler.is_compiling() else "


def test_a_manager_that_looks_on_is_left_out_and_the_others_stay() -> None:
    text = (
        "import contextlib\nimport torch\n\ndef f(x):\n\twith (\n\t\ttorch.no_grad(),  # kept\n"
        "\t\ttorch.autograd.detect_anomaly(),  # here\n\t):\n\t\treturn x\n"
    )
    assert changed(Contexts(), text, UNSUPPORTED) == {
        ONLY: text.replace("torch.autograd.detect_anomaly()", EITHER + "torch.autograd.detect_anomaly()")
    }


def test_a_manager_whose_result_is_asked_for_is_left() -> None:
    text = "import torch\ndef f(x):\n    with torch.profiler.profile() as p:  # here\n        y = x\n    return y, p\n"
    assert changed(Contexts(), text, UNSUPPORTED) == {}
    unused = text.replace("y, p", "y")
    wanted = unused.replace("torch.profiler.profile() as", EITHER + "torch.profiler.profile() as")
    assert changed(Contexts(), unused, UNSUPPORTED) == {
        ONLY: wanted.replace("import torch\n", "import torch\nimport contextlib\n")
    }


def test_filters_of_warnings_are_set_only_where_they_are_caught() -> None:
    text = (
        "import contextlib, torch\nimport warnings as w\n\ndef f(x):\n    with w.catch_warnings():  # all\n"
        '        w.filterwarnings(\n            "ignore",  # here\n        )\n        return x\n'
    )
    wanted = (
        "import contextlib, torch\nimport warnings as w\n\ndef f(x):\n"
        f"    with {EITHER}w.catch_warnings():  # all\n        if not torch.compiler.is_compiling():\n"
        '            w.filterwarnings(\n                "ignore",  # here\n            )\n        return x\n'
    )
    assert changed(Contexts(), text, SKIPPED) == {ONLY: wanted}


def test_a_lock_stays() -> None:
    """That no other thread is there cannot be proven."""
    text = 'import contextlib, torch\ndef f(s, x):\n    a = "ö"\n    with s.lock:  # here\n        y = x + 1\n    return y\n'
    context = "Attempted SETUP_WITH on LazyVariableTracker(realized: UserDefinedObjectVariable(lock))"
    assert changed(Contexts(), text, UNSUPPORTED, context) == {}


def test_a_timer_of_ones_own_is_left_out_wherever_it_is_entered() -> None:
    text = (
        "import time, torch, contextlib\n\nclass Timer:\n    def __enter__(self):\n"
        "        self.start = time.time()  # here\n    def __exit__(self, *error):\n        print(time.time() - self.start)\n\n"
        "def f(x):\n    with Timer(): y = x\n    with torch.no_grad(), Timer():\n        return y\n"
    )
    assert changed(Contexts(), text, SKIPPED) == {ONLY: text.replace(" Timer():", f" {EITHER}Timer():")}


def test_a_manager_of_ones_own_that_does_something_stays() -> None:
    text = (
        "import time\n\nclass Swap:\n    def __enter__(self):\n        self.start = time.time()  # here\n"
        "        self.model.swap()\n"
        "    def __exit__(self, *error):\n        pass\n\ndef f(x):\n    with Swap():\n        return x\n"
    )
    assert changed(Contexts(), text, SKIPPED) == {}


def test_a_stack_is_written_as_one_with() -> None:
    text = (
        "from contextlib import ExitStack\nimport torch\n\ndef f(x, frozen):\n    with ExitStack() as stack:\n"
        '        stack.enter_context(torch.autocast("cpu"))\n        # frozen?\n        if frozen:  # or not\n'
        "            stack.enter_context(torch.no_grad())  # here\n        y = x\n    return y\n"
    )
    wanted = (
        "from contextlib import ExitStack\nimport torch\nimport contextlib\n\ndef f(x, frozen):\n"
        '    with torch.autocast("cpu"), torch.no_grad() if frozen else contextlib.nullcontext():\n'
        "        # frozen?\n        # or not\n        # here\n        y = x\n    return y\n"
    )
    assert changed(Contexts(), text, SKIPPED) == {"Enter the managers in the `with` itself": wanted}


def test_a_stack_that_is_used_later_stays() -> None:
    text = (
        "import contextlib, torch\ndef f(x):\n    with contextlib.ExitStack() as stack:\n"
        "        stack.enter_context(torch.no_grad())  # here\n        y = x\n        stack.close()\n    return y\n"
    )
    assert changed(Contexts(), text, SKIPPED) == {}


def test_a_file_is_written_only_where_nothing_is_compiled() -> None:
    text = (
        'import torch\ndef f(x):\n    with open("ä", "w") as file:  # here\n        # a line\n\n'
        '        file.write("x")\n    return x\n'
    )
    wanted = (
        "import torch\ndef f(x):\n    if not torch.compiler.is_compiling():\n"
        '        with open("ä", "w") as file:  # here\n            # a line\n\n            file.write("x")\n    return x\n'
    )
    assert changed(Contexts(), text, UNSUPPORTED) == {"Write the file only in eager mode": wanted}
    assert changed(Contexts(), text.replace("return x", "return file"), UNSUPPORTED) == {}
    assert changed(Contexts(), text.replace('"w"', '"r"'), UNSUPPORTED) == {}
