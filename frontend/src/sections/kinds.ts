/** What the captures of a page are called, by the kind of the page. */
import { number } from "../common/format";
import type { PageKind } from "../data";

/** The word before the list to choose one from. */
export const CHOOSER: Record<PageKind, string> = { program: "Process", comparison: "Showing", tour: "Models" };

interface Words {
  /** One of them, before its name. */
  one: string;
  /** Several, in a sentence. */
  many: string;
  /** The title of the part that lists all of them. */
  all: string;
  /** What is said above that list. */
  above: (many: number) => string;
}

const PROCESSES: Words = {
  one: "Process",
  many: "processes",
  all: "All processes",
  above: (many) => `${number(many)} processes in total`,
};
const MODELS: Words = { one: "Model", many: "models", all: "Models", above: () => "Models compiled in the lessons" };

/** Words for several captures that are no comparison. */
export function wordsOf(kind: PageKind): Words {
  return kind === "tour" ? MODELS : PROCESSES;
}
