/**
 * What belongs together: lines, nodes and kernels of one compilation, joined by the stacks they came from.
 *
 * A stack says where in the program something was asked for. Nodes of all stages and kernels of both directions carry
 * them, so a stack is the bridge between the panes. Layers that share their code share their stacks too; the module's path
 * then tells the one that is meant (strong) from its siblings (weak).
 */
import type { Capture } from "../data";
import { type Kind, place, type Thing } from "./things";

export type Reference = readonly [holder: number, item: number];

export interface Counterpart extends Thing {
  /** Belongs to it only loosely: a caller further out, or the same code of a sibling module. */
  weak: boolean;
}

export interface Links {
  capture: Capture;
  /** Indices of the graphs and lowerings of the compilation. */
  graphs: number[];
  lowerings: number[];
  loweringOfGraph: Map<number, number>;
  nodesOfStack: Map<number, Reference[]>;
  kernelsOfStack: Map<number, Reference[]>;
  /** Stacks that end at a line (`line` or `own`), and those that only pass through it. */
  stacksOfLine: Map<string, Set<number>>;
  passing: Map<string, Set<number>>;
  /** For each kernel, by `place`: the modules of its nodes, by stack. */
  modulesOfKernel: Map<string, Map<number, Set<string>>>;
}

function put<Key, Value>(map: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

function include<Key, Value>(map: Map<Key, Set<Value>>, key: Key, value: Value): void {
  const set = map.get(key);
  if (set) set.add(value);
  else map.set(key, new Set([value]));
}

/** Indexes of one compilation; `null` stands for what belongs to none. */
export function buildLinks(capture: Capture, compilation: string | null): Links {
  const links: Links = {
    capture,
    graphs: indicesOf(capture.graphs, compilation),
    lowerings: indicesOf(capture.lowerings, compilation),
    loweringOfGraph: new Map(),
    nodesOfStack: new Map(),
    kernelsOfStack: new Map(),
    stacksOfLine: new Map(),
    passing: new Map(),
    modulesOfKernel: new Map(),
  };
  for (const graph of links.graphs) {
    capture.graphs[graph]?.nodes.forEach((node, index) => {
      if (node.stack !== null) put(links.nodesOfStack, node.stack, [graph, index]);
    });
  }
  for (const lowering of links.lowerings) addLowering(links, lowering);
  for (const stack of new Set([...links.nodesOfStack.keys(), ...links.kernelsOfStack.keys()])) addStack(links, stack);
  return links;
}

function indicesOf(items: { compilation: string | null }[], compilation: string | null): number[] {
  return items.flatMap((item, index) => (item.compilation === compilation ? [index] : []));
}

function addLowering(links: Links, index: number): void {
  const lowering = links.capture.lowerings[index];
  if (!lowering) return;
  if (lowering.graph !== null) links.loweringOfGraph.set(lowering.graph, index);
  const nodes = lowering.graph === null ? [] : (links.capture.graphs[lowering.graph]?.nodes ?? []);
  lowering.kernels.forEach((kernel, number) => {
    for (const stack of new Set(kernel.stacks)) put(links.kernelsOfStack, stack, [index, number]);
    const modules = new Map<number, Set<string>>();
    for (const item of kernel.nodes) {
      const node = nodes[item];
      if (node && node.stack !== null) include(modules, node.stack, node.module);
    }
    links.modulesOfKernel.set(place(index, number), modules);
  });
}

function addStack(links: Links, index: number): void {
  const { capture } = links;
  const stack = capture.stacks[index];
  if (!stack) return;
  for (const end of [stack.line, stack.own]) if (end) include(links.stacksOfLine, place(...end), index);
  for (const [path, line] of stack.frames) {
    const key = place(path, line);
    if (!capture.paths[path]?.torch && !links.stacksOfLine.get(key)?.has(index)) include(links.passing, key, index);
  }
}

/** Collects counterparts once each; what is found strongly stays strong. */
class Collection {
  readonly found = new Map<string, Counterpart>();

  add(kind: Kind, [holder, item]: Reference, weak: boolean): void {
    const key = `${kind}:${holder}:${item}`;
    const known = this.found.get(key);
    if (!known) this.found.set(key, { kind, holder, item, weak });
    else if (!weak) known.weak = false;
  }

  all(): Counterpart[] {
    return [...this.found.values()].sort((one, other) => one.holder - other.holder || one.item - other.item);
  }
}

/** Everything in the other panes that belongs to a thing, in the order of its holders and of the items within. */
export function counterparts(links: Links, target: Thing): Counterpart[] {
  const found = new Collection();
  if (target.kind === "line") addForLine(links, target, found);
  if (target.kind === "node") addForNode(links, target, found);
  if (target.kind === "kernel") addForKernel(links, target, found);
  return found.all();
}

function addForLine(links: Links, target: Thing, found: Collection): void {
  const key = place(target.holder, target.item);
  for (const [stacks, weak] of [
    [links.stacksOfLine.get(key), false],
    [links.passing.get(key), true],
  ] as const) {
    for (const stack of stacks ?? []) {
      for (const node of links.nodesOfStack.get(stack) ?? []) found.add("node", node, weak);
      for (const kernel of links.kernelsOfStack.get(stack) ?? []) found.add("kernel", kernel, weak);
    }
  }
}

function addForNode(links: Links, target: Thing, found: Collection): void {
  const node = links.capture.graphs[target.holder]?.nodes[target.item];
  if (!node) return;
  const own = links.loweringOfGraph.get(target.holder);
  if (own !== undefined) for (const kernel of node.kernels) found.add("kernel", [own, kernel], false);
  if (node.stack === null) return;
  addLines(links, node.stack, found);
  const modules = new Set([node.module]);
  addNodes(links, node.stack, modules, target.holder, found);
  const kernels = (links.kernelsOfStack.get(node.stack) ?? []).filter(([lowering]) => lowering !== own);
  for (const [kernel, near] of refined(kernels, modules, (item) => kernelModules(links, item, node.stack))) {
    found.add("kernel", kernel, !near);
  }
}

function addForKernel(links: Links, target: Thing, found: Collection): void {
  const lowering = links.capture.lowerings[target.holder];
  const kernel = lowering?.kernels[target.item];
  if (!lowering || !kernel) return;
  if (lowering.graph !== null) for (const node of kernel.nodes) found.add("node", [lowering.graph, node], false);
  for (const stack of kernel.stacks) {
    addLines(links, stack, found);
    addNodes(links, stack, new Set(kernelModules(links, [target.holder, target.item], stack)), lowering.graph, found);
  }
}

function kernelModules(links: Links, [holder, item]: Reference, stack: number | null): string[] {
  return stack === null ? [] : [...(links.modulesOfKernel.get(place(holder, item))?.get(stack) ?? [])];
}

function addLines(links: Links, index: number, found: Collection): void {
  const stack = links.capture.stacks[index];
  if (!stack) return;
  for (const end of [stack.line, stack.own]) if (end) found.add("line", end, false);
  for (const [path, line] of stack.frames) if (!links.capture.paths[path]?.torch) found.add("line", [path, line], true);
}

function addNodes(links: Links, stack: number, modules: Set<string>, except: number | null, found: Collection): void {
  const nodes = (links.nodesOfStack.get(stack) ?? []).filter(([graph]) => graph !== except);
  const moduleOf = ([graph, node]: Reference): string[] => [links.capture.graphs[graph]?.nodes[node]?.module ?? ""];
  for (const [node, near] of refined(nodes, modules, moduleOf)) found.add("node", node, !near);
}

/**
 * Tells those of the same module from those of its siblings, holder by holder.
 *
 * Where a holder knows no such module (a graph that was only printed, or one that lost its paths) all of it counts.
 */
function refined(
  items: Reference[],
  modules: Set<string>,
  modulesOf: (item: Reference) => string[],
): [item: Reference, near: boolean][] {
  const near = items.map((item) => modulesOf(item).some((module) => module !== "" && modules.has(module)));
  const known = new Set(items.filter((_, index) => near[index]).map(([holder]) => holder));
  return items.map((item, index) => [item, near[index] === true || !known.has(item[0])]);
}

/** The kernels whose colors a line shows: those of the stacks that end in it. */
export function kernelsOfLine(links: Links, path: number, line: number): Reference[] {
  const kernels = new Map<string, Reference>();
  for (const stack of links.stacksOfLine.get(place(path, line)) ?? []) {
    for (const kernel of links.kernelsOfStack.get(stack) ?? []) kernels.set(place(...kernel), kernel);
  }
  return [...kernels.values()].sort((one, other) => one[0] - other[0] || one[1] - other[1]);
}

/** The kernels whose colors a node shows: those that compute it, or that come of the same code in the same direction. */
export function kernelsOfNode(links: Links, graph: number, index: number): Reference[] {
  const node = links.capture.graphs[graph]?.nodes[index];
  if (!node) return [];
  const own = links.loweringOfGraph.get(graph);
  if (own !== undefined) return node.kernels.map((kernel) => [own, kernel]);
  if (node.stack === null || node.kind !== "call") return [];
  const direction = links.capture.graphs[graph]?.direction === "backward";
  const kernels = (links.kernelsOfStack.get(node.stack) ?? []).filter(
    ([lowering]) => (links.capture.lowerings[lowering]?.direction === "backward") === direction,
  );
  return refined(kernels, new Set([node.module]), (item) => kernelModules(links, item, node.stack)).flatMap(([kernel, near]) =>
    near ? [kernel] : [],
  );
}

/** Lines of a file that operations of the compilation came from. */
export function linkedLines(links: Links): Map<number, Set<number>> {
  const lines = new Map<number, Set<number>>();
  for (const key of links.stacksOfLine.keys()) {
    const [path, line] = key.split(":").map(Number);
    if (path !== undefined && line !== undefined) include(lines, path, line);
  }
  return lines;
}
