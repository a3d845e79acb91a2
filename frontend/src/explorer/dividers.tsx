/** The panes side by side, with dividers that can be dragged or moved by keys. */
import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";

const MIN_SHARE = 0.15;
/** Source has the longest lines. */
const SHARES = [0.38, 0.31, 0.31];

/** Moves the border after the given pane, leaving each of the two beside it some room. */
export function moved(shares: readonly number[], border: number, by: number): number[] {
  const next = [...shares];
  const left = shares[border] ?? 0;
  const right = shares[border + 1] ?? 0;
  const bounded = Math.max(MIN_SHARE - left, Math.min(right - MIN_SHARE, by));
  next[border] = left + bounded;
  next[border + 1] = right - bounded;
  return next;
}

export function Columns({ children, names }: { children: ComponentChildren[]; names: string[] }): JSX.Element {
  const [shares, setShares] = useState(SHARES);
  const element = useRef<HTMLDivElement>(null);
  const drag = (border: number) => (event: PointerEvent) => {
    const handle = event.currentTarget as HTMLElement;
    const width = element.current?.clientWidth ?? 1;
    const start = event.clientX;
    handle.setPointerCapture(event.pointerId);
    const move = (later: PointerEvent): void => setShares(moved(shares, border, (later.clientX - start) / width));
    const end = (): void => {
      handle.removeEventListener("pointermove", move);
      handle.removeEventListener("pointerup", end);
      handle.removeEventListener("pointercancel", end);
    };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", end);
    handle.addEventListener("pointercancel", end);
    event.preventDefault();
  };
  const key = (border: number) => (event: KeyboardEvent) => {
    const by = { ArrowLeft: -0.03, ArrowRight: 0.03 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    setShares(moved(shares, border, by));
  };
  const style = Object.fromEntries(shares.map((share, index) => [`--share-${index}`, `${(share * 100).toFixed(2)}fr`]));
  return (
    <div class="columns" ref={element} style={style}>
      {children.map((child, index) => (
        <>
          {child}
          {index < children.length - 1 ? (
            <div
              class="divider"
              role="separator"
              aria-orientation="vertical"
              aria-label={`Width of ${names[index] ?? ""} and ${names[index + 1] ?? ""}`}
              aria-valuemin={Math.round(MIN_SHARE * 100)}
              aria-valuemax={Math.round(((shares[index] ?? 0) + (shares[index + 1] ?? 0) - MIN_SHARE) * 100)}
              aria-valuenow={Math.round((shares[index] ?? 0) * 100)}
              tabIndex={0}
              onPointerDown={drag(index)}
              onKeyDown={key(index)}
              onDblClick={() => setShares(SHARES)}
            />
          ) : null}
        </>
      ))}
    </div>
  );
}
