/**
 * What charts have in common: a box that knows its width, axes, and a note that follows the pointer.
 *
 * A chart is drawn for the width it has, so that its text is as large as the text around it; on paper it is scaled to fit.
 * Names of attributes in SVG tell upper from lower case: what can be focused has a `tabindex` there, not a `tabIndex`.
 */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { usePrinting } from "../parts/printing";
import { type Scale, ticksOf } from "./scales";

/** Until the box is measured, about what it will have: a second drawing is then seldom needed. */
function likelyWidth(): number {
  const page = document.documentElement.clientWidth || 1000;
  return Math.max(280, page - (page <= 700 ? 24 : 40));
}

/** On paper a chart is scaled to the width of a page: drawn about as wide as that, its text keeps its size. */
const PAPER = 760;

export function ChartBox(props: {
  class?: string;
  /** The width is drawn for at most this many pixels. */
  most?: number;
  children: (width: number) => ComponentChildren;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(() => Math.min(likelyWidth(), props.most ?? Infinity));
  useEffect(() => {
    const element = box.current;
    if (!element || typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver(([entry]) => {
      const measured = Math.floor(entry?.contentRect.width ?? 0);
      if (measured > 0) setWidth(Math.max(260, Math.min(measured, props.most ?? Infinity)));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const printing = usePrinting();
  return (
    <div ref={box} class={`chart ${props.class ?? ""}`}>
      {props.children(printing ? Math.min(width, PAPER) : width)}
    </div>
  );
}

/** Below this many pixels there is no room beside a plot: names go above or into the legend alone. */
export const NARROW = 620;

interface AxisProps {
  scale: Scale;
  ticks?: number[];
  label: (value: number) => string;
  title?: string;
}

/** An axis below a plot, with thin lines up into it. */
export function BottomAxis(props: AxisProps & { top: number; bottom: number; wished: number }): JSX.Element {
  const ticks = props.ticks ?? ticksOf(props.scale, props.wished);
  const [left, right] = ends(props.scale);
  return (
    <g class="axis" aria-hidden="true">
      {ticks.map((tick) => (
        <g transform={`translate(${props.scale(tick)} 0)`}>
          <line class="grid" y1={props.top} y2={props.bottom} />
          <text y={props.bottom + 16} text-anchor="middle">
            {props.label(tick)}
          </text>
        </g>
      ))}
      <line class="base" x1={left} x2={right} y1={props.bottom} y2={props.bottom} />
      {props.title ? (
        <text class="axis-title" x={right} y={props.bottom + 33} text-anchor="end">
          {props.title}
        </text>
      ) : null}
    </g>
  );
}

/** An axis at the left of a plot, with thin lines across it; its title stands above. */
export function LeftAxis(props: AxisProps & { left: number; right: number; wished: number; top?: number }): JSX.Element {
  const ticks = props.ticks ?? ticksOf(props.scale, props.wished);
  return (
    <g class="axis" aria-hidden="true">
      {ticks.map((tick) => (
        <g transform={`translate(0 ${props.scale(tick)})`}>
          <line class="grid" x1={props.left} x2={props.right} />
          <text x={props.left - 7} y="4" text-anchor="end">
            {props.label(tick)}
          </text>
        </g>
      ))}
      {props.title ? (
        <text class="axis-title" x="0" y={(props.top ?? 0) - 10}>
          {props.title}
        </text>
      ) : null}
    </g>
  );
}

function ends(scale: Scale): [number, number] {
  return [scale(scale.domain[0]), scale(scale.domain[1])];
}

/** A note beside the pointer; what it says is always said in text below the chart as well. */
export interface Tip {
  x: number;
  y: number;
  text: string;
}

export function TipNote({ tip, width }: { tip: Tip | null; width: number }): JSX.Element | null {
  if (!tip) return null;
  const flipped = tip.x > width / 2;
  const style = flipped
    ? { right: `${Math.max(0, width - tip.x + 12)}px`, top: `${tip.y + 12}px` }
    : { left: `${tip.x + 12}px`, top: `${tip.y + 12}px` };
  return (
    <div class="tip" style={style} aria-hidden="true">
      {tip.text}
    </div>
  );
}
