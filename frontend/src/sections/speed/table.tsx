/** The measurements of one point as a table, with the warnings about them as footnotes. */
import type { JSX } from "preact";
import { bytes, seconds } from "../../common/format";
import type { Measurement, TimingPoint, Tone } from "../../data";
import { Swatch, type Styles, styleOf } from "../chart/series";
import { Folded } from "../parts/folded";
import { Table } from "../parts/table";
import { ToneText } from "../parts/tone";
import { paybackText } from "./payback";

export function SpeedTable(props: { point: TimingPoint; notes: string[]; styles: Styles; caption: string }): JSX.Element {
  const { measurements } = props.point;
  const warnings = [...new Set(measurements.flatMap((item) => item.warnings))];
  const assuming = measurements.filter((item) => item.assumes.length > 0);
  return (
    <>
      <Table
        caption={props.caption}
        quietCaption
        columns={[
          { title: "Variant" },
          { title: "Median call time", figures: true },
          { title: "Speedup over eager", figures: true },
          { title: "Build", figures: true },
          { title: "Pays back after", figures: true },
          { title: "Peak memory", figures: true },
          { title: "Warnings" },
        ]}
      >
        {measurements.map((item) => (
          <Row item={item} styles={props.styles} warnings={warnings} />
        ))}
      </Table>
      {props.notes.length > 0 ? (
        <ul class="builds" aria-label="Builds">
          {props.notes.map((note) => (
            <li>{note}</li>
          ))}
        </ul>
      ) : null}
      {warnings.length > 0 ? (
        <ol class="warnings" aria-label="Warnings">
          {warnings.map((warning, index) => (
            <li>
              <span class="letter">{letter(index)}</span> {warning}
            </li>
          ))}
        </ol>
      ) : null}
      {assuming.length > 0 ? (
        <Folded printed summary="Assumptions of variants">
          {() => (
            <dl class="pairs">
              {assuming.map((item) => (
                <>
                  <dt>{item.variant}</dt>
                  <dd>
                    {item.assumes.map((text) => (
                      <div>{text}</div>
                    ))}
                  </dd>
                </>
              ))}
            </dl>
          )}
        </Folded>
      ) : null}
    </>
  );
}

function inOrder(some: string[], all: string[]): string[] {
  return all.filter((text) => some.includes(text));
}

function letter(index: number): string {
  return index < 26 ? String.fromCharCode(97 + index) : String(index + 1);
}

function Row({ item, styles, warnings }: { item: Measurement; styles: Styles; warnings: string[] }): JSX.Element {
  const name = (
    <th scope="row" class="variant-name">
      <Swatch style={styleOf(styles, item.variant)} /> {item.variant}
    </th>
  );
  if (item.median === null) {
    return (
      <tr data-variant={item.variant} data-refused>
        {name}
        <td colSpan={6} class="refused">
          <ToneText tone="warn">Did not run.</ToneText> {item.refused}
        </td>
      </tr>
    );
  }
  return (
    <tr data-variant={item.variant}>
      {name}
      <td class="figures">
        <strong>{seconds(item.median)}</strong>
        {item.low !== null && item.high !== null ? (
          <div class="aside">
            {seconds(item.low)} – {seconds(item.high)}
          </div>
        ) : null}
      </td>
      <td class="figures">
        {item.speed ? (
          <>
            <ToneText tone={speedTone(item.speed)}>{item.speed[0].toFixed(2)}×</ToneText>
            <div class="aside">
              {item.speed[1].toFixed(2)} – {item.speed[2].toFixed(2)}
            </div>
          </>
        ) : (
          "–"
        )}
      </td>
      <td class="figures">
        <BuildCell build={item.build} />
      </td>
      <td class="figures">{item.payback ? <PaybackCell payback={item.payback} /> : "–"}</td>
      <td class="figures">{item.peak_bytes === null ? "–" : bytes(item.peak_bytes)}</td>
      <td>
        {inOrder(item.warnings, warnings).map((warning) => (
          <abbr class="letter" title={warning}>
            {letter(warnings.indexOf(warning))}
          </abbr>
        ))}
        {item.warnings.length === 0 ? "–" : null}
      </td>
    </tr>
  );
}

/** The figure first, what it is beside it. */
function BuildCell({ build }: { build: Measurement["build"] }): JSX.Element {
  if (!build || !build.text) return <>–</>;
  const [first, ...rest] = build.text.split(", ");
  return (
    <>
      {build.cold === null ? build.text : first}
      {build.cold !== null && rest.length > 0 ? <div class="aside">{rest.join(", ")}</div> : null}
    </>
  );
}

function PaybackCell({ payback }: { payback: NonNullable<Measurement["payback"]> }): JSX.Element {
  const [value, rest] = paybackText(payback).split(/ (?=\()/);
  return (
    <>
      {payback.calls === null ? <ToneText tone="bad">{value}</ToneText> : value}
      {payback.calls !== null && !payback.unclear ? ` ${payback.calls === 1 ? "call" : "calls"}` : ""}
      {rest ? <div class="aside">{rest.slice(1, -1)}</div> : null}
    </>
  );
}

/** Faster or slower is only said where the interval leaves no doubt. */
export function speedTone([, low, high]: [number, number, number]): Tone {
  return low > 1 ? "good" : high < 1 ? "bad" : "plain";
}
