/** Finding text in everything that the panes of one compilation show. */
import type { Capture, Kernel, Lowering } from "../data";
import type { SourceFile } from "./files";
import { keyOf, type PaneName, type Thing, thing } from "./things";

export interface Matches {
  /** In the order in which they are gone through. */
  list: Thing[];
  keys: Set<string>;
  counts: Record<PaneName, number>;
}

export const NO_MATCHES: Matches = { list: [], keys: new Set(), counts: { source: 0, graph: 0, kernels: 0 } };

export interface Scope {
  capture: Capture;
  files: SourceFile[];
  /** Graphs and lowerings in the order of their tabs, what is shown first. */
  graphs: number[];
  lowerings: number[];
}

export function search(scope: Scope, query: string): Matches {
  const wanted = query.trim().toLowerCase();
  if (wanted === "") return NO_MATCHES;
  const has = (text: string): boolean => text.toLowerCase().includes(wanted);
  const lines = linesWith(scope, has);
  const nodes = nodesWith(scope, has);
  const kernels = kernelsWith(scope, has);
  const list = [...lines, ...nodes, ...kernels];
  return {
    list,
    keys: new Set(list.map(keyOf)),
    counts: { source: lines.length, graph: nodes.length, kernels: kernels.length },
  };
}

function linesWith({ capture, files }: Scope, has: (text: string) => boolean): Thing[] {
  const found: Thing[] = [];
  for (const file of files) {
    const source = capture.sources.find((item) => item.path === file.path);
    for (const piece of source?.pieces ?? []) {
      piece.lines.forEach(([text], index) => {
        if (has(text)) found.push(thing("line", file.path, piece.first + index));
      });
    }
  }
  return found;
}

function nodesWith({ capture, graphs }: Scope, has: (text: string) => boolean): Thing[] {
  const found: Thing[] = [];
  for (const graph of graphs) {
    capture.graphs[graph]?.nodes.forEach((node, index) => {
      if (has(node.name) || has(node.target)) found.push(thing("node", graph, index));
    });
  }
  return found;
}

function kernelsWith({ capture, lowerings }: Scope, has: (text: string) => boolean): Thing[] {
  const found: Thing[] = [];
  for (const index of lowerings) {
    const lowering = capture.lowerings[index];
    lowering?.kernels.forEach((kernel, number) => {
      if (has(kernel.name) || kernelCode(lowering, kernel).some(([text]) => has(text)))
        found.push(thing("kernel", index, number));
    });
  }
  return found;
}

/** The lines of a kernel's own source; where it has none, the line that calls it. */
export function kernelCode(lowering: Lowering, kernel: Kernel): Lowering["code"] {
  if (kernel.lines) return lowering.code.slice(kernel.lines[0] - 1, kernel.lines[1]);
  const call = kernel.call === null ? undefined : lowering.code[kernel.call - 1];
  return call ? [call] : [];
}
