/** What parts of the page know of a compilation by its id: where it stands in the table, and whether the explorer has it. */
import type { Capture } from "../data";

interface Known {
  /** Counted from 1, as in the ids of the rows. */
  positions: Map<string, number>;
  /** null stands for graphs and kernels that belong to no compilation. */
  explored: Set<string | null>;
}

const cache = new WeakMap<Capture, Known>();

function known(capture: Capture): Known {
  const found = cache.get(capture);
  if (found) return found;
  const positions = new Map<string, number>();
  capture.compilations.forEach((item, index) => {
    if (!positions.has(item.id)) positions.set(item.id, index + 1);
  });
  const explored = new Set([...capture.graphs, ...capture.lowerings].map((item) => item.compilation));
  const made = { positions, explored };
  cache.set(capture, made);
  return made;
}

/** Compilations with graphs or lowerings: those that the explorer offers. */
export function exploredCompilations(capture: Capture): ReadonlySet<string | null> {
  return known(capture).explored;
}

/** The position of a compilation among all, from 1; undefined where the capture has no such compilation. */
export function positionOf(capture: Capture, id: string): number | undefined {
  return known(capture).positions.get(id);
}
