"""Reads that a guard could overlook, each with a change after which a frozen graph would be wrong.

Every case makes a function and a change of what the function reads. Short names are meant: what counts is the one line in
which something is read, and the one in which it is changed.
"""

from __future__ import annotations

import abc
import builtins
import collections
import contextvars
import functools
import math
import operator
import os
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

x = torch.linspace(-2.0, 2.0, 24).reshape(4, 6)
ATTACKS: dict[str, Callable[[], tuple[Callable[..., Any], Callable[[], Any]]]] = {}
ENDING: list[Callable[[], Any]] = []
"""What puts things right again that an attack has changed outside of itself."""


def case(make: Any) -> Any:
    ATTACKS[make.__name__] = make
    return make


@case
def env():
    os.environ["FAC"] = "2"
    return (lambda a: a * float(os.environ["FAC"])), lambda: os.environ.__setitem__("FAC", "3")


@case
def env_get():
    os.environ["FAC"] = "2"
    return (lambda a: a * float(os.environ.get("FAC", "1"))), lambda: os.environ.__setitem__("FAC", "3")


@case
def env_getenv():
    os.environ["FAC"] = "2"
    return (lambda a: a * float(os.getenv("FAC", "1"))), lambda: os.environ.__setitem__("FAC", "3")


@case
def env_in():
    os.environ.pop("ZZ", None)
    return (lambda a: a * 2 if "ZZ" in os.environ else a), lambda: os.environ.__setitem__("ZZ", "3")


@case
def argv():
    return (lambda a: a * len(sys.argv)), lambda: sys.argv.append("x")


@case
def builtin_len():
    return (lambda a: a * abs(-3)), lambda: setattr(builtins, "abs", lambda v: 7)


@case
def math_patched():
    return (lambda a: a * math.sqrt(4)), lambda: setattr(math, "sqrt", lambda v: 7)


@case
def torch_relu_patched():
    return (lambda a: torch.relu(a)), lambda: setattr(torch, "relu", lambda v: v)


@case
def F_patched():
    return (lambda a: torch.nn.functional.silu(a)), lambda: setattr(torch.nn.functional, "silu", lambda v: v)


@case
def tensor_method_patched():
    return (lambda a: a.tanh()), lambda: setattr(torch.Tensor, "tanh", lambda v: v)


@case
def grad_enabled_read():
    return (lambda a: a * 2 if torch.is_grad_enabled() else a), lambda: torch.set_grad_enabled(True) or None


@case
def default_dtype():
    return (lambda a: a + torch.ones(6).sum()), lambda: torch.set_default_dtype(torch.float64)


@case
def threads_read():
    return (lambda a: a * torch.get_num_threads()), lambda: torch.set_num_threads(torch.get_num_threads() + 1)


@case
def cudnn_flag():
    return (lambda a: a * 2 if torch.backends.cudnn.deterministic else a), lambda: setattr(
        torch.backends.cudnn, "deterministic", True
    )


@case
def matmul_precision():
    return (
        lambda a: a * 2 if torch.get_float32_matmul_precision() == "high" else a
    ), lambda: torch.set_float32_matmul_precision("high")


@case
def mkldnn_flag():
    return (lambda a: a * 2 if torch.backends.mkldnn.enabled else a), lambda: setattr(torch.backends.mkldnn, "enabled", False)


@case
def local():
    L = threading.local()
    L.v = 2.0
    return (lambda a: a * L.v), lambda: setattr(L, "v", 3.0)


@case
def ctxvar():
    v = contextvars.ContextVar("v", default=2.0)
    return (lambda a: a * v.get()), lambda: v.set(3.0)


@case
def singledispatch():
    @functools.singledispatch
    def g(a):
        return a * 2

    return (lambda a: g(a)), lambda: g.register(torch.Tensor)(lambda a: a * 3)


@case
def abc_register():
    class A(abc.ABC):
        pass

    class B:
        pass

    b = B()
    return (lambda a: a * 2 if isinstance(b, A) else a), lambda: A.register(B)


@case
def class_name():
    class B:
        pass

    b = B()
    return (lambda a: a * len(type(b).__name__)), lambda: setattr(B, "__name__", "LongName")


@case
def weak():
    class B:
        v = 2.0

    b = B()
    r = weakref.ref(b)
    return (lambda a: a * r().v), lambda: setattr(b, "v", 3.0)


