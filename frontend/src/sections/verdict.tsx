/** How it went: the sentence, the figures that support it, and what is worth doing about it. */
import type { JSX } from "preact";
import { count, shorten } from "../common/format";
import type { Capture, Fact, Todo } from "../data";
import { fragment } from "./parts/links";
import { ToneSign } from "./parts/tone";

const STANDINGS: Record<Todo["standing"], string> = {
  proven: "It was tried: the change was made, and the program ran with it.",
  measured: "It follows from what was measured or seen in this run.",
  suggested: "It follows from what was recorded; it was not tried, or not in every line.",
};

export function Verdict({ capture }: { capture: Capture }): JSX.Element {
  const { verdict } = capture;
  return (
    <section id="verdict" class="section verdict" aria-labelledby="verdict-title">
      <h2 id="verdict-title" class={`sentence ${verdict.tone}`}>
        <ToneSign tone={verdict.tone} />
        <span>{shorten(verdict.sentence, 1_000)}</span>
      </h2>
      <p class="origin">{shorten(verdict.origin, 1_000)}</p>
      <Notices capture={capture} />
      <ul class="facts" aria-label="Figures">
        {verdict.facts.map((fact) => (
          <FactCard fact={fact} />
        ))}
      </ul>
      {verdict.todo.length > 0 ? <WorthDoing todo={verdict.todo} /> : null}
    </section>
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

function WorthDoing({ todo }: { todo: Todo[] }): JSX.Element {
  return (
    <div class="worth">
      <h3>Worth doing</h3>
      <ol class="todo">
        {todo.map((entry) => {
          const link = fragment(entry.link);
          return (
            <li data-todo={entry.standing}>
              <div class="todo-head">
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
          <strong>Not complete.</strong> The program was killed before the recording ended: what is here was written until then.
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
