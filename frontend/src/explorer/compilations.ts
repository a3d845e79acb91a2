/** The compilations that the explorer offers, and the stages of one in the order of the pipeline. */
import { exploredCompilations } from "../common/compilations";
import { count, shorten } from "../common/format";
import type { Capture, DirectionName, Graph } from "../data";

export interface Choice {
  /** null stands for graphs and kernels that belong to no recorded compilation. */
  id: string | null;
  label: string;
  operations: number;
}

/** Compilations with graphs or lowerings, in the order they ran. */
export function choices(capture: Capture): Choice[] {
  const used = new Set(exploredCompilations(capture));
  const found: Choice[] = [];
  for (const item of capture.compilations) {
    if (!used.delete(item.id)) continue;
    const label = `${shorten(item.id, 40)} · ${shorten(item.name, 80)} · ${item.outcome} · ${count(item.operations, "operation")}`;
    found.push({ id: item.id, label, operations: item.operations });
  }
  for (const id of used)
    found.push({ id, label: id === null ? "not part of a compilation" : `${id} · not recorded`, operations: 0 });
  return found;
}

/** The one to start with: most operations, the first of equals. */
export function firstChoice(found: Choice[]): string | null {
  return (
    found.reduce<Choice | null>((best, item) => (best === null || item.operations > best.operations ? item : best), null)?.id ??
    null
  );
}

const DIRECTIONS: Record<DirectionName, string> = {
  forward: "forward",
  backward: "backward",
  inference: "inference",
  unknown: "unknown direction",
};

export function stageLabel(graph: Graph): string {
  if (graph.stage === "dynamo") return "Dynamo";
  if (graph.stage === "post_grad") {
    return graph.direction === "unknown" ? "Post-grad" : `Post-grad ${DIRECTIONS[graph.direction]}`;
  }
  return `AOT ${graph.stage}`;
}

function stageRank(graph: Graph): number {
  const early = { dynamo: 0, joint: 1, forward: 2, inference: 2, backward: 3 } as const;
  if (graph.stage !== "post_grad") return early[graph.stage];
  return graph.direction === "backward" ? 5 : 4;
}

export interface Tab {
  index: number;
  label: string;
}

/** Numbers those that would read the same. */
export function numbered(tabs: Tab[]): Tab[] {
  const total = new Map<string, number>();
  for (const tab of tabs) total.set(tab.label, (total.get(tab.label) ?? 0) + 1);
  const seen = new Map<string, number>();
  return tabs.map((tab) => {
    if ((total.get(tab.label) ?? 0) < 2) return tab;
    const number = (seen.get(tab.label) ?? 0) + 1;
    seen.set(tab.label, number);
    return { index: tab.index, label: `${tab.label} ${number}` };
  });
}

export function graphTabs(capture: Capture, graphs: number[]): Tab[] {
  const found = graphs.flatMap((index) => {
    const graph = capture.graphs[index];
    return graph ? [{ index, label: stageLabel(graph), rank: stageRank(graph) }] : [];
  });
  found.sort((one, other) => one.rank - other.rank || one.index - other.index);
  return numbered(found.map(({ index, label }) => ({ index, label })));
}

/** Forward before backward, as they run. */
export function loweringTabs(capture: Capture, lowerings: number[]): Tab[] {
  const found = lowerings.flatMap((index) => {
    const lowering = capture.lowerings[index];
    if (!lowering) return [];
    const label = lowering.direction === "unknown" ? "Kernels" : capitalized(DIRECTIONS[lowering.direction]);
    return [{ index, label, rank: lowering.direction === "backward" ? 1 : 0 }];
  });
  found.sort((one, other) => one.rank - other.rank || one.index - other.index);
  return numbered(found.map(({ index, label }) => ({ index, label })));
}

function capitalized(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
