/**
 * Going from one part of the page to another: to something in the explorer, or to what a fragment names.
 *
 * A part calls `reveal`; the explorer listens, selects what is meant, scrolls its panes to it and lights up what belongs to
 * it. What cannot be shown (a file that was not recorded) is quietly ignored by the listener.
 *
 * Links to fragments are followed here and not by the browser: in a notebook the page stands in a frame without an address
 * of its own, where `#breaks` is a place in the notebook and a click would load that into the frame.
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

/** The id that a fragment names; empty where it is none, also where it was cut within an escape. */
export function fragmentId(hash: string): string {
  if (!hash.startsWith("#")) return "";
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return "";
  }
}

/** Whether the page has an address of its own that a fragment can be added to. */
export function hasAddress(href: string): boolean {
  return !/^about:/i.test(href);
}

/** The position in ids such as `break-12`; null where an id is another one. */
export function positionIn(id: string, prefix: string): number | null {
  const rest = id.startsWith(`${prefix}-`) ? id.slice(prefix.length + 1) : "";
  return /^[1-9]\d{0,8}$/.test(rest) ? Number(rest) : null;
}

type Visitor = (id: string) => void;
const visitors = new Set<Visitor>();

/** Hears of every id that is gone to, before it is looked for: the place to make what is folded away or not made yet. */
export function onVisit(visitor: Visitor): () => void {
  visitors.add(visitor);
  return () => visitors.delete(visitor);
}

/** Shows the element of an id: all who listen may make it first. */
export function visit(id: string, focus: boolean): void {
  if (id === "") return;
  for (const visitor of visitors) visitor(id);
  requestAnimationFrame(() => {
    const element = document.getElementById(id);
    if (!element) return;
    element.scrollIntoView({ block: "start" });
    if (focus) focusOn(element);
  });
}

/** So that Tab goes on from there; what cannot have the focus gets it for as long as it stays. */
function focusOn(element: HTMLElement): void {
  if (element.tabIndex < 0 && !element.hasAttribute("tabindex")) {
    element.setAttribute("tabindex", "-1");
    element.addEventListener("blur", () => element.removeAttribute("tabindex"), { once: true });
  }
  element.focus({ preventScroll: true });
}

function remember(id: string): void {
  if (!hasAddress(location.href)) return;
  try {
    const hash = `#${encodeURIComponent(id)}`;
    if (hash !== location.hash) history.pushState(null, "", hash);
  } catch {
    // Sandboxes and some viewers forbid it; the element is shown all the same.
  }
}

/** Follows links to fragments, and fragments of the address: the one it was opened with, and those of going back. */
export function followFragments(): () => void {
  const click = (event: MouseEvent): void => {
    const link = event.target instanceof Element ? event.target.closest('a[href^="#"]') : null;
    if (!link || event.defaultPrevented) return;
    // Another tab is the browser's business, where there is an address to open in it.
    const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (elsewhere && hasAddress(location.href)) return;
    event.preventDefault();
    const id = fragmentId(link.getAttribute("href") ?? "");
    if (id === "") return;
    remember(id);
    visit(id, true);
  };
  const change = (): void => visit(fragmentId(location.hash), false);
  document.addEventListener("click", click);
  addEventListener("hashchange", change);
  change();
  return () => {
    document.removeEventListener("click", click);
    removeEventListener("hashchange", change);
  };
}
