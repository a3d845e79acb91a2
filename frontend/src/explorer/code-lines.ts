/** Lines of code out of their context. */
import type { Line } from "../data";

/** A line that stands alone needs no indentation. */
export function unindented(line: Line): Line {
  const [text, ...tokens] = line;
  const spaces = text.length - text.trimStart().length;
  if (spaces === 0 || tokens.length === 0) return [text.trimStart(), ...tokens];
  const rest = [...tokens];
  let left = spaces;
  while (left > 0 && rest.length >= 2) {
    const length = rest[1] ?? 0;
    if (length <= left) rest.splice(0, 2);
    else rest[1] = length - left;
    left -= Math.min(left, length);
  }
  return [text.trimStart(), ...rest];
}
