"""Thirty-seven programs and what each of them reads besides its arguments. Each maker returns a function and its inputs."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import types
from collections import namedtuple
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from . import settings
from .settings import CHOICES, shift

Made = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]

GAIN = 2.0
LIMITS = (-1.0, 1.0)
WEIGHTS = [0.5, 0.25]
TABLE = {"a": 1.5, "inner": {"b": 0.5}}
FLAGS = {"fast", "exact"}
HELD = torch.linspace(-1, 1, 6)
ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}


def x(*shape: int) -> Tensor:
    generator = torch.Generator("cpu").manual_seed(len(shape))
    return torch.randn(*(shape or (4, 6)), generator=generator, device="cpu").to(torch.get_default_device())


def plain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Made:
    return function, args or (x(),), kwargs


def reads_globals(a: Tensor) -> Tensor:
    return a.clamp(*LIMITS) * GAIN + WEIGHTS[0] - len(WEIGHTS)


def reads_containers(a: Tensor) -> Tensor:
    total = a * TABLE["a"] + TABLE["inner"]["b"]
    for weight in WEIGHTS:
        total = total * weight
    if "fast" in FLAGS:
        total = total + 1
    return total + HELD + TABLE.get("missing", 0.0)


def helper(a: Tensor) -> Tensor:
    return a * GAIN - 3.0


def reads_through_helpers(a: Tensor) -> Tensor:
    return shift(helper(a)) * settings.SCALE + CHOICES["power"]


def closures() -> Made:
    factor, pair, mode, dtype, offset = 2.0, (1, 0.5), "mean", torch.float32, torch.ones(6)

    def function(a: Tensor) -> Tensor:
        total = a.to(dtype) * factor + pair[1] * offset * pair[0]
        return total.mean(0) if mode == "mean" else total.sum(0)

    return plain(function)


def defaults() -> Made:
    def function(a: Tensor, factor: float = 2.0, *, power: int = 2, scale: tuple[float, float] = (0.5, 1.0)) -> Tensor:
        return (a * factor) ** power * scale[0] + scale[1]

    return plain(function)


def partials() -> Made:
    def scaled(a: Tensor, factor: float, *, offset: float, active: str) -> Tensor:
        return ACTIVATIONS[active](a * factor + offset)

    return plain(functools.partial(scaled, factor=3.0, offset=0.5, active="tanh"))


def decorated() -> Made:
    def repeated(times: int) -> Callable[[Callable[[Tensor], Tensor]], Callable[[Tensor], Tensor]]:
        def decorate(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
            @functools.wraps(function)
            def wrapper(a: Tensor) -> Tensor:
                for _ in range(times):
                    a = function(a)
                return a

            return wrapper

        return decorate

    @repeated(3)
    def step(a: Tensor) -> Tensor:
        return torch.sin(a) * GAIN

    return plain(step)


class Scorer:
    """An ordinary class: attributes of instances and of the class, a property, static and class methods."""

    temperature = 2.0
    table: ClassVar[dict[str, float]] = {"low": 0.1}

    def __init__(self) -> None:
        self._bias = 0.5
        self.kind = "relu"

    @property
    def doubled(self) -> float:
        return self._bias * 2

    @staticmethod
    def squash(a: Tensor) -> Tensor:
        return torch.tanh(a * 0.9)

    @classmethod
    def cool(cls, a: Tensor) -> Tensor:
        return a / cls.temperature + cls.table["low"]

    def score(self, a: Tensor) -> Tensor:
        a = self.cool(self.squash(a)) + self.doubled
        return torch.relu(a) if self.kind == "relu" else a

    def __call__(self, a: Tensor) -> Tensor:
        return self.score(a) + 1


class Inherited(Scorer):
    """Overrides a part and calls the rest by `super`."""

    extra = 0.75

    def score(self, a: Tensor) -> Tensor:
        return super().score(a) * self.extra


class Slotted:
    """Attributes without a dictionary."""

    __slots__ = ("gain", "offset")

    def __init__(self) -> None:
        self.gain, self.offset = 1.5, 0.5


SLOTTED = Slotted()


def reads_slots(a: Tensor) -> Tensor:
    return a * SLOTTED.gain + SLOTTED.offset


class Mode(enum.Enum):
    """Which way to go."""

    SUM = "sum"
    MEAN = "mean"


@dataclasses.dataclass
class Inner:
    """A nested configuration."""

    slope: float = 0.1
    dims: tuple[int, ...] = (0, 1)


@dataclasses.dataclass
class Config:
    """A configuration as models have it."""

    scale: float = 1.5
    mode: Mode = Mode.SUM
    steps: int = 2
    use_bias: bool = True
    inner: Inner = dataclasses.field(default_factory=Inner)


@dataclasses.dataclass(frozen=True)
class Frozen:
    """One that cannot be assigned to, but replaced."""

    scale: float = 0.5
    name: str = "tanh"


class Configured(nn.Module):
    """A model that reads a dataclass."""

    def __init__(self) -> None:
        super().__init__()
        self.config, self.frozen = Config(), Frozen()
        self.layer = nn.Linear(6, 6)
        self.bias = nn.Parameter(torch.full((6,), 0.3))
        self.register_buffer("offset", torch.full((6,), 0.2))

    def forward(self, a: Tensor) -> Tensor:
        for _ in range(self.config.steps):
            a = functional.leaky_relu(self.layer(a), self.config.inner.slope) * self.config.scale
        if self.config.use_bias:
            a = a + self.bias + self.offset
        a = ACTIVATIONS[self.frozen.name](a) * self.frozen.scale
        return a.sum(self.config.inner.dims) if self.config.mode is Mode.SUM else a.mean(self.config.inner.dims)


class Private(nn.Module):
    """The module that was fooled in all of its six ways."""

    power = 2.0

    def __init__(self) -> None:
        super().__init__()
        self._temperature = 1.5
        self.dims = (-1,)
        self.act = nn.LeakyReLU(0.1)
        self.norm = nn.LayerNorm(6)

    def forward(self, a: Tensor) -> Tensor:
        return (self.act(self.norm(a)) / self._temperature * GAIN).abs().pow(self.power).sum(self.dims)


class Blocks(nn.Module):
    """Lists and dictionaries of modules."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.GELU()) for _ in range(3))
        self.heads = nn.ModuleDict({"a": nn.Linear(6, 2), "b": nn.Identity()})
        self.order = ["a"]
        self.plain_list = [0.5, torch.ones(6)]

    def forward(self, a: Tensor) -> dict[str, Tensor]:
        for block in self.blocks:
            a = a + block(a) * self.plain_list[0] + self.plain_list[1]
        return {name: self.heads[name](a) for name in self.order}


