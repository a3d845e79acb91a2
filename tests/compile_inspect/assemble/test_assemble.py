"""Assembly from events alone: damaged ones leave a hole, not a heap."""

from __future__ import annotations

import pytest

from compile_inspect.assemble import assemble
from compile_inspect.assemble.breaks import parse_message
from compile_inspect.assemble.generated_code import read_code
from compile_inspect.assemble.graph_text import parse_graph
from compile_inspect.assemble.guards import parse_tree
from compile_inspect.assemble.node_outcomes import explain_unplaced
from compile_inspect.assemble.recompiles import assemble_recompiles, parse_failure
from compile_inspect.assemble.stacks import StackTable, parse_stack
from compile_inspect.records import Direction, Fate, Graph, KernelKind, Node, Stage, TensorType


def event(kind: str, **data: object) -> dict[str, object]:
    return {"kind": kind, "compilation": "0/0", "attempt": 0, "time": 1.0, "thread": 1, **data}


def test_a_damaged_part_is_missing_and_the_others_are_not() -> None:
    events = [
        event("phase", phase="p", mark="B"),
        event("bytecode", function="f"),
        event("cache", cache="fx_graph", outcome="hit"),
    ]
    events += [event("note", text="kept")]
    inspection = assemble(events, {"pid": 1}, complete=True)
    assert {item.collector for item in inspection.missing} == {"bytecode", "caches"}
    assert inspection.notes == ("kept",)


def test_graphs_of_a_discarded_attempt_are_left_out() -> None:
    def captured(attempt: int, name: str) -> dict[str, object]:
        nodes = [{"name": name, "operation": "call_function", "target": "operator.add"}]
        return {**event("graph", event="dynamo_output_graph", nodes=nodes), "attempt": attempt}

    inspection = assemble([captured(0, "first"), captured(1, "second")], {}, complete=True)
    assert [graph.nodes[0].name for graph in inspection.graphs] == ["second"]


def test_phases_nest_and_know_their_own_time() -> None:
    marks = [("outer", "B", 0), ("inner", "B", 1e6), ("inner", "E", 3e6), ("outer", "E", 4e6), ("lost", "B", 5e6)]
    events = [event("phase", phase=name, mark=mark, at=at, arguments={}) for name, mark, at in marks]
    outer, inner = assemble(events, {}, complete=True).phases
    assert (outer.name, outer.seconds, outer.own_seconds, outer.depth) == ("outer", 4.0, 2.0, 0)
    assert (inner.name, inner.seconds, inner.own_seconds, inner.depth) == ("inner", 2.0, 2.0, 1)


def test_stacks_as_python_prints_them() -> None:
    text = """  File "/a b/model.py", line 12, in torch_dynamo_resume_in_forward_at_11
    if x.sum() > 0:
       ^^^^^^^^^^^
  File "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)
"""
    first, second = parse_stack(text)
    assert (first.file, first.line, first.function, first.code) == ("/a b/model.py", 12, "forward", "if x.sum() > 0:")
    assert second.in_torch and not first.in_torch


def test_messages_with_several_hints_and_lines() -> None:
    message = parse_message(
        "Data-dependent branching\n  Explanation: Detected it.\n\n      The branch:\n        gt = gt(mean, 0)\n    \n"
        "  Hint: one\n  Hint: two\n    goes on\n\n  Developer debug context: attempted to jump\n\n"
        " For more details about this graph break, please visit: https://x.test/gb/gb0170.html\n"
    )
    assert message.kind == "Data-dependent branching"
    assert message.explanation.splitlines()[0] == "Detected it." and "gt(mean, 0)" in message.explanation
    assert message.hints == ("one", "two\ngoes on")
    assert (message.context, message.identifier) == ("attempted to jump", "GB0170")


