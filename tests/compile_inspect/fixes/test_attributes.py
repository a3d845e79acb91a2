"""What is written in the place of what is done to tensors and modules themselves."""

from __future__ import annotations

from changes import changed

from compile_inspect.fixes.attributes import Attributes

LEAKED = "requires_grad_() intermediate leaked as output"
SET = "setattr() on Tensor.requires_grad"
CREATED = "Attempted to use tensor creation function with requires_grad=True"
PARAMETER = "Attempted to use `torch.nn.Parameter()` constructor with Dynamo"
WITHOUT = "Create the tensor without requires_grad"


def test_a_flag_at_the_end_of_a_chain_is_left_out() -> None:
    text = (
        'import torch\ndef f(x):\n    s = "ñ"; h = torch.zeros(\n        2,  # two\n'
        "    ).requires_grad_(True)  # here\n    return h\n"
    )
    assert changed(Attributes(), text, LEAKED) == {WITHOUT: text.replace(".requires_grad_(True)", "")}


def test_a_flag_set_by_a_statement_of_its_own_is_left_out() -> None:
    text = "def f(x):\n\th = x * 2\n\th.requires_grad = True  # here\n\treturn h\n"
    assert changed(Attributes(), text, SET) == {WITHOUT: "def f(x):\n\th = x * 2\n\t# here\n\treturn h\n"}


def test_a_flag_of_an_argument_or_one_that_somebody_reads_stays() -> None:
    assert changed(Attributes(), "def f(x):\n    x.requires_grad_()  # here\n    return x\n", LEAKED) == {}
    text = "def f(x):\n    h = x.clone().requires_grad_()  # here\n    (h * 2).sum().backward()\n    return h.grad\n"
    assert changed(Attributes(), text, LEAKED) == {}


def test_a_flag_among_other_arguments_is_left_out() -> None:
    text = "import torch\ndef f(x):\n    return x + torch.ones(3, requires_grad=True, dtype=x.dtype)  # here\n"
    assert changed(Attributes(), text, CREATED) == {WITHOUT: text.replace(", requires_grad=True", "")}
    commented = (
        text.replace("3, requires", "3,  # here\n        requires").replace("  # here\n", "\n").replace("3,", "3,  # here")
    )
    assert changed(Attributes(), commented, CREATED) == {}


def test_a_loop_that_freezes_moves_to_where_the_module_is_built() -> None:
    text = (
        "class M(N):\n    def __init__(self):\n        super().__init__()\n        self.b = B()  # backbone\n\n"
        "    @property\n    def n(self):\n        return 1\n\n    def forward(self, x):\n        # frozen\n"
        "        for p in self.b.parameters():  # all\n            p.requires_grad_(False)  # here\n        return self.b(x)\n"
    )
    wanted = (
        "class M(N):\n    def __init__(self):\n        super().__init__()\n        self.b = B()  # backbone\n"
        "        for p in self.b.parameters():  # all\n            p.requires_grad_(False)  # here\n\n"
        "    @property\n    def n(self):\n        return 1\n\n    def forward(self, x):\n        # frozen\n"
        "        return self.b(x)\n"
    )
    found = changed(Attributes(), text, "Unsupported Tensor.requires_grad_() call")
    assert found == {"Set it once, in __init__": wanted}
    conditional = text.replace("self.b.parameters()", "self.b.parameters(x)")
    assert changed(Attributes(), conditional, "Unsupported Tensor.requires_grad_() call") == {}


def test_a_parameter_becomes_a_plain_tensor() -> None:
    text = "from torch import nn\ndef f(x):\n    p = nn.Parameter(x + 1, requires_grad=False)  # here\n    return p\n"
    wanted = text.replace("nn.Parameter(x + 1, requires_grad=False)", "(x + 1).detach()")
    assert changed(Attributes(), text, PARAMETER) == {"Use a plain tensor": wanted}
    assert changed(Attributes(), text.replace("p =", "self.p ="), PARAMETER) == {}


def test_values_are_copied_into_a_tensor() -> None:
    text = "def f(x):\n    y = x * 2; y.data = (  # here\n        x\n    ) + 1\n    return y\n"
    wanted = "def f(x):\n    y = x * 2; y.data.copy_((  # here\n        x\n    ) + 1)\n    return y\n"
    assert changed(Attributes(), text, "Failed to mutate tensor data attribute") == {"Copy the values into the tensor": wanted}


def test_a_gradient_function_is_asked_for_otherwise() -> None:
    text = "def f(x):\n    if x.sin().grad_fn is None and x.dim():  # here\n        return x\n    return -x\n"
    wanted = text.replace("x.sin().grad_fn is None", "x.sin().is_leaf")
    assert changed(Attributes(), text, "Tensor with grad_fn()") == {"Test whether the tensor is a leaf": wanted}
    assert changed(Attributes(), text.replace("x.sin().grad", "x.grad"), "Tensor with grad_fn()") == {}


def test_a_deep_copy_is_a_copy_of_the_values() -> None:
    text = "from copy import deepcopy as twin\ndef f(x):\n    return twin(x[0]), twin\n".replace("twin(", "deepcopy(")
    text = text.replace(" as twin", "").replace(", twin", "  # here")
    wanted = text.replace("deepcopy(x[0])", "x[0].detach().clone()")
    assert changed(Attributes(), text, "Attempted to copy.deepcopy a tensor") == {"Copy only the values": wanted}


def test_a_scripted_module_is_left_to_the_compiler() -> None:
    text = (
        "import torch\nclass M(N):\n    def __init__(self):\n"
        "        self.a = torch.jit.freeze(torch.jit.script(A(  # scripted\n"
        "            3)))\n        self.b = torch.jit.script(B())\n    def forward(self, x):\n"
        "        return self.a(x)  # here\n"
    )
    wanted = text.replace("torch.jit.freeze(torch.jit.script(A(", "A(").replace("3)))", "3)")
    found = changed(Attributes(), text, "torch.jit.script/freeze modules unsupported")
    assert found == {"Remove TorchScript, so that torch.compile traces the module": wanted}
