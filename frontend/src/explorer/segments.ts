/** A generated module cut into stretches: the sources of its kernels, the lines that launch them, and what is between. */
import type { Lowering } from "../data";

export interface Segment {
  /** Lines, from 1. */
  first: number;
  last: number;
  kernel: number | null;
  /** Whether a kernel's source or launch begins here, rather than goes on. */
  start: boolean;
}

const LONGEST = 80;

export function segments(lowering: Lowering): Segment[] {
  const total = lowering.code.length;
  const marks = lowering.kernels
    .flatMap((kernel, index): [number, number, number][] => [
      ...(kernel.lines ? [[kernel.lines[0], kernel.lines[1], index] as [number, number, number]] : []),
      ...(kernel.call === null ? [] : [[kernel.call, kernel.call, index] as [number, number, number]]),
    ])
    .sort((one, other) => one[0] - other[0]);
  const found: Segment[] = [];
  let next = 1;
  for (const [first, last, kernel] of marks) {
    // Kernels that share a source (one definition, several launches) have it shown for the first of them.
    if (first < next || last > total) continue;
    push(found, next, first - 1, null);
    push(found, first, last, kernel);
    next = last + 1;
  }
  push(found, next, total, null);
  return found;
}

function push(found: Segment[], first: number, last: number, kernel: number | null): void {
  for (let start = first; start <= last; start += LONGEST) {
    found.push({ first: start, last: Math.min(last, start + LONGEST - 1), kernel, start: start === first });
  }
}
