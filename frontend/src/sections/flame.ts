/**
 * The layout of compile phases: a lane for every thread, in it a row for every depth, time to the right.
 *
 * What is too narrow to be seen is drawn together with its neighbors: thousands of phases are then some hundred bars.
 */
import type { Time } from "../data";

export type Phase = Time["phases"][number];

export interface Bar {
  /** The phase, as an index; of several drawn together the longest. */
  phase: number;
  x: number;
  width: number;
  row: number;
  /** How many phases are drawn as this bar. */
  merged: number;
}

export interface Lane {
  thread: number;
  /** The first of its rows, and how many it has. */
  row: number;
  rows: number;
}

export interface Flame {
  bars: Bar[];
  lanes: Lane[];
  rows: number;
}

/** Deeper phases share the last row. */
const DEEPEST = 200;

/** The row of a phase within its lane; a damaged capture may name any depth. */
export function depthOf(phase: Pick<Phase, "depth">): number {
  return Math.max(0, Math.min(DEEPEST, Math.trunc(phase.depth) || 0));
}

export type View = [start: number, end: number];

/** From the first phase to the end of the last one. */
export function wholeView(phases: Phase[]): View {
  const end = phases.reduce((latest, phase) => Math.max(latest, phase.start + phase.seconds), 0);
  const start = phases.reduce((earliest, phase) => Math.min(earliest, phase.start), Infinity);
  return Number.isFinite(start) && end > start ? [start, end] : [0, 1];
}

export function lanesOf(phases: Phase[]): Lane[] {
  const depths = new Map<number, number>();
  for (const phase of phases) depths.set(phase.thread, Math.max(depths.get(phase.thread) ?? 0, depthOf(phase)));
  let row = 0;
  return [...depths]
    .sort(([first], [second]) => first - second)
    .map(([thread, depth]) => {
      const lane = { thread, row, rows: depth + 1 };
      row += depth + 1;
      return lane;
    });
}

/** The narrowest bar that is drawn by itself, in pixels. */
const NARROWEST = 1.5;

export function layout(phases: Phase[], view: View, width: number): Flame {
  const lanes = lanesOf(phases);
  const firstRow = new Map(lanes.map((lane) => [lane.thread, lane.row]));
  const scale = width / (view[1] - view[0]);
  const bars: Bar[] = [];
  const last = new Map<number, Bar>();
  phases.forEach((phase, index) => {
    const start = Math.max(view[0], phase.start);
    const end = Math.min(view[1], phase.start + phase.seconds);
    if (end < start || (end === start && phase.seconds > 0)) return;
    const row = (firstRow.get(phase.thread) ?? 0) + depthOf(phase);
    const x = (start - view[0]) * scale;
    const wide = (end - start) * scale;
    const before = last.get(row);
    if (wide < NARROWEST && before && before.width <= NARROWEST && x < before.x + NARROWEST) {
      before.merged += 1;
      if (phase.seconds > (phases[before.phase]?.seconds ?? 0)) before.phase = index;
      return;
    }
    const bar = { phase: index, x, width: Math.max(wide, Math.min(NARROWEST, width - x)), row, merged: 1 };
    bars.push(bar);
    last.set(row, bar);
  });
  const rows = lanes.reduce((sum, lane) => sum + lane.rows, 0);
  return { bars, lanes, rows };
}

/** For each phase the one it is part of, -1 at the top of a lane. */
export function parentsOf(phases: Phase[]): number[] {
  const open = new Map<number, number[]>();
  return phases.map((phase, index) => {
    const stack = open.get(phase.thread) ?? [];
    open.set(phase.thread, stack);
    const depth = depthOf(phase);
    stack.length = Math.min(stack.length, depth);
    const parent = depth > 0 ? (stack[depth - 1] ?? -1) : -1;
    stack[depth] = index;
    return parent;
  });
}

