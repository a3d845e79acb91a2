/** From values to places on a chart, and the round values that an axis is marked at. */

export interface Scale {
  (value: number): number;
  domain: [low: number, high: number];
  log: boolean;
}

type Range = [low: number, high: number];

/** A scale that is the same everywhere. A domain of one value lies in the middle. */
export function linearScale(domain: Range, range: Range): Scale {
  const [low, high] = domain;
  const scale = (value: number): number =>
    high === low ? (range[0] + range[1]) / 2 : range[0] + ((value - low) / (high - low)) * (range[1] - range[0]);
  return Object.assign(scale, { domain, log: false });
}

/** A scale on which ten times as much is always the same way further. What is not above zero lies at its lower end. */
export function logScale(domain: Range, range: Range): Scale {
  const [low, high] = [Math.log(domain[0]), Math.log(domain[1])];
  const scale = (value: number): number => {
    if (!(value > 0)) return range[0];
    return high === low
      ? (range[0] + range[1]) / 2
      : range[0] + ((Math.log(value) - low) / (high - low)) * (range[1] - range[0]);
  };
  return Object.assign(scale, { domain, log: true });
}

/** Whether values spread so far that a linear axis would press the small ones together. */
export function wantsLog(values: number[], times: number): boolean {
  if (values.length === 0 || values.some((value) => !(value > 0))) return false;
  return highest(values) / lowest(values) >= times;
}

export function lowest(values: number[]): number {
  return values.reduce((low, value) => Math.min(low, value), Infinity);
}

export function highest(values: number[]): number {
  return values.reduce((high, value) => Math.max(high, value), -Infinity);
}

/** A domain with some room at both ends, so that no mark sits on the edge. */
export function padded(values: number[], log: boolean, share = 0.05): Range {
  const [low, high] = [lowest(values), highest(values)];
  if (!Number.isFinite(low) || !Number.isFinite(high)) return log ? [1, 10] : [0, 1];
  if (log) {
    const factor = high > low ? (high / low) ** share : 1.5;
    return [low / factor, high * factor];
  }
  const room = high > low ? (high - low) * share : Math.abs(low) * 0.1 || 1;
  return [low - room, high + room];
}

/** Round values between two ends, about as many as wished for: steps of 1, 2 or 5 times a power of ten. */
export function linearTicks([low, high]: Range, wished: number): number[] {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [low];
  const rough = span / Math.max(1, wished);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) ?? 10);
  const ticks: number[] = [];
  // Counting in whole steps keeps 0.3 from becoming 0.30000000000000004.
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index++) {
    ticks.push(Number((index * step).toPrecision(12)));
  }
  return ticks;
}

/** Powers of ten between two ends; with round multiples of them where there are few, and fewer of them where there are many. */
export function logTicks([low, high]: Range, wished: number): number[] {
  if (!(low > 0) || !(high > low) || !Number.isFinite(high)) return low > 0 ? [low] : [];
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const powers = Math.log10(high / low);
  const factors = powers * 6 <= wished ? [1, 1.5, 2, 3, 5, 7] : powers * 3 <= wished ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil(powers / Math.max(1, wished)));
  const ticks: number[] = [];
  for (let power = first; power <= last; power++) {
    if (factors.length === 1 && (power - first) % every !== 0) continue;
    for (const factor of factors) {
      const value = Number((factor * 10 ** power).toPrecision(12));
      if (value >= low * 0.999999 && value <= high * 1.000001) ticks.push(value);
    }
  }
  // Less than a power of ten apart there may be no round power between the ends at all.
  return ticks.length >= 2 ? ticks : linearTicks([low, high], Math.min(4, wished)).filter((value) => value > 0);
}

export function ticksOf(scale: Scale, wished: number): number[] {
  return scale.log ? logTicks(scale.domain, wished) : linearTicks(scale.domain, wished);
}
