/** What eager and each variant have cost in all after so many calls: where a line goes below eager's, its build has paid back. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count, number, seconds } from "../../common/format";
import type { TimingPoint } from "../../data";
import { BottomAxis, ChartBox, LeftAxis, NARROW } from "../chart/frame";
import { countLabel, secondsLabel } from "../chart/labels";
import { logScale } from "../chart/scales";
import { shapePath, type Styles, styleOf } from "../chart/series";
import { type Cost, callsBetween, costOf, crossing, reach, paybackText, totalAfter } from "./payback";
import { apart, eagerOf } from "./points";

const HEIGHT = 340;

export function PaybackChart({ point, styles }: { point: TimingPoint; styles: Styles }): JSX.Element | null {
  const measured = eagerOf(point);
  const eager = measured ? costOf(measured, measured) : null;
  const others = point.measurements
    .filter((item) => item !== measured)
    .map((item) => costOf(item, measured))
    .filter((cost): cost is Cost => cost !== null);
  if (!eager || others.length === 0) return null;
  return (
    <figure>
      <figcaption>
        <h4>When the build pays back</h4>
        <p class="note">
          Total seconds, including a cold build, by number of calls. Both axes are logarithmic; the bar below a crossing is its
          95 % interval.
        </p>
      </figcaption>
      <ChartBox most={1100}>{(width) => <Curves width={width} eager={eager} others={others} styles={styles} />}</ChartBox>
      <ul class="crossings">
        {point.measurements
          .filter((item) => item !== measured && item.median !== null)
          .map((item) => (
            <li>
              <strong>{item.variant}</strong> {crossingText(item.payback)}
            </li>
          ))}
      </ul>
    </figure>
  );
}

/** `pays back after 5,000 calls (4,800–5,300)`. */
function crossingText(payback: TimingPoint["measurements"][number]["payback"]): string {
  if (!payback) return "has no payback: no cold build was timed";
  if (payback.calls === null && payback.low === null) return "never pays back: calls are no faster than eager";
  if (payback.unclear)
    return `may pay back, but the samples do not show when: after ${count(payback.low ?? 0, "call")} at best, ${payback.high === null ? "never" : number(payback.high)} at worst`;
  return `pays back after ${paybackText(payback).replace(" (", " calls (")}`;
}

/** Labels of crossings that lie close together stand above each other, the others all at the top. */
function labelHeights(places: number[], lowest: number, room: number): number[] {
  const order = places.map((_, index) => index).sort((first, second) => (places[first] ?? 0) - (places[second] ?? 0));
  const heights = new Array<number>(places.length).fill(lowest);
  order.forEach((index, position) => {
    const before = order[position - 1];
    if (before === undefined || (places[index] ?? 0) - (places[before] ?? 0) > room) return;
    heights[index] = (heights[before] ?? lowest) + 14;
  });
  return heights;
}

function crossingLabel(cost: Cost, calls: number, narrow: boolean): string {
  const told = cost.unclear ? "unclear" : narrow ? number(Math.ceil(calls)) : count(Math.ceil(calls), "call");
  return narrow ? told : `${cost.variant}: ${told}`;
}

/** A crossing: a ring around it, its label above, and its interval at the foot, where each has a level of its own. */
function CrossingMark(props: {
  label: string;
  color: number;
  x: number;
  y: number;
  top: number;
  foot: number;
  ends: [left: number, right: number];
  between: [from: number, to: number] | null;
  level: number;
}): JSX.Element {
  const { x, top, foot, ends } = props;
  const half = props.label.length * 3.4;
  const anchor = x + half > ends[1] ? "end" : x - half < ends[0] ? "start" : "middle";
  const level = foot - 4 - props.level * 5;
  return (
    <g class={`crossing series-${props.color}`}>
      <line x1={x} x2={x} y1={top + 3} y2={foot} />
      <circle cx={x} cy={props.y} r="6" />
      <text x={x} y={top} text-anchor={anchor}>
        {props.label}
      </text>
      {props.between ? <line class="between" x1={props.between[0]} x2={props.between[1]} y1={level} y2={level} /> : null}
    </g>
  );
}