@case
def lru():
    k = {"v": 2.0}

    @functools.lru_cache
    def g(n):
        return n * k["v"]

    return (lambda a: a * g(3)), lambda: (k.update(v=5.0), g.cache_clear())


@case
def cachedprop():
    class B:
        v = 2.0

        @functools.cached_property
        def p(self):
            return self.v * 2

    b = B()
    b.p
    return (lambda a: a * b.p), lambda: b.__dict__.__setitem__("p", 9.0)


@case
def descriptor():
    class D:
        val = 2.0

        def __get__(self, o, t):
            return self.val

    class B:
        d = D()

    b = B()
    return (lambda a: a * b.d), lambda: setattr(B.__dict__["d"], "val", 3.0)


@case
def metaclass():
    class Meta(type):
        @property
        def k(cls):
            return cls._k

    class B(metaclass=Meta):
        _k = 2.0

    return (lambda a: a * B.k), lambda: setattr(B, "_k", 3.0)


@case
def storage_offset():
    w = torch.arange(20.0)[2:8]
    return (lambda a: a * w.storage_offset()), lambda: w.set_(torch.arange(20.0)[5:11])


@case
def tensor_attr():
    w = torch.ones(6)
    w.scale = 2.0
    return (lambda a: a * w * w.scale), lambda: setattr(w, "scale", 3.0)


@case
def arg_attr():
    x.scale = 2.0
    return (lambda a: a * a.scale), lambda: setattr(x, "scale", 3.0)


@case
def module_getattr():
    class W(nn.Module):
        def __init__(s):
            super().__init__()
            s.inner = nn.LayerNorm(6)

        def __getattr__(s, n):
            try:
                return super().__getattr__(n)
            except AttributeError:
                return getattr(super().__getattr__("inner"), n)

        def forward(s, a):
            return a * s.eps

    m = W()
    return m, lambda: setattr(m.inner, "eps", 3.0)


@case
def ordereddict():
    d = collections.OrderedDict(a=2.0, b=3.0)
    return (lambda a: a * list(d.values())[0]), lambda: d.move_to_end("a")


@case
def defaultdict():
    d = collections.defaultdict(lambda: 2.0)
    return (lambda a: a * (d.get("q", 1.0))), lambda: d["q"]


@case
def chainmap():
    base = {"v": 2.0}
    d = collections.ChainMap({}, base)
    return (lambda a: a * d["v"]), lambda: base.update(v=3.0)


@case
def mappingproxy():
    base = {"v": 2.0}
    d = types.MappingProxyType(base)
    return (lambda a: a * d["v"]), lambda: base.update(v=3.0)


@case
def np_scalar():
    h = {"v": np.float32(2.0)}
    return (lambda a: a * h["v"].item()), lambda: h.update(v=np.float32(3.0))


@case
def np_array_elem():
    h = np.array([2.0, 3.0])
    return (lambda a: a * torch.from_numpy(h).sum().float()), lambda: h.__setitem__(0, 5.0)


@case
def np_shape():
    h = {"a": np.zeros(3)}
    return (lambda a: a * h["a"].shape[0]), lambda: h.update(a=np.zeros(4))


@case
def dtype_map():
    m = {torch.float32: 2.0}
    return (lambda a: a * m[a.dtype]), lambda: m.update({torch.float32: 3.0})


@case
def bytes_():
    b = bytearray(b"\x02")
    return (lambda a: a * b[0]), lambda: b.__setitem__(0, 3)


@case
def range_():
    h = {"r": range(3)}
    return (lambda a: sum((a for _ in h["r"]), start=a)), lambda: h.update(r=range(4))


@case
def slice_():
    h = {"s": slice(0, 2)}
    return (lambda a: a[h["s"]]), lambda: h.update(s=slice(0, 3))


@case
def isinstance_hook():
    class B:
        pass

    class Cc:
        pass

    h = [B()]
    return (lambda a: a * 2 if isinstance(h[0], B) else a), lambda: h.__setitem__(0, Cc())


@case
def hasattr_():
    class B:
        pass

    b = B()
    return (lambda a: a * 2 if hasattr(b, "q") else a), lambda: setattr(b, "q", 1)


@case
def hasattr_cls():
    class B:
        pass

    b = B()
    return (lambda a: a * 2 if hasattr(b, "q") else a), lambda: setattr(B, "q", 1)


