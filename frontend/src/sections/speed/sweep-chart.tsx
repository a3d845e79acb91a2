/** The median of every variant over the sizes that were swept. */
import type { JSX } from "preact";
import { number, seconds } from "../../common/format";
import type { Timing } from "../../data";
import { BottomAxis, ChartBox, LeftAxis, NARROW } from "../chart/frame";
import { secondsLabel } from "../chart/labels";
import { highest, linearScale, logScale, padded, wantsLog } from "../chart/scales";
import { shapePath, type Styles, styleOf } from "../chart/series";
import { apart, pointName, type Swept, sweptSize, sweptVariants } from "./points";

const HEIGHT = 320;

export function SweepChart(props: {
  timing: Timing;
  styles: Styles;
  chosen: number;
  onChoose: (point: number) => void;
}): JSX.Element | null {
  const variants = sweptVariants(props.timing);
  if (props.timing.points.length < 2 || variants.length === 0) return null;
  const size = sweptSize(props.timing.points);
  return (
    <figure>
      <figcaption>
        <h4>Over {size ? size.name : "the points"}</h4>
        <p class="note">The median call time with its interval. Select a point to see its samples and payback.</p>
      </figcaption>
      <ChartBox most={1100}>{(width) => <Lines {...props} width={width} variants={variants} />}</ChartBox>
    </figure>
  );
}

function Lines(props: {
  timing: Timing;
  styles: Styles;
  chosen: number;
  onChoose: (point: number) => void;
  width: number;
  variants: Swept[];
}): JSX.Element {
  const { timing, width, variants } = props;
  const size = sweptSize(timing.points);
  const places = timing.points.map((_, index) => size?.values[index] ?? index);
  const [left, right, top, bottom] = [62, width < NARROW ? width - 12 : width - 175, 24, HEIGHT - 44];
  const logX = size !== null && wantsLog(places, 8);
  const heights = variants.flatMap((item) => item.points.flatMap((point) => [point.low, point.high]));
  const logY = wantsLog(heights, 6);
  const x = (logX ? logScale : linearScale)(padded(places, logX, 0.04), [left, right]);
  const y = (logY ? logScale : linearScale)(logY ? padded(heights, true, 0.08) : [0, highest(heights) * 1.1], [bottom, top]);
  const like = logY ? undefined : highest(heights);
  const ends = variants.map((item) => y(item.points[item.points.length - 1]?.median ?? 0));
  const labels = apart(ends, 15, top, bottom);
  const chosenAt = x(places[props.chosen] ?? 0);
  return (
    <svg
      class="plot"
      viewBox={`0 0 ${width} ${HEIGHT}`}
      width={width}
      height={HEIGHT}
      role="group"
      aria-label={variants
        .map((item) => `${item.variant}: ${item.points.map((point) => `${point.x}: ${seconds(point.median)}`).join(", ")}`)
        .join("; ")}
    >
      <LeftAxis
        scale={y}
        left={left}
        right={right}
        wished={5}
        label={(value) => secondsLabel(value, like ?? value)}
        title="median call time"
        top={top}
      />
      <BottomAxis
        scale={x}
        // Sizes that were measured are what the axis is marked at, as long as there is room for them.
        ticks={thinned(places, x, 46)}
        top={bottom}
        bottom={bottom}
        wished={6}
        label={(value) => (size ? number(value) : `point ${value + 1}`)}
        title={size?.name ?? ""}
      />
      <line class="chosen-line" x1={chosenAt} x2={chosenAt} y1={top} y2={bottom} />
      {variants.map((item, index) => {
        const style = styleOf(props.styles, item.variant);
        const upper = item.points.map((point) => `${x(point.x).toFixed(1)} ${y(point.high).toFixed(1)}`);
        const lower = [...item.points].reverse().map((point) => `${x(point.x).toFixed(1)} ${y(point.low).toFixed(1)}`);
        return (
          <g class={`series-${style.color}`}>
            <path class="band" d={`M${[...upper, ...lower].join("L")}Z`} />
            <path
              class="series-line"
              stroke-dasharray={style.dash}
              d={`M${item.points.map((point) => `${x(point.x).toFixed(1)} ${y(point.median).toFixed(1)}`).join("L")}`}
            />
            {item.points.map((point) => (
              <path class="series-mark outlined" d={shapePath(style.shape, x(point.x), y(point.median), 4.5)} />
            ))}
            {width < NARROW ? null : (
              <>
                <line class="leader" x1={right + 2} x2={right + 12} y1={ends[index]} y2={labels[index]} />
                <text class="series-label" x={right + 15} y={(labels[index] ?? 0) + 4}>
                  {item.variant}
                </text>
              </>
            )}
          </g>
        );
      })}
      {timing.points.map((point, index) => {
        const at = x(places[index] ?? 0);
        const told = `${pointName(point)}: ${point.measurements.map((item) => `${item.variant} ${item.median === null ? "did not run" : seconds(item.median)}`).join(", ")}`;
        return (
          <g
            class="sweep-point"
            role="button"
            tabindex={0}
            aria-pressed={index === props.chosen}
            aria-label={told}
            onClick={() => props.onChoose(index)}
            onKeyDown={(event) =>
              (event.key === "Enter" || event.key === " ") && (event.preventDefault(), props.onChoose(index))
            }
          >
            <title>{told}</title>
            <rect x={at - 14} y={top} width="28" height={bottom - top} />
          </g>
        );
      })}
    </svg>
  );
}

/** Values of an axis that lie at least so many pixels apart. */
export function thinned(values: number[], scale: (value: number) => number, gap: number): number[] {
  const kept: number[] = [];
  for (const value of [...new Set(values)].sort((first, second) => first - second)) {
    const last = kept[kept.length - 1];
    if (last === undefined || scale(value) - scale(last) >= gap) kept.push(value);
  }
  return kept;
}
