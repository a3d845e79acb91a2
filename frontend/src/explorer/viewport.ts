/** What of the drawing is in view: pan and zoom as arithmetic, and the boxes that are worth an element. */
import type { Box, Line } from "./layout";

/** Screen = drawing × scale + offset. */
export interface View {
  x: number;
  y: number;
  scale: number;
}

export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

export const SMALLEST = 0.01;
export const LARGEST = 3;
/** Boxes lower than this on the screen are left out: their group stands for them. */
const LOWEST_BOX = 5;

export function clampScale(scale: number): number {
  return Math.min(LARGEST, Math.max(SMALLEST, scale));
}

/** Zooms so that the point of the screen stays where it is. */
export function zoomAt(view: View, factor: number, x: number, y: number): View {
  const scale = clampScale(view.scale * factor);
  const ratio = scale / view.scale;
  return { scale, x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio };
}

/** All of it, but never so small that nothing can be read off it: then its beginning. */
export function fit(box: Rectangle, width: number, height: number, least = 0): View {
  const margin = 12;
  const whole = Math.min((width - 2 * margin) / Math.max(box.width, 1), (height - 2 * margin) / Math.max(box.height, 1));
  const scale = clampScale(Math.min(1.15, Math.max(whole, least)));
  const spare = height - box.height * scale;
  return {
    scale,
    x: (width - box.width * scale) / 2 - box.x * scale,
    y: (spare > 0 ? Math.min(spare / 2, 40) : margin) - box.y * scale,
  };
}

/** How a drawing is first seen: whole where that can be read, else from its first box on. */
export function start(root: Box, width: number, height: number, comfortable: number): View {
  const whole = fit(root, width, height);
  if (whole.scale >= comfortable * 0.6) return whole;
  const first = readingOrder(root).find((box) => !box.open && box.group?.kind !== "inputs");
  if (!first) return whole;
  const middle = (first.x + first.width / 2) * comfortable;
  const top = first.y * comfortable;
  return { scale: comfortable, x: width / 2 - middle, y: top < height * 0.6 ? 12 : height / 4 - top };
}

/** Moves as little as needed for a box to be in view, and zooms in where it could not be read. */
export function bringIntoView(view: View, box: Rectangle, width: number, height: number, least: number): View {
  const scale = Math.max(view.scale, least);
  const moved = { scale, x: view.x, y: view.y };
  if (scale !== view.scale) {
    moved.x = width / 2 - (box.x + box.width / 2) * scale;
    moved.y = height / 2 - (box.y + box.height / 2) * scale;
    return moved;
  }
  const left = box.x * scale + view.x;
  const top = box.y * scale + view.y;
  const right = left + box.width * scale;
  const bottom = top + box.height * scale;
  if (left < 8 || right > width - 8) moved.x += width / 2 - (left + right) / 2;
  if (top < 8 || bottom > height - 8) moved.y += height / 3 - top;
  return moved;
}

/** The part of the drawing that a view shows, with a margin (a share of its size) so that small moves need no new elements. */
export function shown(view: View, width: number, height: number, margin: number): Rectangle {
  return {
    x: (-view.x - width * margin) / view.scale,
    y: (-view.y - height * margin) / view.scale,
    width: (width * (1 + 2 * margin)) / view.scale,
    height: (height * (1 + 2 * margin)) / view.scale,
  };
}

export function contains(outer: Rectangle, inner: Rectangle): boolean {
  return (
    inner.x >= outer.x &&
    inner.y >= outer.y &&
    inner.x + inner.width <= outer.x + outer.width &&
    inner.y + inner.height <= outer.y + outer.height
  );
}

function overlaps(one: Rectangle, other: Rectangle): boolean {
  return (
    one.x < other.x + other.width &&
    other.x < one.x + one.width &&
    one.y < other.y + other.height &&
    other.y < one.y + one.height
  );
}

function lineOverlaps(line: Line, area: Rectangle): boolean {
  let left = Infinity;
  let top = Infinity;
  let right = -Infinity;
  let bottom = -Infinity;
  for (const { x, y } of line.points) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  return overlaps({ x: left, y: top, width: right - left + 1, height: bottom - top + 1 }, area);
}

export interface Seen {
  boxes: Box[];
  lines: { line: Line; parent: Box }[];
  /** Open groups whose children are too small to be drawn. */
  dense: Set<Box>;
}

/** Boxes in the area from the outside in, without those that would be too small to see. */
export function seenIn(root: Box, area: Rectangle, scale: number): Seen {
  const seen: Seen = { boxes: [], lines: [], dense: new Set() };
  const visit = (box: Box): void => {
    if (!overlaps(box, area)) return;
    if (box !== root) seen.boxes.push(box);
    if (!box.open) return;
    if (smallestHeight(box) * scale < LOWEST_BOX) {
      seen.dense.add(box);
      return;
    }
    for (const line of box.edges) if (lineOverlaps(line, area)) seen.lines.push({ line, parent: box });
    for (const child of box.children) visit(child);
  };
  visit(root);
  return seen;
}

function smallestHeight(box: Box): number {
  let least = Infinity;
  for (const child of box.children) least = Math.min(least, child.height);
  // A few small ones between open groups must not hide these.
  const tallest = box.children.reduce((most, child) => Math.max(most, child.height), 0);
  return Math.max(least, tallest / 20);
}

/** All boxes from top to bottom as they are read, whether or not they are in view. */
export function readingOrder(root: Box): Box[] {
  const order: Box[] = [];
  const visit = (box: Box): void => {
    if (box !== root) order.push(box);
    for (const child of [...box.children].sort((one, other) => one.y - other.y || one.x - other.x)) visit(child);
  };
  visit(root);
  return order;
}

/** A smooth line through the points. */
export function pathOf(points: { x: number; y: number }[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${round(first.x)} ${round(first.y)}`;
  if (rest.length < 2) return rest.reduce((text, { x, y }) => `${text}L${round(x)} ${round(y)}`, path);
  for (let index = 0; index < rest.length - 1; index += 1) {
    const control = rest[index];
    const next = rest[index + 1];
    if (!control || !next) continue;
    const last = index === rest.length - 2;
    const end = last ? next : { x: (control.x + next.x) / 2, y: (control.y + next.y) / 2 };
    path += `Q${round(control.x)} ${round(control.y)} ${round(end.x)} ${round(end.y)}`;
  }
  return path;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
