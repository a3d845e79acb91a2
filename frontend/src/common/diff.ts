/** Lines of a unified diff: which are added, which removed, and which only say where. */

const CLASSES: Record<string, string> = { "+": "added", "-": "removed", "@": "hunk" };

/** The class of a line by the sign it begins with. */
export function signClass(sign: string): string {
  return CLASSES[sign] ?? "";
}

/** The classes of all lines of a diff. A removed line may begin with `---` as well: names of files come in pairs. */
export function diffClasses(lines: string[]): string[] {
  const pair = (index: number): boolean =>
    (lines[index] ?? "").startsWith("--- ") && (lines[index + 1] ?? "").startsWith("+++ ");
  return lines.map((line, index) => (pair(index) || pair(index - 1) ? "hunk" : signClass(line.charAt(0))));
}