@case
def getattr_default():
    class B:
        pass

    b = B()
    return (lambda a: a * getattr(b, "q", 2.0)), lambda: setattr(B, "q", 3.0)


@case
def global_undefined():
    globals().pop("UNDEF", None)
    return (lambda a: a * (UNDEF if "UNDEF" in globals() else 2.0)), lambda: globals().__setitem__("UNDEF", 3.0)


@case
def try_attr():
    class B:
        pass

    b = B()

    def f(a):
        try:
            return a * b.q
        except AttributeError:
            return a

    return f, lambda: setattr(b, "q", 3.0)


@case
def bool_obj():
    class B:
        n = 0

        def __len__(s):
            return s.n

    b = B()
    return (lambda a: a * 2 if b else a), lambda: setattr(B, "n", 1)


@case
def eq_obj():
    class B:
        k = 1

        def __eq__(s, o):
            return s.k == o.k

        __hash__ = None

    p, q = B(), B()
    return (lambda a: a * 2 if p == q else a), lambda: setattr(p, "k", 2)


@case
def identity_obj():
    h = {"a": object(), "b": None}
    h["b"] = h["a"]
    return (lambda a: a * 2 if h["a"] is h["b"] else a), lambda: h.update(b=object())


@case
def dispatch_table():
    t = {"k": torch.sin}
    return (lambda a: t["k"](a)), lambda: t.update(k=torch.cos)


@case
def nested_closure():
    v = [2.0]

    def outer():
        def inner(a):
            return a * v[0]

        return inner

    g = outer()
    return (lambda a: g(a)), lambda: v.__setitem__(0, 3.0)


@case
def attrgetter():
    class B:
        q = 2.0

    b = B()
    ag = operator.attrgetter("q")
    return (lambda a: a * ag(b)), lambda: setattr(b, "q", 3.0)


@case
def fstring():
    h = {"n": 3}
    return (lambda a: a * len(f"{h['n']}")), lambda: h.update(n=333)


@case
def sort_keys():
    h = {"k": [3, 1, 2]}
    return (lambda a: a * sorted(h["k"])[0]), lambda: h["k"].append(0)


@case
def any_all():
    h = [False, False]
    return (lambda a: a * 2 if any(h) else a), lambda: h.__setitem__(1, True)


@case
def zipenum():
    h = [1.0, 2.0]
    g = [3.0, 4.0]
    return (
        lambda a: sum((a * u * v * i for i, (u, v) in enumerate(zip(h, g))), start=a)
    ), lambda: g.append(1.0) or h.append(5.0)


@case
def custom_autograd():
    class Fn(torch.autograd.Function):
        k = 2.0

        @staticmethod
        def forward(ctx, a):
            return a * Fn.k

        @staticmethod
        def backward(ctx, g):
            return g

    return (lambda a: Fn.apply(a)), lambda: setattr(Fn, "k", 3.0)


