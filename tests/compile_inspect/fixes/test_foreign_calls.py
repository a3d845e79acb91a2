"""What is written in the place of calls that torch cannot look into."""

from __future__ import annotations

from changes import changed

from compile_inspect.fixes.foreign_calls import ForeignCalls

SKIPPED = "Attempted to call function marked as skipped"
DISABLED = "Skip calling `torch.compiler.disable()`d function"
ASKED = "Call to `torch._dynamo.graph_break()`"


def test_an_asked_for_break_goes_and_its_comment_stays() -> None:
    text = "import torch\n\ndef f(x):\n    y = x + 1\n    torch._dynamo.graph_break()  # here\n    return y\n"
    wanted = "import torch\n\ndef f(x):\n    y = x + 1\n    # here\n    return y\n"
    assert changed(ForeignCalls(), text, ASKED) == {"Remove the explicit graph break": wanted}


def test_a_break_that_shares_its_line_or_is_all_there_is_becomes_pass() -> None:
    text = 'import torch\ndef f(x):\n    s = "ä"; torch._dynamo.graph_break(); y = x  # here\n    return y\n'
    # The line belongs to three statements; the last of them is not the break, so nothing is certain.
    assert changed(ForeignCalls(), text, ASKED) == {}
    text = "import torch\ndef f(x):\n\tif x.dim():\n\t\ttorch._dynamo.graph_break()  # here\n\treturn x\n"
    assert changed(ForeignCalls(), text, ASKED)["Remove the explicit graph break"] == text.replace(
        "torch._dynamo.graph_break()", "pass"
    )


def test_a_mark_is_taken_away_with_its_arguments_and_other_decorators_stay() -> None:
    text = (
        "import functools\nimport torch\n\nclass A:\n    @torch.compiler.disable(  # slow\n        recursive=False,\n    )\n"
        "    @functools.cache\n    def g(self, x):\n        return x\n\n    def f(self, x):\n        return self.g(x)  # here\n"
    )
    wanted = text.replace("    @torch.compiler.disable(  # slow\n        recursive=False,\n    )\n", "    # slow\n")
    assert changed(ForeignCalls(), text, DISABLED) == {"Compile the function with its callers": wanted}


def test_a_mark_around_a_call() -> None:
    text = "import torch as th\ndef f(x, g):\n    return th.compiler.disable(g)(x)  # here\n"
    wanted = "import torch as th\ndef f(x, g):\n    return g(x)  # here\n"
    assert changed(ForeignCalls(), text, DISABLED) == {"Compile the function with its callers": wanted}


def test_a_mark_of_two_functions_of_the_same_name_is_left() -> None:
    text = (
        "import torch\nclass A:\n    @torch.compiler.disable\n    def g(self, x):\n        return x\n"
        "class B:\n    def g(self, x):\n        return x\ndef f(x, a):\n    return a.g(x)  # here\n"
    )
    assert changed(ForeignCalls(), text, DISABLED) == {}


def test_all_clocks_of_a_function_stop_together() -> None:
    text = (
        "from time import perf_counter as now\nimport torch\n\ndef f(x, times):\n    start = now()  # here\n"
        '    y = x.sin(); times["ü"] = now() - start\n    return y\n'
    )
    wanted = text.replace("start = now()", "start = 0.0 if torch.compiler.is_compiling() else now()").replace(
        "= now() - start", "= (0.0 if torch.compiler.is_compiling() else now()) - start"
    )
    assert changed(ForeignCalls(), text, SKIPPED) == {"Measure time only in eager mode": wanted}


def test_a_call_on_several_lines_is_guarded_with_its_comments() -> None:
    text = "import torch\ndef f(x):\n\ttorch.save(  # here\n\t\tx,\n\t\t# where\n\t\t'a.pt',\n\t)\n\treturn x\n"
    wanted = (
        "import torch\ndef f(x):\n\tif not torch.compiler.is_compiling():\n\t\ttorch.save(  # here\n\t\t\tx,\n\t\t\t# where\n"
        "\t\t\t'a.pt',\n\t\t)\n\treturn x\n"
    )
    assert changed(ForeignCalls(), text, SKIPPED) == {"Call it only in eager mode": wanted}