/** Where a key leads from a bar: to its neighbors in the row, to what it is part of, to its first part. */
export function neighbor(flame: Flame, parents: number[], from: number, key: string): number | null {
  const at = flame.bars.findIndex((bar) => bar.phase === from);
  const bar = flame.bars[at];
  if (!bar) return flame.bars[0]?.phase ?? null;
  const row = flame.bars.filter((other) => other.row === bar.row).sort((first, second) => first.x - second.x);
  const place = row.indexOf(bar);
  if (key === "ArrowRight") return row[place + 1]?.phase ?? null;
  if (key === "ArrowLeft") return row[place - 1]?.phase ?? null;
  if (key === "ArrowUp") return parents[from] !== -1 && parents[from] !== undefined ? parents[from] : laneTop(flame, bar, -1);
  if (key === "ArrowDown") {
    const child = flame.bars.find((other) => parents[other.phase] === from);
    return child?.phase ?? laneTop(flame, bar, 1);
  }
  if (key === "Home") return row[0]?.phase ?? null;
  if (key === "End") return row[row.length - 1]?.phase ?? null;
  return null;
}

/** The first bar of the lane before or after the one of a bar. */
function laneTop(flame: Flame, bar: Bar, step: number): number | null {
  const lane = flame.lanes.findIndex((item) => bar.row >= item.row && bar.row < item.row + item.rows);
  const next = flame.lanes[lane + step];
  return flame.bars.find((other) => next && other.row === next.row)?.phase ?? null;
}

/** Threads that work beside the compilation: nothing in them belongs to one, so their time is no share of compiling. */
export function workersOf(phases: Phase[]): Set<number> {
  const busy = new Set(phases.filter((phase) => phase.compilation).map((phase) => phase.thread));
  return new Set(phases.map((phase) => phase.thread).filter((thread) => thread !== phases[0]?.thread && !busy.has(thread)));
}

export const FAMILIES = ["Dynamo", "AOTAutograd", "Inductor", "compilers", "other"] as const;
export type Family = (typeof FAMILIES)[number];

const FAMILY_PATTERNS: [Family, RegExp][] = [
  ["compilers", /compile_file|async_compile|triton|precompile|PyCodeCache|CppCodeCache|worker/i],
  ["AOTAutograd", /aot|joint_graph|min_cut|partition|backward_compile|functionaliz/i],
  [
    "Inductor",
    /inductor|fx_codegen|GraphLowering|Scheduler|code_?gen|post_grad|pre_grad|compile_fx|fake_tensor_prop|Wrapper|autotun/i,
  ],
  ["Dynamo", /dynamo|bytecode|entire_frame|compile_attempt|guards|backend_compile|call_user_compiler|pgo|deferred_runtime/i],
];

/** The part of torch that a phase belongs to, by its name. */
export function familyOf(name: string): Family {
  return FAMILY_PATTERNS.find(([, pattern]) => pattern.test(name))?.[0] ?? "other";
}

export interface NamedPhase {
  name: string;
  family: Family;
  times: number;
  own: number;
  seconds: number;
  longest: number;
  /** How much of its own time passed in threads beside the compilation. */
  beside: number;
}

/** Phases of one name together, by what they took themselves of the time that compiling took; the rest passed beside it. */
export function byName(phases: Phase[]): NamedPhase[] {
  const found = new Map<string, NamedPhase>();
  const workers = workersOf(phases);
  phases.forEach((phase, index) => {
    const { name } = phase;
    const entry = found.get(name) ?? { name, family: familyOf(name), times: 0, own: 0, seconds: 0, longest: index, beside: 0 };
    if (workers.has(phase.thread)) entry.beside += phase.own;
    entry.times += 1;
    entry.own += phase.own;
    entry.seconds += phase.seconds;
    if (phase.own > (phases[entry.longest]?.own ?? 0)) entry.longest = index;
    found.set(phase.name, entry);
  });
  const waited = (phase: NamedPhase): number => phase.own - phase.beside;
  return [...found.values()].sort((first, second) => waited(second) - waited(first) || second.beside - first.beside);
}
