/** Graph breaks: where, why, what they cost, and what to do about them. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { CodeLine } from "../common/code";
import { count, number, shorten } from "../common/format";
import { onVisit, positionIn } from "../common/navigation";
import { PlaceLink } from "../common/place";
import { Nothing, Section } from "../common/section";
import { bounded, Shortened } from "../common/text";
import type { Break, Capture } from "../data";
import { Folded } from "./parts/folded";
import { CompilationLink, WebLink } from "./parts/links";
import { ToneText } from "./parts/tone";
import { ProposalView } from "./proposal";

const FIRST = 40;

export function Breaks({ capture }: { capture: Capture }): JSX.Element {
  const [most, setMost] = useState(FIRST);
  useEffect(() => {
    // A link may lead to a break that is not made yet.
    return onVisit((id) => {
      if ((positionIn(id, "break") ?? 0) > FIRST) setMost(Infinity);
    });
  }, []);
  return (
    <Section id="breaks" title="Graph breaks" {...noteOf(capture)}>
      {capture.breaks.length === 0 ? (
        <Nothing>
          {capture.compilations.length === 0
            ? "Nothing was compiled, so there are no graph breaks."
            : "No graph breaks: every compiled function is one graph."}
        </Nothing>
      ) : null}
      {capture.breaks.slice(0, most).map((item, index) => (
        <BreakView capture={capture} item={item} index={index} />
      ))}
      {capture.breaks.length > most ? (
        <p class="more">
          {number(most)} of {count(capture.breaks.length, "break")}.{" "}
          <button type="button" onClick={() => setMost(Infinity)}>
            Show all
          </button>
        </p>
      ) : null}
    </Section>
  );
}

function noteOf(capture: Capture): { note?: string } {
  if (capture.breaks.length === 0) return {};
  return {
    note: "Where torch.compile returned control to Python, most expensive first. Operations are never fused across a break.",
  };
}

function BreakView({ capture, item, index }: { capture: Capture; item: Break; index: number }): JSX.Element {
  const offered = item.proposals.filter((proposal) => proposal.standing !== "withdrawn");
  const withdrawn = item.proposals.filter((proposal) => proposal.standing === "withdrawn");
  const id = `break-${index + 1}`;
  return (
    <article id={id} class={`break card tone-${item.tone}`} data-break={shorten(item.kind)} aria-labelledby={`${id}-title`}>
      <h3 id={`${id}-title`}>
        <a class="number" href={`#${id}`} aria-label={`Link to break ${index + 1}`}>
          {index + 1}
        </a>
        <span>
          <Shortened text={item.kind} />
        </span>
      </h3>
      <p class="break-effect">
        <ToneText tone={item.tone}>{shorten(item.effect)}</ToneText>
      </p>
      <dl class="pairs">
        {item.place ? (
          <>
            <dt>Where</dt>
            <dd>
              <PlaceLink capture={capture} place={item.place} /> in <code>{shorten(item.place.name)}</code>
              {item.inside ? (
                <>
                  , inside of <PlaceLink capture={capture} place={item.inside} />
                </>
              ) : null}
            </dd>
          </>
        ) : null}
        <dt>Met</dt>
        <dd>
          {count(item.hits, "time")}
          {item.compilations.length > 0 ? " in " : ""}
          {item.compilations.slice(0, 12).map((compilation, position) => (
            <>
              {position > 0 ? ", " : ""}
              <CompilationLink capture={capture} id={compilation} />
            </>
          ))}
          {item.compilations.length > 12 ? ` and ${item.compilations.length - 12} more` : ""}
        </dd>
        {item.cost ? (
          <>
            <dt>Cost</dt>
            <dd>{shorten(item.cost)}</dd>
          </>
        ) : null}
      </dl>
      <p class="why">
        <Shortened text={item.why} most={2_000} />
      </p>
      {item.excerpt ? <Excerpt excerpt={item.excerpt} /> : null}
      {offered.map((proposal, position) => (
        <ProposalView proposal={proposal} first={position === 0} />
      ))}
      {withdrawn.length > 0 ? (
        <Folded printed summary={`${count(withdrawn.length, "proposal")} tried and withdrawn`}>
          {() => withdrawn.map((proposal) => <ProposalView proposal={proposal} first={false} />)}
        </Folded>
      ) : null}
      {item.hints.length > 0 ? (
        <Folded open={offered.length === 0} printed summary={count(item.hints.length, "hint")}>
          {() => (
            <ul class="hints">
              {item.hints.map((hint) => (
                <li>
                  <Shortened text={hint} most={2_000} />
                </li>
              ))}
            </ul>
          )}
        </Folded>
      ) : null}
      {item.explanation ? (
        <Folded summary="Explanation from torch">{() => <pre class="said">{bounded(item.explanation)}</pre>}</Folded>
      ) : null}
      {item.link.startsWith("https://") ? (
        <p class="elsewhere">
          <WebLink address={item.link}>
            torch’s page about it{item.identifier ? ` (${shorten(item.identifier, 40)})` : ""}
          </WebLink>
        </p>
      ) : null}
    </article>
  );
}

export function Excerpt({ excerpt }: { excerpt: NonNullable<Break["excerpt"]> }): JSX.Element {
  return (
    <pre class="excerpt">
      {excerpt.lines.map((line, offset) => {
        const numbered = excerpt.first + offset;
        const marked = numbered === excerpt.marked;
        return (
          <div class={marked ? "excerpt-line marked" : "excerpt-line"}>
            <span class="excerpt-number" aria-hidden="true">
              {marked ? "▸" : " "}
              {numbered}
            </span>
            {marked ? <span class="unseen">the relevant line: </span> : null}
            <span class="line-text">
              <CodeLine line={line} />
            </span>
          </div>
        );
      })}
    </pre>
  );
}
