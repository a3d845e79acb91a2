"""How often torch.compile compiles for a sequence of inputs: foretold, seen, and what to do about it."""

from compile_inspect.recompiles.api import predict as predict
from compile_inspect.recompiles.calls import Call as Call
from compile_inspect.recompiles.calls import attribute as attribute
from compile_inspect.recompiles.observing import compare as compare
from compile_inspect.recompiles.observing import observe as observe
from compile_inspect.recompiles.ranges import calls_of as calls_of
from compile_inspect.recompiles.remedies import treat as treat
from compile_inspect.recompiles.remedies import treat_capture as treat_capture
