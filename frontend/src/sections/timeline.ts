/** The layout of the timeline of compilations: a row for every frame, a mark where a compilation began. */
import type { Capture, Compilation, Tone } from "../data";

export interface Mark {
  compilation: Compilation;
  kind: "first" | "recompile" | "failed" | "other";
  /** In seconds after the beginning; in places of the order where times were not recorded. */
  start: number;
  length: number;
}

export interface TimelineRow {
  frame: string;
  name: string;
  /** The first compilation of the frame, whose place stands for it. */
  first: Compilation;
  marks: Mark[];
  /** Whether something happened in it but a first compilation. */
  eventful: boolean;
}

export interface Timeline {
  rows: TimelineRow[];
  /** Whether the marks stand at times; else in the order of the compilations, one step each. */
  timed: boolean;
  end: number;
}

/** Versions of one function share what stands before the stroke of their ids: `0/0` and `0/1` are frame 0. */
export function frameOf(id: string): string {
  const stroke = id.lastIndexOf("/");
  return stroke < 0 ? id : id.slice(0, stroke);
}

export function kindOf(compilation: Compilation): Mark["kind"] {
  if (compilation.tone === "bad") return "failed";
  if (compilation.recompile) return "recompile";
  return compilation.tone === "good" ? "first" : "other";
}

export const KINDS: Record<Mark["kind"], { title: string; tone: Tone }> = {
  first: { title: "first compilation", tone: "good" },
  recompile: { title: "recompile", tone: "warn" },
  failed: { title: "failed", tone: "bad" },
  other: { title: "left in eager mode, or not finished", tone: "plain" },
};

export function timelineOf(capture: Pick<Capture, "compilations">): Timeline {
  const timed = capture.compilations.length > 0 && capture.compilations.every((item) => item.started !== null);
  const rows = new Map<string, TimelineRow>();
  let end = 0;
  capture.compilations.forEach((compilation, index) => {
    const frame = frameOf(compilation.id);
    const start = timed ? (compilation.started ?? 0) : index;
    const length = timed ? (compilation.seconds ?? 0) : 0.8;
    const kind = kindOf(compilation);
    end = Math.max(end, start + length);
    const row = rows.get(frame) ?? { frame, name: compilation.name, first: compilation, marks: [], eventful: false };
    row.marks.push({ compilation, kind, start, length });
    row.eventful ||= kind !== "first";
    rows.set(frame, row);
  });
  return { rows: [...rows.values()], timed, end: end || 1 };
}
