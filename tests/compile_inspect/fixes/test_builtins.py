from __future__ import annotations

import pytest
from marked_places import SKIPPED, place, rewrites

from compile_inspect.fixes.builtins import Builtins

GUARDED = "Do it only in eager mode"
DEEPCOPY = ("Attempted to copy.deepcopy a tensor", "copy.deepcopy(TensorVariable())")


def guarded(code: str) -> str | None:
    """The text with side work left out while compiling."""
    return rewrites(Builtins(), code, *SKIPPED).get(GUARDED)


def test_what_belongs_together_is_left_out_together() -> None:
    start = "import time\n\nimport torch\n\n\ndef f(x, log):\n"
    code = (
        f"{start}    start = time.time()  # here\n    y = x * 2\n    # how long it took\n"
        "    took = time.time() - start  # in seconds\n\n    log.append(\n        took\n    )\n    return y\n"
    )
    guard = "    if not torch.compiler.is_compiling():\n"
    wanted = (
        f"{start}{guard}        start = time.time()  # here\n    y = x * 2\n    # how long it took\n"
        f"{guard}        took = time.time() - start  # in seconds\n\n"
        "        log.append(\n            took\n        )\n    return y\n"
    )
    assert guarded(code) == wanted


def test_the_same_is_proposed_for_each_of_the_breaks() -> None:
    code = (
        "import time\nimport torch\ndef f(x):\n    a = time.time(){}\n    y = x * 2\n    b = time.time() - a{}\n    return y\n"
    )
    first, second = guarded(code.format("  # here", "")), guarded(code.format("", "  # here"))
    assert first is not None
    assert second is not None
    assert first.replace("  # here", "") == second.replace("  # here", "")


def test_tabs_and_names_of_imports() -> None:
    imports = "from time import perf_counter as clock\n"
    code = f"{imports}def f(x):\n\tt = clock()  # here\n\treturn x\n"
    guard = "\tif not torch.compiler.is_compiling():\n\t\tt = clock()  # here\n"
    assert guarded(code) == f"{imports}import torch\ndef f(x):\n{guard}\treturn x\n"


def test_line_ends_of_windows_are_kept() -> None:
    code = "import time\r\nimport torch\r\ndef f(x):\r\n    t = time.time()  # here\r\n    return x\r\n"
    found = guarded(code)
    assert found is not None
    assert found.count("\r\n") == found.count("\n") == 6


def test_a_block_that_writes_a_file() -> None:
    lines = ["    with open('log') as log:  # here", "        log.write('é')", "        # done", "        log.flush()"]
    code = "\n".join(["import torch", "def f(x):", *lines, "    return x", ""])
    guard = ["    if not torch.compiler.is_compiling():", *(f"    {line}" for line in lines)]
    wanted = "\n".join(["import torch", "def f(x):", *guard, "    return x", ""])
    assert rewrites(Builtins(), code, "Failed to trace builtin operator")[GUARDED] == wanted


@pytest.mark.parametrize(
    "body",
    [
        "    t = time.time()  # here\n    return x * t",
        "    t = time.time()  # here\n    if t > 3:\n        x = x + 1\n    return x",
        "    y = x + 1; t = time.time()  # here\n    return y",
        "    t = time.time(); y = x + 1  # here\n    return y",
        "    if x.dim(): t = time.time()  # here\n    return x",
        "    d = {}\n    d['t'] = time.time()  # here\n    return x, d",
        "    times = []\n    times.append(time.time())  # here\n    return x, times",
        "    x.made = time.time()  # here\n    return x.made",
        '    t = time.strftime("""%Y  # here\n%m""")\n    return x',
        "    global t\n    t = time.time()  # here\n    return x",
        "    t = time.time()  # here\n    del t\n    return x",
        "    t = time.time()  # here\n    yield t",
        "    t = time.time()  # here\n    def g():\n        return t\n    return x * g()",
        "    with open(str(time.time())) as file:  # here\n        y = x + int(file.read())\n    return y",
        "    with open(str(time.time())) as file:  # here\n        return x + int(file.read())",
    ],
)
def test_what_tensors_depend_on_stays(body: str) -> None:
    assert guarded(f"import time\nimport torch\n\n\ndef f(x):\n{body}\n") is None


