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
  // Fewer launches are better, unless there are fewer because something was not compiled at all.
  kernels: { of: (capture) => kernelCounts(capture).all, better: null },
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
  const facts = keys.map((key): ComparedFact => {
    const [first, second] = [before, after].map((capture) => capture.verdict.facts.find((fact) => fact.key === key));
    const base = { key, label: second?.label ?? first?.label ?? key, before: first?.value ?? "–", after: second?.value ?? "–" };
    // What only one of them has cannot have become better or worse.
    if (!first || !second) return { ...base, difference: "only in one capture", direction: "none", tone: "plain" };
    const measure = MEASURES[key];
    const [from, to] = [measure?.of(before) ?? null, measure?.of(after) ?? null];
    if (measure && from !== null && to !== null) return { ...base, ...difference(from, to, measure.better, key === "time") };
    if (base.before === base.after) return { ...base, difference: "the same", direction: "same", tone: "plain" };
    return { ...base, difference: "differs", direction: "none", tone: changeOfTone(first.tone, second.tone) };
  });
  return withFailures(facts, before, after);
}

/** Whether one tone is better than another; a plain one says nothing about that. */
function changeOfTone(before: Tone, after: Tone): Tone {
  const ranks: Record<Tone, number> = { bad: 0, warn: 1, plain: NaN, good: 2 };
  const change = ranks[after] - ranks[before];
  return change > 0 ? "good" : change < 0 ? "bad" : "plain";
}

export function failures(capture: Capture): number {
  return capture.compilations.filter((item) => item.tone === "bad").length;
}

/**
 * Compilations that failed, in a row after the one that counts all.
 *
 * Where more fail than before, less is compiled: what is less for that reason is no gain.
 */
function withFailures(facts: ComparedFact[], before: Capture, after: Capture): ComparedFact[] {
  const [from, to] = [failures(before), failures(after)];
  if (from + to === 0) return facts;
  const row: ComparedFact = {
    key: "failed",
    label: "Failed compilations",
    before: from.toLocaleString("en"),
    after: to.toLocaleString("en"),
    ...difference(from, to, "less", false),
  };
  const judged = facts.map((fact) =>
    to > from && fact.tone === "good" && MEASURES[fact.key] ? { ...fact, tone: "plain" as const } : fact,
  );
  const at = judged.findIndex((fact) => fact.key === "compilations") + 1;
  return [...judged.slice(0, at), row, ...judged.slice(at)];
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
    counts.fused += lowering.kernels.filter((kernel) => kernel.kind !== "extern" && kernel.fuses > 1).length;
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

/** Rows about the process itself, which always differ and say nothing. */
const OF_THE_PROCESS = new Set(["Process", "Command", "Recorded by"]);

/** Differences in the machine and its settings. */
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
    if (!row || OF_THE_PROCESS.has(row.name) || left?.before === right?.before) return [];
    return [{ ...row, before: left?.before ?? "–", after: right?.before ?? "–" }];
  });
}

export interface ComparedFunction {
  name: string;
  before: { versions: number; seconds: number };
  after: { versions: number; seconds: number };
}

/** Compilations of each function and their time, by its name and file. */
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
