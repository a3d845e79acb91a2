/** Moving within a pane by keys: one element of it is a stop of Tab, the arrows move that stop along. */

const ITEMS = "[data-item]";

/** Scrolls a container, and never the page around it, until an element in it is visible. */
export function scrollWithin(scroller: Element, element: Element, where: "nearest" | "middle" = "nearest"): void {
  const outer = scroller.getBoundingClientRect();
  const inner = element.getBoundingClientRect();
  const above = inner.top < outer.top + 4;
  const below = inner.bottom > outer.bottom - 4;
  if (!above && !below) return;
  const distance = inner.top - outer.top;
  if (where === "middle" || inner.height > outer.height) {
    scroller.scrollTop += distance - (inner.height > outer.height / 2 ? 8 : outer.height / 3);
  } else {
    scroller.scrollTop += above ? distance - 8 : inner.bottom - outer.bottom + 8;
  }
}

/** Makes an element the one that Tab stops at. */
export function rove(root: Element, element: Element | null): void {
  for (const other of root.querySelectorAll(`${ITEMS}[tabindex="0"]`)) other.setAttribute("tabindex", "-1");
  (element ?? root.querySelector(ITEMS))?.setAttribute("tabindex", "0");
}

/** Where a key leads, as a position among the items; null for keys that mean nothing here. */
export function step(key: string, position: number, total: number): number | null {
  const last = total - 1;
  switch (key) {
    case "ArrowDown":
      return Math.min(last, position + 1);
    case "ArrowUp":
      return Math.max(0, position - 1);
    case "PageDown":
      return Math.min(last, position + 15);
    case "PageUp":
      return Math.max(0, position - 15);
    case "Home":
      return 0;
    case "End":
      return last;
    default:
      return null;
  }
}

/** Moves the focus for an arrow key; says whether it did. */
export function moveFocus(scroller: Element, event: KeyboardEvent): boolean {
  if (event.altKey || event.ctrlKey || event.metaKey) return false;
  const current = event.target instanceof Element ? event.target.closest(ITEMS) : null;
  if (!current || current !== event.target) return false;
  const items = [...scroller.querySelectorAll<HTMLElement>(ITEMS)];
  const next = step(event.key, items.indexOf(current as HTMLElement), items.length);
  const element = next === null ? undefined : items[next];
  if (!element) return false;
  event.preventDefault();
  element.focus({ preventScroll: true });
  scrollWithin(scroller, element);
  return true;
}
