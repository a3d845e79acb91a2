/** What came out of torch's caches, and what became of CUDA graphs. */
import type { JSX } from "preact";
import { count, number, seconds } from "../common/format";
import { PlaceLink } from "../common/place";
import { Nothing, Section } from "../common/section";
import { Shortened } from "../common/text";
import type { CacheLookup, Capture } from "../data";
import { CompilationLink } from "./parts/links";
import { Table, usePaged } from "./parts/table";
import { ToneText } from "./parts/tone";

export function Caches({ capture }: { capture: Capture }): JSX.Element {
  return (
    <Section id="caches" title="Caches and CUDA graphs">
      <Lookups capture={capture} />
      <CudaGraphs capture={capture} />
    </Section>
  );
}

const PLURALS: Record<string, string> = { hit: "hits", miss: "misses" };

/** `3 hits, 12 misses, 1 bypassed; 4.2 s saved`. */
export function cacheSummary(lookups: CacheLookup[]): string {
  const outcomes = new Map<string, number>();
  for (const lookup of lookups) outcomes.set(lookup.outcome, (outcomes.get(lookup.outcome) ?? 0) + 1);
  const saved = lookups.reduce((sum, lookup) => sum + (lookup.saved ?? 0), 0);
  const counted = [...outcomes].map(([outcome, times]) => count(times, outcome, PLURALS[outcome] ?? outcome)).join(", ");
  return saved > 0 ? `${counted}; ${seconds(saved)} of compile time saved` : counted;
}

function Lookups({ capture }: { capture: Capture }): JSX.Element {
  const [shown, more] = usePaged(capture.caches, "lookups");
  if (shown.length === 0) return <Nothing>No cache lookups: caches are disabled, or the backend has none.</Nothing>;
  return (
    <>
      <p class="note">{cacheSummary(capture.caches)}.</p>
      <Table
        caption="Lookups in torch’s caches"
        quietCaption
        columns={[
          { title: "Cache" },
          { title: "Outcome" },
          { title: "Compilation" },
          { title: "Saved", figures: true },
          { title: "Reason" },
        ]}
      >
        {shown.map((item) => (
          <tr data-cache={item.outcome}>
            <th scope="row">{item.cache}</th>
            <td class="short">
              <ToneText tone={item.tone}>{item.outcome}</ToneText>
            </td>
            <td>
              <CompilationLink capture={capture} id={item.compilation} />
            </td>
            <td class="figures">{seconds(item.saved)}</td>
            <td>
              <Shortened text={item.reason} />
            </td>
          </tr>
        ))}
      </Table>
      {more}
    </>
  );
}

function CudaGraphs({ capture }: { capture: Capture }): JSX.Element {
  const [shown, more] = usePaged(capture.cuda_graphs, "CUDA graphs");
  return (
    <div class="cuda-graphs">
      <h3>CUDA graphs</h3>
      {shown.length === 0 ? (
        <Nothing>
          None were requested. <code>torch.compile(function, mode="reduce-overhead")</code> requests them on a GPU.
        </Nothing>
      ) : (
        <Table
          caption="Outcomes of CUDA graph requests"
          quietCaption
          columns={[
            { title: "Outcome" },
            { title: "Compilation" },
            { title: "Direction" },
            { title: "Times", figures: true },
            { title: "Where" },
            { title: "Reason" },
          ]}
        >
          {shown.map((item) => (
            <tr data-cuda-graph={item.outcome}>
              <th scope="row">
                <ToneText tone={item.tone}>{item.outcome}</ToneText>
              </th>
              <td>
                <CompilationLink capture={capture} id={item.compilation} />
              </td>
              <td>{item.direction}</td>
              <td class="figures">{number(item.times)}</td>
              <td>
                <PlaceLink capture={capture} place={item.place} />
              </td>
              <td>
                <Shortened text={item.reason} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {more}
    </div>
  );
}
