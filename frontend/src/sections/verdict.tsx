/** How it went: the sentence, the figures that support it, and what is worth doing about it. */
import type { JSX } from "preact";
import { count, shorten, together } from "../common/format";
import type { Capture, Fact, Statement, Recommendation } from "../data";
import { fragment } from "./parts/links";
import { ToneSign } from "./parts/tone";

const STANDINGS: Record<Recommendation["standing"], string> = {
  proven: "The change was tried, and the program ran with it.",
  measured: "Based on what was measured or recorded in this run.",
  suggested: "Based on the recording; not tried, or not for every line.",
};

export function Verdict({ capture }: { capture: Capture }): JSX.Element {
  const { verdict } = capture;
  return (
    <section id="verdict" class="section verdict" aria-labelledby="verdict-title">
      <h2 id="verdict-title" class={`sentence ${verdict.tone}`}>
        <ToneSign tone={verdict.tone} />
        <span>{together(shorten(verdict.sentence, 1_000))}</span>
      </h2>
      <Further statements={verdict.further} />
      <p class="origin">{shorten(verdict.origin, 1_000)}</p>
      <Notices capture={capture} />
      <ul class={`facts in-rows-of-${columnsFor(verdict.facts.length)}`} aria-label="Figures">
        {verdict.facts.map((fact) => (
          <FactCard fact={fact} />
        ))}
      </ul>
      {verdict.recommendations.length > 0 ? <Recommendations recommendations={verdict.recommendations} /> : null}
    </section>
  );
}

/** How many cards stand in a row, so that the last row is as full as can be. */
export function columnsFor(cards: number): number {
  const empty = (columns: number): number => (columns - (cards % columns)) % columns;
  return [4, 5, 3].reduce((best, columns) => (empty(columns) < empty(best) ? columns : best));
}

/** What else is to be said, below the most important fact. */
export function Further({ statements }: { statements: Statement[] }): JSX.Element | null {
  if (statements.length === 0) return null;
  return (
    <ul class="further" aria-label="Further facts">
      {statements.map((statement) => (
        <li class={statement.tone}>
          <ToneSign tone={statement.tone} />
          <span>{together(shorten(statement.sentence, 600))}</span>
        </li>
      ))}
    </ul>
  );
}

function FactCard({ fact }: { fact: Fact }): JSX.Element {
  const inside = (
    <>
      <span class="fact-label">{fact.label}</span>
      <span class={`fact-value ${fact.tone}`}>
        {fact.tone === "plain" ? null : <ToneSign tone={fact.tone} />}
        {fact.value}
      </span>
      {fact.detail ? <span class="fact-detail">{shorten(fact.detail)}</span> : null}
    </>
  );
  const link = fragment(fact.link);
  return (
    <li data-fact={fact.key}>
      {link ? (
        <a class={`fact tone-${fact.tone}`} href={link}>
          {inside}
        </a>
      ) : (
        <div class={`fact tone-${fact.tone}`}>{inside}</div>
      )}
    </li>
  );
}

function Recommendations({ recommendations }: { recommendations: Recommendation[] }): JSX.Element {
  return (
    <div class="recommendation-list">
      <h3>Recommendations</h3>
      <ol class="recommendations">
        {recommendations.map((entry) => {
          const link = fragment(entry.link);
          return (
            <li data-recommendations={entry.standing}>
              <div class="recommendation-head">
                {link ? <a href={link}>{shorten(entry.title)}</a> : <strong>{shorten(entry.title)}</strong>}
                <span class={`standing ${entry.standing}`} title={STANDINGS[entry.standing]}>
                  {entry.standing}
                  <span class="unseen">. {STANDINGS[entry.standing]}</span>
                </span>
              </div>
              <p>{shorten(entry.why, 2_000)}</p>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

/** What this page does not show, or what the capture could not record: said before anybody draws conclusions. */
function Notices({ capture }: { capture: Capture }): JSX.Element | null {
  const { left_out, missing, complete } = capture;
  if (complete && left_out.length === 0 && missing.length === 0) return null;
  // The last text says how to get the rest; the ones before it are what is not here.
  const how = left_out[left_out.length - 1] ?? "";
  return (
    <div class="notices">
      {complete ? null : (
        <p class="notice" data-notice="incomplete">
          <strong>Incomplete.</strong> The program was killed before the recording ended; this page shows what was recorded
          until then.
        </p>
      )}
      {missing.map((item) => (
        <p class="notice" data-notice="missing">
          <strong>Not recorded: {item.collector}</strong>
          {item.times > 1 ? ` (${count(item.times, "time")})` : ""}. {shorten(item.reason, 2_000)}
        </p>
      ))}
      {left_out.length > 0 ? (
        <p class="notice" data-notice="left-out">
          <strong>Left out of this page:</strong> {left_out.slice(0, -1).join(", ") || how}
          {left_out.length > 1 ? `. ${how}` : ""}
        </p>
      ) : null}
    </div>
  );
}
