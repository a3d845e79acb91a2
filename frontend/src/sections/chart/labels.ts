/** Values as they stand at an axis: short, and no more exact than they are. */

const UNITS: [size: number, unit: string][] = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"],
];

function trimmed(value: number): string {
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 });
}

/** `1 s`, `500 ms`, `0.5 ms`: in the unit of `like`, so that the labels of a linear axis can be held against each other. */
export function secondsLabel(value: number, like = value): string {
  if (value === 0) return "0";
  const [size, unit] = UNITS.find(([at]) => Math.abs(like) >= at * 0.9999) ?? [1e-9, "ns"];
  return `${trimmed(value / size)} ${unit}`;
}

/** `1`, `250`, `1k`, `20M`: how many. */
export function countLabel(value: number): string {
  const scales: [number, string][] = [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ];
  const [size, letter] = scales.find(([at]) => Math.abs(value) >= at * 0.9999) ?? [1, ""];
  return `${trimmed(value / size)}${letter}`;
}

/** Bytes in the unit of `like`, without places that are all zero. */
export function bytesLabel(value: number, like = value): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(4, Math.max(0, Math.floor(Math.log2(Math.max(1, Math.abs(like))) / 10)));
  return value === 0 ? "0" : `${trimmed(value / 1024 ** power)} ${units[power]}`;
}

/** Round numbers of bytes: powers of two, as memory comes in them. */
export function byteTicks(high: number, wished: number): number[] {
  if (!(high > 0)) return [0];
  let step = 2 ** Math.ceil(Math.log2(high / Math.max(1, wished)));
  step = Math.max(1, step);
  const ticks: number[] = [];
  for (let value = 0; value <= high; value += step) ticks.push(value);
  return ticks;
}
