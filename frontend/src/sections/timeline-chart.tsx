/** Compilations over time, a row for every function; a mark that is chosen says what made it necessary. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count, seconds } from "../common/format";
import type { Capture } from "../data";
import { BottomAxis, ChartBox, NARROW } from "./chart/frame";
import { secondsLabel } from "./chart/labels";
import { linearScale, type Scale } from "./chart/scales";
import { shapePath, type Shape } from "./chart/series";
import { KINDS, type Mark, type Timeline, type TimelineRow } from "./timeline";

const ROW = 44;
/** Many rows are lower, and say less. */
const LOW_ROW = 30;
const MANY_ROWS = 10;
const FIRST_ROWS = 25;
const SHAPES: Record<Mark["kind"], Shape> = { first: "circle", recompile: "diamond", failed: "cross", other: "square" };

export function TimelineChart(props: {
  capture: Capture;
  timeline: Timeline;
  chosen: string | null;
  onChoose: (id: string) => void;
}): JSX.Element {
  const { timeline } = props;
  const [all, showAll] = useState(false);
  // Where there are many functions, those in which nothing but a first compilation happened say least.
  const rows = all || timeline.rows.length <= FIRST_ROWS ? timeline.rows : pick(timeline.rows);
  const kinds = [...new Set(timeline.rows.flatMap((row) => row.marks.map((mark) => mark.kind)))];
  return (
    <div class="timeline">
      <ul class="legend" aria-label="Marks">
        {kinds.map((kind) => (
          <li>
            <svg class={`swatch mark-${kind}`} width="16" height="14" viewBox="0 0 16 14" aria-hidden="true">
              <path d={shapePath(SHAPES[kind], 8, 7, 5)} />
            </svg>
            {KINDS[kind].title}
          </li>
        ))}
      </ul>
      <ChartBox>{(width) => <Rows {...props} rows={rows} width={width} />}</ChartBox>
      {rows.length < timeline.rows.length ? (
        <p class="more">
          {rows.length} of {count(timeline.rows.length, "function")}.{" "}
          <button type="button" onClick={() => showAll(true)}>
            Show all
          </button>
        </p>
      ) : null}
    </div>
  );
}

function pick(rows: TimelineRow[]): TimelineRow[] {
  const eventful = rows.filter((row) => row.eventful);
  return (eventful.length > 0 ? eventful : rows).slice(0, FIRST_ROWS);
}

function Rows(props: {
  timeline: Timeline;
  rows: TimelineRow[];
  width: number;
  chosen: string | null;
  onChoose: (id: string) => void;
}): JSX.Element {
  const { timeline, rows, width } = props;
  const narrow = width < NARROW;
  const left = narrow ? 8 : 250;
  const end = rows.reduce(
    (last, row) => row.marks.reduce((most, mark) => Math.max(most, mark.start + mark.length), last),
    1e-6,
  );
  const scale = linearScale([0, end], [left, width - 14]);
  const low = !narrow && rows.length > MANY_ROWS;
  const rowHeight = narrow ? ROW + 14 : low ? LOW_ROW : ROW;
  const height = rows.length * rowHeight;
  return (
    <svg
      class="plot"
      viewBox={`0 0 ${width} ${height + 38}`}
      width={width}
      height={height + 38}
      role="group"
      aria-label="Timeline of compilations. Each mark is a button that shows the cause."
    >
      {timeline.timed ? (
        <BottomAxis
          scale={scale}
          top={0}
          bottom={height}
          wished={Math.max(2, Math.floor((width - left) / 110))}
          label={(value) => secondsLabel(value, end)}
          title="since the first compilation"
        />
      ) : (
        <text class="axis-title" x={left} y={height + 18}>
          in the order they were compiled; no times were recorded
        </text>
      )}
      {rows.map((row, index) => {
        const top = index * rowHeight;
        const middle = top + (narrow ? 40 : rowHeight / 2);
        return (
          <g>
            <line class="row-line" x1="0" x2={width} y1={top + rowHeight - 0.5} y2={top + rowHeight - 0.5} />
            <text class="row-name" x={narrow ? left : 0} y={narrow ? top + 15 : low ? middle + 4 : middle - 3}>
              {shortened(row.name, narrow ? Math.floor((width - 90) / 8) : 32)}
            </text>
            {low ? null : (
              <text
                class="row-aside"
                x={narrow ? width - 8 : 0}
                y={narrow ? top + 15 : middle + 13}
                text-anchor={narrow ? "end" : "start"}
              >
                {count(row.marks.length, "version")}
              </text>
            )}
            {row.marks.map((mark) => (
              <MarkView
                mark={mark}
                scale={scale}
                middle={middle}
                low={low}
                chosen={props.chosen === mark.compilation.id}
                onChoose={props.onChoose}
              />
            ))}
          </g>
        );
      })}
    </svg>
  );
}

function shortened(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function MarkView(props: {
  mark: Mark;
  scale: Scale;
  middle: number;
  low: boolean;
  chosen: boolean;
  onChoose: (id: string) => void;
}): JSX.Element {
  const { mark, scale, middle } = props;
  const { id } = mark.compilation;
  const x = scale(mark.start);
  const wide = Math.max(2, scale(mark.start + mark.length) - x);
  const choose = (): void => props.onChoose(id);
  return (
    <g
      class={`mark mark-${mark.kind} ${props.chosen ? "chosen" : ""}`}
      role="button"
      tabindex={0}
      aria-pressed={props.chosen}
      aria-label={`${id}: ${KINDS[mark.kind].title}, ${seconds(mark.compilation.seconds)}`}
      onClick={choose}
      onKeyDown={(event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose())}
    >
      <title>{`${id}: ${KINDS[mark.kind].title}, ${seconds(mark.compilation.seconds)}`}</title>
      <rect class="target" x={x - 9} y={middle - 14} width={wide + 18} height="28" />
      <rect class="mark-bar" x={x} y={middle - 5} width={wide} height="10" rx="2" />
      <path class="mark-sign" d={shapePath(SHAPES[mark.kind], x, middle, props.chosen ? 8 : 6)} />
      {wide > 46 && !props.low ? (
        <text x={x + 12} y={middle - 9}>
          {id}
        </text>
      ) : null}
    </g>
  );
}
