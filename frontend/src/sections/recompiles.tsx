/** Recompiles: when functions were compiled again, and which guards made it necessary. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { count, seconds, shorten } from "../common/format";
import { PlaceLink } from "../common/place";
import { Nothing, Section } from "../common/section";
import { bounded, Shortened } from "../common/text";
import type { Capture, Recompile } from "../data";
import { Folded } from "./parts/folded";
import { CompilationLink } from "./parts/links";
import { Table, usePaged } from "./parts/table";
import { ToneSign } from "./parts/tone";
import { RecompileCauses } from "./recompile-causes";
import { KINDS, kindOf, timelineOf } from "./timeline";
import { TimelineChart } from "./timeline-chart";

export function Recompiles({ capture }: { capture: Capture }): JSX.Element {
  const timeline = useMemo(() => timelineOf(capture), [capture]);
  const [chosen, choose] = useState<string | null>(capture.recompiles[0]?.compilation ?? null);
  const nothing = capture.recompiles.length === 0;
  return (
    <Section
      id="recompiles"
      title="Recompiles"
      {...(nothing
        ? {}
        : {
            note: "A guard failed, so the function was compiled again. One changed input often affects several functions.",
          })}
    >
      {capture.limits.map((limit) => (
        <p class="notice warning" data-limit={limit.compilation}>
          <ToneSign tone="bad" />
          <span>
            {shorten(limit.sentence, 600)} <PlaceLink capture={capture} place={limit.place} />
          </span>
        </p>
      ))}
      {nothing ? (
        <Nothing>
          {capture.compilations.length === 0 ? "Nothing was compiled." : "No function was recompiled."}{" "}
          <code>compile-inspect guards TARGET --what-if batch=1..64</code> predicts recompiles.
        </Nothing>
      ) : null}
      <RecompileCauses capture={capture} />
      {capture.compilations.length > 0 && (!nothing || capture.compilations.length > 1) ? (
        <>
          <TimelineChart capture={capture} timeline={timeline} chosen={chosen} onChoose={choose} />
          <Chosen capture={capture} id={chosen} />
        </>
      ) : null}
      {nothing ? null : (
        <Folded printed summary={`All ${count(capture.recompiles.length, "recompile")}, guard by guard`}>
          {() => <RecompileList capture={capture} />}
        </Folded>
      )}
    </Section>
  );
}

function Chosen({ capture, id }: { capture: Capture; id: string | null }): JSX.Element | null {
  const compilation = capture.compilations.find((item) => item.id === id);
  if (!compilation) return null;
  const recompile = capture.recompiles.find((item) => item.compilation === id);
  const kind = KINDS[kindOf(compilation)];
  return (
    <div class="chosen-mark card" role="status">
      <h3>
        <CompilationLink capture={capture} id={compilation.id} /> {shorten(compilation.name)}{" "}
        <span class="aside">
          {kind.title}, {seconds(compilation.seconds)}
        </span>
      </h3>
      {recompile ? (
        <Failures capture={capture} recompile={recompile} />
      ) : (
        <p>
          {compilation.recompile
            ? "Which guard failed was not recorded."
            : "This is the first version of this function, so no guard failed."}
        </p>
      )}
      {compilation.failure ? <pre class="said">{bounded(compilation.failure)}</pre> : null}
    </div>
  );
}

function Failures({ capture, recompile }: { capture: Capture; recompile: Recompile }): JSX.Element {
  if (recompile.failures.length === 0) return <p>Which guard failed was not recorded.</p>;
  return (
    <Table
      caption={`Guards that failed before ${recompile.compilation} was compiled`}
      quietCaption
      columns={[
        { title: "Version" },
        { title: "Variable" },
        { title: "Expected" },
        { title: "Actual" },
        { title: "Where" },
        { title: "Guard" },
      ]}
    >
      {recompile.failures.map((failure) => (
        <tr>
          <th scope="row">
            <CompilationLink capture={capture} id={failure.against} />
          </th>
          <td>
            <code>
              <Shortened text={failure.variable || "–"} />
            </code>
          </td>
          <td>
            <code>
              <Shortened text={failure.expected || "–"} />
            </code>
          </td>
          <td>
            {failure.actual ? (
              <code class="actual">
                <span aria-hidden="true">→ </span>
                <Shortened text={failure.actual} />
              </code>
            ) : (
              "–"
            )}
          </td>
          <td>
            <PlaceLink capture={capture} place={failure.place} />
          </td>
          <td>
            <Shortened text={failure.reason} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** The same as text, to read from top to bottom and to search in. */
function RecompileList({ capture }: { capture: Capture }): JSX.Element {
  const [shown, more] = usePaged(capture.recompiles, "recompiles", 30);
  return (
    <>
      <ol class="recompile-list">
        {shown.map((item) => (
          <li data-recompile={item.compilation}>
            <CompilationLink capture={capture} id={item.compilation} /> {shorten(item.name)}{" "}
            <PlaceLink capture={capture} place={item.place} />
            <ul>
              {item.failures.map((failure) => (
                <li>
                  {failure.variable && failure.expected && failure.actual ? (
                    <>
                      <code>{shorten(failure.variable)}</code> was <code>{shorten(failure.expected)}</code> in{" "}
                      {failure.against || "an earlier version"}, now <code>{shorten(failure.actual)}</code>
                    </>
                  ) : (
                    <>
                      {failure.variable ? <code>{shorten(failure.variable)}</code> : null} {shorten(failure.reason)}
                      {failure.against ? ` (${failure.against})` : ""}
                    </>
                  )}{" "}
                  <PlaceLink capture={capture} place={failure.place} />
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ol>
      {more}
    </>
  );
}
