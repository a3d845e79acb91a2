/** Where compile time goes. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { number, percent, seconds, shorten } from "../common/format";
import { Nothing, Section } from "../common/section";
import type { Capture } from "../data";
import { byName, type NamedPhase } from "./flame";
import { FlameChart } from "./flame-chart";
import { Table, usePaged } from "./parts/table";

const BIGGEST = 15;

/** The length of a bar in percent: the figure beside it, of a track that stands for all of compiling. */
export function shareOf(item: Pick<NamedPhase, "own" | "beside">, total: number): number {
  return total > 0 ? Math.max(0, Math.min(100, (100 * (item.own - item.beside)) / total)) : 0;
}

export function CompileTime({ capture }: { capture: Capture }): JSX.Element {
  const { time } = capture;
  const named = useMemo(() => byName(time.phases), [time]);
  const [shown, more] = usePaged(named, "phases", BIGGEST);
  if (time.phases.length === 0) {
    return (
      <Section id="time" title="Compile time">
        <Nothing>
          {time.total > 0
            ? `${seconds(time.total)} of compile time, but no phases were recorded.`
            : "No compile time was recorded."}{" "}
          <code>compile-inspect run SCRIPT</code> records the phases of every compilation.
        </Nothing>
      </Section>
    );
  }
  return (
    <Section
      id="time"
      title="Compile time"
      note={`${seconds(time.total)} in total. The width of a bar is its time; the bars below it are its parts. Click to zoom in.`}
    >
      <FlameChart time={time} />
      <h3>Longest phases by own time</h3>
      <Table
        caption="Compile phases by own time, grouped by name"
        quietCaption
        columns={[
          { title: "Phase" },
          { title: "Phase" },
          { title: "Own time", figures: true },
          { title: "Share of compile time", figures: true },
          { title: "In other threads", figures: true },
          { title: "Including parts", figures: true },
          { title: "Times", figures: true },
        ]}
      >
        {shown.map((item) => (
          <tr data-own-time={shorten(item.name)}>
            <th scope="row">
              <code>{shorten(item.name)}</code>
            </th>
            <td>{item.family}</td>
            <td class="figures">{item.own > item.beside ? seconds(item.own - item.beside) : "–"}</td>
            <td class="figures">
              {item.own > item.beside ? percent(item.own - item.beside, time.total) : "–"}
              <svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                <rect class={`family-${item.family.toLowerCase()}`} width={shareOf(item, time.total)} height="8" />
              </svg>
            </td>
            <td class="figures">{item.beside > 0 ? seconds(item.beside) : "–"}</td>
            <td class="figures">{seconds(item.seconds)}</td>
            <td class="figures">{number(item.times)}</td>
          </tr>
        ))}
      </Table>
      {more}
    </Section>
  );
}
