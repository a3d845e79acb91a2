/** How good something is, as a sign and in words as well as a color: nobody has to tell green from red. */
import type { ComponentChildren, JSX } from "preact";
import type { Tone } from "../../data";

export const SIGNS: Record<Tone, string> = { good: "✓", warn: "!", bad: "✕", plain: "·" };
const WORDS: Record<Tone, string> = { good: "good", warn: "warning", bad: "bad", plain: "" };

/** The sign alone, with its meaning for those who cannot see it. */
export function ToneSign({ tone }: { tone: Tone }): JSX.Element {
  return (
    <span class={`tone-sign ${tone}`}>
      <span aria-hidden="true">{SIGNS[tone]}</span>
      {WORDS[tone] ? <span class="unseen"> {WORDS[tone]}: </span> : null}
    </span>
  );
}

/** A short text in a tone, with the sign before it. */
export function ToneText({ tone, children }: { tone: Tone; children: ComponentChildren }): JSX.Element {
  if (tone === "plain") return <span class="tone-text">{children}</span>;
  return (
    <span class={`tone-text ${tone}`}>
      <ToneSign tone={tone} />
      {children}
    </span>
  );
}
