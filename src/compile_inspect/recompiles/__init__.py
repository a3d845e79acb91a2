"""How often torch.compile compiles for a sequence of inputs: predicted, observed, and how to reduce it."""

from compile_inspect.recompiles.calls import Call as Call
from compile_inspect.recompiles.calls import temporary_attribute as temporary_attribute
from compile_inspect.recompiles.observation import compare as compare
from compile_inspect.recompiles.observation import observe as observe
from compile_inspect.recompiles.prediction import predict as predict
from compile_inspect.recompiles.ranges import calls_from_ranges as calls_from_ranges
from compile_inspect.recompiles.remedies import find_remedies as find_remedies
from compile_inspect.recompiles.remedies import remedies_from_capture as remedies_from_capture
