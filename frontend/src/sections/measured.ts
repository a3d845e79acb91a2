/** Measurements in the tables of lessons: cells that are a quantity with its unit, and ratios with their interval. */
import type { LessonTable } from "../data";

const TIMES: Record<string, number> = { ns: 1e-9, µs: 1e-6, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };
const SIZES: Record<string, number> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

export type Kind = "time" | "size" | "share";

export interface Quantity {
  kind: Kind;
  value: number;
}

/** What a cell says, where it is nothing but a quantity: `8.84 s`, `2 min 12 s`, `225.5 KiB`, `70 %`. */
export function quantity(text: string): Quantity | null {
  const cell = text.trim();
  const share = /^(\d[\d,]*(?:\.\d+)?) ?%$/.exec(cell);
  if (share) return { kind: "share", value: parsed(share[1]) };
  const parts = [...cell.matchAll(/(\d[\d,]*(?:\.\d+)?) ?([A-Za-z\u00b5]+)/g)];
  if (parts.length === 0 || parts.map((part) => part[0]).join(" ") !== cell) return null;
  const units = parts.map((part) => part[2] ?? "");
  const sum = (scale: Record<string, number>): number =>
    parts.reduce((total, part) => total + parsed(part[1]) * (scale[part[2] ?? ""] ?? 0), 0);
  if (units.every((unit) => Object.hasOwn(TIMES, unit))) return { kind: "time", value: sum(TIMES) };
  if (units.length === 1 && units.every((unit) => Object.hasOwn(SIZES, unit))) return { kind: "size", value: sum(SIZES) };
  return null;
}

function parsed(text: string | undefined): number {
  return Number((text ?? "").replaceAll(",", ""));
}

/** The ends of an interval: `0.63 to 0.65`. */
export function interval(text: string): [low: number, high: number] | null {
  const ends = /^(\d+(?:\.\d+)?) to (\d+(?:\.\d+)?)$/.exec(text.trim());
  return ends ? [Number(ends[1]), Number(ends[2])] : null;
}

export interface Bar {
  label: string;
  text: string;
  value: number;
  /** Of a ratio: the ends of its interval. */
  ends: [low: number, high: number] | null;
}

export interface Measured {
  title: string;
  kind: Kind | "ratio";
  bars: Bar[];
  /** The end of the scale, which begins at 0. */
  most: number;
}

/** With more rows a chart is no quicker to read than its table. */
const MAX_ROWS = 16;
const MAX_CHARTS = 3;

/** What can be drawn of a table: its columns of measurements, each with a bar for every row that has one. */
export function measuredColumns(table: LessonTable): Measured[] {
  if (table.rows.length < 2 || table.rows.length > MAX_ROWS) return [];
  const found = table.columns.map((_, column) => ratios(table, column) ?? quantities(table, column));
  const charts = found.filter((chart) => chart !== null);
  // A ratio with its interval is what the times beside it were measured for.
  const ratio = charts.filter((chart) => chart.kind === "ratio");
  return (ratio.length > 0 ? ratio : charts).slice(0, MAX_CHARTS);
}

function quantities(table: LessonTable, column: number): Measured | null {
  if (table.columns[column]?.align !== "right") return null;
  const cells = table.rows.map((row) => quantity(row[column] ?? ""));
  const kinds = new Set(cells.filter((cell) => cell !== null).map((cell) => cell.kind));
  const [kind] = kinds;
  if (kind === undefined || kinds.size > 1) return null;
  const bars = table.rows.flatMap((row, index): Bar[] => {
    const cell = cells[index];
    return cell ? [{ label: labelOf(table, row), text: row[column] ?? "", value: cell.value, ends: null }] : [];
  });
  return finished(table, column, kind, bars, kind === "share" ? 100 : 0);
}

/** A column of ratios such as `1.84×`, followed by a column with their intervals. */
function ratios(table: LessonTable, column: number): Measured | null {
  const bars = table.rows.flatMap((row): Bar[] => {
    const text = (row[column] ?? "").trim();
    const ends = interval(row[column + 1] ?? "");
    if (!ends || !/^\d+(\.\d+)?\u00d7?$/.test(text)) return [];
    return [{ label: labelOf(table, row), text, value: Number(text.replace("×", "")), ends }];
  });
  return finished(table, column, "ratio", bars, 1);
}

function finished(table: LessonTable, column: number, kind: Measured["kind"], bars: Bar[], least: number): Measured | null {
  const most = Math.max(least, ...bars.map((bar) => bar.ends?.[1] ?? bar.value));
  if (bars.length < 2 || !(most > 0) || !bars.every((bar) => Number.isFinite(bar.value))) return null;
  return { title: table.columns[column]?.title ?? "", kind, bars, most };
}

/** What tells a row from the others: its first cell, and the whole number beside it where rows share their first. */
function labelOf(table: LessonTable, row: string[]): string {
  const shared = new Set(table.rows.map((other) => other[0])).size < table.rows.length;
  const [first = "", second = ""] = row;
  return shared && /^\d[\d,]*$/.test(second) ? `${first}, ${(table.columns[1]?.title ?? "").toLowerCase()} ${second}` : first;
}
