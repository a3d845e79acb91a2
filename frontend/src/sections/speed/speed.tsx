/** How fast the variants are, and whether that is worth their build. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { count } from "../../common/format";
import { Nothing, Section } from "../../common/section";
import type { Capture, Timing } from "../../data";
import { Swatch, type Styles, stylesOf } from "../chart/series";
import { PaybackChart } from "./payback-chart";
import { pointName } from "./points";
import { SamplesChart } from "./samples-chart";
import { SweepChart } from "./sweep-chart";
import { SpeedTable } from "./table";

/** The styles of all variants of a capture: one look for each, in every timing. */
export function variantStyles(capture: Pick<Capture, "timings">): Styles {
  return stylesOf(
    capture.timings.flatMap((timing) => timing.points.flatMap((point) => point.measurements.map((item) => item.variant))),
  );
}

export function Speed({ capture }: { capture: Capture }): JSX.Element {
  const styles = useMemo(() => variantStyles(capture), [capture]);
  return (
    <Section id="speed" title="Speed">
      {capture.timings.length === 0 ? (
        <Nothing>
          Nothing was timed. <code>compile-inspect bench TARGET --capture FILE</code> times eager and every variant, and shows
          when the build pays back.
        </Nothing>
      ) : null}
      {capture.timings.map((timing, index) => (
        <OneTiming timing={timing} index={index} styles={styles} />
      ))}
    </Section>
  );
}

function OneTiming({ timing, index: number, styles }: { timing: Timing; index: number; styles: Styles }): JSX.Element {
  // The verdict speaks of the last size, so that is the one shown first.
  const [chosen, choose] = useState(timing.points.length - 1);
  const point = timing.points[chosen];
  const variants = [...new Set(timing.points.flatMap((item) => item.measurements.map((one) => one.variant)))];
  const about = [
    timing.device,
    timing.hardware,
    timing.torch && `torch ${timing.torch}`,
    timing.threads > 0 ? count(timing.threads, "thread") : "",
    timing.gradients ? "forward and backward" : "forward only",
    timing.interrupted && `interrupted while ${timing.interrupted}`,
  ];
  return (
    <div class="timing">
      <h3>
        <code>{timing.target}</code> <span class="aside">{about.filter(Boolean).join(" · ")}</span>
      </h3>
      {timing.points.length > 1 ? (
        <fieldset class="point-choice">
          <legend>At</legend>
          {timing.points.map((item, index) => (
            <label class={index === chosen ? "picked" : ""}>
              <input
                type="radio"
                name={`point-of-timing-${number}`}
                checked={index === chosen}
                onChange={() => choose(index)}
              />
              {pointName(item)}
            </label>
          ))}
        </fieldset>
      ) : null}
      {point ? (
        <>
          {point.inputs.length > 0 ? (
            <p class="aside">
              Inputs: <code>{point.inputs.join(", ")}</code>
            </p>
          ) : null}
          <SpeedTable
            point={point}
            notes={timing.notes}
            styles={styles}
            caption={`Speed of ${timing.target} at ${pointName(point)}`}
          />
          <ul class="legend" aria-label="Variants">
            {variants.map((variant) => (
              <li>
                <Swatch style={styles.get(variant) ?? { color: 0, shape: "circle", dash: "" }} />
                {variant}
              </li>
            ))}
          </ul>
          <SamplesChart point={point} styles={styles} />
          <PaybackChart point={point} styles={styles} />
        </>
      ) : (
        <Nothing>Nothing was measured.</Nothing>
      )}
      <SweepChart timing={timing} styles={styles} chosen={chosen} onChoose={choose} />
    </div>
  );
}
