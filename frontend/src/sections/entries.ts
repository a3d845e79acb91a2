/** The navigation: what parts there are, and how much is in each. */
import { bytes, count, number, seconds } from "../common/format";
import type { Capture } from "../data";

/** An entry of the navigation: a fragment, a title, and a short count or empty text shown beside it. */
export interface Entry {
  id: string;
  title: string;
  badge: string;
  /** The badge in words, where its signs do not read well. */
  spoken?: string;
}

export function entriesOf(capture: Capture): Entry[] {
  return [
    entry("breaks", "Breaks", () => number(capture.breaks.length)),
    entry("guards", "Guards", () => counted(capture.guards.filter((group) => !group.noise).length)),
    entry("recompiles", "Recompiles", () => number(capture.recompiles.length)),
    entry("time", "Time", () => (capture.time.total > 0 ? seconds(capture.time.total) : "")),
    entry("speed", "Speed", () => speedBadge(capture)),
    entry("agreement", "Agreement", () => agreementBadge(capture)),
    entry("memory", "Memory", () => memoryBadge(capture)),
    entry("caches", "Caches", () => cacheBadge(capture)),
    entry("compilations", "Compilations", () => counted(capture.compilations.length)),
    entry("environment", "Environment", () => ""),
  ];
}

type Badge = string | [badge: string, spoken: string];

/** What is damaged has no badge; its section says so. */
function entry(id: string, title: string, badgeOf: () => Badge): Entry {
  let badge: Badge;
  try {
    badge = badgeOf();
  } catch {
    badge = "";
  }
  return typeof badge === "string" ? { id, title, badge } : { id, title, badge: badge[0], spoken: badge[1] };
}

function counted(value: number): string {
  return value > 0 ? number(value) : "";
}

/** The figure of the verdict, so that the two never differ. */
function speedBadge(capture: Capture): string {
  return capture.timings.length > 0 ? (capture.verdict.facts.find((fact) => fact.key === "speed")?.value ?? "") : "";
}

function agreementBadge(capture: Capture): Badge {
  const variants = capture.agreements.flatMap((agreement) => agreement.variants);
  if (variants.length === 0) return "";
  const wrong = variants.filter((variant) => variant.tone === "bad").length;
  const right = variants.filter((variant) => variant.tone === "good").length;
  return wrong > 0 ? [`${wrong} ✕`, `${wrong} disagree`] : [`${right} ✓`, `${right} agree`];
}

function memoryBadge(capture: Capture): string {
  const peak = capture.lowerings.reduce((most, lowering) => Math.max(most, lowering.memory?.peak ?? 0), 0);
  return peak > 0 ? bytes(peak) : "";
}

function cacheBadge(capture: Capture): Badge {
  if (capture.caches.length === 0) return "";
  const hits = capture.caches.filter((lookup) => lookup.outcome === "hit").length;
  return [
    `${number(hits)}/${number(capture.caches.length)}`,
    `${number(hits)} of ${count(capture.caches.length, "lookup")} hit`,
  ];
}
