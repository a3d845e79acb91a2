/** What belongs together, on a capture small enough to check by hand. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Capture, Graph, GraphNode, Kernel, Lowering } from "../src/data";
import { buildLinks, counterparts, kernelsOfLine, kernelsOfNode, linkedLines } from "../src/explorer/links";
import { firstToShow } from "../src/explorer/lighting";
import { keyOf, parseMarks, type Thing, thing } from "../src/explorer/things";

function node(name: string, stack: number | null, extra: Partial<GraphNode> = {}): GraphNode {
  return {
    name,
    kind: "call",
    target: name,
    inputs: [],
    arguments: "",
    type: "",
    stack,
    module: "",
    kernels: [],
    fate: "",
    ...extra,
  };
}

function graph(stage: Graph["stage"], direction: Graph["direction"], nodes: GraphNode[], compilation = "0/0"): Graph {
  return { id: "", compilation, stage, title: "", direction, from_text: false, nodes };
}

function kernel(name: string, nodes: number[], stacks: number[]): Kernel {
  return { name, kind: "cpp", title: "", nodes, fuses: nodes.length, stacks, lines: null, call: null };
}

function lowering(direction: Lowering["direction"], index: number, kernels: Kernel[]): Lowering {
  return {
    id: "",
    compilation: "0/0",
    direction,
    graph: index,
    language: "cpp",
    code: [],
    code_path: "",
    kernels,
    not_fused: [],
    memory: null,
    from_cache: false,
  };
}

/** User's file 0, a library's 1, torch's 2. Two layers `a` and `b` share the stack 0. */
const capture = {
  paths: [
    { path: "/u.py", short: "u.py", library: false, torch: false },
    { path: "/l.py", short: "l.py", library: true, torch: false },
    { path: "/t.py", short: "t.py", library: true, torch: true },
  ],
  stacks: [
    {
      frames: [
        [0, 10, "main"],
        [1, 5, "layer"],
        [2, 7, "inner"],
      ],
      line: [1, 5],
      own: [0, 10],
    },
    {
      frames: [
        [0, 3, "outer"],
        [0, 12, "f"],
      ],
      line: [0, 12],
      own: [0, 12],
    },
  ],
  graphs: [
    graph("dynamo", "forward", [node("x", 0, { module: "a" }), node("y", 0, { module: "b" }), node("z", 1)]),
    graph("post_grad", "forward", [
      node("p", 0, { module: "a", kernels: [0] }),
      node("q", 0, { module: "b", kernels: [1] }),
      node("r", 1, { kernels: [1] }),
      node("i", null, { kind: "input" }),
    ]),
    graph("post_grad", "backward", [node("s", 1, { kernels: [0] })]),
    graph("dynamo", "forward", [node("other", 1)], "1/0"),
  ],
  lowerings: [
    lowering("forward", 1, [kernel("k0", [0], [0]), kernel("k1", [1, 2], [0, 1])]),
    lowering("backward", 2, [kernel("b0", [0], [1])]),
  ],
} as unknown as Capture;
const links = buildLinks(capture, "0/0");

function found(target: Thing): { strong: string[]; weak: string[] } {
  const all = counterparts(links, target);
  const names = (weak: boolean): string[] =>
    all
      .filter((part) => part.weak === weak)
      .map(keyOf)
      .sort();
  return { strong: names(false), weak: names(true) };
}

test("only what belongs to the compilation is indexed", () => {
  assert.deepEqual(links.graphs, [0, 1, 2]);
  assert.deepEqual(links.lowerings, [0, 1]);
});

test("a line leads to the stacks that end in it, forward and backward", () => {
  const { strong, weak } = found(thing("line", 0, 12));
  assert.deepEqual(strong, ["kernel:0:1", "kernel:1:0", "node:0:2", "node:1:2", "node:2:0"]);
  assert.deepEqual(weak, []);
});

test("a line that is only passed through leads there weakly", () => {
  const { strong, weak } = found(thing("line", 0, 3));
  assert.deepEqual(strong, []);
  assert.deepEqual(weak, ["kernel:0:1", "kernel:1:0", "node:0:2", "node:1:2", "node:2:0"]);
});

test("a library line and the user's own line of the same stack lead to the same", () => {
  assert.deepEqual(found(thing("line", 1, 5)), found(thing("line", 0, 10)));
});

test("torch's own frames are no places", () => {
  assert.deepEqual(found(thing("line", 2, 7)), { strong: [], weak: [] });
});

test("a node of a shared layer leads to its own module, and weakly to the siblings", () => {
  const { strong, weak } = found(thing("node", 0, 0));
  assert.deepEqual(strong, ["kernel:0:0", "line:0:10", "line:1:5", "node:1:0"]);
  assert.deepEqual(weak, ["kernel:0:1", "node:1:1"]);
});

test("a post-grad node has the kernels that compute it, not all of its stack", () => {
  const { strong, weak } = found(thing("node", 1, 1));
  assert.deepEqual(strong, ["kernel:0:1", "line:0:10", "line:1:5", "node:0:1"]);
  assert.deepEqual(weak, ["node:0:0"]);
});

test("a node without a stack has no counterparts but its kernels", () => {
  assert.deepEqual(found(thing("node", 1, 3)), { strong: [], weak: [] });
});

test("a kernel leads to its nodes, to the other stages and to the lines", () => {
  const { strong, weak } = found(thing("kernel", 0, 1));
  assert.deepEqual(strong, ["line:0:10", "line:0:12", "line:1:5", "node:0:1", "node:0:2", "node:1:1", "node:1:2", "node:2:0"]);
  assert.deepEqual(weak, ["line:0:3", "node:0:0"]);
});

test("things that are not there have no counterparts", () => {
  for (const kind of ["line", "node", "kernel"] as const) assert.deepEqual(counterparts(links, thing(kind, 99, 99)), []);
});

test("kernels of lines and nodes, for their colors", () => {
  assert.deepEqual(kernelsOfLine(links, 0, 12), [
    [0, 1],
    [1, 0],
  ]);
  assert.deepEqual(kernelsOfNode(links, 1, 2), [[0, 1]]);
  assert.deepEqual(kernelsOfNode(links, 0, 0), [[0, 0]]);
  // A forward graph does not show the colors of the backward.
  assert.deepEqual(kernelsOfNode(links, 0, 2), [[0, 1]]);
});

test("linked lines by file", () => {
  assert.deepEqual([...(linkedLines(links).get(0) ?? [])].sort(), [10, 12]);
  assert.deepEqual([...(linkedLines(links).get(1) ?? [])], [5]);
});

test("marks of elements are read back", () => {
  assert.deepEqual(parseMarks({ node: "3:14" }), thing("node", 3, 14));
  assert.equal(parseMarks({ group: "1:2" }), null);
});

test("what is shown first is strong and in the open tab where there is such", () => {
  const part = (holder: number, item: number, weak: boolean) => ({ ...thing("node", holder, item), weak });
  assert.equal(firstToShow([part(1, 1, true), part(1, 2, false), part(2, 0, false)], 1, [2, 1])?.item, 2);
  assert.equal(firstToShow([part(1, 1, true), part(2, 0, false), part(3, 5, false)], 1, [3, 2, 1])?.item, 5);
  assert.equal(firstToShow([part(1, 1, true)], 1, [1])?.item, 1);
  assert.equal(firstToShow([part(2, 1, true)], 1, [1, 2]), null);
});
