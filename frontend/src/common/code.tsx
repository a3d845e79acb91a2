/** Lines of code: text in spans, colored by the classes that came with it. Nothing in here is ever markup. */
import type { JSX } from "preact";
import { type Line, TOKEN_CLASSES } from "../data";
import { shorten } from "./format";

/** Longer lines are data rather than code: they lose their end and their colors. */
const LONGEST = 5_000;

export function CodeLine({ line }: { line: Line }): JSX.Element {
  const [text, ...tokens] = line;
  if (text.length > LONGEST) return <>{shorten(text, LONGEST)}</>;
  if (tokens.length === 0) return <>{text}</>;
  const parts: (JSX.Element | string)[] = [];
  let start = 0;
  for (let index = 0; index + 1 < tokens.length; index += 2) {
    const kind = tokens[index] ?? 0;
    const end = start + (tokens[index + 1] ?? 0);
    const piece = text.slice(start, end);
    parts.push(kind === 0 ? piece : <span class={`tok-${TOKEN_CLASSES[kind] ?? "plain"}`}>{piece}</span>);
    start = end;
  }
  if (start < text.length) parts.push(text.slice(start));
  return <>{parts}</>;
}
