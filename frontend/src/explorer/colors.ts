/** One color per kernel, the same in all panes. */
import type { Capture } from "../data";
import type { Links, Reference } from "./links";

/** Turning by the golden angle keeps neighbors far apart however many there are. */
const GOLDEN_ANGLE = 137.508;

export function hueOfNumber(number: number): number {
  return Math.round((205 + number * GOLDEN_ANGLE) % 360);
}

/** Kernels are numbered through all lowerings of the compilation, so that forward and backward do not share colors. */
export function hueOf(links: Links, [lowering, kernel]: Reference): number {
  let before = 0;
  for (const index of links.lowerings) {
    if (index === lowering) break;
    before += links.capture.lowerings[index]?.kernels.length ?? 0;
  }
  return hueOfNumber(before + kernel);
}

export function hueStyle(hue: number): { [name: string]: string } {
  return { "--hue": String(hue) };
}

export function isBackward(capture: Capture, lowering: number): boolean {
  return capture.lowerings[lowering]?.direction === "backward";
}