class Convolution(nn.Module):
    """Attributes of torch.nn's own modules."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1)
        self.bn = nn.BatchNorm2d(3)
        self.pool = nn.AvgPool2d(2)
        self.drop = nn.Dropout(0.3)
        self.soft = nn.Softplus(beta=1.0)

    def forward(self, a: Tensor) -> Tensor:
        return self.drop(self.soft(self.pool(self.bn(self.conv(a)))))


class Hooked(nn.Module):
    """A module that has a hook already."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.factor = 0.5
        self.layer.register_forward_hook(scale_by_gain)

    def forward(self, a: Tensor) -> Tensor:
        return self.layer(a) * self.factor


def scale_by_gain(module: nn.Module, given: Any, result: Tensor) -> Tensor:
    return result * GAIN


class Residual(nn.Module):
    """Calls a stored function, a bound method and another module's attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Private()
        self.function = helper
        self.scorer = Scorer()
        self.items = {"p": 0.5, "q": [1.0, 2.0]}

    def forward(self, a: Tensor) -> tuple[Tensor, Tensor]:
        b = self.function(a) + self.inner._temperature
        return self.scorer.score(b) * self.items["q"][1], self.inner(a) * self.items["p"]


class Dynamic:
    """Attributes that `__getattr__` looks up."""

    def __init__(self) -> None:
        self.store = {"gain": 1.25}

    def __getattr__(self, name: str) -> float:
        if name == "store":
            raise AttributeError(name)
        try:
            return self.store[name]
        except KeyError:
            raise AttributeError(name) from None


DYNAMIC = Dynamic()
Pair = namedtuple("Pair", "low high")
PAIR = Pair(-0.5, 0.5)
SPACE = types.SimpleNamespace(gain=1.5, nested=types.SimpleNamespace(power=3))
ARRAY = np.linspace(0.0, 1.0, 6).astype(np.float32)


def reads_dynamic(a: Tensor) -> Tensor:
    return a * DYNAMIC.gain


def reads_named_tuple(a: Tensor) -> Tensor:
    return a.clamp(PAIR.low, PAIR.high)


def reads_namespace(a: Tensor) -> Tensor:
    return (a * SPACE.gain) ** SPACE.nested.power


def reads_array(a: Tensor) -> Tensor:
    return a + torch.from_numpy(ARRAY)


def reads_constants_of_math(a: Tensor) -> Tensor:
    return a * math.pi + math.sqrt(GAIN)


def reads_zero(a: Tensor) -> Tensor:
    return torch.where(a > 0, ZERO, -ZERO) / a.abs().clamp(min=0.1) + torch.copysign(torch.ones(6), torch.tensor(ZERO))


ZERO = 0.0


def reads_in_order(a: Tensor) -> Tensor:
    for name, value in ORDERED.items():
        a = torch.copysign(a, torch.tensor(value)) if name != "b" else a * HELD_BY_NAME[name]
    for tensor in HELD_BY_NAME.values():
        a = a + tensor
    return a


ORDERED = {"a": 0.0, "b": 1.0, "c": -0.0}
HELD_BY_NAME = {"b": torch.full((6,), 0.5), "d": torch.linspace(0, 1, 6)}


def reads_tensors(a: Tensor) -> Tensor:
    return a @ SQUARE + PARTS["bias"] + NESTED[0][1]


SQUARE = torch.arange(36.0).reshape(6, 6) / 36
PARTS = {"bias": torch.ones(6)}
NESTED = [(1, torch.full((6,), 0.5))]


class Tied(nn.Module):
    """Two layers that share a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(6, 6), nn.Linear(6, 6)
        self.two.weight = self.one.weight

    def forward(self, a: Tensor) -> Tensor:
        return self.two(torch.tanh(self.one(a)))


