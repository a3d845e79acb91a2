/**
 * Edges of a graph, lifted to where they are drawn.
 *
 * An edge between nodes of different groups is drawn between the two children of their common ancestor that hold them.
 * That does not depend on what is folded, so it is computed once per tree; several edges that fall together are one.
 */
import type { Graph } from "../data";
import type { Group, Tree } from "./tree";

/** Edges between the children of a group, as indices into its children. */
export type Edges = [from: number, to: number][];

export function liftEdges(graph: Graph, tree: Tree): Edges[] {
  const edges: Edges[] = tree.groups.map(() => []);
  const known = new Set<string>();
  const positions = positionsOf(tree);
  graph.nodes.forEach((node, index) => {
    for (const input of node.inputs) {
      const lifted = lift(tree, positions, input, index);
      if (!lifted) continue;
      const { group, from, to } = lifted;
      const key = `${group.id}:${from}:${to}`;
      if (from === to || known.has(key)) continue;
      known.add(key);
      edges[group.id]?.push([from, to]);
    }
  });
  return edges;
}

interface Positions {
  ofNode: number[];
  ofGroup: number[];
}

function positionsOf(tree: Tree): Positions {
  const positions: Positions = { ofNode: [], ofGroup: [] };
  for (const group of tree.groups) {
    group.children.forEach((child, index) => {
      if (typeof child === "number") positions.ofNode[child] = index;
      else positions.ofGroup[child.id] = index;
    });
  }
  return positions;
}

function lift(tree: Tree, positions: Positions, from: number, to: number): { group: Group; from: number; to: number } | null {
  let first = tree.parents[from];
  let second = tree.parents[to];
  let start = positions.ofNode[from];
  let end = positions.ofNode[to];
  while (first && second && first !== second) {
    if (first.depth >= second.depth) {
      start = positions.ofGroup[first.id];
      first = first.parent ?? undefined;
    } else {
      end = positions.ofGroup[second.id];
      second = second.parent ?? undefined;
    }
  }
  if (!first || first !== second || start === undefined || end === undefined) return null;
  return { group: first, from: start, to: end };
}
