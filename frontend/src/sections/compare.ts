/** Two captures of one thing, held against each other: what differs, and whether it became better. */
import type { Break, Capture, DirectionName, Measurement, Tone } from "../data";
import { pointName } from "./speed/points";

export interface ComparedFact {
  key: string;
  label: string;
  before: string;
  after: string;
  /** The difference in words, empty where there is none to tell. */
  difference: string;
  direction: "up" | "down" | "same" | "none";
  tone: Tone;
}

/** What a fact is by number, and whether less of it is better; null where more or less is neither. */
const MEASURES: Record<string, { of: (capture: Capture) => number | null; better: "less" | "more" | null }> = {
  compilations: { of: (capture) => capture.compilations.length, better: null },
  breaks: { of: (capture) => capture.breaks.length, better: "less" },
  recompiles: { of: (capture) => figure(capture, "recompiles"), better: "less" },
  time: { of: (capture) => capture.time.total, better: "less" },
  kernels: { of: (capture) => kernelCounts(capture).all, better: "less" },
  cache: { of: (capture) => capture.caches.filter((item) => item.outcome === "hit").length, better: null },
};

/** A figure as the verdict states it: it may be counted from more than one list. */
function figure(capture: Capture, key: string): number | null {
  const value = Number(capture.verdict.facts.find((fact) => fact.key === key)?.value.replaceAll(",", ""));
  return Number.isFinite(value) ? value : null;
}

/** Seconds of compiling that differ by less than this share are the noise of a machine. */
const NOISE = 0.1;

export function compareFacts(before: Capture, after: Capture): ComparedFact[] {
  const keys = [...new Set([...before.verdict.facts, ...after.verdict.facts].map((fact) => fact.key))];
  return keys.map((key) => {
    const [first, second] = [before, after].map((capture) => capture.verdict.facts.find((fact) => fact.key === key));
    const base = { key, label: second?.label ?? first?.label ?? key, before: first?.value ?? "–", after: second?.value ?? "–" };
    const measure = MEASURES[key];
    const [from, to] = [measure?.of(before) ?? null, measure?.of(after) ?? null];
    if (measure && from !== null && to !== null) return { ...base, ...difference(from, to, measure.better, key === "time") };
    const ranks: Record<Tone, number> = { bad: 0, warn: 1, plain: 2, good: 3 };
    const change = ranks[second?.tone ?? "plain"] - ranks[first?.tone ?? "plain"];
    if (base.before === base.after) return { ...base, difference: "the same", direction: "same", tone: "plain" };
    const told = second?.tone === "plain" || first?.tone === "plain" || change === 0;
    return { ...base, difference: "differs", direction: "none", tone: told ? "plain" : change > 0 ? "good" : "bad" };
  });
}

function difference(
  from: number,
  to: number,
  better: "less" | "more" | null,
  seconds: boolean,
): Pick<ComparedFact, "difference" | "direction" | "tone"> {
  if (from === to) return { difference: "the same", direction: "same", tone: "plain" };
  const direction = to > from ? "up" : "down";
  const told = seconds
    ? `${from > 0 ? (to / from).toFixed(2) : "∞"}×`
    : `${to > from ? "+" : "−"}${Math.abs(to - from).toLocaleString("en")}`;
  const small = seconds && Math.abs(to - from) < NOISE * Math.max(from, to);
  const improved = better === "less" ? to < from : to > from;
  return { difference: told, direction, tone: better === null || small ? "plain" : improved ? "good" : "bad" };
}

export interface ComparedBreaks {
  gone: Break[];
  added: Break[];
  both: [before: Break, after: Break][];
}

/** What a break is known by in another version of the program: lines move, what is written on them seldom does. */
export function breakKey(item: Break): string {
  const marked = item.excerpt ? item.excerpt.lines[item.excerpt.marked - item.excerpt.first]?.[0] : undefined;
  return JSON.stringify([item.kind, marked?.trim() ?? item.place?.name ?? ""]);
}

export function compareBreaks(before: Break[], after: Break[]): ComparedBreaks {
  const waiting = new Map<string, Break[]>();
  for (const item of before) waiting.set(breakKey(item), [...(waiting.get(breakKey(item)) ?? []), item]);
  const both: [Break, Break][] = [];
  const added: Break[] = [];
  for (const item of after) {
    const partner = waiting.get(breakKey(item))?.shift();
    if (partner) both.push([partner, item]);
    else added.push(item);
  }
  const left = new Set([...waiting.values()].flat());
  return { gone: before.filter((item) => left.has(item)), added, both };
}

