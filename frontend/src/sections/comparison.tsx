/** Two captures side by side: what changed between them, and whether for the better. */
import type { JSX } from "preact";
import { number, seconds, shorten } from "../common/format";
import { placeText } from "../common/place";
import { Nothing, Section } from "../common/section";
import type { Break, Capture, Page, Tone } from "../data";
import {
  type ComparedFact,
  compareBreaks,
  compareCompilations,
  compareEnvironment,
  compareFacts,
  compareSpeed,
  failures,
  kernelCounts,
} from "./compare";
import { Table, usePaged } from "./parts/table";
import { ToneText } from "./parts/tone";

const ARROWS: Record<ComparedFact["direction"], string> = { up: "↑ ", down: "↓ ", same: "", none: "" };

export function ComparisonSection({ page }: { page: Page }): JSX.Element | null {
  const [before, after] = page.captures;
  if (page.kind !== "comparison" || !before || !after) return null;
  return (
    <Section
      id="comparison"
      title="Comparison"
      note={`From ${before.label} to ${after.label}. Arrows show the direction of each change; signs show whether it is an improvement.`}
    >
      <Facts before={before} after={after} />
      <Breaks before={before} after={after} />
      <Functions before={before} after={after} />
      <Kernels before={before} after={after} />
      <SpeedOfBoth before={before} after={after} />
      <EnvironmentOfBoth before={before} after={after} />
    </Section>
  );
}

interface Both {
  before: Capture;
  after: Capture;
}