@case
def custom_autograd_fwd():
    class Fn(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g

    return (lambda a: Fn.apply(a)), lambda: setattr(Fn, "forward", staticmethod(lambda ctx, a: a * 3))


@case
def torch_function_mode():
    return (lambda a: a * 2), lambda: None


@case
def deterministic():
    return (lambda a: a * 2 if torch.are_deterministic_algorithms_enabled() else a), lambda: torch.use_deterministic_algorithms(
        True
    )


@case
def autocast_read():
    return (lambda a: a * 2 if torch.is_autocast_enabled("cpu") else a), lambda: torch.set_autocast_enabled("cpu", True)


@case
def default_device():
    return (
        lambda a: a * torch.ones(3).sum().to("cpu") if torch.get_default_device().type == "cpu" else a
    ), lambda: torch.set_default_device("meta")


@case
def sdp_flag():
    return (lambda a: a * 2 if torch.backends.cuda.flash_sdp_enabled() else a), lambda: torch.backends.cuda.enable_flash_sdp(
        False
    )


@case
def anomaly():
    return (lambda a: a * 2 if torch.is_anomaly_enabled() else a), lambda: torch.autograd.set_detect_anomaly(True)


@case
def config_obj():
    return (lambda a: a * torch._dynamo.config.recompile_limit), lambda: setattr(torch._dynamo.config, "recompile_limit", 9)


@case
def type_annotations():
    class B:
        q: int = 2

    return (lambda a: a * len(B.__annotations__)), lambda: B.__annotations__.update(z=int)


@case
def func_attr():
    def h(a):
        return a

    h.k = 2.0
    return (lambda a: h(a) * h.k), lambda: setattr(h, "k", 3.0)


@case
def module_level_alias():
    import tuning_state.settings as st

    return (lambda a: st.shift(a)), lambda: setattr(st, "SHIFT", 9.0)


@case
def module_replaced():
    import tuning_state

    st = tuning_state
    other = types.ModuleType("o")
    other.SCALE = 99.0
    return (lambda a: a * st.settings.SCALE), lambda: setattr(tuning_state, "settings", other)


@case
def is_contiguous():
    w = torch.ones(4, 6)
    return (lambda a: a * 2 if w.is_contiguous() else a), lambda: w.set_(torch.ones(6, 4).t())


@case
def tensor_version():
    w = torch.ones(6)
    return (lambda a: a * w._version), lambda: w.add_(1)


@case
def grad_of_held():
    w = torch.ones(6, requires_grad=True)
    return (lambda a: a * 2 if w.grad is None else a * w.grad), lambda: setattr(w, "grad", torch.full((6,), 5.0))


@case
def data_ptr():
    w = torch.ones(6)
    return (lambda a: a * float(w.data_ptr() % 1000)), lambda: setattr(w, "data", torch.ones(6))


@case
def item_of_held():
    w = torch.tensor(2.0)
    return (lambda a: a * w.item()), lambda: w.fill_(3.0)


@case
def held_int_index():
    w = torch.tensor([1, 0, 2])
    return (lambda a: a[w]), lambda: w.copy_(torch.tensor([2, 2, 2]))


@case
def list_of_tensors_len():
    ws = [torch.ones(6), torch.ones(6)]
    return (lambda a: a + torch.stack(ws).sum(0)), lambda: ws.append(torch.ones(6))


@case
def paramlist():
    m = nn.ParameterList([nn.Parameter(torch.ones(6))])
    return (lambda a: a + sum(p for p in m)), lambda: m.append(nn.Parameter(torch.ones(6)))


@case
def complex_const():
    h = {"c": complex(0.0, 1.0)}
    return (lambda a: (a * h["c"]).imag), lambda: h.update(c=complex(0.0, -1.0))


@case
def int_bool():
    h = {"c": 1}
    return (lambda a: (a > 0) * h["c"]), lambda: h.update(c=True)


@case
def str_case():
    h = {"c": "abc"}
    return (lambda a: a * 2 if h["c"].upper() == "ABC" else a), lambda: h.update(c="abd")


@case
def nan_const():
    h = {"c": float("nan")}
    return (lambda a: a * 2 if h["c"] != h["c"] else a), lambda: h.update(c=1.0)


@case
def try_key():
    d = {}

    def f(a):
        try:
            return a * d["q"]
        except KeyError:
            return a

    return f, lambda: d.update(q=3.0)


@case
def try_global():
    globals().pop("UND", None)

    def f(a):
        try:
            return a * UND
        except NameError:
            return a

    return f, lambda: globals().__setitem__("UND", 3.0)


@case
def try_index():
    d = [1.0]

    def f(a):
        try:
            return a * d[1]
        except IndexError:
            return a

    return f, lambda: d.append(3.0)


@case
def try_module_attr():
    import tuning_state.settings as st

    def f(a):
        try:
            return a * st.NOPE
        except AttributeError:
            return a

    return f, lambda: setattr(st, "NOPE", 3.0)


@case
def try_mod():
    m = nn.Linear(6, 6)

    def f(a):
        try:
            return m(a) * m.extra
        except AttributeError:
            return a

    return f, lambda: setattr(m, "extra", 3.0)


@case
def try_import():
    def f(a):
        try:
            import nope_module as q

            return a * q.V
        except ImportError:
            return a

    mm = types.ModuleType("nope_module")
    mm.V = 4.0
    return f, lambda: sys.modules.__setitem__("nope_module", mm)


@case
def import_inside():
    mm = types.ModuleType("yes_module")
    mm.V = 4.0
    sys.modules["yes_module"] = mm
    m2 = types.ModuleType("yes_module")
    m2.V = 5.0

    def f(a):
        import yes_module

        return a * yes_module.V

    return f, lambda: sys.modules.__setitem__("yes_module", m2)


@case
def from_import_inside():
    mm = types.ModuleType("yes_module2")
    mm.V = 4.0
    sys.modules["yes_module2"] = mm

    def f(a):
        from yes_module2 import V

        return a * V

    return f, lambda: setattr(mm, "V", 7.0)


@case
def alias_true():
    class B:
        pass

    h = [B(), B()]
    return (lambda a: a * 2 if h[0] is h[1] else a), lambda: h.__setitem__(1, h[0])


@case
def alias_tensors():
    h = [torch.ones(6), torch.ones(6)]
    return (lambda a: a * 2 if h[0] is h[1] else a + h[0] + h[1]), lambda: h.__setitem__(1, h[0])


@case
def in_list_obj():
    class B:
        pass

    b = B()
    h = [B()]
    return (lambda a: a * 2 if b in h else a), lambda: h.append(b)


@case
def dict_by_obj():
    class B:
        pass

    b = B()
    h = {b: 2.0}
    return (lambda a: a * h.get(b, 1.0)), lambda: h.update({b: 3.0})


@case
def dictorder():
    d = {"a": 2.0, "b": 3.0}
    return (lambda a: a * list(d.values())[0]), lambda: d.update(a=d.pop("a"))


@case
def setorder():
    d = {1, 2}
    return (lambda a: a * sum(d)), lambda: d.add(9)


@case
def frozenset_swap():
    h = {"s": frozenset({1, 2})}
    return (lambda a: a * sum(h["s"])), lambda: h.update(s=frozenset({1, 5}))


@case
def deque():
    d = collections.deque([1.0, 2.0])
    return (lambda a: a * d[0]), lambda: d.appendleft(9.0)


@case
def deque_len():
    d = collections.deque([1.0, 2.0])
    return (lambda a: a * len(d)), lambda: d.append(9.0)


@case
def array_array():
    import array

    d = array.array("d", [2.0])
    return (lambda a: a * d[0]), lambda: d.__setitem__(0, 3.0)


@case
def counter():
    d = collections.Counter("aab")
    return (lambda a: a * d["a"]), lambda: d.update("a")


@case
def userdict():
    d = collections.UserDict(a=2.0)
    return (lambda a: a * d["a"]), lambda: d.__setitem__("a", 3.0)


@case
def userlist():
    d = collections.UserList([2.0])
    return (lambda a: a * d[0]), lambda: d.__setitem__(0, 3.0)


@case
def dictsub():
    class D(dict):
        def __missing__(s, k):
            return 2.0

    d = D()
    return (lambda a: a * d["z"]), lambda: d.update(z=3.0)


@case
def listsub():
    class D(list):
        pass

    d = D([2.0])
    return (lambda a: a * d[0]), lambda: d.__setitem__(0, 3.0)


@case
def tuplesub():
    class T(tuple):
        pass

    h = {"t": T((2.0,))}
    return (lambda a: a * h["t"][0]), lambda: h.update(t=T((3.0,)))


@case
def intsub():
    class I(int):
        pass

    h = {"t": I(2)}
    return (lambda a: a * h["t"]), lambda: h.update(t=I(3))


@case
def floatsub():
    class I(float):
        pass

    h = {"t": I(2)}
    return (lambda a: a * h["t"]), lambda: h.update(t=I(3))


@case
def strsub():
    class I(str):
        pass

    h = {"t": I("ab")}
    return (lambda a: a * len(h["t"])), lambda: h.update(t=I("abc"))


@case
def intenum():
    import enum

    class E(enum.IntEnum):
        A = 2
        B = 3

    h = {"t": E.A}
    return (lambda a: a * h["t"]), lambda: h.update(t=E.B)


@case
def enum_value():
    import enum

    class E(enum.Enum):
        A = 2.0

    return (lambda a: a * E.A.value), lambda: setattr(E.A, "_value_", 3.0)


@case
def fraction():
    from fractions import Fraction

    h = {"t": Fraction(1, 2)}
    return (lambda a: a * float(h["t"])), lambda: h.update(t=Fraction(1, 3))


@case
def decimal():
    from decimal import Decimal

    h = {"t": Decimal("0.5")}
    return (lambda a: a * float(h["t"])), lambda: h.update(t=Decimal("0.25"))


@case
def path():
    from pathlib import Path

    h = {"t": Path("/a/b")}
    return (lambda a: a * len(str(h["t"]))), lambda: h.update(t=Path("/a/b/c"))


@case
def regex():
    import re as r

    h = {"t": r.compile("a")}
    return (lambda a: a * 2 if h["t"].match("abc") else a), lambda: h.update(t=r.compile("z"))


@case
def partialmethod():
    class B:
        k = 2.0

        def m(s, a, f):
            return a * f * s.k

        pm = functools.partialmethod(m, f=2.0)

    b = B()
    return (lambda a: b.pm(a)), lambda: setattr(B, "pm", functools.partialmethod(B.m, f=5.0))


@case
def reduce_():
    h = [1.0, 2.0, 3.0]
    return (lambda a: a * functools.reduce(operator.mul, h)), lambda: h.append(2.0)


@case
def map_():
    h = [1.0, 2.0]
    return (lambda a: a * sum(v * 2 for v in h)), lambda: h.__setitem__(0, 4.0)


@case
def max_():
    h = [1.0, 2.0]
    return (lambda a: a * max(h)), lambda: h.append(7.0)


@case
def strformat():
    h = {"v": "%d"}
    return (lambda a: a * int(h["v"] % 3)), lambda: h.update(v="%d0")


@case
def getitem_slice():
    h = [1.0, 2.0, 3.0]
    return (lambda a: a * sum(h[1:])), lambda: h.append(7.0)


@case
def starargs():
    h = [1.0, 2.0]

    def g(a, *v):
        return a * len(v)

    return (lambda a: g(a, *h)), lambda: h.append(7.0)


@case
def starkwargs():
    h = {"p": 1.0}

    def g(a, **v):
        return a * sum(v.values())

    return (lambda a: g(a, **h)), lambda: h.update(q=7.0)


@case
def match_():
    h = {"v": ("x", 2)}

    def f(a):
        match h["v"]:
            case ("x", n):
                return a * n
            case _:
                return a

    return f, lambda: h.update(v=("y", 2))


@case
def comp():
    h = {"v": [1, 2, 3]}
    return (lambda a: a * len([i for i in h["v"] if i > 1])), lambda: h["v"].append(5)


@case
def genexp():
    h = {"v": [1, 2, 3]}
    return (lambda a: a * sum(i for i in h["v"] if i > 1)), lambda: h["v"].append(5)


@case
def named_buffers():
    m = nn.Module()
    m.register_buffer("q", torch.ones(6))
    return (lambda a: a + sum(b for _, b in m.named_buffers())), lambda: m.register_buffer("z", torch.ones(6))


@case
def named_params():
    m = nn.Linear(6, 6)
    return (lambda a: a * len(list(m.named_parameters()))), lambda: m.register_parameter("z", nn.Parameter(torch.ones(6)))


@case
def children():
    m = nn.Sequential(nn.Identity())

    def f(a):
        for c in m.children():
            a = c(a) * 2
        return a

    return f, lambda: m.append(nn.Identity())


@case
def modules_iter():
    m = nn.Sequential(nn.Identity())
    return (lambda a: a * len(list(m.modules()))), lambda: m.append(nn.Identity())


@case
def state_dict_():
    m = nn.Linear(6, 6)
    return (lambda a: a + m.state_dict()["bias"]), lambda: setattr(m, "bias", nn.Parameter(torch.ones(6)))


@case
def none_to_tensor():
    m = nn.Linear(6, 6, bias=False)
    return m, lambda: setattr(m, "bias", nn.Parameter(torch.ones(6)))


@case
def buffer_none():
    m = nn.BatchNorm1d(6, track_running_stats=True).eval()
    return m, lambda: setattr(m, "running_mean", torch.ones(6) * 5)


@case
def param_in_dataclass():
    import dataclasses

    @dataclasses.dataclass
    class P:
        w: torch.Tensor

    p = P(torch.ones(6))
    return (lambda a: a * p.w), lambda: setattr(p, "w", torch.zeros(6))


@case
def monkey_init():
    class B:
        def __init__(s):
            s.v = 2.0

    return (lambda a: a * B().v), lambda: setattr(B, "__init__", lambda s: setattr(s, "v", 3.0))


@case
def newobj_code():
    class B:
        def __init__(s, k):
            s.v = k * 2.0

        def get(s):
            return s.v

    return (lambda a: a * B(2).get()), lambda: setattr(B, "get", lambda s: 9.0)


@case
def operator_overload():
    class B:
        def __mul__(s, o):
            return o * 2

        def __rmul__(s, o):
            return o * 2

    b = B()
    return (lambda a: b * a), lambda: setattr(B, "__mul__", lambda s, o: o * 3)


@case
def getitem_overload():
    class B:
        def __getitem__(s, k):
            return 2.0

    b = B()
    return (lambda a: a * b[0]), lambda: setattr(B, "__getitem__", lambda s, k: 3.0)


@case
def contextmgr():
    import contextlib

    k = [2.0]

    @contextlib.contextmanager
    def cm():
        yield k[0]

    def f(a):
        with cm() as v:
            return a * v

    return f, lambda: k.__setitem__(0, 3.0)


@case
def base_patched():
    class A:
        def g(s):
            return 2.0

    class B(A):
        pass

    b = B()
    return (lambda a: a * b.g()), lambda: setattr(B, "g", lambda s: 3.0)


@case
def bases_changed():
    class A:
        def g(s):
            return 2.0

    class A2:
        def g(s):
            return 3.0

    class Root:
        pass

    class B(A, Root):
        pass

    b = B()
    return (lambda a: a * b.g()), lambda: setattr(B, "__bases__", (A2, Root))


@case
def class_in_list():
    class A:
        k = 2.0

    h = [A]
    return (lambda a: a * h[0].k), lambda: setattr(A, "k", 3.0)


@case
def callable_attr():
    class A:
        def __call__(s, a):
            return a * 2

    m = nn.Module()
    m.fn = A()
    return (lambda a: m.fn(a)), lambda: setattr(A, "__call__", lambda s, a: a * 3)


@case
def jitscript():
    @torch.jit.script
    def g(a):
        return a * 2

    h = {"g": g}

    @torch.jit.script
    def g2(a):
        return a * 3

    return (lambda a: h["g"](a)), lambda: h.update(g=g2)


@case
def compiled_inner():
    k = [2.0]
    g = torch.compile(lambda a: a * k[0], backend="eager")
    return (lambda a: g(a)), lambda: k.__setitem__(0, 3.0)


@case
def custom_op():
    k = [2.0]

    @torch.library.custom_op("exo::g", mutates_args=())
    def g(a: torch.Tensor) -> torch.Tensor:
        return a * k[0]

    @g.register_fake
    def _(a):
        return torch.empty_like(a)

    return (lambda a: g(a)), lambda: k.__setitem__(0, 3.0)


@case
def checkpoint():
    from torch.utils.checkpoint import checkpoint as ck

    k = [2.0]

    def g(a):
        return a * k[0]

    return (lambda a: ck(g, a, use_reentrant=False)), lambda: k.__setitem__(0, 3.0)


@case
def vmap_():
    k = [2.0]
    return (lambda a: torch.vmap(lambda r: r * k[0])(a)), lambda: k.__setitem__(0, 3.0)


@case
def cond_():
    k = [2.0]
    return (lambda a: torch.cond(a.sum() > 0, lambda b: b * k[0], lambda b: b - k[0], (a,))), lambda: k.__setitem__(0, 3.0)


@case
def flex():
    k = [2.0]
    from torch.nn.attention.flex_attention import flex_attention

    q = torch.randn(1, 1, 4, 8)
    return (lambda a: flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s * k[0])), lambda: k.__setitem__(0, 3.0)


