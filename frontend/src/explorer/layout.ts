/**
 * Where the boxes of the drawn graph are.
 *
 * Each open group is laid out on its own with dagre: its children are nodes of the sizes that they have by then. Groups are
 * small, so this stays fast for any graph; groups of the same shape, such as the layers of a transformer, are laid out once.
 */
import { Graph as Dagre, layout as runDagre } from "@dagrejs/dagre";
import type { Graph } from "../data";
import type { Edges } from "./edges";
import type { Group, Tree } from "./tree";

export const NODE_HEIGHT = 36;
export const HEADER = 24;
const PADDING = 14;
const CHARACTER = 6.7;
/** Few different widths make groups of the same shape more alike. */
const WIDTHS = [110, 160, 220] as const;

export interface Point {
  x: number;
  y: number;
}

export interface Box {
  /** A node, or the group it stands for. */
  node: number | null;
  group: Group | null;
  /** Whether it is a group whose children are drawn in it. */
  open: boolean;
  depth: number;
  /** The upper left corner. */
  x: number;
  y: number;
  width: number;
  height: number;
  children: Box[];
  /** Edges between the children. */
  edges: Line[];
}

export interface Line {
  points: Point[];
  /** Positions among the children of the box. */
  from: number;
  to: number;
}

interface Arranged {
  width: number;
  height: number;
  /** Upper left corners of the children. */
  corners: Point[];
  lines: Point[][];
}

const arrangedByShape = new Map<string, Arranged>();

export function widthOf(text: string): number {
  const wanted = text.length * CHARACTER + 20;
  return WIDTHS.find((width) => width >= wanted) ?? WIDTHS[WIDTHS.length - 1] ?? 220;
}

/** Lays out what is open; the outermost box is the whole drawing. */
export function layoutTree(graph: Graph, tree: Tree, edges: Edges[], open: ReadonlySet<number>): Box {
  const box = boxOfGroup(graph, tree.root, edges, open);
  moveTo(box, 0, 0);
  return box;
}

function boxOfNode(graph: Graph, node: number, depth: number): Box {
  const { name = "", target = "" } = graph.nodes[node] ?? {};
  const width = widthOf(name.length > target.length * 0.85 ? name : target.slice(0, Math.ceil(target.length * 0.85)));
  return { node, group: null, open: false, depth, x: 0, y: 0, width, height: NODE_HEIGHT, children: [], edges: [] };
}

function boxOfGroup(graph: Graph, group: Group, edges: Edges[], open: ReadonlySet<number>): Box {
  const isOpen = open.has(group.id);
  const box: Box = {
    node: null,
    group,
    open: isOpen,
    depth: group.depth,
    x: 0,
    y: 0,
    width: 0,
    height: 0,
    children: [],
    edges: [],
  };
  if (!isOpen) {
    box.width = widthOf(`+ ${group.label} ${group.size}  `);
    box.height = NODE_HEIGHT;
    return box;
  }
  box.children = group.children.map((child) =>
    typeof child === "number" ? boxOfNode(graph, child, group.depth + 1) : boxOfGroup(graph, child, edges, open),
  );
  const lines = edges[group.id] ?? [];
  const arranged = arrange(
    box.children.map(({ width, height }) => [Math.round(width), Math.round(height)]),
    lines,
  );
  const header = group.parent === null ? 0 : HEADER;
  box.children.forEach((child, index) => {
    const corner = arranged.corners[index] ?? { x: 0, y: 0 };
    // Relative to this box for now: moving happens once, from the outermost.
    child.x = corner.x + PADDING;
    child.y = corner.y + PADDING + header;
  });
  box.edges = lines.map(([from, to], index) => ({
    from,
    to,
    points: (arranged.lines[index] ?? []).map(({ x, y }) => ({ x: x + PADDING, y: y + PADDING + header })),
  }));
  const title = group.parent === null ? 0 : group.label.length * CHARACTER + 90;
  box.width = Math.max(arranged.width + 2 * PADDING, title);
  box.height = arranged.height + 2 * PADDING + header;
  return box;
}

function moveTo(box: Box, x: number, y: number): void {
  box.x = x;
  box.y = y;
  for (const child of box.children) moveTo(child, x + child.x, y + child.y);
  for (const line of box.edges) line.points = line.points.map((point) => ({ x: point.x + x, y: point.y + y }));
}

