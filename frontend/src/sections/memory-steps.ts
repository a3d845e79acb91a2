/** The estimate of memory over the steps of a lowering. */
import type { Lowering, Memory } from "../data";

/** The outline of a step chart as the points of a path: level while a step runs, then straight up or down. */
export function stepLine(values: number[], x: (index: number) => number, y: (value: number) => number): string {
  return values
    .map(
      (value, index) =>
        `${index === 0 ? "M" : "L"}${round(x(index))} ${round(y(value))}L${round(x(index + 1))} ${round(y(value))}`,
    )
    .join("");
}

function round(value: number): string {
  return value.toFixed(1);
}

/** The first step in which as much is in use as at any time; -1 where there are none. */
export function peakStep(memory: Memory): number {
  let peak = -1;
  memory.steps.forEach(([, size], index) => {
    if (peak < 0 || size > (memory.steps[peak]?.[1] ?? 0)) peak = index;
  });
  return peak;
}

/** The steps in which most is in use, and what each of them added. */
export function largestSteps(memory: Memory, most: number): { index: number; name: string; bytes: number; change: number }[] {
  return memory.steps
    .map(([name, bytes], index) => ({ index, name, bytes, change: bytes - (memory.steps[index - 1]?.[1] ?? 0) }))
    .sort((first, second) => second.bytes - first.bytes || first.index - second.index)
    .slice(0, most);
}

/** The kernel that a step of a lowering is, -1 where it is none. */
export function kernelOfStep(lowering: Lowering, name: string): number {
  return lowering.memory?.steps.find(([known]) => known === name)?.[2] ?? -1;
}
