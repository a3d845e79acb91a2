/** Trees of modules, edges between groups, layout and view of the drawn graph. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Graph, GraphNode } from "../src/data";
import { liftEdges } from "../src/explorer/edges";
import { layoutTree, type Box } from "../src/explorer/layout";
import { moduleParts, moduleText } from "../src/explorer/modules";
import {
  allOpen,
  buildTree,
  type Child,
  closedAround,
  groupsAround,
  openForDrawing,
  openForText,
  type Tree,
} from "../src/explorer/tree";
import { bringIntoView, contains, fit, pathOf, readingOrder, seenIn, shown, zoomAt } from "../src/explorer/viewport";

function graphOf(nodes: Partial<GraphNode>[]): Graph {
  const whole = nodes.map((node, index): GraphNode => ({
    name: `n${index}`,
    kind: "call",
    target: "aten.add",
    inputs: [],
    arguments: "",
    type: "",
    stack: null,
    module: "",
    kernels: [],
    fate: "",
    ...node,
  }));
  return { id: "", compilation: null, stage: "dynamo", title: "", direction: "forward", from_text: false, nodes: whole };
}

function chain(length: number): Graph {
  return graphOf(Array.from({ length }, (_, index) => ({ inputs: index > 0 ? [index - 1] : [] })));
}

function outline(children: Child[]): unknown[] {
  return children.map((child) => (typeof child === "number" ? child : { [child.label]: outline(child.children) }));
}

test("paths of modules are split as people write them", () => {
  assert.deepEqual(moduleParts("L['self'].__dict__['_modules']['blocks'].0.norm"), ["self", "blocks", "0", "norm"]);
  assert.deepEqual(moduleParts(`L["self"]._modules['a.b'].c`), ["self", "a.b", "c"]);
  assert.equal(moduleText("L['self'].transformer.h.3"), "self.transformer.h.3");
  assert.deepEqual(moduleParts(""), []);
  assert.deepEqual(moduleParts("L"), ["L"]);
});

test("a tree nests modules, merges lone levels and sets inputs apart", () => {
  const tree = buildTree(graphOf([{ kind: "input", module: "a" }, { module: "a.b.c" }, { module: "a.b.c.d" }, { module: "" }]));
  assert.deepEqual(outline(tree.root.children), [{ inputs: [0] }, { "a.b.c": [1, { d: [2] }] }, 3]);
  assert.equal(tree.root.size, 4);
  assert.deepEqual(
    groupsAround(tree, 2).map((group) => group.path),
    ["a.b.c.d", "a.b.c"],
  );
});

test("the outermost closed group stands for a node", () => {
  const tree = buildTree(graphOf([{ module: "a" }, { module: "a.b" }]));
  const group = (label: string): number => tree.groups.find((item) => item.label === label)?.id ?? -1;
  assert.equal(closedAround(tree, 1, allOpen(tree)), null);
  assert.equal(closedAround(tree, 1, new Set([0, group("a")]))?.label, "b");
  assert.equal(closedAround(tree, 1, new Set([0]))?.label, "a");
});

test("many inputs start folded, few do not", () => {
  const inputs = (count: number): Tree => buildTree(graphOf(Array.from({ length: count }, () => ({ kind: "input" }))));
  assert.equal(openForText(inputs(21)).size, 1);
  assert.equal(openForText(inputs(20)).size, 2);
});

test("large groups are split until no level has too many", () => {
  const tree = buildTree(chain(5102), true);
  assert.ok(tree.groups.every((group) => group.children.length <= 60));
  const labels = tree.groups.map((group) => group.label);
  assert.ok(labels.includes("nodes 1–50") && labels.includes("nodes 5101–5102") && labels.includes("nodes 1–2500"));
  assert.equal(tree.root.size, 5102);
});

test("a drawing starts with few boxes", () => {
  const tree = buildTree(chain(5102), true);
  const open = openForDrawing(tree, 150);
  const boxes = tree.groups.filter((group) => open.has(group.id)).reduce((sum, group) => sum + group.children.length, 0);
  assert.ok(boxes <= 150 && boxes > 3);
});

test("edges are drawn at the common ancestor, once", () => {
  const graph = graphOf([
    { module: "a" },
    { module: "a", inputs: [0] },
    { module: "b", inputs: [0, 1] },
    { module: "b.c", inputs: [2, 1] },
    { inputs: [3] },
  ]);
  const tree = buildTree(graph);
  const edges = liftEdges(graph, tree);
  const of = (label: string) => edges[tree.groups.find((group) => group.label === label)?.id ?? -1];
  assert.deepEqual(of(""), [
    [0, 1],
    [1, 2],
  ]);
  assert.deepEqual(of("a"), [[0, 1]]);
  assert.deepEqual(of("b"), [[0, 1]]);
});

function overlap(one: Box, other: Box): boolean {
  return (
    one.x < other.x + other.width &&
    other.x < one.x + one.width &&
    one.y < other.y + other.height &&
    other.y < one.y + one.height
  );
}

test("boxes lie within their group and beside each other", () => {
  const graph = graphOf([
    { module: "a" },
    { module: "a.b", inputs: [0] },
    { module: "a.b", inputs: [0] },
    { module: "c", inputs: [1, 2] },
    { inputs: [3, 0] },
  ]);
  const tree = buildTree(graph, true);
  const root = layoutTree(graph, tree, liftEdges(graph, tree), allOpen(tree));
  const check = (box: Box): void => {
    box.children.forEach((child, index) => {
      assert.ok(contains(box, child), "a child lies within its group");
      for (const other of box.children.slice(index + 1)) assert.ok(!overlap(child, other), "children do not overlap");
      check(child);
    });
  };
  check(root);
  assert.equal(readingOrder(root).filter((box) => box.node !== null).length, 5);
});

test("expanding everything of a large graph takes little time and draws only what is seen", () => {
  const graph = chain(5102);
  const tree = buildTree(graph, true);
  const started = performance.now();
  const root = layoutTree(graph, tree, liftEdges(graph, tree), allOpen(tree));
  assert.ok(performance.now() - started < 3000);
  const near = seenIn(root, shown({ x: 0, y: 0, scale: 1 }, 500, 600, 0.5), 1);
  assert.ok(near.boxes.length > 5 && near.boxes.length < 60);
  const whole = fit(root, 500, 600);
  assert.ok(seenIn(root, shown(whole, 500, 600, 0), whole.scale).boxes.length < 500);
});

test("cycles between groups and edges to nowhere do no harm", () => {
  const graph = graphOf([{ module: "a" }, { module: "b", inputs: [0] }, { module: "a", inputs: [1, 77] }]);
  const tree = buildTree(graph, true);
  const root = layoutTree(graph, tree, liftEdges(graph, tree), allOpen(tree));
  assert.equal(root.children.length, 2);
});

test("zooming keeps the point under the pointer", () => {
  const view = zoomAt({ x: 10, y: 20, scale: 1 }, 2, 110, 120);
  assert.deepEqual(view, { scale: 2, x: -90, y: -80 });
});

test("a box outside is brought into view, one inside is left alone", () => {
  const view = { x: 0, y: 0, scale: 1 };
  assert.deepEqual(bringIntoView(view, { x: 50, y: 50, width: 20, height: 20 }, 400, 400, 0.5), view);
  const moved = bringIntoView(view, { x: 50, y: 5000, width: 20, height: 20 }, 400, 400, 0.5);
  assert.ok(5000 + moved.y > 0 && 5020 + moved.y < 400);
});

test("lines are smooth paths", () => {
  assert.equal(
    pathOf([
      { x: 0, y: 0 },
      { x: 1, y: 2 },
    ]),
    "M0 0L1 2",
  );
  assert.equal(
    pathOf([
      { x: 0, y: 0 },
      { x: 1, y: 2 },
      { x: 3, y: 4 },
    ]),
    "M0 0Q1 2 3 4",
  );
  assert.equal(pathOf([]), "");
});
