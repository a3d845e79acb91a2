/** What other parts of the page ask to be shown, as things of the explorer and the compilation they belong to. */
import type { Reveal } from "../common/navigation";
import type { Capture } from "../data";
import type { Links } from "./links";
import { place, type Thing, thing } from "./things";

export function targetOf(reveal: Reveal): Thing | null {
  if (reveal.kind === "line") return thing("line", reveal.path, reveal.line);
  if (reveal.kind === "node") return thing("node", reveal.graph, reveal.node);
  if (reveal.kind === "kernel") return thing("kernel", reveal.lowering, reveal.kernel);
  return null;
}

/** The compilation to show it in; undefined where the chosen one will do. */
export function compilationOf(capture: Capture, links: Links, reveal: Reveal): string | null | undefined {
  if (reveal.kind === "compilation") return reveal.id;
  if (reveal.kind === "node") return capture.graphs[reveal.graph]?.compilation;
  if (reveal.kind === "kernel") return capture.lowerings[reveal.lowering]?.compilation;
  if (reveal.compilation !== undefined) return reveal.compilation;
  const key = place(reveal.path, reveal.line);
  if (links.stacksOfLine.has(key) || links.passing.has(key)) return undefined;
  return compilationsOfLine(capture, reveal.path, reveal.line)[0];
}

/** The compilations that have operations from a line, in the order of their graphs. */
export function compilationsOfLine(capture: Capture, path: number, line: number): (string | null)[] {
  const stacks = new Set(
    capture.stacks.flatMap((stack, index) =>
      [stack.line, stack.own].some((end) => end?.[0] === path && end[1] === line) ? [index] : [],
    ),
  );
  const graphs = capture.graphs.filter((graph) => graph.nodes.some((node) => node.stack !== null && stacks.has(node.stack)));
  return [...new Set(graphs.map((graph) => graph.compilation))];
}
