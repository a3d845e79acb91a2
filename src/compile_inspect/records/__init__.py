"""The contents of a capture: frozen dataclasses that need only the standard library.

All readers of a capture (reporters, advice, comparison) use these records only, so you can create a report on a machine
without torch. The records are plain data: numbers, strings, enums, and tuples of them. They never store tensors, weights or
code objects.
"""

from compile_inspect.records.agreement import (
    Agreement,
    Blame,
    BlameStage,
    Difference,
    DifferenceKind,
    MeasuredError,
    VariantAgreement,
    Verdict,
)
from compile_inspect.records.breaks import BreakEffect, GraphBreak
from compile_inspect.records.compilations import Bytecode, Compilation, CompilationOutcome, Phase
from compile_inspect.records.compiled_share import CompiledShare
from compile_inspect.records.failures import Failure
from compile_inspect.records.graphs import Direction, Graph, Node, Stage, TensorType
from compile_inspect.records.guards import Guard, GuardFailure, LimitHit, Recompile, Specialization
from compile_inspect.records.inspection import (
    OLDEST_READABLE_SCHEMA,
    SCHEMA_VERSION,
    Environment,
    Inspection,
    MissingEvidence,
    NamedTarget,
    Process,
)
from compile_inspect.records.locations import Location, Stack
from compile_inspect.records.lowerings import (
    Kernel,
    KernelKind,
    Lowering,
    MemoryEstimate,
    NodeOutcome,
    UnfusedPair,
    UnplacedNode,
)
from compile_inspect.records.runtime import CacheEvent, CacheOutcome, CudaGraphEvent, CudaGraphOutcome
from compile_inspect.records.timing import (
    Build,
    CacheUse,
    Measurement,
    MeasurementWarning,
    Memory,
    Outlier,
    Payback,
    Speedup,
    Summary,
    Timing,
    TimingPoint,
)

__all__ = [
    "OLDEST_READABLE_SCHEMA",
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
    "CompilationOutcome",
    "CompiledShare",
    "CudaGraphEvent",
    "CudaGraphOutcome",
    "Difference",
    "DifferenceKind",
    "Direction",
    "Environment",
    "Failure",
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
    "MeasuredError",
    "Measurement",
    "MeasurementWarning",
    "Memory",
    "MemoryEstimate",
    "MissingEvidence",
    "NamedTarget",
    "Node",
    "NodeOutcome",
    "Outlier",
    "Payback",
    "Phase",
    "Process",
    "Recompile",
    "Specialization",
    "Speedup",
    "Stack",
    "Stage",
    "Summary",
    "TensorType",
    "Timing",
    "TimingPoint",
    "UnfusedPair",
    "UnplacedNode",
    "VariantAgreement",
    "Verdict",
]
