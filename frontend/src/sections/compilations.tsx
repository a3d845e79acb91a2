/** Every compilation in a table. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { number, seconds, shorten } from "../common/format";
import { onVisit, positionIn } from "../common/navigation";
import { PlaceLink } from "../common/place";
import { Nothing, Section } from "../common/section";
import { bounded, Shortened } from "../common/text";
import type { Capture, Compilation } from "../data";
import { Folded } from "./parts/folded";
import { CompilationLink } from "./parts/links";
import { PAGE_SIZE, Table, usePaged } from "./parts/table";
import { ToneText } from "./parts/tone";

export function Compilations({ capture }: { capture: Capture }): JSX.Element {
  const [shown, more, showAll] = usePaged(capture.compilations, "compilations");
  // The row that was last gone to; a new object each time, so that it opens again after it was closed.
  const [visited, setVisited] = useState<{ position: number; times: number }>({ position: 0, times: 0 });
  useEffect(
    () =>
      onVisit((id) => {
        const position = positionIn(id, "compilation");
        if (position === null) return;
        if (position > PAGE_SIZE) showAll();
        setVisited((before) => ({ position, times: before.times + 1 }));
      }),
    [],
  );
  return (
    <Section id="compilations" title="Compilations">
      {shown.length === 0 ? (
        <Nothing>
          Nothing was compiled. <code>compile-inspect run SCRIPT</code> records a program that calls torch.compile.
        </Nothing>
      ) : (
        <Table
          caption="All compilations, in order of their start"
          quietCaption
          columns={[
            { title: "Id" },
            { title: "Function" },
            { title: "Outcome" },
            { title: "Forward", figures: true },
            { title: "Backward", figures: true },
            { title: "Operations", figures: true },
            { title: "Guards", figures: true },
            { title: "Restarts", figures: true },
          ]}
        >
          {shown.map((item, index) => (
            <Row
              capture={capture}
              item={item}
              position={index + 1}
              visited={visited.position === index + 1 ? visited.times : 0}
            />
          ))}
        </Table>
      )}
      {more}
    </Section>
  );
}

function Row(props: {
  capture: Capture;
  item: Compilation;
  position: number;
  /** Which of the visits to the table was to this row; 0 where the last one was not. */
  visited: number;
}): JSX.Element {
  const { capture, item, visited } = props;
  const about = [shorten(item.backend, 80), item.recompile ? "recompile" : "", item.resume ? "rest of a function" : ""]
    .filter(Boolean)
    .join(", ");
  return (
    <tr id={`compilation-${props.position}`} data-compilation={item.id}>
      <th scope="row">
        <CompilationLink capture={capture} id={item.id} />
      </th>
      <td>
        <Shortened text={item.name} />
        <div class="aside">
          <PlaceLink capture={capture} place={item.place} />
          {about ? ` · ${about}` : ""}
        </div>
        {item.symbols.length > 0 ? (
          <div class="aside">
            Symbols:{" "}
            <code>
              <Shortened text={item.symbols.map(([name, value]) => `${name} = ${value}`).join(", ")} />
            </code>
          </div>
        ) : null}
        {item.restart_reasons.map((reason) => (
          <div class="aside">
            Restarted: <Shortened text={reason} />
          </div>
        ))}
        {item.failure ? (
          <Folded key={visited} open={visited > 0} printed summary={<span class="bad">Why it failed</span>}>
            {() => <pre class="said">{bounded(item.failure)}</pre>}
          </Folded>
        ) : null}
      </td>
      <td class="short">
        <ToneText tone={item.tone}>{item.outcome}</ToneText>
      </td>
      <td class="figures">{seconds(item.seconds)}</td>
      <td class="figures">{seconds(item.backward_seconds)}</td>
      <td class="figures">{number(item.operations)}</td>
      <td class="figures">{number(item.guards)}</td>
      <td class="figures">{number(Math.max(0, item.attempts - 1))}</td>
    </tr>
  );
}
