/**
 * What can be pointed at: a line of source, a node of a graph, a kernel.
 *
 * All three are an item in a holder, so that one code path names, finds and lights them: a line is counted within its file
 * (an index into `paths`), a node within its graph, a kernel within its lowering.
 */

export type Kind = "line" | "node" | "kernel";
export type PaneName = "source" | "graph" | "kernels";

export interface Thing {
  kind: Kind;
  /** An index into `paths`, `graphs` or `lowerings`. */
  holder: number;
  /** A line number, or an index into the nodes of the graph or the kernels of the lowering. */
  item: number;
}

export const PANE_OF: Record<Kind, PaneName> = { line: "source", node: "graph", kernel: "kernels" };

export function thing(kind: Kind, holder: number, item: number): Thing {
  return { kind, holder, item };
}

/** The value of the attribute that marks its elements: `data-line`, `data-node`, `data-kernel`. */
export function place(holder: number, item: number): string {
  return `${holder}:${item}`;
}

export function keyOf(target: Thing): string {
  return `${target.kind}:${target.holder}:${target.item}`;
}

export function same(first: Thing | null, second: Thing | null): boolean {
  if (first === null || second === null) return first === second;
  return first.kind === second.kind && first.holder === second.holder && first.item === second.item;
}

/** Reads the marks of an element back; null where it carries none. */
export function parseMarks(marks: { [name: string]: string | undefined }): Thing | null {
  for (const kind of ["line", "node", "kernel"] as const) {
    const parts = marks[kind]?.split(":");
    if (parts?.length === 2) return thing(kind, Number(parts[0]), Number(parts[1]));
  }
  return null;
}

/** The thing that an event happened in: the innermost marked element around its target. */
export function thingAt(target: EventTarget | null): Thing | null {
  if (!(target instanceof Element)) return null;
  const element = target.closest<HTMLElement | SVGElement>("[data-line],[data-node],[data-kernel]");
  return element ? parseMarks(element.dataset) : null;
}
