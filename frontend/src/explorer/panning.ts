/** Moving the drawing by pointer: one drags it, two fingers zoom it, the wheel zooms it. */
import { useEffect, useRef } from "preact/hooks";
import { type View, zoomAt } from "./viewport";

interface Panning {
  /** Tells the click that ends a drag from one that was meant. */
  moved: { current: boolean };
  onPointerDown: (event: PointerEvent) => void;
  onPointerMove: (event: PointerEvent) => void;
  onPointerUp: (event: PointerEvent) => void;
  onPointerCancel: (event: PointerEvent) => void;
}

/** Less than this is a click by an unsteady hand. */
const STEADY = 4;

export function usePanning(view: { current: View | null }, apply: (view: View) => void): Panning {
  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const traveled = useRef(0);
  const moved = useRef(false);
  const release = (event: PointerEvent): void => void pointers.current.delete(event.pointerId);
  return {
    moved,
    onPointerDown: (event) => {
      if (event.button !== 0) return;
      if (event.target instanceof Element && event.target.closest("button, [data-toggle]")) return;
      if (pointers.current.size === 0) {
        moved.current = false;
        traveled.current = 0;
      }
      pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
    },
    onPointerMove: (event) => {
      const before = pointers.current.get(event.pointerId);
      if (!before || !view.current || !(event.currentTarget instanceof Element)) return;
      const now = { x: event.clientX, y: event.clientY };
      const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
      traveled.current += Math.hypot(now.x - before.x, now.y - before.y);
      if (traveled.current < STEADY && !other) return;
      if (!moved.current) event.currentTarget.setPointerCapture(event.pointerId);
      moved.current = true;
      pointers.current.set(event.pointerId, now);
      const bounds = event.currentTarget.getBoundingClientRect();
      apply(other ? pinched(view.current, before, now, other, bounds) : dragged(view.current, before, now));
    },
    onPointerUp: release,
    onPointerCancel: release,
  };
}

function dragged(view: View, before: { x: number; y: number }, now: { x: number; y: number }): View {
  return { ...view, x: view.x + now.x - before.x, y: view.y + now.y - before.y };
}

/** The fingers hold on to what they touch: the drawing grows as they part, around the one that rests. */
function pinched(
  view: View,
  before: { x: number; y: number },
  now: { x: number; y: number },
  other: { x: number; y: number },
  bounds: { left: number; top: number },
): View {
  const was = Math.max(20, Math.hypot(before.x - other.x, before.y - other.y));
  const is = Math.max(20, Math.hypot(now.x - other.x, now.y - other.y));
  return zoomAt(view, is / was, other.x - bounds.left, other.y - bounds.top);
}

/** The wheel zooms, and must not scroll the page as well: that takes a listener that is not passive. */
export function useWheel(element: { current: HTMLElement | null }, zoom: (factor: number, x: number, y: number) => void): void {
  const latest = useRef(zoom);
  latest.current = zoom;
  useEffect(() => {
    const frame = element.current;
    if (!frame) return undefined;
    const listen = (event: WheelEvent): void => {
      event.preventDefault();
      const bounds = frame.getBoundingClientRect();
      const lines = event.deltaMode === 1 ? 30 : 1;
      const by = Math.max(-200, Math.min(200, event.deltaY * lines));
      latest.current(Math.exp(-by * 0.0022), event.clientX - bounds.left, event.clientY - bounds.top);
    };
    frame.addEventListener("wheel", listen, { passive: false });
    return () => frame.removeEventListener("wheel", listen);
  }, []);
}