def test_a_text_of_several_lines_or_another_statement_on_the_line_is_not_guarded() -> None:
    assert (
        changed(ForeignCalls(), 'import json\ndef f(x):\n    json.dump("""a\n  b""", x)  # here\n    return x\n', SKIPPED) == {}
    )
    assert changed(ForeignCalls(), "import gc\ndef f(x):\n    y = x; gc.collect()  # here\n    return y\n", SKIPPED) == {}


def test_a_constant_is_worked_out_before_the_class_and_under_a_free_name() -> None:
    text = (
        "import zlib\n_CRC32 = 3\n\n\n@deco\nclass A:\n    def f(self, x):\n"
        '        return "ß", x * zlib.crc32(\n            b"a", 1  # here\n        )\n'
    )
    wanted = (
        'import zlib\n_CRC32 = 3\n\n\n_CRC32_2 = zlib.crc32(\n            b"a", 1  # here\n        )\n\n\n@deco\nclass A:\n'
        '    def f(self, x):\n        return "ß", x * _CRC32_2\n'
    )
    assert changed(ForeignCalls(), text, SKIPPED) == {"Call zlib.crc32 once, outside the function": wanted}


def test_a_call_with_something_of_the_function_is_not_worked_out_before() -> None:
    assert changed(ForeignCalls(), "import zlib\ndef f(x, b):\n    return x * zlib.crc32(b)  # here\n", SKIPPED) == {}


def test_an_expression_becomes_an_operator() -> None:
    text = (
        "import torch\nfrom scipy.ndimage import gaussian_filter\n\n\ndef f(x):\n"
        "    y = torch.from_numpy(gaussian_filter(x.detach().cpu().numpy(), 1.0)).to(x.device)  # here\n    return y\n"
    )
    wanted = (
        "import torch\nfrom scipy.ndimage import gaussian_filter\n\n\n"
        '@torch.library.custom_op("model::gaussian_filter_operator", mutates_args=(), schema="(Tensor x) -> Tensor")\n'
        "def gaussian_filter_operator(x):\n"
        "    return torch.from_numpy(gaussian_filter(x.detach().cpu().numpy(), 1.0)).to(x.device)\n\n\n"
        "@gaussian_filter_operator.register_fake\ndef _(x):\n    return torch.empty_like(x)\n\n\n"
        "def f(x):\n    y = gaussian_filter_operator(x.detach())  # here\n    return y\n"
    )
    assert changed(ForeignCalls(), text, SKIPPED) == {"Register the call as a custom operator": wanted}


def test_an_expression_that_needs_more_than_tensors_is_left() -> None:
    text = "import torch, lib\ndef f(x, sigma):\n    return torch.from_numpy(lib.blur(x.numpy(), sigma))  # here\n"
    assert changed(ForeignCalls(), text, SKIPPED) == {}


def test_a_function_becomes_an_operator_with_its_defaults() -> None:
    text = (
        "import torch, lib\n\ndef blur(x, sigma: float, mode='same', n=2):\n"
        "    return torch.as_tensor(lib.blur(x.numpy(), sigma))  # here\n\n"
        "def f(x):\n    return blur(x, 1.0)\n"
    )
    wanted = (
        "import torch, lib\n\n"
        """@torch.library.custom_op("model::blur", mutates_args=(), schema='"""
        """(Tensor x, float sigma, str mode="same", int n=2) -> Tensor')\n"""
        "def blur(x, sigma: float, mode='same', n=2):\n    return torch.as_tensor(lib.blur(x.numpy(), sigma))  # here\n\n\n"
        "@blur.register_fake\ndef _(x, sigma, mode='same', n=2):\n    return torch.empty_like(x)\n\n"
        "def f(x):\n    return blur(x, 1.0)\n"
    )
    assert changed(ForeignCalls(), text, SKIPPED) == {"Register the function as a custom operator": wanted}


def test_a_function_that_nobody_calls_or_that_changes_its_argument_is_no_operator() -> None:
    assert changed(ForeignCalls(), "import lib\ndef f(x):\n    return lib.blur(x.cpu())  # here\n", SKIPPED) == {}
    text = "import lib\ndef g(m, x):\n    return lib.blur(m(x.cpu()))  # here\ndef f(m, x):\n    return g(m, x)\n"
    assert changed(ForeignCalls(), text, SKIPPED) == {}
    text = "import lib\ndef g(x):\n    x[0] = 1\n    return lib.blur(x.cpu())  # here\ndef f(x):\n    return g(x)\n"
    assert changed(ForeignCalls(), text, SKIPPED) == {}
