"""Captures made by hand: what reporters are tested with, without any torch."""

from __future__ import annotations

import dataclasses
from typing import Any

from compile_inspect.records import (
    BreakEffect,
    Build,
    Bytecode,
    CacheEvent,
    CacheOutcome,
    CacheUse,
    Compilation,
    CompilationOutcome,
    CudaGraphEvent,
    CudaGraphOutcome,
    Direction,
    Environment,
    Failure,
    Graph,
    GraphBreak,
    Guard,
    GuardFailure,
    Inspection,
    Kernel,
    KernelKind,
    LimitHit,
    Location,
    Lowering,
    Measurement,
    MeasurementWarning,
    Memory,
    MemoryEstimate,
    MissingEvidence,
    Node,
    NodeOutcome,
    Outlier,
    Payback,
    Phase,
    Process,
    Recompile,
    Speedup,
    Stack,
    Stage,
    Summary,
    TensorType,
    Timing,
    TimingPoint,
    UnfusedPair,
    UnplacedNode,
)

MODEL = "/home/me/project/model.py"
LIBRARY = "/venv/lib/python3.11/site-packages/transformers/modeling.py"
TORCH = "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py"

MODEL_SOURCE = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        y = torch.sin(x)
        print(y.sum())
        z = y * 2
        return helper(z)