TREE = """
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- DEFAULT_DEVICE: utils_device.CURRENT_DEVICE == None  # _dynamo/output_graph.py:1 in init
| +- LAMBDA_GUARD: 2 <= L['x'].size()[0]  # return x # m.py:3 in f
| +- GuardManager: source=L['self'], accessed_by=FrameLocals(key='self'), type=<class 'M'>
| | +- TYPE_MATCH: ___check_type_id(L['self'], 94713344728144), type=<class '__main__.M'>  # a  # m.py:3 in f
| | +- GuardManager: source=L['self']._modules['fc'], accessed_by=X, type=<class 'L'>
| | | +- EQUALS_MATCH: L['self']._modules['fc'].k == 3   # a  # m.py:3 in f (HINT: b)
| +- GuardManager: source=G, accessed_by=GlobalsGuardAccessor, type=<class 'dict'>
| | +- GuardManager: source=G['__builtins_dict___1']['print'], accessed_by=X, type=<class 'y'>
| | | +- ID_MATCH: ___check_obj_id(G['__builtins_dict___1']['print'], 140574019196528), type=<class 'y'>  # print()

Guard latency = 80.28 us
"""


def test_a_guard_tree() -> None:
    stacks = StackTable()
    stacks.define(0, [["m.py", 3, "f", "a"]])
    guards = list(parse_tree(TREE, "0/0", {"L['self']": 0}, stacks))
    told = [(guard.kind, guard.variable, guard.condition, guard.noise) for guard in guards]
    assert told == [
        ("DEFAULT_DEVICE", "", "utils_device.CURRENT_DEVICE == None", True),
        ("LAMBDA_GUARD", "x.size()[0]", "2 <= x.size()[0]", False),
        ("TYPE_MATCH", "self", "self is of type __main__.M", False),
        ("EQUALS_MATCH", "self.fc", "self.fc.k == 3", False),
        ("ID_MATCH", "builtin print", "builtin print is the same object (y)", True),
    ]
    assert [str(guard.location) for guard in guards[2:4]] == ["m.py:3", "m.py:3"]


def test_failures_in_every_wording() -> None:
    cases = {
        "0/1: tensor 'x' size mismatch at index 1. expected 4, actual 5": ("0/1", "x", "4", "5"),
        "2/0: tensor 'y' dtype mismatch. expected Float, actual Double": ("2/0", "y", "Float", "Double"),
        "0/0: tensor 'x' requires_grad mismatch. expected requires_grad=0": ("0/0", "x", "requires_grad=0", "requires_grad=1"),
        "0/0: L['n'] == 3   # return x * n  # m.py:3 in f": ("0/0", "n", "3", "4"),
        "0/0: ___check_type_id(d['a'], 140070468538880), type=<class 'float'>  # a": ("0/0", "d['a']", "float", "int"),
        "something torch has never said before": (None, "", None, None),
        "": (None, "", None, None),
    }
    for text, expected in cases.items():
        failure = parse_failure(text, {"n": "4", "type(d['a'])": "int"})
        assert (failure.against, failure.variable, failure.expected, failure.actual) == expected, text


CODE = '''# AOT ID: ['0_backward']
import torch
async_compile = AsyncCompile()
cpp_fused_relu_0 = async_compile.cpp_pybinding(['float*'], r"""
void kernel() {}
""")
triton_poi_fused_1 = async_compile.triton('triton_poi_fused_1', """
@triton.jit
""", device_str='cuda')

class Runner:
    def call(self, args):
        assert_size_stride(x, (1,), (1,))
        # Topologically Sorted Source Nodes: [linear, y], Original ATen: [aten.addmm]
        extern_kernels.addmm(a, b, out=buf0)
        cpp_fused_relu_0(buf0)
        triton_poi_fused_1.run(buf0, 32, stream=stream0)
        buf1 = torch.ops.aten.sort.default(buf0)
'''


def test_generated_code() -> None:
    code = read_code(CODE)
    assert code.direction is Direction.BACKWARD
    assert {name: item.kind for name, item in code.definitions.items()} == {
        "cpp_fused_relu_0": KernelKind.CPP,
        "triton_poi_fused_1": KernelKind.TRITON,
    }
    names = [(call.name, call.source_nodes) for call in code.calls]
    assert names == [
        ("extern_kernels.addmm", ("linear", "y")),
        ("cpp_fused_relu_0", ()),
        ("triton_poi_fused_1", ()),
        ("torch.ops.aten.sort.default", ()),
    ]
    assert read_code("#include <not python>").calls == ()


