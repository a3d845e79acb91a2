/** Why kernels were kept apart: what stands between neighbours in the list, and all the rest. */
import { shorten } from "../common/format";
import type { Lowering, NotFused } from "../data";

export interface Apart {
  first: number | null;
  second: number | null;
  reason: string;
  times: number;
  /** Names of the scheduler for the two sides, several where the same was said of several pairs. */
  names: string[];
}

/** The scheduler asks about each pair of its nodes again and again: the same answer for the same kernels is told once. */
export function merged(list: NotFused[]): Apart[] {
  const found = new Map<string, Apart>();
  for (const item of list) {
    const key = JSON.stringify([
      item.first,
      item.second,
      item.reason,
      item.first === null || item.second === null ? item.names : 0,
    ]);
    const known = found.get(key);
    const names = item.names.join(" and ");
    if (known) {
      known.times += item.times;
      if (!known.names.includes(names)) known.names.push(names);
    } else {
      found.set(key, { first: item.first, second: item.second, reason: item.reason, times: item.times, names: [names] });
    }
  }
  return [...found.values()];
}

export interface KeptApart {
  /** By the earlier of two neighbours: what was said about the pair. */
  between: Map<number, Apart[]>;
  rest: Apart[];
}

export function keptApart(lowering: Lowering): KeptApart {
  const result: KeptApart = { between: new Map(), rest: [] };
  for (const item of merged(lowering.not_fused)) {
    const { first, second } = item;
    if (first !== null && second !== null && Math.abs(first - second) === 1) {
      const earlier = Math.min(first, second);
      result.between.set(earlier, [...(result.between.get(earlier) ?? []), item]);
    } else {
      result.rest.push(item);
    }
  }
  return result;
}

/** What was said about one kernel and others. */
export function apartFrom(lowering: Lowering, kernel: number): Apart[] {
  return merged(lowering.not_fused.filter((item) => item.first === kernel || item.second === kernel));
}

/** The two sides in words. Library calls share their names, so a kernel is told by its number as well. */
export function pairText(lowering: Lowering, item: Apart): string {
  const title = (kernel: number): string => `${kernel + 1} ${shorten(lowering.kernels[kernel]?.name ?? "", 80)}`;
  if (item.first === null || item.second === null) return shorten(item.names[0] ?? "");
  return `${title(item.first)} and ${title(item.second)}`;
}
