/** Texts of the user's program in lists: their beginning, and the whole behind a fold where they are long. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count, MAX_LETTERS, MAX_TEXT, shorten } from "./format";

/** The most of a text that is shown at all, and a word about the rest. */
export function bounded(text: string): string {
  if (text.length <= MAX_TEXT) return text;
  return `${shorten(text, MAX_TEXT)} (${count(text.length - MAX_TEXT + 1, "more character")} not shown)`;
}

export function Shortened({ text, most = MAX_LETTERS }: { text: string; most?: number }): JSX.Element {
  const [whole, setWhole] = useState(false);
  if (text.length <= most) return <>{text}</>;
  return (
    <span class="shortened">
      {whole ? <span class="whole-text">{bounded(text)}</span> : shorten(text, most)}{" "}
      <button type="button" class="link" aria-expanded={whole} onClick={() => setWhole(!whole)}>
        {whole ? "show less" : `show all (${count(text.length, "character")})`}
      </button>
    </span>
  );
}