@case
def class_of_an_attribute():
    class B: ...

    class C: ...

    h = types.SimpleNamespace()
    owner = B()
    owner.b = B()
    h.owner = owner
    return (lambda a: a * 2 if isinstance(owner.b, B) else a), lambda: setattr(owner.b, "__class__", C)


@case
def class_of_a_module_in_a_module():
    class B(nn.Module):
        def forward(s, a):
            return a * 2

    class C(nn.Module):
        def forward(s, a):
            return a * 3

    m = nn.Sequential(B(), nn.ReLU())
    return m, lambda: setattr(m[0], "__class__", C)


def _filled(kind, read):
    class Owner: ...

    h = Owner()
    h.d = kind()
    return (lambda a: read(a, h.d)), lambda: h.d.__setitem__("k", 2.0)


READS = {
    "values": lambda a, d: sum((a * v for v in d.values()), start=a),
    "items": lambda a, d: sum((a * v for _, v in d.items()), start=a),
    "keys": lambda a, d: a * (1 + len(list(d.keys()))),
    "iteration": lambda a, d: a * (1 + sum(1 for _ in d)),
    "unpacking": lambda a, d: a * (1 + len([*d])),
    "copy": lambda a, d: a * (1 + len(dict(d))),
    "equality": lambda a, d: a * 2 if d == {} else a,
}
for _kind in (dict, collections.OrderedDict, type("MyDict", (dict,), {}), collections.Counter, collections.UserDict):
    for _name, _read in READS.items():
        ATTACKS[f"empty {_kind.__name__}: {_name}"] = functools.partial(_filled, _kind, _read)


