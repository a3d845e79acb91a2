/** Every sample of every variant as a dot, with the median and its interval: how far the calls scatter, at a glance. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { count, seconds } from "../../common/format";
import type { Measurement, TimingPoint } from "../../data";
import { BottomAxis, ChartBox, NARROW } from "../chart/frame";
import { secondsLabel } from "../chart/labels";
import { highest, linearScale, logScale, padded, type Scale, wantsLog } from "../chart/scales";
import { shapePath, type Style, type Styles, styleOf } from "../chart/series";
import { pile } from "./pile";

const ROW = 62;
/** Where the slowest sample takes this many times as long as the fastest, a linear axis would show little but outliers. */
const FAR = 3;

export function SamplesChart({ point, styles }: { point: TimingPoint; styles: Styles }): JSX.Element | null {
  const ran = point.measurements.filter((item) => item.samples.length > 0);
  if (ran.length === 0) return null;
  return (
    <figure>
      <figcaption>
        <h4>Samples</h4>
        <p class="note">
          Each dot is a call; the mark is the median, and the bar behind it is its 95 % confidence interval.
          {isLog(ran) ? " The axis is logarithmic." : ""}
        </p>
      </figcaption>
      <ChartBox>{(width) => <Rows width={width} ran={ran} styles={styles} />}</ChartBox>
    </figure>
  );
}

function isLog(ran: Measurement[]): boolean {
  return wantsLog(
    ran.flatMap((item) => item.samples),
    FAR,
  );
}

function Rows({ width, ran, styles }: { width: number; ran: Measurement[]; styles: Styles }): JSX.Element {
  const narrow = width < NARROW;
  const left = narrow ? 10 : 170;
  const row = narrow ? ROW + 16 : ROW;
  const height = ran.length * row;
  const values = ran.flatMap((item) => item.samples);
  const log = isLog(ran);
  const domain = padded(values, log, 0.03);
  const scale = (log ? logScale : linearScale)(domain, [left, width - 16]);
  const like = log ? undefined : highest(values);
  return (
    <svg
      class="plot"
      viewBox={`0 0 ${width} ${height + 38}`}
      width={width}
      height={height + 38}
      role="img"
      aria-label={ran
        .map((item) => `${item.variant}: ${count(item.samples.length, "sample")}, median ${seconds(item.median)}`)
        .join("; ")}
    >
      <BottomAxis
        scale={scale}
        top={0}
        bottom={height}
        wished={Math.max(2, Math.floor((width - left) / 90))}
        label={(value) => secondsLabel(value, like ?? value)}
        title="call time"
      />
      {ran.map((item, index) => (
        <OneRow item={item} style={styleOf(styles, item.variant)} scale={scale} top={index * row} left={left} narrow={narrow} />
      ))}
    </svg>
  );
}

function OneRow(props: {
  item: Measurement;
  style: Style;
  scale: Scale;
  top: number;
  left: number;
  narrow: boolean;
}): JSX.Element {
  const { item, style, scale, top, narrow } = props;
  const middle = top + (narrow ? 16 : 0) + ROW / 2;
  // One path for all dots: a thousand elements would be slow to make and to lay out.
  const dots = useMemo(
    () =>
      pile(item.samples.map(scale), 3.4, ROW / 2 - 5)
        .map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`)
        .join(""),
    [item, scale.domain[0], scale.domain[1], props.left, scale(scale.domain[1])],
  );
  return (
    <g class={`series-${style.color}`}>
      <line
        class="row-line"
        x1="0"
        x2={scale(scale.domain[1])}
        y1={top + (narrow ? 16 : 0) + ROW - 0.5}
        y2={top + (narrow ? 16 : 0) + ROW - 0.5}
      />
      <text class="row-name" x={narrow ? props.left : 0} y={narrow ? top + 14 : middle - 4}>
        {item.variant}
      </text>
      <text
        class="row-aside"
        x={narrow ? scale(scale.domain[1]) : 0}
        y={narrow ? top + 14 : middle + 12}
        text-anchor={narrow ? "end" : "start"}
      >
        {count(item.samples.length, "sample")}
      </text>
      {item.low !== null && item.high !== null ? (
        <rect
          class="interval"
          x={scale(item.low)}
          width={Math.max(1, scale(item.high) - scale(item.low))}
          y={middle - ROW / 2 + 4}
          height={ROW - 8}
        />
      ) : null}
      <path class="dots" d={dots} transform={`translate(0 ${middle})`} />
      {item.median !== null ? (
        <>
          <line
            class="median"
            x1={scale(item.median)}
            x2={scale(item.median)}
            y1={middle - ROW / 2 + 4}
            y2={middle + ROW / 2 - 4}
          />
          <path class="series-mark outlined" d={shapePath(style.shape, scale(item.median), middle, 5.5)} />
        </>
      ) : null}
    </g>
  );
}