function Curves(props: { width: number; eager: Cost; others: Cost[]; styles: Styles }): JSX.Element {
  const { width, eager, others } = props;
  const [at, setAt] = useState<number | null>(null);
  const narrow = width < NARROW;
  const [least, most] = reach(eager, others);
  const calls = callsBetween(least, most);
  const costs = [eager, ...others];
  const [left, right, top, bottom] = [62, narrow ? width - 12 : width - 190, narrow ? 44 : 30, HEIGHT - 46];
  const x = logScale([least, most], [left, right]);
  const lowest = Math.min(...costs.map((cost) => totalAfter(cost, least)));
  const highest = Math.max(...costs.map((cost) => totalAfter(cost, most)));
  const y = logScale([lowest / 1.4, highest * 1.4], [bottom, top]);
  const ends = costs.map((cost) => y(totalAfter(cost, most)));
  const labels = apart(ends, 15, top, bottom);
  const crossings = others
    .map((cost) => ({ cost, calls: crossing(eager, cost) }))
    .filter((item): item is { cost: Cost; calls: number } => item.calls !== null && item.calls >= least && item.calls <= most);
  const heights = labelHeights(
    crossings.map((item) => x(item.calls)),
    top - 6,
    narrow ? 64 : 180,
  );
  const pointed = at ?? most;
  const move = (event: MouseEvent & { currentTarget: SVGSVGElement }): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (((event.clientX - box.left) / box.width) * width - left) / (right - left);
    setAt(share >= 0 && share <= 1 ? Math.round(least * (most / least) ** share) : null);
  };
  const step = (factor: number): void =>
    setAt(Math.max(least, Math.min(most, Math.round((at ?? Math.sqrt(least * most)) * factor))));
  const keys: Record<string, number> = { ArrowRight: 1.25, ArrowLeft: 0.8, PageUp: 10, PageDown: 0.1 };
  const told = `After ${count(pointed, "call")}: ${costs.map((cost) => `${cost.variant} ${seconds(totalAfter(cost, pointed))}`).join(", ")}`;
  return (
    <>
      <svg
        class="plot"
        viewBox={`0 0 ${width} ${HEIGHT}`}
        width={width}
        height={HEIGHT}
        role="slider"
        tabindex={0}
        aria-label="Total seconds by number of calls. Arrow keys choose the number of calls."
        aria-valuemin={least}
        aria-valuemax={most}
        aria-valuenow={pointed}
        aria-valuetext={told}
        onMouseMove={move}
        onMouseLeave={() => setAt(null)}
        onKeyDown={(event) => {
          const factor = keys[event.key];
          if (factor !== undefined) {
            event.preventDefault();
            step(factor);
          }
        }}
      >
        <LeftAxis scale={y} left={left} right={right} wished={8} label={secondsLabel} />
        <BottomAxis
          scale={x}
          top={bottom}
          bottom={bottom}
          wished={Math.max(3, Math.floor((right - left) / 80))}
          label={countLabel}
          title="calls"
        />
        {crossings.map((item, index) => (
          <CrossingMark
            label={crossingLabel(item.cost, item.calls, narrow)}
            color={styleOf(props.styles, item.cost.variant).color}
            x={x(item.calls)}
            y={y(totalAfter(eager, item.calls))}
            top={heights[index] ?? top}
            foot={bottom}
            ends={[left, right]}
            between={
              item.cost.between
                ? [x(Math.max(least, item.cost.between[0])), x(Math.min(most, item.cost.between[1] ?? most))]
                : null
            }
            level={index}
          />
        ))}
        {costs.map((cost, index) => {
          const style = styleOf(props.styles, cost.variant);
          const never = index > 0 && crossing(eager, cost) === null;
          return (
            <g class={`series-${style.color}`} data-curve={cost.variant}>
              <path
                class="series-line"
                stroke-dasharray={style.dash}
                d={`M${calls.map((value) => `${x(value).toFixed(1)} ${y(totalAfter(cost, value)).toFixed(1)}`).join("L")}`}
              />
              <path class="series-mark" d={shapePath(style.shape, x(most), ends[index] ?? 0, 4.5)} />
              {narrow ? null : (
                <>
                  <line class="leader" x1={right + 5} x2={right + 13} y1={ends[index]} y2={labels[index]} />
                  <text class="series-label" x={right + 16} y={(labels[index] ?? 0) + 4}>
                    {cost.variant}
                    {never ? " (never)" : ""}
                  </text>
                </>
              )}
            </g>
          );
        })}
        {at !== null ? <line class="pointed" x1={x(at)} x2={x(at)} y1={top} y2={bottom} /> : null}
      </svg>
      <p class="chart-line">{told}</p>
    </>
  );
}