def test_printed_graphs() -> None:
    text = """class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[2, s0][s0, 1]cpu", arg1_1: "Sym(s0)"):
         # File: /home/me/m.py:7 in f, code: return x.relu()[0]
        relu: "f32[2, s0][s0, 1]cpu" = torch.ops.aten.relu.default(arg0_1);  arg0_1 = None
        # No stacktrace found for following nodes
        getitem: "f32[s0]" = relu[0];  relu = None
        return (getitem,)
"""
    stacks = StackTable()
    nodes = parse_graph(text, stacks)
    assert [(node.name, node.operation, node.target, node.inputs) for node in nodes] == [
        ("arg0_1", "placeholder", "arg0_1", ()),
        ("arg1_1", "placeholder", "arg1_1", ()),
        ("relu", "call_function", "aten.relu.default", ("arg0_1",)),
        ("getitem", "call_function", "operator.getitem", ("relu",)),
        ("output", "output", "output", ("getitem",)),
    ]
    assert nodes[0].value == (TensorType((2, "s0"), "float32", "cpu", ("s0", 1)),)
    assert str(stacks.user_line(nodes[2].stack)) == "/home/me/m.py:7"
    assert nodes[3].stack is None


def test_fates_tell_what_became_of_a_node() -> None:
    tensor = (TensorType((2,), "float32"),)

    def call(name: str, target: str, *inputs: str, value: tuple[TensorType, ...] = tensor) -> Node:
        return Node(name, "call_function", target, inputs, value=value)

    nodes = (
        Node("x", "placeholder", "x", value=tensor),
        Node("c", "get_attr", "_constant0", value=tensor),
        call("size", "aten.sym_size.int", "x", value=()),
        call("full", "aten.full.default"),
        call("view", "aten.view.default", "x"),
        call("kernel", "aten.add.Tensor", "view", "full"),
        call("item", "operator.getitem", "kernel"),
        call("unused", "aten.zeros.default"),
        call("copy", "aten.copy_.default", "x", "kernel"),
        Node("output", "output", "output", ("item", "c", "size")),
    )
    graph = Graph("g", "0/0", Stage.POST_GRAD, Direction.FORWARD, nodes)
    assert {item.name: item.fate for item in explain_unplaced(graph, {"kernel"})} == {
        "x": Fate.INPUT,
        "c": Fate.CONSTANT,
        "size": Fate.SYMBOL,
        "full": Fate.FOLDED,
        "view": Fate.VIEW,
        "item": Fate.ITEM,
        "unused": Fate.UNUSED,
        "copy": Fate.WRAPPER,
        "output": Fate.OUTPUT,
    }


@pytest.mark.parametrize(
    "reason",
    [
        "Unexpected recompilation: runtime guards failed even though they passed during recompilation-reason analysis.",
        "BACKEND_MATCH failure: torch.compile detected different backend callables. If this is unexpected, wrap your backend",
        "Duplicate tensor found where not expected! x should not alias to anything",
        "the mode is unexpected here",
        "cache limit > what is allowed by the user",
    ],
)
def test_a_sentence_of_torch_is_no_condition_on_a_variable(reason: str) -> None:
    failure = parse_failure(f"0/1: {reason}", {})
    assert (failure.variable, failure.expected, failure.actual) == ("", None, None)
    assert failure.reason == reason


def test_threads_that_compile_one_function_are_told_of() -> None:
    events = [
        {"kind": "start", "compilation": "0/0", "thread": 1},
        {"kind": "start", "compilation": "0/1", "thread": 2},
        {"kind": "recompile", "compilation": "0/1", "reasons": ["0/0: Unexpected recompilation: runtime guards failed"]},
    ]
    (recompile,) = assemble_recompiles(events, {}, ())
    assert recompile.failures[0].reason == "torch found no guard that fails; 2 threads compiled this function"
    (recompile,) = assemble_recompiles(events[:1] + events[2:], {}, ())
    assert recompile.failures[0].reason.startswith("Unexpected recompilation")