function Facts({ before, after }: Both): JSX.Element {
  return (
    <Table
      caption="Key figures of both captures"
      quietCaption
      columns={[
        { title: "" },
        { title: before.label, figures: true },
        { title: after.label, figures: true },
        { title: "Difference" },
      ]}
    >
      {compareFacts(before, after).map((fact) => (
        <tr data-compare={fact.key}>
          <th scope="row">{fact.label}</th>
          <td class="figures">{fact.before}</td>
          <td class="figures">
            <strong>{fact.after}</strong>
          </td>
          <td>
            <ToneText tone={fact.tone}>
              {ARROWS[fact.direction]}
              {fact.difference}
            </ToneText>
            {fact.tone === "good" ? " better" : fact.tone === "bad" ? " worse" : ""}
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Breaks({ before, after }: Both): JSX.Element {
  const { gone, added, both } = compareBreaks(before.breaks, after.breaks);
  return (
    <div class="compared" data-compare="break-list">
      <h3>Graph breaks</h3>
      {gone.length + added.length + both.length === 0 ? <Nothing>Neither capture has graph breaks.</Nothing> : null}
      <BreakList title="Gone" tone={failures(after) > failures(before) ? "plain" : "good"} capture={before} breaks={gone} />
      <BreakList title="New" tone="bad" capture={after} breaks={added} />
      <BreakList title="In both" tone="plain" capture={after} breaks={both.map(([, item]) => item)} />
    </div>
  );
}

function BreakList(props: {
  title: string;
  tone: "good" | "bad" | "plain";
  capture: Capture;
  breaks: Break[];
}): JSX.Element | null {
  const [shown, more] = usePaged(props.breaks, "breaks", 30);
  if (shown.length === 0) return null;
  return (
    <div data-compare-breaks={props.title.toLowerCase()}>
      <h4>
        <ToneText tone={props.tone}>
          {props.title} ({props.breaks.length})
        </ToneText>
      </h4>
      <ul>
        {shown.map((item) => (
          <li>
            {shorten(item.kind)}
            {item.place ? (
              <>
                {" "}
                <code class="place">{placeText(props.capture, item.place)}</code>
              </>
            ) : null}
            {item.excerpt ? (
              <code class="aside-code">
                {shorten(item.excerpt.lines[item.excerpt.marked - item.excerpt.first]?.[0]?.trim() ?? "")}
              </code>
            ) : null}
          </li>
        ))}
      </ul>
      {more}
    </div>
  );
}

function Functions({ before, after }: Both): JSX.Element | null {
  const [shown, more] = usePaged(compareCompilations(before, after), "functions", 40);
  if (shown.length === 0) return null;
  return (
    <div class="compared">
      <h3>Compilations</h3>
      <Table
        caption="Compilations of each function and their time"
        quietCaption
        columns={[
          { title: "Function" },
          { title: `Versions, ${before.label}`, figures: true },
          { title: `Versions, ${after.label}`, figures: true },
          { title: `Seconds, ${before.label}`, figures: true },
          { title: `Seconds, ${after.label}`, figures: true },
        ]}
      >
        {shown.map((item) => (
          <tr data-compare-function={item.name}>
            <th scope="row">{shorten(item.name)}</th>
            <td class="figures">{number(item.before.versions)}</td>
            <td class="figures">
              {item.after.versions === item.before.versions ? (
                number(item.after.versions)
              ) : (
                <ToneText tone={versionsTone(item.before.versions, item.after.versions)}>
                  {item.after.versions > item.before.versions ? "↑ " : "↓ "}
                  {number(item.after.versions)}
                </ToneText>
              )}
            </td>
            <td class="figures">{item.before.versions > 0 ? seconds(item.before.seconds) : "–"}</td>
            <td class="figures">{item.after.versions > 0 ? seconds(item.after.seconds) : "–"}</td>
          </tr>
        ))}
      </Table>
      {more}
    </div>
  );
}

/** More versions of one function are worse; a function that was not compiled before is neither. */
function versionsTone(before: number, after: number): Tone {
  if (before === 0 || after === 0) return "plain";
  return after < before ? "good" : "bad";
}

function Kernels({ before, after }: Both): JSX.Element | null {
  const [first, second] = [kernelCounts(before), kernelCounts(after)];
  if (first.all + second.all === 0) return null;
  const directions = (["forward", "backward", "inference", "unknown"] as const).filter(
    (name) => first.by[name] || second.by[name],
  );
  const rows: [string, number, number][] = [
    ["All launches", first.all, second.all],
    ["Fused kernels", first.fused, second.fused],
    ...directions.map((name): [string, number, number] => [`In ${name}`, first.by[name] ?? 0, second.by[name] ?? 0]),
  ];
  return (
    <div class="compared">
      <h3>Kernels</h3>
      <Table
        caption="Kernel launches of both captures"
        quietCaption
        columns={[
          { title: "" },
          { title: before.label, figures: true },
          { title: after.label, figures: true },
          { title: "Difference", figures: true },
        ]}
      >
        {rows.map(([title, from, to]) => (
          <tr data-compare-kernels={title}>
            <th scope="row">{title}</th>
            <td class="figures">{number(from)}</td>
            <td class="figures">{number(to)}</td>
            <td class="figures">{from === to ? "the same" : `${to > from ? "↑ +" : "↓ −"}${number(Math.abs(to - from))}`}</td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

function SpeedOfBoth({ before, after }: Both): JSX.Element {
  const [shown, more] = usePaged(compareSpeed(before, after), "measurements", 60);
  return (
    <div class="compared">
      <h3>Speed</h3>
      {shown.length === 0 ? (
        <Nothing>
          The captures have no timing in common. <code>compile-inspect bench TARGET --capture FILE</code> adds a timing to each.
        </Nothing>
      ) : (
        <>
          <p class="note">
            The speedup of a call from the first capture to the second. The two were not interleaved, so a change in the
            machine’s speed appears here too, even for eager.
          </p>
          <Table
            caption="Speed of each variant in both captures"
            quietCaption
            columns={[
              { title: "Variant" },
              { title: "At" },
              { title: before.label, figures: true },
              { title: after.label, figures: true },
              { title: "Speedup", figures: true },
            ]}
          >
            {shown.map((item) => (
              <tr data-compare-speed={item.variant}>
                <th scope="row">{item.variant}</th>
                <td>
                  {item.target}, {item.point}
                </td>
                <td class="figures">{seconds(item.before.median)}</td>
                <td class="figures">{seconds(item.after.median)}</td>
                <td class="figures">
                  <ToneText tone={item.tone}>{item.ratio.toFixed(2)}×</ToneText>
                  <div class="aside">
                    {item.low.toFixed(2)} – {item.high.toFixed(2)}
                  </div>
                </td>
              </tr>
            ))}
          </Table>
          {more}
        </>
      )}
    </div>
  );
}

function EnvironmentOfBoth({ before, after }: Both): JSX.Element {
  const [shown, more] = usePaged(compareEnvironment(before, after), "rows", 60);
  return (
    <div class="compared">
      <h3>Environment</h3>
      {shown.length === 0 ? (
        <Nothing>Machine, packages and settings are the same.</Nothing>
      ) : (
        <Table
          caption="Differences in the machine and its settings"
          quietCaption
          columns={[{ title: "" }, { title: before.label }, { title: after.label }]}
        >
          {shown.map((row) => (
            <tr data-compare-environment={row.name}>
              <th scope="row">
                {row.name}
                <div class="aside">{row.group}</div>
              </th>
              <td>
                <code>{shorten(row.before)}</code>
              </td>
              <td>
                <code>{shorten(row.after)}</code>
              </td>
            </tr>
          ))}
        </Table>
      )}
      {more}
    </div>
  );
}
