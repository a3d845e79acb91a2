/** The files of the source pane, and the rows of one of them. */
import { fileName, shorten } from "../common/format";
import type { Capture, Line } from "../data";
import { type Links, linkedLines } from "./links";

export interface SourceFile {
  path: number;
  label: string;
  /** The whole path. */
  title: string;
  library: boolean;
  /** Whether its text is there; where it is not, only the lines that matter are listed. */
  recorded: boolean;
  linked: Set<number>;
}

/** Recorded files and those that operations came from: the user's own first, those with more links before others. */
export function sourceFiles(capture: Capture, links: Links): SourceFile[] {
  const linked = linkedLines(links);
  const recorded = new Set(capture.sources.map((source) => source.path));
  const paths = new Set([...recorded, ...linked.keys()]);
  const files = [...paths].map((path) => {
    const known = capture.paths[path];
    return {
      path,
      label: shorten(fileName(known?.short ?? `file ${path}`), 80),
      title: known?.path ?? "",
      library: known?.library ?? false,
      recorded: recorded.has(path),
      linked: linked.get(path) ?? new Set<number>(),
    };
  });
  distinguish(files);
  const rank = (file: SourceFile): number => (file.library ? 2 : 0) + (file.recorded ? 0 : 1);
  return files.sort((one, other) => rank(one) - rank(other) || other.linked.size - one.linked.size || one.path - other.path);
}

/** Files of the same name are told apart by their folders. */
function distinguish(files: { label: string; title: string }[]): void {
  const byLabel = new Map<string, { label: string; title: string }[]>();
  for (const file of files) byLabel.set(file.label, [...(byLabel.get(file.label) ?? []), file]);
  for (const group of byLabel.values()) {
    if (group.length > 1) for (const file of group) file.label = shorten(fileName(file.title, 2), 80);
  }
}

/** The first to show: the user's own where it has links, else a library's that has, else any. */
export function firstFile(files: SourceFile[]): number | null {
  const recorded = files.filter((file) => file.recorded);
  const best =
    recorded.find((file) => !file.library && file.linked.size > 0) ??
    recorded.find((file) => file.linked.size > 0) ??
    files.find((file) => file.linked.size > 0) ??
    recorded[0];
  return best?.path ?? null;
}

export type SourceRow = { kind: "line"; number: number; line: Line } | { kind: "gap"; lines: number; after: number };

export function sourceRows(capture: Capture, file: SourceFile): SourceRow[] {
  const source = capture.sources.find((item) => item.path === file.path);
  if (!source) return unrecordedRows(capture, file);
  const rows: SourceRow[] = [];
  let last = 0;
  for (const piece of source.pieces) {
    if (piece.first > last + 1) rows.push({ kind: "gap", lines: piece.first - last - 1, after: last });
    piece.lines.forEach((line, index) => rows.push({ kind: "line", number: piece.first + index, line }));
    last = piece.first + piece.lines.length - 1;
  }
  if (source.total > last) rows.push({ kind: "gap", lines: source.total - last, after: last });
  return rows;
}

/** Where a file was not recorded its lines are still places that operations came from: they are named by their function. */
function unrecordedRows(capture: Capture, file: SourceFile): SourceRow[] {
  const names = new Map<number, string>();
  for (const stack of capture.stacks) {
    for (const [path, line, name] of stack.frames) if (path === file.path) names.set(line, name);
  }
  return [...file.linked]
    .sort((one, other) => one - other)
    .map((number) => ({ kind: "line", number, line: [`in ${shorten(names.get(number) ?? "?")}`] }));
}