@case
def unpacked_dictionary_grows():
    d = {"a": 1.0}
    return (lambda a: a * len([*d])), lambda: d.__setitem__("b", 1.0)


@case
def function_mode_with_state():
    class Mode(torch.overrides.TorchFunctionMode):
        k = 2.0

        def __torch_function__(s, f, kinds, args=(), kwargs=None):
            return torch.cos(args[0]) * s.k if f is torch.sin else f(*args, **(kwargs or {}))

    mode = Mode()

    def f(a):
        with mode:
            return torch.sin(a) + a

    return f, lambda: setattr(mode, "k", 3.0)


@case
def property_made_anew_in_place():
    class B:
        p = property(lambda s: 2.0)

    b = B()
    return (lambda a: a * b.p), lambda: vars(B)["p"].__init__(lambda s: 3.0)


@case
def staticmethod_made_anew_in_place():
    class B:
        p = staticmethod(lambda: 2.0)

    b = B()
    return (lambda a: a * b.p()), lambda: vars(B)["p"].__init__(lambda: 3.0)


@case
def another_metaclass():
    class M1(type): ...

    class M2(type):
        k = property(lambda c: 3.0, lambda c, v: None)

    class B(metaclass=M1):
        k = 2.0

    return (lambda a: a * B.k), lambda: setattr(B, "__class__", M2)


