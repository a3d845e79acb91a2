/** The navigation: what parts there are, and how much is in each. */
import { bytes, number, seconds } from "../common/format";
import type { Capture } from "../data";

/** An entry of the navigation: a fragment, a title, and a short count or empty text shown beside it. */
export interface Entry {
  id: string;
  title: string;
  badge: string;
}

export function entriesOf(capture: Capture): Entry[] {
  const counted = (value: number): string => (value > 0 ? number(value) : "");
  return [
    { id: "breaks", title: "Breaks", badge: number(capture.breaks.length) },
    { id: "guards", title: "Guards", badge: counted(capture.guards.filter((group) => !group.noise).length) },
    { id: "recompiles", title: "Recompiles", badge: number(capture.recompiles.length) },
    { id: "time", title: "Time", badge: capture.time.total > 0 ? seconds(capture.time.total) : "" },
    { id: "speed", title: "Speed", badge: speedBadge(capture) },
    { id: "agreement", title: "Agreement", badge: agreementBadge(capture) },
    { id: "memory", title: "Memory", badge: memoryBadge(capture) },
    { id: "caches", title: "Caches", badge: cacheBadge(capture) },
    { id: "compilations", title: "Compilations", badge: counted(capture.compilations.length) },
    { id: "environment", title: "Environment", badge: "" },
  ];
}

/** The figure of the verdict, so that the two never differ. */
function speedBadge(capture: Capture): string {
  return capture.timings.length > 0 ? (capture.verdict.facts.find((fact) => fact.key === "speed")?.value ?? "") : "";
}

function agreementBadge(capture: Capture): string {
  const variants = capture.agreements.flatMap((agreement) => agreement.variants);
  if (variants.length === 0) return "";
  const wrong = variants.filter((variant) => variant.tone === "bad").length;
  return wrong > 0 ? `${wrong} ✕` : `${variants.filter((variant) => variant.tone === "good").length} ✓`;
}

function memoryBadge(capture: Capture): string {
  const peak = capture.lowerings.reduce((most, lowering) => Math.max(most, lowering.memory?.peak ?? 0), 0);
  return peak > 0 ? bytes(peak) : "";
}

function cacheBadge(capture: Capture): string {
  if (capture.caches.length === 0) return "";
  const hits = capture.caches.filter((lookup) => lookup.outcome === "hit").length;
  return `${number(hits)}/${number(capture.caches.length)}`;
}
