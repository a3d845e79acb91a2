/** The points of a sweep: what they are called, and where they stand on an axis. */
import type { Measurement, Timing, TimingPoint } from "../../data";

export function pointName(point: TimingPoint): string {
  if (point.sizes.length > 0) return point.sizes.map(([name, size]) => `${name} ${size.toLocaleString("en")}`).join(", ");
  return point.inputs.join(", ") || "the example";
}

/** The one size that differs from point to point, with its values; null where none or several do. */
export function sweptSize(points: TimingPoint[]): { name: string; values: number[] } | null {
  const names = [...new Set(points.flatMap((point) => point.sizes.map(([name]) => name)))];
  const valuesOf = (name: string): (number | undefined)[] =>
    points.map((point) => point.sizes.find(([other]) => other === name)?.[1]);
  const differing = names.filter((name) => new Set(valuesOf(name)).size > 1);
  const [name] = differing;
  if (differing.length !== 1 || name === undefined) return null;
  const values = valuesOf(name);
  return values.every((value): value is number => value !== undefined) ? { name, values } : null;
}

export interface Swept {
  variant: string;
  /** Point, median and interval, by rising point; points at which it did not run are not there. */
  points: { x: number; median: number; low: number; high: number }[];
}

/** Each variant over the points; a point stands at its size, or at its number where no single size tells them apart. */
export function sweptVariants(timing: Timing): Swept[] {
  const swept = sweptSize(timing.points);
  const found = new Map<string, Swept>();
  timing.points.forEach((point, index) => {
    for (const item of point.measurements) {
      if (item.median === null) continue;
      const entry = found.get(item.variant) ?? { variant: item.variant, points: [] };
      const x = swept?.values[index] ?? index;
      entry.points.push({ x, median: item.median, low: item.low ?? item.median, high: item.high ?? item.median });
      found.set(item.variant, entry);
    }
  });
  for (const entry of found.values()) entry.points.sort((first, second) => first.x - second.x);
  return [...found.values()];
}

export function eagerOf(point: TimingPoint): Measurement | undefined {
  return point.measurements.find((item) => item.variant === "eager");
}

/** Labels that would cover each other, moved apart: each at least `gap` below the one before it. */
export function apart(wished: number[], gap: number, top: number, bottom: number): number[] {
  const order = wished.map((_, index) => index).sort((first, second) => (wished[first] ?? 0) - (wished[second] ?? 0));
  const placed = [...wished];
  let least = top;
  for (const index of order) {
    placed[index] = Math.max(least, wished[index] ?? 0);
    least = (placed[index] ?? 0) + gap;
  }
  let most = bottom;
  for (const index of [...order].reverse()) {
    placed[index] = Math.min(most, placed[index] ?? 0);
    most = (placed[index] ?? 0) - gap;
  }
  return placed;
}
