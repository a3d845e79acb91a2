/** Every compilation in a table. */
import type { JSX } from "preact";
import { number, seconds } from "../common/format";
import { PlaceLink } from "../common/place";
import { Nothing, Section } from "../common/section";
import type { Capture, Compilation } from "../data";
import { Folded } from "./parts/folded";
import { CompilationLink } from "./parts/links";
import { Table, usePaged } from "./parts/table";
import { ToneText } from "./parts/tone";

export function Compilations({ capture }: { capture: Capture }): JSX.Element {
  const [shown, more] = usePaged(capture.compilations, "compilations");
  return (
    <Section id="compilations" title="Compilations">
      {shown.length === 0 ? (
        <Nothing>
          Nothing was compiled. <code>compile-inspect run SCRIPT</code> records a program that calls torch.compile.
        </Nothing>
      ) : (
        <Table
          caption="All compilations, in the order they began"
          quietCaption
          columns={[
            { title: "Id" },
            { title: "Function" },
            { title: "Outcome" },
            { title: "Forward", figures: true },
            { title: "Backward", figures: true },
            { title: "Calls", figures: true },
            { title: "Guards", figures: true },
            { title: "Restarts", figures: true },
          ]}
        >
          {shown.map((item) => (
            <Row capture={capture} item={item} />
          ))}
        </Table>
      )}
      {more}
    </Section>
  );
}

function Row({ capture, item }: { capture: Capture; item: Compilation }): JSX.Element {
  const about = [item.backend, item.recompile ? "recompile" : "", item.resume ? "rest of a function" : ""]
    .filter(Boolean)
    .join(", ");
  return (
    <tr data-compilation={item.id}>
      <th scope="row">
        <CompilationLink capture={capture} id={item.id} />
      </th>
      <td>
        {item.name}
        <div class="aside">
          <PlaceLink capture={capture} place={item.place} />
          {about ? ` · ${about}` : ""}
        </div>
        {item.symbols.length > 0 ? (
          <div class="aside">
            Symbols: <code>{item.symbols.map(([name, value]) => `${name} = ${value}`).join(", ")}</code>
          </div>
        ) : null}
        {item.restart_reasons.map((reason) => (
          <div class="aside">Begun again: {reason}</div>
        ))}
        {item.failure ? (
          <Folded printed summary={<span class="bad">Why it failed</span>}>
            {() => <pre class="said">{item.failure}</pre>}
          </Folded>
        ) : null}
      </td>
      <td class="short">
        <ToneText tone={item.tone}>{item.outcome}</ToneText>
      </td>
      <td class="figures">{seconds(item.seconds)}</td>
      <td class="figures">{seconds(item.backward_seconds)}</td>
      <td class="figures">{number(item.calls)}</td>
      <td class="figures">{number(item.guards)}</td>
      <td class="figures">{number(Math.max(0, item.attempts - 1))}</td>
    </tr>
  );
}
