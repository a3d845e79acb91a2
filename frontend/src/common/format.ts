/** Numbers as people read them, the same way as the reports in the terminal. */

export function seconds(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return "–";
  if (value < 0) return `−${seconds(-value)}`;
  if (value >= 60) {
    const whole = Math.round(value);
    return `${Math.floor(whole / 60).toLocaleString("en")} min ${whole % 60} s`;
  }
  if (value >= 10) return `${value.toFixed(1)} s`;
  if (value >= 1) return `${value.toFixed(2)} s`;
  if (value >= 1e-3) return `${(value * 1e3).toFixed(1)} ms`;
  return value === 0 ? "0 s" : `${(value * 1e6).toFixed(1)} µs`;
}

export function bytes(value: number): string {
  let rest = value;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (Math.abs(rest) < 1024) return unit === "B" ? `${Math.round(rest)} B` : `${rest.toFixed(1)} ${unit}`;
    rest /= 1024;
  }
  return `${rest.toFixed(1)} TiB`;
}

export function number(value: number): string {
  return value.toLocaleString("en");
}

/** A number with its noun: `1 graph break`, `2 graph breaks`. */
export function count(value: number, noun: string, plural?: string): string {
  return `${number(value)} ${value === 1 ? noun : (plural ?? `${noun}s`)}`;
}

export function percent(part: number, whole: number): string {
  if (!(whole > 0)) return "–";
  const share = (100 * part) / whole;
  return share > 0 && share < 1 ? "<1 %" : `${share.toFixed(0)} %`;
}

/** A figure and its unit stay on one line. */
export function together(text: string): string {
  return text.replace(/(\d) (?=%|ms\b|\u00b5s\b|s\b|min\b|KiB\b|MiB\b|GiB\b)/g, "$1\u00a0");
}

/** Names and conditions come from the user's program, and some hold a whole tensor: lists show the beginning. */
export const MAX_LETTERS = 300;
/** The most of one text that is shown at all. */
export const MAX_TEXT = 20_000;

/** The beginning of a text that is too long, with a sign that it goes on. */
export function shorten(text: string, most = MAX_LETTERS): string {
  if (text.length <= most) return text;
  // Half of a pair is no character.
  const last = text.charCodeAt(most - 2);
  return `${text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 2 : most - 1)}…`;
}

/** The part of a path after its last folders; Windows has two ways to part them. */
export function fileName(path: string, parts = 1): string {
  return path
    .split(/[\\/]+/)
    .slice(-parts)
    .join("/");
}
