"""One collector per kind of evidence."""

from compile_inspect.capture.collectors.base import Collector
from compile_inspect.capture.collectors.bytecode import BytecodeCollector
from compile_inspect.capture.collectors.caches import CacheCollector, CudaGraphCollector
from compile_inspect.capture.collectors.environment import EnvironmentCollector
from compile_inspect.capture.collectors.frames import FrameCollector, PhaseCollector, SymbolCollector
from compile_inspect.capture.collectors.graph_breaks import GraphBreakCollector
from compile_inspect.capture.collectors.graphs import GraphCollector
from compile_inspect.capture.collectors.guards import GuardCollector, RecompileCollector
from compile_inspect.capture.collectors.lowerings import CodeCollector, FusionCollector, KernelCollector, MemoryCollector

COLLECTORS: tuple[type[Collector], ...] = (
    EnvironmentCollector,
    FrameCollector,
    SymbolCollector,
    PhaseCollector,
    GraphCollector,
    GraphBreakCollector,
    GuardCollector,
    RecompileCollector,
    KernelCollector,
    FusionCollector,
    MemoryCollector,
    CodeCollector,
    CacheCollector,
    CudaGraphCollector,
    BytecodeCollector,
)

__all__ = ["COLLECTORS", "Collector"]
