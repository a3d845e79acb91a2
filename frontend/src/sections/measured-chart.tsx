/** Small charts of the measurements in a table: a row for each, drawn to one scale. The table below holds the same figures. */
import type { JSX } from "preact";
import { shorten } from "../common/format";
import { Prose } from "../common/prose";
import type { LessonTable } from "../data";
import { type Bar, type Measured, measuredColumns } from "./measured";

export function MeasuredCharts({ table }: { table: LessonTable }): JSX.Element | null {
  const charts = measuredColumns(table);
  if (charts.length === 0) return null;
  return (
    <figure class="measured" data-measured={shorten(table.title)} aria-label={`${shorten(table.title)}, drawn`}>
      <figcaption>{shorten(table.title)}</figcaption>
      <div class="measured-charts">
        {charts.map((chart) => (
          <div class="measured-chart" data-chart={chart.kind}>
            <h5>
              {shorten(chart.title, 80)}
              {chart.kind === "ratio" ? <span class="aside"> 1 is eager; higher is faster</span> : null}
            </h5>
            <dl>
              {chart.bars.map((bar) => (
                <>
                  <dt title={bar.label}>
                    <Prose text={shorten(bar.label, 70)} />
                  </dt>
                  <dd>
                    <Drawn chart={chart} bar={bar} />
                    <span class="measured-value">{shorten(bar.text, 40)}</span>
                  </dd>
                </>
              ))}
            </dl>
          </div>
        ))}
      </div>
    </figure>
  );
}

const WIDTH = 200;

function Drawn({ chart, bar }: { chart: Measured; bar: Bar }): JSX.Element {
  const place = (value: number): number => (WIDTH * value) / chart.most;
  const side = bar.ends === null ? "" : bar.ends[0] > 1 ? "faster" : bar.ends[1] < 1 ? "slower" : "same";
  return (
    <svg viewBox={`0 0 ${WIDTH} 12`} preserveAspectRatio="none" aria-hidden="true" class={`measured-bar ${side}`}>
      <rect class="track" width={WIDTH} height="12" />
      <rect class="bar" width={place(bar.value)} height="12" />
      {bar.ends ? (
        <>
          <line class="one" x1={place(1)} x2={place(1)} y1="0" y2="12" />
          <line class="halo" x1={place(bar.ends[0])} x2={place(bar.ends[1])} y1="6" y2="6" />
          <line class="whisker" x1={place(bar.ends[0])} x2={place(bar.ends[1])} y1="6" y2="6" />
        </>
      ) : null}
    </svg>
  );
}
