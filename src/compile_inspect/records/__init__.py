"""What a capture holds: frozen dataclasses, standard library only.

Everything that reads a capture (reporters, advice, comparison) sees these records and nothing else,
so a report can be made on a machine that has no torch. The records are plain data: numbers, strings,
enums and tuples of them; no tensor, no weight and no code object is ever stored.
"""

from compile_inspect.records.agreement import (
    Agreement,
    Blame,
    BlameStage,
    Difference,
    DifferenceKind,
    Measured,
    VariantAgreement,
    Verdict,
)
from compile_inspect.records.breaks import BreakEffect, GraphBreak
from compile_inspect.records.compilations import Bytecode, Compilation, Outcome, Phase
from compile_inspect.records.failures import Failure
from compile_inspect.records.graphs import Direction, Graph, Node, Stage, TensorType
from compile_inspect.records.guards import Guard, GuardFailure, LimitHit, Recompile, Specialization
from compile_inspect.records.inspection import (
    SCHEMA_VERSION,
    Environment,
    Inspection,
    Missing,
    NamedTarget,
    Process,
)
from compile_inspect.records.locations import Location, Stack
from compile_inspect.records.lowerings import Fate, Kernel, KernelKind, Lowering, MemoryEstimate, NotFused, UnplacedNode
from compile_inspect.records.runtime import CacheEvent, CacheOutcome, CudaGraphEvent, CudaGraphOutcome
from compile_inspect.records.share import CompiledShare
from compile_inspect.records.timing import (
    Build,
    CacheUse,
    Doubt,
    Measurement,
    Memory,
    Outlier,
    Payback,
    Speed,
    Summary,
    Timing,
    TimingPoint,
)

__all__ = [
    "SCHEMA_VERSION",
    "Agreement",
    "Blame",
    "BlameStage",
    "BreakEffect",
    "Build",
    "Bytecode",
    "CacheEvent",
    "CacheOutcome",
    "CacheUse",
    "Compilation",
    "CompiledShare",
    "CudaGraphEvent",
    "CudaGraphOutcome",
    "Difference",
    "DifferenceKind",
    "Direction",
    "Doubt",
    "Environment",
    "Failure",
    "Fate",
    "Graph",
    "GraphBreak",
    "Guard",
    "GuardFailure",
    "Inspection",
    "Kernel",
    "KernelKind",
    "LimitHit",
    "Location",
    "Lowering",
    "Measured",
    "Measurement",
    "Memory",
    "MemoryEstimate",
    "Missing",
    "NamedTarget",
    "Node",
    "NotFused",
    "Outcome",
    "Outlier",
    "Payback",
    "Phase",
    "Process",
    "Recompile",
    "Specialization",
    "Speed",
    "Stack",
    "Stage",
    "Summary",
    "TensorType",
    "Timing",
    "TimingPoint",
    "UnplacedNode",
    "VariantAgreement",
    "Verdict",
]
