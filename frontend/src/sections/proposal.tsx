/** One way to remove a graph break: the change, what it does, and how far it is proven. */
import type { JSX } from "preact";
import { signClass } from "../common/diff";
import { seconds, shorten } from "../common/format";
import type { Proposal, Tone } from "../data";
import { Copyable } from "./parts/copy";
import { ToneText } from "./parts/tone";

const STANDINGS: Record<Proposal["standing"], { word: string; tone: Tone }> = {
  proven: { word: "Proven", tone: "good" },
  partly: { word: "Partly proven", tone: "plain" },
  withdrawn: { word: "Withdrawn", tone: "bad" },
  untried: { word: "Not tried", tone: "plain" },
};

export function ProposalView({ proposal, first }: { proposal: Proposal; first: boolean }): JSX.Element {
  const standing = STANDINGS[proposal.standing];
  return (
    <section class={`proposal ${proposal.standing}`} data-proposal={proposal.standing}>
      <h4>
        {proposal.standing === "withdrawn" ? "" : !first ? "Or: " : proposal.standing === "proven" ? "Do this: " : "Try this: "}
        {proposal.title}
      </h4>
      {proposal.diff.length > 0 ? (
        <Copyable class="diff" what="the change" text={proposal.patch}>
          {proposal.diff.map(([sign, text]) => (
            <div class={`diff-line ${signClass(sign)}`}>{shorten(sign + text, 2_000) || " "}</div>
          ))}
        </Copyable>
      ) : null}
      {proposal.settings.length > 0 ? (
        <Copyable class="settings" what="the settings" text={proposal.settings.join("\n")}>
          {proposal.settings.join("\n")}
        </Copyable>
      ) : null}
      <dl class="pairs">
        {proposal.changes ? (
          <>
            <dt>What changes</dt>
            <dd>{proposal.changes}</dd>
          </>
        ) : null}
        {proposal.where ? (
          <>
            <dt>Correct if</dt>
            <dd>{proposal.where}</dd>
          </>
        ) : null}
        <dt>Proof</dt>
        <dd>
          {proposal.standing === "partly" ? (
            <span class="standing partly">{standing.word}</span>
          ) : (
            <ToneText tone={standing.tone}>{standing.word}</ToneText>
          )}
          {proposal.standing === "untried" && !proposal.reason ? <Untried /> : proofText(proposal.reason)}
        </dd>
      </dl>
      {proposal.seconds ? <BeforeAfter before={proposal.seconds[0]} after={proposal.seconds[1]} /> : null}
    </section>
  );
}

/** What was seen, after the word for it. */
export function proofText(reason: string): string {
  return reason ? `: ${reason.charAt(0).toLowerCase()}${reason.slice(1)}` : ".";
}

function Untried(): JSX.Element {
  return (
    <>
      . <code>compile-inspect breaks TARGET</code> tries this fix.
    </>
  );
}

/** A call before and after, as two bars on one scale from zero. */
function BeforeAfter({ before, after }: { before: number; after: number }): JSX.Element {
  const most = Math.max(before, after);
  const rows: [string, number][] = [
    ["before", before],
    ["after", after],
  ];
  return (
    <div class="before-after">
      <dl>
        {rows.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>
              <svg
                class={`bar ${name === "before" ? "" : after > before ? "slower" : "faster"}`}
                viewBox="0 0 100 10"
                preserveAspectRatio="none"
                aria-hidden="true"
              >
                <rect width={most > 0 ? (100 * value) / most : 0} height="10" />
              </svg>
              <span>{seconds(value)}</span>
            </dd>
          </>
        ))}
      </dl>
      {after > 0 && before > 0 ? <p>{ratioInWords(before, after)}</p> : null}
    </div>
  );
}

/** How a call changed; what rounds to nothing is said to be nothing. */
export function ratioInWords(before: number, after: number): string {
  const ratio = before / after;
  const shown = ratio.toFixed(2);
  if (shown === "1.00") return "No change in call time.";
  return ratio > 1 ? `Speedup ${shown}×.` : `Slower: speedup ${shown}×.`;
}
