/**
 * Compile phases as a flame chart.
 *
 * A click zooms to a phase, Escape or the button goes back. The chart is one stop of the Tab key; the arrow keys go from bar
 * to bar in it, and a line of text below says what the bar is.
 */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { percent, seconds, shorten } from "../common/format";
import type { Time } from "../data";
import { BottomAxis, ChartBox, type Tip, TipNote } from "./chart/frame";
import { secondsLabel } from "./chart/labels";
import { linearScale } from "./chart/scales";
import {
  type Bar,
  familyOf,
  FAMILIES,
  type Flame,
  layout,
  neighbor,
  parentsOf,
  type Phase,
  type View,
  wholeView,
} from "./flame";

const ROW = 21;
const GAP = 22;
const LETTER = 6.6;

export function FlameChart({ time }: { time: Time }): JSX.Element {
  const { phases } = time;
  const whole = useMemo(() => wholeView(phases), [phases]);
  const parents = useMemo(() => parentsOf(phases), [phases]);
  const [zoomed, setZoomed] = useState<number[]>([]);
  const [current, setCurrent] = useState(0);
  const inside = zoomed[zoomed.length - 1];
  const view = viewOf(phases, inside, whole);
  const zoom = (index: number): void => {
    setCurrent(index);
    if (index !== inside) setZoomed([...zoomed, index]);
  };
  const back = (): void => setZoomed(zoomed.slice(0, -1));
  const told = phases[current];
  return (
    <div class="flame" onKeyDown={(event) => event.key === "Escape" && zoomed.length > 0 && (back(), event.stopPropagation())}>
      <div class="chart-head">
        <ul class="legend" aria-label="Colors">
          {FAMILIES.map((family) => (
            <li>
              <span class={`key ${familyClass(family)}`} aria-hidden="true" />
              {family}
            </li>
          ))}
        </ul>
        <span class="chart-buttons">
          <button type="button" disabled={zoomed.length === 0} onClick={back}>
            Back
          </button>
          <button type="button" disabled={zoomed.length === 0} onClick={() => setZoomed([])}>
            Show all
          </button>
        </span>
      </div>
      <ChartBox>
        {(width) => (
          <Bars
            width={width}
            phases={phases}
            parents={parents}
            view={view}
            total={time.total}
            current={current}
            onCurrent={setCurrent}
            onZoom={zoom}
          />
        )}
      </ChartBox>
      <p class="chart-line" role="status">
        {told ? phaseText(told, time.total) : ""}
      </p>
    </div>
  );
}

function viewOf(phases: Phase[], inside: number | undefined, whole: View): View {
  const phase = inside === undefined ? undefined : phases[inside];
  return phase && phase.seconds > 0 ? [phase.start, phase.start + phase.seconds] : whole;
}

export function phaseText(phase: Phase, total: number): string {
  const within = phase.compilation ? ` of ${phase.compilation}` : "";
  return `${shorten(phase.name)}${within}: ${seconds(phase.seconds)} (${percent(phase.seconds, total)} of compile time), ${seconds(phase.own)} own time`;
}

function familyClass(family: string): string {
  return `family-${family.toLowerCase()}`;
}

interface BarsProps {
  width: number;
  phases: Phase[];
  parents: number[];
  view: View;
  total: number;
  current: number;
  onCurrent: (index: number) => void;
  onZoom: (index: number) => void;
}