function arrange(sizes: [width: number, height: number][], edges: Edges): Arranged {
  const shape = `${sizes.join(";")}|${edges.join(";")}`;
  let arranged = arrangedByShape.get(shape);
  if (!arranged) {
    arranged = (edges.length === 0 ? inRows(sizes) : tryDagre(sizes, edges)) ?? stacked(sizes, edges);
    arrangedByShape.set(shape, arranged);
  }
  return arranged;
}

function tryDagre(sizes: [number, number][], edges: Edges): Arranged | null {
  if (sizes.length === 0) return null;
  const dagre = new Dagre({ multigraph: false });
  // Network simplex draws nicer but its time grows fast; for bigger groups the simple ranks do.
  const ranker = sizes.length + edges.length > 120 ? "longest-path" : "network-simplex";
  dagre.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 26, edgesep: 10, ranker });
  sizes.forEach(([width, height], index) => dagre.setNode(String(index), { width, height }));
  for (const [from, to] of edges) dagre.setEdge(String(from), String(to), {});
  try {
    runDagre(dagre);
  } catch {
    return null;
  }
  return readDagre(dagre, sizes, edges);
}

function readDagre(dagre: Dagre, sizes: [number, number][], edges: Edges): Arranged {
  const corners = sizes.map(([width, height], index) => {
    const { x = 0, y = 0 } = dagre.node(String(index)) as Partial<Point>;
    return { x: x - width / 2, y: y - height / 2 };
  });
  const lines = edges.map(([from, to]) => (dagre.edge(String(from), String(to)) as { points?: Point[] }).points ?? []);
  const xs = [...corners.map(({ x }) => x), ...lines.flat().map(({ x }) => x)];
  const ys = [...corners.map(({ y }) => y), ...lines.flat().map(({ y }) => y)];
  const left = Math.min(...xs);
  const top = Math.min(...ys);
  const right = Math.max(...corners.map(({ x }, index) => x + (sizes[index]?.[0] ?? 0)), ...xs);
  const bottom = Math.max(...corners.map(({ y }, index) => y + (sizes[index]?.[1] ?? 0)), ...ys);
  return {
    width: right - left,
    height: bottom - top,
    corners: corners.map(({ x, y }) => ({ x: x - left, y: y - top })),
    lines: lines.map((points) => points.map(({ x, y }) => ({ x: x - left, y: y - top }))),
  };
}

/** Children that have nothing to do with each other, such as inputs, fill rows of about a square. */
function inRows(sizes: [number, number][]): Arranged {
  const area = sizes.reduce((sum, [width, height]) => sum + (width + 18) * (height + 14), 0);
  const wanted = Math.max(Math.sqrt(area * 1.6), ...sizes.map(([width]) => width));
  const corners: Point[] = [];
  let [x, y, row, most] = [0, 0, 0, 0];
  for (const [width, height] of sizes) {
    if (x > 0 && x + width > wanted) {
      y += row + 14;
      [x, row] = [0, 0];
    }
    corners.push({ x, y });
    x += width + 18;
    row = Math.max(row, height);
    most = Math.max(most, x - 18);
  }
  return { width: most, height: y + row, corners, lines: [] };
}

/** One below the other: what is drawn where dagre gives up. */
function stacked(sizes: [number, number][], edges: Edges): Arranged {
  const width = Math.max(0, ...sizes.map(([own]) => own));
  let y = 0;
  const corners = sizes.map(([own, height]) => {
    const corner = { x: (width - own) / 2, y };
    y += height + 26;
    return corner;
  });
  const lines = edges.map(([from, to]) => [
    { x: width / 2, y: (corners[from]?.y ?? 0) + (sizes[from]?.[1] ?? 0) },
    { x: width / 2, y: corners[to]?.y ?? 0 },
  ]);
  return { width, height: Math.max(0, y - 26), corners, lines };
}

/** A name that stays the same when the drawing is laid out anew. */
export function boxId(box: Box): string {
  return box.group ? `group ${box.group.id}` : `node ${box.node}`;
}

export function findBox(box: Box, id: string): Box | null {
  if (boxId(box) === id) return box;
  for (const child of box.children) {
    const found = findBox(child, id);
    if (found) return found;
  }
  return null;
}
