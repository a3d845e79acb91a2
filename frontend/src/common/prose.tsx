/** Sentences in which names stand between backticks: those are set as code, everything else is text. */
import type { JSX } from "preact";
import { shorten } from "./format";

/** A text in its pieces, code and other; a backtick without a second one is text. */
export function pieces(text: string): { code: boolean; text: string }[] {
  const found: { code: boolean; text: string }[] = [];
  let start = 0;
  for (const match of text.matchAll(/`([^`\n]+)`/g)) {
    if (match.index > start) found.push({ code: false, text: text.slice(start, match.index) });
    found.push({ code: true, text: match[1] ?? "" });
    start = match.index + match[0].length;
  }
  if (start < text.length) found.push({ code: false, text: text.slice(start) });
  return found;
}

export function Prose({ text, most = 4_000 }: { text: string; most?: number }): JSX.Element {
  return <>{pieces(shorten(text, most)).map((piece) => (piece.code ? <code>{piece.text}</code> : piece.text))}</>;
}
