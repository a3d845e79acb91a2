/** What is said where something was not recorded, and why as far as that is known. */
import type { Capture, Graph } from "../data";
import type { Links } from "./links";

function reasons(capture: Capture): string {
  const known = capture.missing.map((item) => `${item.collector}: ${item.reason}`);
  return known.length > 0 ? ` Not recorded: ${known.join("; ")}.` : "";
}

export function noGraphs(capture: Capture): string {
  if (capture.compilations.length === 0)
    return `Nothing was compiled during the recording, so there are no graphs.${reasons(capture)}`;
  if (capture.graphs.length === 0) return `No graph was recorded for any compilation.${reasons(capture)}`;
  return `No graph was recorded for this compilation.${reasons(capture)}`;
}

export function noKernels(links: Links, compilation: string | null): string {
  const { capture } = links;
  const found = capture.compilations.find((item) => item.id === compilation);
  if (capture.compilations.length === 0)
    return `Nothing was compiled during the recording, so there are no kernels.${reasons(capture)}`;
  if (found && found.backend !== "" && found.backend !== "inductor") {
    return `Inductor did not run: the backend ${found.backend} generates no kernels.`;
  }
  return `Inductor did not run, so there are no kernels.${reasons(capture)}`;
}

export function missingSentence(graph: Graph): string {
  if (!graph.from_text) return "";
  return "Only the printed form of this graph was recorded, as happens on a cache hit: modules are unknown, and each node only has its innermost line.";
}
