/**
 * A graph as a tree of its modules: what both views of the graph pane show and fold.
 *
 * Inputs and attributes get a group of their own, since a model has hundreds and nobody reads them first. Drawing lays out
 * each group on its own, so for it groups with many children are split into synthetic ones of consecutive children.
 */
import type { Graph } from "../data";
import { moduleParts } from "./modules";

export type Child = number | Group;

export interface Group {
  id: number;
  label: string;
  /** The whole path in words; empty for groups that are no module. */
  path: string;
  kind: "root" | "module" | "inputs" | "part";
  parent: Group | null;
  depth: number;
  /** Nodes (as indices) and groups, in the order of their first node. */
  children: Child[];
  /** Nodes in it and in all groups below. */
  size: number;
}

export interface Tree {
  root: Group;
  groups: Group[];
  /** The group that holds a node directly, by the node's index. */
  parents: Group[];
}

export const FOLDED_INPUTS = 20;
/** In a drawing few are many: each is a box with lines to far away. */
const DRAWN_INPUTS = 6;
const MAX_CHILDREN = 60;
const PART = 50;

export function buildTree(graph: Graph, split = false): Tree {
  const root = blank("", "", "root");
  const byPath = new Map<string, Group>();
  const inputs = blank("inputs", "", "inputs");
  graph.nodes.forEach((node, index) => {
    if (node.kind === "input" || node.kind === "attribute") {
      if (inputs.children.length === 0) root.children.push(inputs);
      inputs.children.push(index);
    } else {
      groupFor(moduleParts(node.module), root, byPath).children.push(index);
    }
  });
  const attributes = graph.nodes.some((node) => node.kind === "attribute");
  inputs.label = attributes ? "inputs and attributes" : "inputs";
  compress(root);
  if (split) splitLarge(root);
  return finished(root, graph.nodes.length);
}

function blank(label: string, path: string, kind: Group["kind"]): Group {
  return { id: 0, label, path, kind, parent: null, depth: 0, children: [], size: 0 };
}

function groupFor(parts: string[], root: Group, byPath: Map<string, Group>): Group {
  let group = root;
  let path = "";
  for (const part of parts) {
    path = path === "" ? part : `${path}.${part}`;
    let next = byPath.get(path);
    if (!next) {
      next = blank(part, path, "module");
      byPath.set(path, next);
      group.children.push(next);
    }
    group = next;
  }
  return group;
}

/** A group whose only child is a group adds a level and says nothing: the two become one. */
function compress(group: Group): void {
  group.children = group.children.map((child) => {
    if (typeof child === "number") return child;
    let current = child;
    let only = current.children[0];
    while (current.children.length === 1 && typeof only === "object" && only.kind === "module") {
      only.label = `${current.label}.${only.label}`;
      current = only;
      only = current.children[0];
    }
    compress(current);
    return current;
  });
}

function splitLarge(group: Group): void {
  for (const child of group.children) if (typeof child === "object") splitLarge(child);
  if (group.children.length <= MAX_CHILDREN) return;
  // The inputs stay beside the parts: they belong to all of them.
  const inputs = group.children.filter((child) => typeof child === "object" && child.kind === "inputs");
  let rest = group.children.filter((child) => !inputs.includes(child));
  while (rest.length > MAX_CHILDREN) {
    const parts: Group[] = [];
    for (let start = 0; start < rest.length; start += PART) {
      const part = blank("", "", "part");
      part.children = rest.slice(start, start + PART);
      parts.push(part);
    }
    rest = parts;
  }
  group.children = [...inputs, ...rest];
  nameParts(group, 1);
}

/** Parts are named by the nodes in them, counted through the group that was split. */
function nameParts(group: Group, from: number): number {
  let next = from;
  for (const child of group.children) {
    if (typeof child === "object" && child.kind === "inputs") continue;
    if (typeof child !== "object" || child.kind !== "part") {
      next += typeof child === "number" ? 1 : sizeOf(child);
      continue;
    }
    const end = nameParts(child, next);
    child.label = `nodes ${next}–${end - 1}`;
    next = end;
  }
  return next;
}

function sizeOf(group: Group): number {
  let size = 0;
  for (const child of group.children) size += typeof child === "number" ? 1 : sizeOf(child);
  return size;
}

function finished(root: Group, nodes: number): Tree {
  const tree: Tree = { root, groups: [], parents: new Array<Group>(nodes) };
  const visit = (group: Group, parent: Group | null): void => {
    group.id = tree.groups.length;
    group.parent = parent;
    group.depth = parent === null ? 0 : parent.depth + 1;
    tree.groups.push(group);
    for (const child of group.children) {
      if (typeof child === "number") {
        tree.parents[child] = group;
        group.size += 1;
      } else {
        visit(child, group);
        group.size += child.size;
      }
    }
  };
  visit(root, null);
  return tree;
}

/** Groups from the one that holds the node up to, and without, the root. */
export function groupsAround(tree: Tree, node: number): Group[] {
  const found: Group[] = [];
  for (let group: Group | null = tree.parents[node] ?? null; group !== null && group.parent !== null; group = group.parent) {
    found.push(group);
  }
  return found;
}

/** The outermost closed group around a node, which then stands for it; null where the node itself is shown. */
export function closedAround(tree: Tree, node: number, open: ReadonlySet<number>): Group | null {
  return groupsAround(tree, node).reduce<Group | null>((outer, group) => (open.has(group.id) ? outer : group), null);
}

export function allOpen(tree: Tree): Set<number> {
  return new Set(tree.groups.map((group) => group.id));
}

/** Everything open but a long list of inputs. */
export function openForText(tree: Tree): Set<number> {
  return new Set(tree.groups.filter((group) => !isLongInputs(group)).map((group) => group.id));
}

/**
 * Opens level by level while no more than `most` boxes come of it.
 *
 * Siblings are opened together or not at all: twelve layers of which one is open look like one layer.
 */
export function openForDrawing(tree: Tree, most: number): Set<number> {
  const open = new Set([tree.root.id]);
  let boxes = tree.root.children.length;
  let level = [tree.root];
  while (level.length > 0) {
    const next: Group[] = [];
    for (const parent of level) {
      const groups = parent.children.filter((child): child is Group => typeof child === "object");
      const siblings = groups.filter((group) => !isLongInputs(group, DRAWN_INPUTS));
      const more = siblings.reduce((sum, group) => sum + group.children.length, 0);
      if (boxes + more > most) continue;
      boxes += more;
      for (const group of siblings) open.add(group.id);
      next.push(...siblings);
    }
    level = next;
  }
  return open;
}

function isLongInputs(group: Group, most = FOLDED_INPUTS): boolean {
  for (let current: Group | null = group; current !== null; current = current.parent) {
    if (current.kind === "inputs") return current.size > most;
  }
  return false;
}