def test_a_tensor_that_is_called_like_a_module_is_none() -> None:
    code = "import torch\ndef f(x, time):\n    s = time.sum()  # here\n    return x\n"
    assert rewrites(Builtins(), code, *SKIPPED) == {}


def made(statement: str, kind: str, context: str = "", explanation: str = "", before: str = "") -> dict[str, str]:
    start = f"import copy\nimport heapq\nimport math\n\nimport torch\n\n\n@torch.no_grad()\ndef f(x, k):\n{before}    "
    texts = rewrites(Builtins(), f"{start}{statement}  # here\n    return y\n", kind, context, explanation)
    return {title: text.removeprefix(start).removesuffix("  # here\n    return y\n") for title, text in texts.items()}


def test_copies() -> None:
    assert made("y = copy.deepcopy(x)", *DEEPCOPY)["Clone the tensor"] == "y = x.detach().clone()"
    assert made("y = copy.deepcopy(x)", *DEEPCOPY)["Clone the tensor, with its gradient"] == "y = x.clone()"
    assert made("y = copy.deepcopy(x.detach()) + 1", *DEEPCOPY) == {"Clone the tensor": "y = x.detach().clone() + 1"}
    assert made("y = copy.deepcopy(x + k)", *DEEPCOPY) == {"Clone the tensor": "y = (x + k).detach().clone()"}
    known = {"before": "    s = [x, k]\n"}
    wanted = {"Clone each tensor of the list": "y = [item.detach().clone() for item in s]"}
    assert made("y = copy.deepcopy(s)", *DEEPCOPY, **known) == wanted
    known = {"before": "    s = {'x': x}\n"}
    wanted = {"Clone each tensor of the dictionary": "y = {key: value.detach().clone() for key, value in s.items()}"}
    assert made("y = copy.deepcopy(s)", *DEEPCOPY, **known) == wanted


def test_calls_with_an_operation_of_torch() -> None:
    builtin = "Failed to trace builtin operator"
    assert list(made("y = -pow(x + 1, -2)", builtin).values()) == ["y = -((x + 1) ** (-2))"]
    assert list(made("y = max(x, key=lambda t: t.numel()).sum()", builtin).values()) == [
        "y = sorted(x, key=lambda t: t.numel(), reverse=True)[0].sum()"
    ]
    assert list(made("y = min(x, key=len)", builtin).values()) == ["y = sorted(x, key=len)[0]"]
    assert list(made("y = heapq.nsmallest(k + 1, x, key=len)", builtin).values()) == ["y = sorted(x, key=len)[:k + 1]"]
    assert list(made("y = sorted(x)", builtin, explanation="with argument types ['Tensor']").values()) == [
        "y = list(torch.sort(x).values)"
    ]
    scalar = ("Data dependent operator", "aten._local_scalar_dense.default")
    assert (
        made(
            "y = math.log(x.shape[0]) + math.log(x.size(0)) + math.sqrt(2)", "Failed to trace builtin operator", "_local_scalar"
        )
        == {}
    )
    assert list(made("y = k / math.sqrt(x.var() + 1)", *scalar).values()) == ["y = k / torch.sqrt((x.var() + 1).detach())"]


def test_what_does_not_fit_is_left_alone() -> None:
    builtin = "Failed to trace builtin operator"
    assert made("y = pow(x, 2, 3)", builtin) == {}
    assert made("y = max(x, k)", builtin) == {}
    assert made("y = max(x, key=len, default=k)", builtin) == {}
    assert made("y = sorted(x, key=len)", builtin) == {}
    assert made("y = math.gcd(x, k)", builtin) == {}


def test_functions_of_others_are_not_pythons() -> None:
    code = "import torch\ndef f(x):\n    return x.index_select(0, x)  # here\n"
    context = "module: <unknown module>, qualname: Tensor.index_select"
    assert not Builtins().matches(place(code, "Attempted to call function marked as skipped", context))


def test_text_is_not_the_reason_of_every_break() -> None:
    code = "import torch\ndef f(x, engine):\n    engine.add(x, str(x.dim()))  # here\n    return x\n"
    assert not Builtins().matches(place(code, "Unsupported method call", "call_method engine add"))