"""

_PRINT = Location(MODEL, 6, "forward", "print(y.sum())")
_SIN = Location(MODEL, 5, "forward", "y = torch.sin(x)")
_CALL = Location(MODEL, 8, "forward", "return helper(z)")
_HELPER = Location(LIBRARY, 88, "helper", "if z.sum() > 0:")
_IN_TORCH = Location(TORCH, 1775, "_call_impl", "return forward_call(*args, **kwargs)")

STACKS = (
    Stack((Location("/home/me/project/train.py", 3, "main", "model(x)"), _IN_TORCH, _IN_TORCH, _SIN)),
    Stack((Location("/home/me/project/train.py", 3, "main", "model(x)"), _IN_TORCH, _IN_TORCH, _IN_TORCH, _PRINT)),
    Stack((Location("/home/me/project/train.py", 3, "main", "model(x)"), _IN_TORCH, _CALL, _HELPER)),
)


def everything() -> Inspection:
    """A capture with at least one record of every kind."""
    return Inspection(
        environment=Environment(python="3.11.9", platform="Linux", torch="2.13.0", devices=("cpu",), threads=2),
        process=Process(pid=4242, command=("/venv/bin/python", "train.py"), started=1000.0, ended=1020.0),
        missing_evidence=(MissingEvidence("peak memory", "estimate_peak_memory is not there", 3),),
        notes=("The example inputs were given twice.",),
        compilations=_compilations(),
        failures=(Failure("BackendError", "no\nmore lines", compilation="2/0", stack=1),),
        graphs=_graphs(),
        breaks=_breaks(),
        guards=_guards(),
        recompiles=_recompiles(),
        limits=(LimitHit("0/8", "forward", MODEL, 4, "recompile_limit", 8, "tensor 'x' size mismatch"),),
        lowerings=_lowerings(),
        phases=_phases(),
        caches=(
            CacheEvent("0/0", "FX graph cache", CacheOutcome.MISS, "", "fabcdefghijklmnop", 2.5),
            CacheEvent("0/1", "FX graph cache", CacheOutcome.HIT, "", "fqrstuvwxyz012345", 1.5),
            CacheEvent("0/0", "AOTAutograd cache", CacheOutcome.BYPASS, "Cannot cache a custom autograd function"),
        ),
        cuda_graphs=(
            CudaGraphEvent("0/0", CudaGraphOutcome.NO_EFFECT, direction=Direction.FORWARD, times=2),
            CudaGraphEvent("0/1", CudaGraphOutcome.SKIPPED, "skipping: mutated inputs", Direction.BACKWARD, _SIN),
        ),
        bytecode=(Bytecode("0/0", "forward", MODEL, 4, "  4  0 RESUME 0\n  5  2 LOAD_GLOBAL 1\n", "  4  0 CALL 7\n"),),
        timings=(timing(),),
        stacks=STACKS,
        sources={MODEL: MODEL_SOURCE},
    )


def _compilations() -> tuple[Compilation, ...]:
    return (
        Compilation(
            "0/0",
            "forward",
            MODEL,
            4,
            CompilationOutcome.COMPILED,
            backend="inductor",
            call_stack=0,
            seconds=3.0,
            backward_seconds=1.0,
            graph_nodes=4,
        ),
        Compilation(
            "0/1",
            "forward",
            MODEL,
            4,
            CompilationOutcome.COMPILED,
            backend="inductor",
            seconds=2.0,
            graph_nodes=4,
            dynamic_symbols={"s0": "L['x'].size()[0]"},
        ),
        Compilation("1/0", "torch_dynamo_resume_in_forward_at_6", MODEL, 6, CompilationOutcome.COMPILED, seconds=0.5),
        Compilation("3/0", "inner", TORCH, 67, CompilationOutcome.COMPILED, call_stack=0),
        Compilation(
            "2/0", "broken", MODEL, 20, CompilationOutcome.FAILED, seconds=0.25, failure="BackendError: no\nmore lines"
        ),
    )


def _graphs() -> tuple[Graph, ...]:
    value = (TensorType((4, 8), "float32", "cpu", (8, 1)),)
    nodes = (
        Node("l_x_", "placeholder", "L_x_", value=value),
        Node("sin", "call_function", "torch.sin", ("l_x_",), "l_x_", value, 0),
        Node("sin_1", "call_function", "torch.sin", ("sin",), "sin", value, 0),
        Node("add", "call_method", "Tensor.add", ("sin_1",), "sin_1, 1", value, 2),
        Node("output", "output", "output", ("add",)),
    )
    lowered = (
        Node("arg0_1", "placeholder", "arg0_1", value=value),
        Node("sin", "call_function", "aten.sin.default", ("arg0_1",), "arg0_1", value, 0),
        Node("mm", "call_function", "aten.mm.default", ("sin",), "sin, sin", value, 2),
    )
    return (
        Graph("dynamo-0", "0/0", Stage.DYNAMO, Direction.FORWARD, nodes, text="def forward(self, L_x_): ..."),
        Graph("joint-0", "0/0", Stage.JOINT, Direction.UNKNOWN, lowered),
        Graph("post-0", "0/0", Stage.POST_GRAD, Direction.FORWARD, lowered),
        Graph("post-1", "0/0", Stage.POST_GRAD, Direction.BACKWARD, (), text="def backward(): ...", from_text=True),
        Graph("dynamo-1", "0/1", Stage.DYNAMO, Direction.FORWARD, nodes, from_text=True),
    )


def _breaks() -> tuple[GraphBreak, ...]:
    return (
        GraphBreak(
            "Failed to trace builtin operator",
            _PRINT,
            _PRINT,
            BreakEffect.SPLIT,
            identifier="GB0059",
            link="https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html",
            explanation="Dynamo does not know how to trace builtin operator `print` with argument types ['Tensor']",
            hints=("Avoid calling builtin `print`.", "Put the function into reorderable_logging_functions."),
            context="builtin print",
            traced_instruction="CALL 1",
            stack=1,
            compilations=("0/0", "0/1"),
            hits=2,
            text="Graph break in user code at model.py:6",
        ),
        GraphBreak(
            "Data-dependent branching",
            _HELPER,
            _CALL,
            BreakEffect.SKIPPED,
            identifier="GB0170",
            explanation="Detected data-dependent branching.",
            stack=2,
            compilations=("1/0",),
            hits=5,
        ),
    )


def _guards() -> tuple[Guard, ...]:
    return (
        Guard("0/0", "TENSOR_MATCH", "L['x']", "x", "check_tensor(L['x'], torch.float32, size=[4, 8])", _SIN),
        Guard("0/0", "CONSTANT_MATCH", "L['self'].scale", "self.scale", "L['self'].scale == 2", stack=0),
        Guard("0/0", "GRAD_MODE", "", "", "torch.is_grad_enabled()", is_internal=True),
        Guard("0/0", "GRAD_MODE", "", "", "___check_global_state()", is_internal=True),
        Guard("0/1", "TENSOR_MATCH", "L['x']", "x", "check_tensor(L['x'], torch.float32, size=[None, 8])", _SIN),
    )


def _recompiles() -> tuple[Recompile, ...]:
    latest = GuardFailure("0/1", "x", "tensor 'x' stride mismatch at index 0", "8", "16", _SIN)
    first = GuardFailure("0/0", "x", "tensor 'x' size mismatch at index 0", "4", "7", _SIN)
    return (
        Recompile("0/1", "forward", MODEL, 4, (first,)),
        Recompile("0/2", "forward", MODEL, 4, (latest, first)),
    )


def _lowerings() -> tuple[Lowering, ...]:
    return (
        Lowering(
            "lowering-0",
            "0/0",
            Direction.FORWARD,
            "post-0",
            code="import torch\n\ndef call(args):\n    cpp_fused_sin_0(args)\n    return args\n",
            code_path="/tmp/torchinductor_me/ab/cab.py",
            kernels=(
                Kernel("cpp_fused_sin_0", KernelKind.CPP, ("sin", "sin_1", "mul"), (0, 1), ("buf0",), 3, 9, 12),
                Kernel("extern_kernels.mm", KernelKind.EXTERN, ("mm",), (2,)),
            ),
            unplaced_nodes=(
                UnplacedNode("arg0_1", NodeOutcome.INPUT),
                UnplacedNode("arg1_1", NodeOutcome.INPUT),
                UnplacedNode("view", NodeOutcome.VIEW),
            ),
            unfused_pairs=(
                UnfusedPair("buf0", "buf1", "no shared data", "cpp_fused_sin_0", "extern_kernels.mm", times=2),
                UnfusedPair("buf0", "buf2", "no shared data"),
                UnfusedPair("buf1", "buf2", "extern kernels cannot be fused"),
            ),
            memory=MemoryEstimate(3 * 1024 * 1024, (("buf0", 1024),)),
        ),
        Lowering(
            "lowering-1",
            "0/0",
            Direction.BACKWARD,
            None,
            code="def call(args):\n    return cpp_fused_cos_0(args)\n",
            kernels=(Kernel("cpp_fused_cos_0", KernelKind.CPP, ("cos", "mul_1"), (0,)),),
            from_cache=True,
        ),
    )


def _phases() -> tuple[Phase, ...]:
    return (
        Phase("0/0", "entire_frame_compile", 1000.0, 3.0, 0, 0.5, 4242),
        Phase("0/0", "bytecode_tracing", 1000.1, 1.0, 1, 1.0, 4242),
        Phase("0/0", "backend_compile", 1001.2, 1.5, 1, 0.48, 4242, {"is_backward": False}),
        Phase("0/0", "GraphLowering.run", 1001.3, 0.5, 2, 0.5, 4242),
        Phase("0/0", "GraphLowering.run", 1001.9, 0.5, 2, 0.5, 4242),
        Phase("0/0", "tiny", 1002.5, 0.02, 2, 0.02, 4242),
        Phase("0/1", "entire_frame_compile", 1010.0, 2.0, 0, 2.0),
    )


def timing() -> Timing:
    """Two sizes, three variants, one of which cannot run."""

    def point(batch: int) -> TimingPoint:
        eager = Measurement(
            "eager",
            samples=(0.001 * batch, 0.0011 * batch, 0.05),
            summary=Summary(3, 0.001 * batch, 0.0009 * batch, 0.0012 * batch, 0.001 * batch, 1e-5, (Outlier(2, 0.05, 99.0),)),
            build=Build(0.01, CacheUse.NOT_NEEDED),
            memory=Memory(None, "not known: nothing tells"),
            warnings=(MeasurementWarning.CPU_CONTENTION,),
        )
        inductor = Measurement(
            "inductor",
            samples=(0.0005, 0.0005, 0.0005),
            summary=Summary(3, 0.0005, 0.0005, 0.0005, 0.0005, 0.0),
            speedup=Speedup(2.0 * batch, 1.9 * batch, 2.1 * batch),
            build=Build(3.0, CacheUse.MISS, 9.0, 3.5, "no second process"),
            payback=Payback(6000, 5500, None, 3.0, 0.0005),
            memory=Memory(2048, "by the allocator"),
            warnings=(MeasurementWarning.NOISE, MeasurementWarning.CPU_CONTENTION),
            assumptions=("Shapes stay.",),
        )
        refused = Measurement("cuda-graph/eager", refusal="CUDA graphs need tensors on a CUDA device")
        return TimingPoint({"batch": batch}, (f"float32[{batch}, 16] cpu",), (eager, inductor, refused))

    return Timing("model.py:model", "cpu", "x86_64", "2.13.0", 2, False, 2.0, (point(1), point(8)))


def empty() -> Inspection:
    """A capture of a program that compiled nothing."""
    return Inspection()


def whole() -> Inspection:
    """A capture in which everything went well, with nothing but one compilation."""
    return Inspection(
        compilations=(
            Compilation("0/0", "forward", MODEL, 4, CompilationOutcome.COMPILED, seconds=1.0, graph_nodes=3, graph_calls=1),
        )
    )


def partial() -> Inspection:
    """A capture of a program that was killed, with evidence missing."""
    return Inspection(
        process=Process(pid=7),
        environment=Environment(torch="2.99.0", torch_supported=False),
        complete=False,
        missing_evidence=(
            MissingEvidence("kernels", "the scheduler has no such hook"),
            MissingEvidence("guards", "unreadable", 4),
        ),
        compilations=(Compilation("0/0", "forward", MODEL, 4, CompilationOutcome.UNFINISHED),),
        phases=(Phase("0/0", "bytecode_tracing", 5.0, 1.0, 3, 1.0),),
        breaks=(GraphBreak("Unknown", None, None, BreakEffect.RAISED, stack=99),),
    )


def ranks() -> list[Inspection]:
    """Two processes of one program, which saw the same."""
    first = everything()
    return [
        dataclasses.replace(first, process=Process(pid=100, rank=0)),
        dataclasses.replace(first, process=Process(pid=101, rank=1)),
    ]


HOSTILE = "[red]x[/red][link=file:///etc]\x1b[31mEVIL\x1b]0;owned\x07\x9b2J\x00\r\nnext\tline:smile:\u202eabc\ud800"
"""Markup, color, a window title, a clear screen, NUL, line breaks, an emoji code, reversed text, half a character."""


def hostile() -> Inspection:
    """The full capture with every string replaced by a hostile one; ids and files keep their beginning."""
    poisoned: Inspection = _poison(everything())
    return poisoned


def _poison(value: Any) -> Any:
    if isinstance(value, str):
        return value + HOSTILE
    if isinstance(value, tuple):
        return tuple(_poison(item) for item in value)
    if isinstance(value, dict):
        return {_poison(key): _poison(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {item.name: _poison(getattr(value, item.name)) for item in dataclasses.fields(value)}
        return dataclasses.replace(value, **changes)
    return value


def large(recompiles: int = 300, nodes: int = 100_000) -> Inspection:
    """As many recompiles and nodes as a bad day gives."""
    ids = [f"0/{number}" for number in range(recompiles)]
    per_graph = nodes // recompiles
    failure = GuardFailure("0/0", "x", "tensor 'x' size mismatch", "4", "8", _SIN)
    node = [Node(f"sin_{number}", "call_function", "aten.sin.default", stack=0) for number in range(per_graph)]
    return Inspection(
        compilations=tuple(Compilation(name, "forward", MODEL, 4, CompilationOutcome.COMPILED, seconds=0.5) for name in ids),
        graphs=tuple(Graph(name, name, Stage.DYNAMO, Direction.FORWARD, tuple(node)) for name in ids),
        recompiles=tuple(Recompile(name, "forward", MODEL, 4, (failure,) * 8) for name in ids[1:]),
        guards=tuple(Guard(name, "TENSOR_MATCH", "L['x']", "x", "check", _SIN) for name in ids for _ in range(30)),
        phases=tuple(Phase(name, "compile", float(index), 0.5, 0, 0.5) for index, name in enumerate(ids)),
        stacks=STACKS,
    )