export interface KernelCounts {
  all: number;
  fused: number;
  by: Partial<Record<DirectionName, number>>;
}

/** Launches of kernels; a library call computes several nodes at times without anything having been fused. */
export function kernelCounts(capture: Capture): KernelCounts {
  const counts: KernelCounts = { all: 0, fused: 0, by: {} };
  for (const lowering of capture.lowerings) {
    counts.all += lowering.kernels.length;
    counts.fused += lowering.kernels.filter((kernel) => kernel.kind !== "extern" && kernel.nodes.length > 1).length;
    counts.by[lowering.direction] = (counts.by[lowering.direction] ?? 0) + lowering.kernels.length;
  }
  return counts;
}

export interface ComparedSpeed {
  target: string;
  point: string;
  variant: string;
  before: Measurement;
  after: Measurement;
  /** How many times as fast as before; the interval is wide enough for the worst of both. */
  ratio: number;
  low: number;
  high: number;
  tone: Tone;
}

export function compareSpeed(before: Capture, after: Capture): ComparedSpeed[] {
  const found: ComparedSpeed[] = [];
  for (const timing of after.timings) {
    // The last timing of the same thing on the same device: earlier ones were made again.
    const earlier = [...before.timings]
      .reverse()
      .find((item) => item.target === timing.target && item.device === timing.device && item.gradients === timing.gradients);
    for (const point of timing.points) {
      const partner = earlier?.points.find((item) => pointName(item) === pointName(point));
      for (const item of point.measurements) {
        const other = partner?.measurements.find((one) => one.variant === item.variant);
        if (!other || other.median === null || item.median === null || !(item.median > 0)) continue;
        const low = (other.low ?? other.median) / (item.high ?? item.median);
        const high = (other.high ?? other.median) / (item.low ?? item.median);
        found.push({
          target: timing.target,
          point: pointName(point),
          variant: item.variant,
          before: other,
          after: item,
          ratio: other.median / item.median,
          low,
          high,
          tone: low > 1 ? "good" : high < 1 ? "bad" : "plain",
        });
      }
    }
  }
  return found;
}

export interface ComparedRow {
  group: string;
  name: string;
  before: string;
  after: string;
}

/** What differs about the machine and its settings; paths of the process itself always do and say nothing. */
export function compareEnvironment(before: Capture, after: Capture): ComparedRow[] {
  const rowsOf = (capture: Capture): Map<string, ComparedRow> =>
    new Map(
      capture.environment.flatMap((group) =>
        group.rows.map(([name, value]) => [
          `${group.title}\n${name}`,
          { group: group.title, name, before: value, after: value },
        ]),
      ),
    );
  const [first, second] = [rowsOf(before), rowsOf(after)];
  return [...new Set([...first.keys(), ...second.keys()])].flatMap((key) => {
    const [left, right] = [first.get(key), second.get(key)];
    const row = left ?? right;
    if (!row || left?.before === right?.before) return [];
    return [{ ...row, before: left?.before ?? "–", after: right?.before ?? "–" }];
  });
}

export interface ComparedFunction {
  name: string;
  before: { versions: number; seconds: number };
  after: { versions: number; seconds: number };
}

/** How often each function was compiled, and how long that took, by its name and file. */
export function compareCompilations(before: Capture, after: Capture): ComparedFunction[] {
  const found = new Map<string, ComparedFunction>();
  const add = (capture: Capture, side: "before" | "after"): void => {
    for (const item of capture.compilations) {
      const path = capture.paths[item.place.path]?.short ?? "";
      // The rest of a function is called after a line, which moves with every change above it.
      const name = item.resume ? item.name.replace(/, from line \d+/, "") : item.name;
      const key = `${name} (${path})`;
      const entry = found.get(key) ?? { name: key, before: { versions: 0, seconds: 0 }, after: { versions: 0, seconds: 0 } };
      entry[side].versions += 1;
      entry[side].seconds += (item.seconds ?? 0) + (item.backward_seconds ?? 0);
      found.set(key, entry);
    }
  };
  add(before, "before");
  add(after, "after");
  return [...found.values()];
}
