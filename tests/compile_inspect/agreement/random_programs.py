"""Random programs over some 60 operations: pointwise, reductions, views, in-place changes, branches and loops.

Every statement makes a new tensor of the shape of the input from earlier ones, so that any sequence of them is a
program. The programs are Python source, for Dynamo reads code.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from hypothesis import strategies as st

POINTWISE = (
    "{a}.sin()", "{a}.cos()", "{a}.tanh()", "{a}.sigmoid()", "{a}.relu()", "F.gelu({a})", "F.silu({a})", "{a}.abs()",
    "-{a}", "{a}.abs().sqrt()", "{a}.abs().log1p()", "1 / (1 + {a}.abs())", "{a}.square()", "{a}.floor()", "{a}.sign()",
    "{a}.erf()", "F.softplus({a})", "{a}.clamp(-1, 2)", "{a}.clamp(max=1).exp()", "({a}.square() + 1).rsqrt()",
    "F.leaky_relu({a}, 0.1)", "F.elu({a})", "{a}.round()", "{a}.frac()", "{a}.expm1().clamp(-1, 5)",
)  # fmt: skip
BINARY = (
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / (1 + {b}.abs())", "torch.maximum({a}, {b})", "torch.minimum({a}, {b})",
    "torch.where({a} > {b}, {a}, {b} * 2)", "torch.atan2({a}, {b} + 3)", "torch.hypot({a}, {b} + 1)",
    "torch.lerp({a}, {b}, 0.3)", "torch.addcmul({a}, {b}, {b}, value=0.5)", "({a} > 0).to({a}.dtype) * {b}",
    "torch.logaddexp({a}.clamp(-20, 20), {b}.clamp(-20, 20))", "{a}.masked_fill({b} > 0.5, -1.0)",
)  # fmt: skip
REDUCTIONS = (
    "{a} - {a}.mean(-1, keepdim=True)", "{a} + {b}.sum(0)", "{a} - {b}.amax(-1, keepdim=True)",
    "{a} / (1 + {b}.var(0, unbiased=False))", "{a}.softmax(-1)", "{a}.log_softmax(0)", "{a}.cumsum(-1)",
    "{a} - {a}.logsumexp(-1, keepdim=True)", "F.layer_norm({a}, ({m},))", "{a} / (1 + torch.linalg.vector_norm({b}))",
    "{a} + {b}.argmax(-1, keepdim=True)", "{a} * {b}.any(0)", "{a}.sort(-1).values", "{a} + {b}.topk(2, -1).values[:, :1]",
    "({a} @ {b}.t() @ {a}) / {m}", "F.linear({a}, {b}.t() @ {b} / {n})",
)  # fmt: skip
VIEWS = (
    "{a}.t().reshape({n}, {m})", "{a}.reshape(-1).flip(0).view({n}, {m})", "{a}.roll(1, 0)", "{a}[:1].expand({n}, {m}) + {b}",
    "torch.cat([{a}[:, 1:], {b}[:, :1]], 1)", "{a}.unsqueeze(0).repeat(2, 1, 1)[1]", "torch.stack([{a}, {b}]).sum(0)",
    "{a}.gather(1, {b}.argsort(1))", "{a}.index_select(0, torch.arange({n}).flip(0))", "{a}.triu() + {b}.tril()",
    "F.pad({a}[:, 1:-1], (1, 1))", "{a}.chunk(2, 1)[0].sum(1, keepdim=True) + {b}", "{a}.to(torch.float64).to({a}.dtype)",
    "{a}.diagonal().sum() + {b}", "torch.einsum('ij,kj->ik', {a}, {b}).mean(1, keepdim=True) + {a}",
)  # fmt: skip
BLOCKS = (
    "{v} = {a}.clone()\n{v}[0].add_({b}[1])",
    "{v} = {a}.clone().mul_(1.5).add_({b})",
    "{v} = {a} + 0\n{v}[:, 1:].relu_()",
    "{v} = torch.zeros_like({a})\n{v}[:, ::2] = {b}[:, ::2]",
    "{v} = {a} * 1\n{v}.t()[0].copy_({b}.t()[1])",
    "{v} = {a}.clone()\n{v}.index_add_(0, torch.tensor([0, 0, 1]), {b}[:3])",
    "if {a}.sum() > 0.5:\n    {v} = {a} * 2\nelse:\n    {v} = {b} - 1",
    "if {a}.shape[0] > 3:\n    {v} = {a}.sin()\nelse:\n    {v} = {b}.cos()",
    "{v} = {a}\nfor step in range(3):\n    {v} = {v} * 0.5 + {b}",
    "if bool(({a} > {b}).all()):\n    {v} = {a}\nelse:\n    {v} = {a} + {b}",
)
ENDS = (
    "return {v}",
    "return {{'last': {v}, 'first': ({w}, {v}.sum())}}",
    "return {v}, {v}.argmax(), {w}.mean(0), {n}",
    "return [{v}.sum(), ({w} > 0)]",
    "x.detach().mul_(0.5)\nreturn {v} + 0",
)
EXPRESSIONS = POINTWISE + BINARY + REDUCTIONS + VIEWS
_numbers = count()


@dataclass(frozen=True)
class Program:
    """Source, and how to call it."""

    source: str
    shape: tuple[int, int]
    gradients: bool
    seed: int
    dtype: torch.dtype

    def function(self) -> Callable[..., Any]:
        """The program, compiled by Python under a file name of its own."""
        name = f"<random program {next(_numbers)}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(keepends=True), name)
        names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
        exec(compile(self.source, name, "exec"), names)
        return names["program"]  # type: ignore[no-any-return]

    def inputs(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Two tensors of its shape."""
        generator = torch.Generator().manual_seed(self.seed)
        x, y = (torch.randn(self.shape, generator=generator, dtype=torch.float64).to(self.dtype) for _ in range(2))
        return x.requires_grad_(self.gradients), y


@st.composite
def programs(draw: st.DrawFn) -> Program:
    n, m = draw(st.sampled_from([(4, 5), (3, 4), (6, 3)]))
    lines: list[str] = []
    names = ["x", "y"]
    for index in range(draw(st.integers(1, 9))):
        a, b, v = draw(st.sampled_from(names)), draw(st.sampled_from(names)), f"v{index}"
        template = draw(st.sampled_from(EXPRESSIONS + BLOCKS))
        statement = template if template in BLOCKS else "{v} = " + template
        lines += statement.format(a=a, b=b, v=v, n=n, m=m).splitlines()
        names.append(v)
    end = draw(st.sampled_from(ENDS))
    lines += end.format(v=names[-1], w=draw(st.sampled_from(names)), n=n, m=m).splitlines()
    source = "def program(x, y):\n" + "".join(f"    {line}\n" for line in lines)
    dtype = draw(st.sampled_from([torch.float32, torch.float32, torch.float64]))
    return Program(source, (n, m), draw(st.booleans()), draw(st.integers(0, 10_000)), dtype)
