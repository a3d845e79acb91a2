/** How a variant looks, the same in every chart: a color, a shape and a dash, so that no one of them carries it alone. */
import type { JSX } from "preact";

export interface Style {
  /** The number of its color in the style sheet; 0 is the neutral one. */
  color: number;
  shape: Shape;
  dash: string;
}

export type Shape = "circle" | "square" | "triangle" | "diamond" | "cross" | "down";

const SHAPES: Shape[] = ["square", "triangle", "diamond", "cross", "down", "circle"];
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 2"];
const COLOURS = 7;
const EAGER: Style = { color: 0, shape: "circle", dash: "" };

export type Styles = Map<string, Style>;

/** Styles by name, given out in the order the names are met; eager, which all others are held against, is the neutral one. */
export function stylesOf(variants: Iterable<string>): Styles {
  const styles: Styles = new Map();
  let next = 0;
  for (const name of variants) {
    if (styles.has(name)) continue;
    if (name === "eager") {
      styles.set(name, EAGER);
      continue;
    }
    styles.set(name, {
      color: 1 + (next % COLOURS),
      shape: SHAPES[next % SHAPES.length] ?? "square",
      dash: DASHES[next % DASHES.length] ?? "",
    });
    next += 1;
  }
  return styles;
}

export function styleOf(styles: Styles, variant: string): Style {
  return styles.get(variant) ?? EAGER;
}

/** The outline of a shape around a point. */
export function shapePath(shape: Shape, x: number, y: number, size: number): string {
  const point = (dx: number, dy: number): string => `${(x + dx * size).toFixed(1)} ${(y + dy * size).toFixed(1)}`;
  switch (shape) {
    case "circle":
      return `M${point(-1, 0)}a${size} ${size} 0 1 0 ${2 * size} 0a${size} ${size} 0 1 0 ${-2 * size} 0Z`;
    case "square":
      return `M${point(-0.9, -0.9)}L${point(0.9, -0.9)}L${point(0.9, 0.9)}L${point(-0.9, 0.9)}Z`;
    case "triangle":
      return `M${point(0, -1.1)}L${point(1.05, 0.8)}L${point(-1.05, 0.8)}Z`;
    case "down":
      return `M${point(0, 1.1)}L${point(1.05, -0.8)}L${point(-1.05, -0.8)}Z`;
    case "diamond":
      return `M${point(0, -1.2)}L${point(1.2, 0)}L${point(0, 1.2)}L${point(-1.2, 0)}Z`;
    case "cross":
      return (
        `M${point(-1.1, -0.6)}L${point(-0.6, -1.1)}L${point(0, -0.5)}L${point(0.6, -1.1)}L${point(1.1, -0.6)}L${point(0.5, 0)}` +
        `L${point(1.1, 0.6)}L${point(0.6, 1.1)}L${point(0, 0.5)}L${point(-0.6, 1.1)}L${point(-1.1, 0.6)}L${point(-0.5, 0)}Z`
      );
  }
}

/** What a variant looks like, beside its name. */
export function Swatch({ style }: { style: Style }): JSX.Element {
  return (
    <svg class={`swatch series-${style.color}`} width="30" height="14" viewBox="0 0 30 14" aria-hidden="true">
      <line class="series-line" x1="1" x2="29" y1="7" y2="7" stroke-dasharray={style.dash} />
      <path class="series-mark" d={shapePath(style.shape, 15, 7, 4)} />
    </svg>
  );
}
