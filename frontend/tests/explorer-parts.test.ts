/** Tabs, files, fusion, search, stretches of code and keys. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Capture, Graph, Kernel, Line, Lowering } from "../src/data";
import { unindented } from "../src/explorer/code-lines";
import { hueOf, hueOfNumber } from "../src/explorer/colors";
import { choices, firstChoice, graphTabs, loweringTabs } from "../src/explorer/compilations";
import { moved } from "../src/explorer/dividers";
import { firstFile, sourceFiles, sourceRows } from "../src/explorer/files";
import { apartFrom, keptApart, pairText } from "../src/explorer/fusion";
import { occurrences } from "../src/explorer/highlight";
import { step } from "../src/explorer/keyboard";
import { buildLinks } from "../src/explorer/links";
import { noGraphs, noKernels } from "../src/explorer/missing";
import { search } from "../src/explorer/search";
import { segments } from "../src/explorer/segments";
import { compilationOf, targetOf } from "../src/explorer/targets";

function graph(
  stage: Graph["stage"],
  direction: Graph["direction"],
  compilation: string | null,
  stack: number | null = null,
): Graph {
  const node = {
    name: `n_${stage}`,
    kind: "call",
    target: "aten.Softmax",
    inputs: [],
    arguments: "",
    type: "",
    stack,
    module: "",
    kernels: [],
    fate: "",
  } as const;
  return { id: "", compilation, stage, title: "", direction, from_text: false, nodes: [{ ...node, inputs: [], kernels: [] }] };
}

function lowering(direction: Lowering["direction"], compilation: string, extra: Partial<Lowering> = {}): Lowering {
  return {
    id: "",
    compilation,
    direction,
    graph: null,
    language: "cpp",
    code: [],
    code_path: "",
    kernels: [],
    not_fused: [],
    memory: null,
    from_cache: false,
    ...extra,
  };
}

function kernel(name: string, lines: Kernel["lines"], call: number | null): Kernel {
  return { name, kind: "cpp", title: "", nodes: [], fuses: 0, stacks: [], lines, call };
}

const code: Line[] = ["import x", "def k0():", "  exp(1)", "def k1():", "  pass", "k0()", "k1()", "lib()"].map((text) => [
  text,
]);
const capture = {
  missing: [],
  paths: [
    { path: "/home/user/app/model.py", short: "model.py", library: false, torch: false },
    { path: "/lib/nice/model.py", short: "nice/model.py", library: true, torch: false },
    { path: "/lib/other.py", short: "other.py", library: true, torch: false },
  ],
  sources: [
    {
      path: 0,
      total: 20,
      pieces: [
        { first: 3, lines: [["a = 1"], ["b = softmax(a)"]] },
        { first: 10, lines: [["c"]] },
      ],
    },
  ],
  stacks: [
    { frames: [[0, 4, "f"]], line: [0, 4], own: [0, 4] },
    {
      frames: [
        [0, 4, "f"],
        [1, 7, "g"],
      ],
      line: [1, 7],
      own: [0, 4],
    },
  ],
  compilations: [
    { id: "0/0", name: "f", outcome: "compiled", operations: 3, backend: "inductor" },
    { id: "1/0", name: "g", outcome: "compiled", operations: 9, backend: "aot_eager" },
    { id: "2/0", name: "empty", outcome: "failed", operations: 100, backend: "inductor" },
  ],
  graphs: [
    graph("post_grad", "backward", "0/0"),
    graph("post_grad", "forward", "0/0"),
    graph("dynamo", "forward", "0/0", 0),
    graph("forward", "forward", "0/0"),
    graph("forward", "forward", "0/0"),
    graph("dynamo", "forward", "1/0", 1),
    graph("dynamo", "forward", null),
  ],
  lowerings: [
    lowering("backward", "0/0"),
    lowering("forward", "0/0", { code, kernels: [kernel("k0", [2, 3], 6), kernel("k1", [4, 5], 7), kernel("lib", null, 8)] }),
  ],
} as unknown as Capture;

test("compilations with something to show, the busiest first chosen", () => {
  const found = choices(capture);
  assert.deepEqual(
    found.map((choice) => choice.id),
    ["0/0", "1/0", null],
  );
  assert.equal(firstChoice(found), "1/0");
  assert.equal(firstChoice([]), null);
});

test("tabs follow the pipeline and are told apart", () => {
  const tabs = graphTabs(capture, buildLinks(capture, "0/0").graphs);
  assert.deepEqual(
    tabs.map((tab) => [tab.index, tab.label]),
    [
      [2, "Dynamo"],
      [3, "AOT forward 1"],
      [4, "AOT forward 2"],
      [1, "Post-grad forward"],
      [0, "Post-grad backward"],
    ],
  );
  assert.deepEqual(
    loweringTabs(capture, [0, 1]).map((tab) => tab.label),
    ["Forward", "Backward"],
  );
});

test("files: the user's first, unrecorded ones where something came from them", () => {
  const links = buildLinks(capture, "1/0");
  const files = sourceFiles(capture, links);
  assert.deepEqual(
    files.map((file) => [file.path, file.label, file.recorded]),
    [
      [0, "app/model.py", true],
      [1, "nice/model.py", false],
    ],
  );
  assert.equal(firstFile(files), 0);
  const library = files.find((file) => file.path === 1);
  assert.ok(library);
  assert.deepEqual(sourceRows(capture, library), [{ kind: "line", number: 7, line: ["in g"] }]);
});

test("what lies between the pieces of a file is a gap", () => {
  const [file] = sourceFiles(capture, buildLinks(capture, "0/0"));
  assert.ok(file);
  const rows = sourceRows(capture, file).map((row) => (row.kind === "gap" ? `… ${row.lines}` : row.number));
  assert.deepEqual(rows, ["… 2", 3, 4, "… 5", 10, "… 10"]);
});

test("neighbors that were not fused stand between them, others at the end, the same once", () => {
  const first = lowering("forward", "0/0", {
    kernels: [kernel("a", null, null), kernel("b", null, null), kernel("c", null, null), kernel("d", null, null)],
    not_fused: [
      { first: 3, second: 1, names: ["op4", "op1"], reason: "far", times: 1 },
      { first: 0, second: 1, names: ["op0", "op1"], reason: "r", times: 1 },
      { first: 0, second: 1, names: ["op2", "op1"], reason: "r", times: 2 },
      { first: 0, second: 2, names: ["op0", "op3"], reason: "s", times: 1 },
      { first: null, second: 2, names: ["op9", "op3"], reason: "t", times: 1 },
    ],
  });
  const { between, rest } = keptApart(first);
  assert.deepEqual(
    between.get(0)?.map((item) => [item.reason, item.times, item.names.length]),
    [["r", 3, 2]],
  );
  assert.deepEqual(
    between.get(1)?.map((item) => item.reason),
    ["far"],
  );
  assert.deepEqual(
    rest.map((item) => pairText(first, item)),
    ["1 a and 3 c", "op9 and op3"],
  );
  assert.equal(apartFrom(first, 2).length, 2);
});

test("search finds code, nodes and kernels whatever the case", () => {
  const links = buildLinks(capture, "0/0");
  const scope = { capture, files: sourceFiles(capture, links), graphs: [2], lowerings: [1] };
  assert.deepEqual(search(scope, "SOFTMAX").counts, { source: 1, graph: 1, kernels: 0 });
  assert.deepEqual(search(scope, "exp(").counts, { source: 0, graph: 0, kernels: 1 });
  assert.deepEqual(search(scope, "lib").list, [{ kind: "kernel", holder: 1, item: 2 }]);
  assert.equal(search(scope, "  ").list.length, 0);
});

test("a module is cut into stretches without losing a line", () => {
  const found = segments(capture.lowerings[1] as Lowering);
  assert.deepEqual(
    found.map(({ first, last, kernel: of }) => [first, last, of]),
    [
      [1, 1, null],
      [2, 3, 0],
      [4, 5, 1],
      [6, 6, 0],
      [7, 7, 1],
      [8, 8, 2],
    ],
  );
  const odd = lowering("forward", "", { code, kernels: [kernel("a", [2, 90], null), kernel("b", [4, 5], 4)] });
  assert.equal(
    segments(odd).reduce((sum, item) => sum + item.last - item.first + 1, 0),
    code.length,
  );
});

test("colors differ between neighbors and between directions", () => {
  const links = buildLinks(capture, "0/0");
  assert.notEqual(hueOf(links, [0, 0]), hueOf({ ...links, lowerings: [1, 0] }, [0, 0]));
  const gap = Math.abs(hueOfNumber(3) - hueOfNumber(4));
  assert.ok(Math.min(gap, 360 - gap) > 90);
});

test("keys step within the list", () => {
  assert.deepEqual([step("ArrowDown", 0, 3), step("ArrowDown", 2, 3), step("ArrowUp", 0, 3), step("End", 0, 3)], [1, 2, 0, 2]);
  assert.equal(step("x", 0, 3), null);
});

test("dividers leave each pane some room", () => {
  assert.deepEqual(
    moved([0.3, 0.4, 0.3], 0, 0.1).map((share) => share.toFixed(2)),
    ["0.40", "0.30", "0.30"],
  );
  assert.deepEqual(
    moved([0.3, 0.4, 0.3], 1, 0.9).map((share) => share.toFixed(2)),
    ["0.30", "0.55", "0.15"],
  );
});

test("links from elsewhere find their compilation", () => {
  const links = buildLinks(capture, "0/0");
  assert.equal(compilationOf(capture, links, { kind: "line", path: 0, line: 4 }), undefined);
  assert.equal(compilationOf(capture, links, { kind: "line", path: 1, line: 7 }), "1/0");
  assert.equal(compilationOf(capture, links, { kind: "node", graph: 5, node: 0 }), "1/0");
  assert.deepEqual(targetOf({ kind: "kernel", lowering: 1, kernel: 2 }), { kind: "kernel", holder: 1, item: 2 });
  assert.equal(targetOf({ kind: "compilation", id: "0/0" }), null);
});

test("what is missing is said with its reason", () => {
  assert.match(noKernels(buildLinks(capture, "1/0"), "1/0"), /aot_eager/);
  assert.match(
    noGraphs({ ...capture, compilations: [], missing: [{ collector: "graphs", reason: "no hook", times: 1 }] }),
    /no hook/,
  );
});

test("a line alone loses its indentation and keeps its colors", () => {
  assert.deepEqual(unindented(["    return x", 0, 4, 1, 6, 0, 2]), ["return x", 1, 6, 0, 2]);
  assert.deepEqual(unindented(["    f(x)", 0, 8]), ["f(x)", 0, 4]);
  assert.deepEqual(unindented(["f(x)"]), ["f(x)"]);
});

test("what a search found is marked wherever it occurs", () => {
  assert.deepEqual(occurrences("Add, add_1", "add"), [0, 5]);
  assert.deepEqual(occurrences("aaa", "aa"), [0]);
  assert.deepEqual(occurrences("abc", ""), []);
});
