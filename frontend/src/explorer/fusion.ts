/** Why kernels were kept apart: what stands between neighbors in the list, and all the rest. */
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
  /** By the earlier of two: what was said about it and the nearest later one that the scheduler thought of fusing it with. */
  between: Map<number, Apart[]>;
  rest: Apart[];
}

/** Kernels that share nothing are never thought of, so the next in the list is often none that a reason is known for. */
export function keptApart(lowering: Lowering): KeptApart {
  const list = merged(lowering.not_fused);
  const nearest = new Map<number, number>();
  for (const item of list) {
    const [early, late] = ordered(item);
    if (early >= 0 && early < late) nearest.set(early, Math.min(late, nearest.get(early) ?? Infinity));
  }
  const result: KeptApart = { between: new Map(), rest: [] };
  for (const item of list) {
    const [early, late] = ordered(item);
    if (nearest.get(early) === late) result.between.set(early, [...(result.between.get(early) ?? []), item]);
    else result.rest.push(item);
  }
  return result;
}

/** The two kernels in the order of their launches; -1 where one of them is none. */
export function ordered(item: Apart): [early: number, late: number] {
  const [first, second] = [item.first ?? -1, item.second ?? -1];
  return [Math.min(first, second), Math.max(first, second)];
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
