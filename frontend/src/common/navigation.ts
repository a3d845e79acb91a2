/**
 * Going from any part of the page to something in the explorer.
 *
 * A part calls `reveal`; the explorer listens, selects what is meant, scrolls its panes to it and lights up what belongs to
 * it. What cannot be shown (a file that was not recorded) is quietly ignored by the listener.
 */
import type { Place } from "../data";

export type Reveal =
  | { kind: "line"; path: number; line: number; compilation?: string }
  | { kind: "compilation"; id: string }
  | { kind: "kernel"; lowering: number; kernel: number }
  | { kind: "node"; graph: number; node: number };

type Listener = (target: Reveal) => void;
const listeners = new Set<Listener>();

export function onReveal(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function reveal(target: Reveal): void {
  document.getElementById("explorer")?.scrollIntoView({ block: "start" });
  for (const listener of listeners) listener(target);
}

export function revealPlace(place: Place): void {
  reveal({ kind: "line", path: place.path, line: place.line });
}
