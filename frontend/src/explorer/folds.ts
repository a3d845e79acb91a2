/** Which groups of which graph are open, for each of the two views: going back and forth between stages loses nothing. */
import { useMemo, useState } from "preact/hooks";
import type { Capture } from "../data";
import { buildTree, groupsAround, openForDrawing, openForText, type Tree } from "./tree";

export type ViewName = "text" | "drawn";

/** As many boxes as can be taken in at first sight. */
const MAX_BOXES = 100;

/** Longer graphs are split into parts in the text as well, most of them closed: so many rows take seconds. */
const MAX_ROWS = 8000;

export interface Folds {
  tree(index: number): Tree | null;
  open(index: number): ReadonlySet<number>;
  setOpen(index: number, open: ReadonlySet<number>): void;
  /** Opens what hides a node. */
  reveal(index: number, node: number): void;
}

export function useFolds(capture: Capture, view: ViewName): Folds {
  const [opened, setOpened] = useState<ReadonlyMap<string, ReadonlySet<number>>>(new Map());
  // Trees and what is open at first are made when they are needed, once.
  const trees = useMemo(() => new Map<string, { tree: Tree; open: ReadonlySet<number> }>(), [capture]);
  const made = (index: number): { tree: Tree; open: ReadonlySet<number> } | null => {
    const key = `${view} ${index}`;
    const graph = capture.graphs[index];
    const known = trees.get(key);
    if (known || !graph) return known ?? null;
    const many = graph.nodes.length > MAX_ROWS;
    const tree = buildTree(graph, view === "drawn" || many);
    const most = view === "drawn" ? MAX_BOXES : MAX_ROWS / 4;
    const fresh = { tree, open: view === "drawn" || many ? openForDrawing(tree, most) : openForText(tree) };
    trees.set(key, fresh);
    return fresh;
  };
  const openOf = (map: ReadonlyMap<string, ReadonlySet<number>>, index: number): ReadonlySet<number> =>
    map.get(`${view} ${index}`) ?? made(index)?.open ?? new Set<number>();
  return {
    tree: (index) => made(index)?.tree ?? null,
    open: (index) => openOf(opened, index),
    setOpen: (index, open) => setOpened((map) => new Map(map).set(`${view} ${index}`, open)),
    reveal: (index, node) =>
      setOpened((map) => {
        const found = made(index);
        const before = openOf(map, index);
        const closed = found ? groupsAround(found.tree, node).filter((group) => !before.has(group.id)) : [];
        if (closed.length === 0) return map;
        return new Map(map).set(`${view} ${index}`, new Set([...before, ...closed.map((group) => group.id)]));
      }),
  };
}
