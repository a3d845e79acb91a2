/** What a variant costs in all after some calls, and when it has cost no more than eager. */
import type { Measurement } from "../../data";

export interface Cost {
  variant: string;
  /** Seconds before the first call that counts. */
  build: number;
  /** Seconds of a call. */
  call: number;
}

/**
 * The cost of a variant against eager; null where it did not run.
 *
 * The recorded gain of a call is paired over rounds, which a difference of medians is not: where there is one, it is what the
 * line is drawn with, so that lines cross where the table says that they do. Eager is there from the start: it has no build.
 */
export function costOf(measurement: Measurement, eager: Measurement | undefined): Cost | null {
  if (measurement.median === null) return null;
  const { variant } = measurement;
  if (eager === undefined || variant === eager.variant || eager.median === null) {
    return { variant, build: variant === eager?.variant ? 0 : (measurement.build_seconds ?? 0), call: measurement.median };
  }
  const paired = measurement.payback ? eager.median - measurement.payback.gain : 0;
  return { variant, build: measurement.build_seconds ?? 0, call: paired > 0 ? paired : measurement.median };
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

/** How many calls a chart has to show: well past the last crossing, or to where a build has become small beside the calls. */
export function horizon(eager: Cost, others: Cost[]): number {
  let calls = 100;
  for (const other of others) {
    const crosses = crossing(eager, other);
    const small = other.build / Math.max(other.call, 1e-12);
    calls = Math.max(calls, crosses !== null && crosses < 1e9 ? crosses * 8 : small * 4);
  }
  return 10 ** Math.ceil(Math.log10(Math.min(calls, 1e10)));
}

/** Calls to draw a line through: evenly on a logarithmic axis. */
export function callsUpTo(most: number, steps = 80): number[] {
  return Array.from({ length: steps + 1 }, (_, index) => most ** (index / steps));
}

/** After how many calls it has paid back, in words: the same as in the terminal. */
export function paybackText(payback: Measurement["payback"]): string {
  if (!payback) return "";
  const told = (value: number): string => value.toLocaleString("en");
  if (payback.calls === null) return payback.low === null ? "never" : `never (at best ${told(payback.low)})`;
  const high = payback.high === null ? "never" : told(payback.high);
  return `${payback.unclear ? "unclear" : told(payback.calls)} (${told(payback.low ?? 0)}–${high})`;
}