function Bars(props: BarsProps): JSX.Element {
  const { width, phases, view, current } = props;
  const [tip, setTip] = useState<Tip | null>(null);
  const [focused, setFocused] = useState<number | null>(null);
  const svg = useRef<SVGSVGElement>(null);
  const flame = useMemo(() => layout(phases, view, width), [phases, view[0], view[1], width]);
  useEffect(() => {
    // Only after a key: the focus goes where the arrow led.
    if (focused !== null) svg.current?.querySelector<SVGGElement>(`[data-index="${focused}"]`)?.focus();
    setFocused(null);
  }, [focused]);
  const laneTop = laneTops(flame);
  const top = (bar: Bar): number =>
    (laneTop.get(laneOf(flame, bar.row)) ?? 0) + (bar.row - (flame.lanes[laneOf(flame, bar.row)]?.row ?? 0)) * ROW;
  const height = flame.rows * ROW + (flame.lanes.length - 1) * GAP;
  // The one bar that Tab leads to: the current one where it is in sight.
  const stop = flame.bars.some((bar) => bar.phase === current) ? current : (flame.bars[0]?.phase ?? 0);
  const scale = linearScale([view[0], view[1]], [0, width]);
  const onKey = (event: KeyboardEvent, bar: Bar): void => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      props.onZoom(bar.phase);
      return;
    }
    const next = neighbor(flame, props.parents, bar.phase, event.key);
    if (next === null) return;
    event.preventDefault();
    props.onCurrent(next);
    setFocused(next);
  };
  return (
    <>
      <svg
        ref={svg}
        class="plot"
        viewBox={`0 0 ${width} ${height + 38}`}
        width={width}
        height={height + 38}
        role="group"
        aria-label={`Compile phases over ${seconds(view[1] - view[0])}. Arrow keys go from phase to phase, Enter zooms, Escape goes back.`}
        onMouseLeave={() => setTip(null)}
      >
        <BottomAxis
          scale={scale}
          top={0}
          bottom={height + 4}
          wished={Math.max(2, Math.floor(width / 110))}
          label={(value) => secondsLabel(value, view[1])}
          title="since the first compilation"
        />
        {flame.lanes.map((lane, index) =>
          index > 0 ? (
            <text class="lane" x="0" y={(laneTop.get(index) ?? 0) - 6}>
              thread {lane.thread}, at the same time
            </text>
          ) : null,
        )}
        {flame.bars.map((bar) => {
          const phase = phases[bar.phase];
          if (!phase) return null;
          const y = top(bar);
          const letters = Math.floor((bar.width - 8) / LETTER);
          return (
            <g
              key={bar.phase}
              class={`flame-bar ${familyClass(familyOf(phase.name))} ${bar.phase === current ? "current" : ""}`}
              data-phase={shorten(phase.name)}
              data-index={bar.phase}
              role="button"
              tabindex={bar.phase === stop ? 0 : -1}
              aria-label={phaseText(phase, props.total)}
              transform={`translate(${bar.x.toFixed(2)} ${y})`}
              onClick={() => props.onZoom(bar.phase)}
              onFocus={() => props.onCurrent(bar.phase)}
              onKeyDown={(event) => onKey(event, bar)}
              onMouseMove={(event) => {
                const box = svg.current?.getBoundingClientRect();
                if (!box) return;
                const more = bar.merged > 1 ? ` · and ${bar.merged - 1} more too short to draw` : "";
                setTip({ x: event.clientX - box.left, y: event.clientY - box.top, text: phaseText(phase, props.total) + more });
              }}
            >
              <rect
                width={Math.max(0.5, bar.width - (bar.width > 3 ? 1 : 0)).toFixed(2)}
                height={ROW - 2}
                rx={bar.width > 6 ? 2 : 0}
              />
              {letters >= 3 ? (
                <text x="5" y="14">
                  {phase.name.length > letters ? `${phase.name.slice(0, letters - 1)}…` : phase.name}
                </text>
              ) : null}
            </g>
          );
        })}
      </svg>
      <TipNote tip={tip} width={width} />
    </>
  );
}

function laneOf(flame: Flame, row: number): number {
  return flame.lanes.findIndex((lane) => row >= lane.row && row < lane.row + lane.rows);
}

/** Where each lane begins, with room for its title before all but the first. */
function laneTops(flame: Flame): Map<number, number> {
  return new Map(flame.lanes.map((lane, index) => [index, lane.row * ROW + index * GAP]));
}
