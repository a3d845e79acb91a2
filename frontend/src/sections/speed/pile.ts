/** Samples as a pile of dots: the histogram of a plot, in which each sample is still there. */

/** How many values fall into each of equal bins between two ends; what lies outside counts in the nearest. */
export function histogram(values: number[], [low, high]: [number, number], bins: number): number[] {
  const counts = new Array<number>(bins).fill(0);
  for (const value of values) {
    const bin = high > low ? Math.floor(((value - low) / (high - low)) * bins) : 0;
    const inside = Math.max(0, Math.min(bins - 1, bin));
    counts[inside] = (counts[inside] ?? 0) + 1;
  }
  return counts;
}

/**
 * Places of dots around a middle line: dots that would cover each other are put above and below in turn.
 *
 * `size` is how wide a dot is, `half` how far it may lie from the middle. Where many fall together they move closer, as the
 * pile may not grow into its neighbors.
 */
export function pile(positions: number[], size: number, half: number): [x: number, y: number][] {
  if (positions.length === 0) return [];
  const low = Math.min(...positions);
  const high = Math.max(...positions);
  const bins = Math.max(1, Math.ceil((high - low) / size) + 1);
  const reach: [number, number] = [low - size / 2, low - size / 2 + bins * size];
  const tallest = Math.max(...histogram(positions, reach, bins));
  const step = Math.min(size, (2 * half) / Math.max(1, tallest));
  const used = new Map<number, number>();
  return positions.map((x) => {
    const bin = Math.min(bins - 1, Math.floor((x - reach[0]) / size));
    const place = used.get(bin) ?? 0;
    used.set(bin, place + 1);
    const side = place % 2 === 0 ? 1 : -1;
    return [x, side * Math.ceil(place / 2) * step];
  });
}
