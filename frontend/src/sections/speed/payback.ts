/** What a variant costs in all after some calls, and when it has cost no more than eager. */
import type { Measurement } from "../../data";

export interface Cost {
  variant: string;
  /** Seconds of a cold build, before the first call that counts. */
  build: number;
  /** Seconds of a call. */
  call: number;
  /** Between which numbers of calls it pays back with 95 % certainty; null stands for never. */
  between?: [low: number, high: number | null];
  /** Whether that is too wide to name one number. */
  unclear?: boolean;
}

/**
 * The cost of a variant against eager; null where it did not run, or was not built cold: what any other build takes depends on
 * what was built before it.
 *
 * The recorded gain of a call is paired over rounds, which a difference of medians is not: where there is one, it is what the
 * line is drawn with, so that lines cross where the table says that they do. Eager is there from the start: it has no build.
 */
export function costOf(measurement: Measurement, eager: Measurement | undefined): Cost | null {
  if (measurement.median === null) return null;
  const { variant, payback } = measurement;
  if (variant === eager?.variant) return { variant, build: 0, call: measurement.median };
  const build = measurement.build?.cold ?? null;
  if (build === null) return null;
  if (eager === undefined || eager.median === null) return { variant, build, call: measurement.median };
  const paired = payback ? eager.median - payback.gain : 0;
  const cost: Cost = { variant, build, call: paired > 0 ? paired : measurement.median };
  if (payback && payback.low !== null) cost.between = [payback.low, payback.high];
  if (payback?.unclear) cost.unclear = true;
  return cost;
}

export function totalAfter(cost: Cost, calls: number): number {
  return cost.build + calls * cost.call;
}

/** The calls after which the second has cost no more than the first; null where that never happens. */
export function crossing(eager: Cost, other: Cost): number | null {
  const gain = eager.call - other.call;
  const ahead = other.build - eager.build;
  if (ahead <= 0) return 0;
  return gain > 0 ? ahead / gain : null;
}

/**
 * From how many calls to how many a chart has to reach: from well before the first crossing to well past the last one.
 *
 * Where lines never cross, what matters is where a build has become small beside the calls.
 */
export function reach(eager: Cost, others: Cost[]): [least: number, most: number] {
  const turns = others.map((other) => {
    const crosses = crossing(eager, other);
    return crosses !== null && crosses < 1e10 ? crosses : other.build / Math.max(other.call, 1e-12);
  });
  const far = turns.filter((calls) => calls >= 1);
  if (far.length === 0) return [1, 1000];
  const least = 10 ** Math.max(0, Math.floor(Math.log10(Math.min(...far) / 20)));
  const most = Math.max(...far) * 8;
  const power = 10 ** Math.floor(Math.log10(most));
  return [least, Math.max(100 * least, power * ([1, 2, 5].find((factor) => factor * power >= most) ?? 10))];
}

/** Calls to draw a line through: evenly on a logarithmic axis. */
export function callsBetween(least: number, most: number, steps = 80): number[] {
  return Array.from({ length: steps + 1 }, (_, index) => least * (most / least) ** (index / steps));
}

/** After how many calls it has paid back, in words: the same as in the terminal. */
export function paybackText(payback: Measurement["payback"]): string {
  if (!payback) return "";
  const told = (value: number): string => value.toLocaleString("en");
  if (payback.calls === null && payback.low === null) return "never";
  const high = payback.high === null ? "never" : told(payback.high);
  return `${payback.unclear || payback.calls === null ? "unclear" : told(payback.calls)} (${told(payback.low ?? 0)}–${high})`;
}