@case
def length_by_another_metaclass():
    class M1(type):
        def __len__(c):
            return 2

    class M2(type):
        def __len__(c):
            return 3

    class B(metaclass=M1): ...

    return (lambda a: a * len(B)), lambda: setattr(B, "__class__", M2)


@case
def entry_becomes_a_descriptor():
    class D: ...

    class B:
        v = D()

    b = B()
    b.v = 2.0

    def change():
        D.__get__ = lambda s, o, c: 3.0
        D.__set__ = lambda s, o, v: None

    return (lambda a: a * b.v), change


@case
def attribute_before_a_parameter():
    m = nn.Linear(6, 6)
    return m, lambda: vars(m).__setitem__("weight", torch.zeros(6, 6))


@case
def asked_of_a_module():
    return (lambda a: a * 2 if hasattr(math, "NOPE_ATTRIBUTE") else a), lambda: vars(math).__setitem__("NOPE_ATTRIBUTE", 1)


@case
def asked_of_a_function():
    def helper(): ...

    return (lambda a: a * 2 if hasattr(helper, "Q") else a), lambda: setattr(helper, "Q", 1)


@case
def builtin_name_taken_by_a_global():
    space = {"torch": torch}
    exec("def f(a): return a * max(2, 1)", space)
    return space["f"], lambda: space.__setitem__("max", lambda *_: 5)


@case
def hook_of_all_modules():
    m = nn.Linear(6, 6)
    handle = []

    def change():
        handle.append(nn.modules.module.register_module_forward_hook(lambda _, __, out: out * 2))

    ENDING.append(lambda: [item.remove() for item in handle])
    return m, change


@case
def shorter_sequence():
    m = nn.Sequential(nn.ReLU(), nn.Linear(6, 6))
    return m, lambda: m.pop(0)


@case
def truth_added_to_a_class():
    class B: ...

    b = B()
    return (lambda a: a * 2 if b else a), lambda: setattr(B, "__bool__", lambda s: False)


@case
def another_class_of_a_python_module():
    class P(types.ModuleType):
        K = property(lambda s: 3.0, lambda s, v: None)

    m = types.ModuleType("some_module")
    m.K = 2.0
    return (lambda a: a * m.K), lambda: setattr(m, "__class__", P)