def parametrized() -> Made:
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(6, 4))
    return plain(layer)


def with_keywords() -> Made:
    def function(a: Tensor, *, mask: Tensor, options: dict[str, Any]) -> Tensor:
        return torch.where(mask, a, options["fill"]) * options["scale"]

    return plain(function, x(), mask=x() > 0, options={"fill": 0.5, "scale": 2.0})


def passes_through() -> Made:
    def function(a: Tensor, name: str, note: dict[str, int]) -> dict[str, Any]:
        return {"a": a * GAIN, "given": a, "name": name, "note": note, "limits": LIMITS}

    return plain(function, x(), "label", {"n": 1})


def jacobian() -> Made:
    def loss(a: Tensor) -> Tensor:
        return (a * GAIN).square().sum() + HELD.sum()

    return plain(lambda a: torch.func.grad(loss)(a))


def module(kind: type[nn.Module], *shape: int) -> Made:
    torch.manual_seed(0)
    return plain(kind().eval(), x(*shape))


def gpt2() -> Made:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=1, n_embd=16, n_head=2, vocab_size=50, n_positions=16, use_cache=False, bos_token_id=1, eos_token_id=1
    )
    return plain(GPT2LMHeadModel(config).eval(), torch.arange(8)[None])


def bert() -> Made:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=50)
    return plain(BertModel(config).eval(), torch.arange(8)[None])


PROGRAMS: dict[str, Callable[[], Made]] = {
    "globals": lambda: plain(reads_globals),
    "containers": lambda: plain(reads_containers),
    "helpers and modules": lambda: plain(reads_through_helpers),
    "closures": closures,
    "defaults": defaults,
    "partial": partials,
    "decorator": decorated,
    "bound method": lambda: plain(Scorer().score),
    "callable object": lambda: plain(Scorer()),
    "inheritance": lambda: plain(Inherited().score),
    "slots": lambda: plain(reads_slots),
    "__getattr__": lambda: plain(reads_dynamic),
    "named tuple": lambda: plain(reads_named_tuple),
    "namespace": lambda: plain(reads_namespace),
    "numpy array": lambda: plain(reads_array),
    "math": lambda: plain(reads_constants_of_math),
    "zero": lambda: plain(reads_zero),
    "tensors": lambda: plain(reads_tensors),
    "dictionaries in order": lambda: plain(reads_in_order),
    "dataclass config": lambda: module(Configured),
    "private attribute": lambda: module(Private),
    "blocks": lambda: module(Blocks),
    "convolution": lambda: module(Convolution, 1, 2, 8, 8),
    "hooks": lambda: module(Hooked),
    "residual": lambda: module(Residual),
    "tied weights": lambda: module(Tied),
    "parametrization": parametrized,
    "keywords": with_keywords,
    "results handed through": passes_through,
    "transform": jacobian,
    "encoder layer": lambda: plain(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True).eval(), x(2, 3, 6)),
    "lstm cell": lambda: plain(nn.LSTMCell(6, 4).eval(), x()),
    "embedding": lambda: plain(nn.Embedding(10, 4, padding_idx=0, scale_grad_by_freq=False), torch.arange(5)),
    "multihead attention": lambda: plain(nn.MultiheadAttention(6, 2, batch_first=True).eval(), *([x(2, 3, 6)] * 3)),
    "bound forward": lambda: plain(Configured().eval().forward),
    "GPT-2": gpt2,
    "BERT": bert,
}
