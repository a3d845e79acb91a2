/**
 * Marks the very letters that a search found.
 *
 * The browser paints them over the text as it is: no element is added, so the panes need not know of it. Browsers that
 * cannot do so still show which rows were found.
 */

const NAME = "explorer-search";
/** More marks than anybody looks at would only take time. */
const MAX_RANGES = 2000;

/** Where a text occurs in another, whatever the case. */
export function occurrences(text: string, wanted: string): number[] {
  if (wanted === "") return [];
  const lower = text.toLowerCase();
  const found: number[] = [];
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length)) found.push(at);
  return found;
}

export function highlight(elements: Iterable<Element>, query: string): void {
  if (typeof Highlight === "undefined" || !("highlights" in CSS)) return;
  const wanted = query.trim().toLowerCase();
  CSS.highlights.delete(NAME);
  if (wanted === "") return;
  const ranges: Range[] = [];
  for (const element of elements) {
    if (ranges.length >= MAX_RANGES) break;
    ranges.push(...rangesIn(element, wanted));
  }
  CSS.highlights.set(NAME, new Highlight(...ranges));
}

/** What is found may begin in one colored word and end in the next, so the words are searched as one text. */
function rangesIn(element: Element, wanted: string): Range[] {
  const nodes: Text[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) nodes.push(node as Text);
  const starts: number[] = [];
  let whole = "";
  for (const node of nodes) {
    starts.push(whole.length);
    whole += node.data;
  }
  const locate = (position: number): [Text | undefined, number] => {
    let index = starts.length - 1;
    while (index > 0 && (starts[index] ?? 0) > position) index -= 1;
    return [nodes[index], position - (starts[index] ?? 0)];
  };
  return occurrences(whole, wanted).flatMap((at) => {
    const [first, from] = locate(at);
    const [last, to] = locate(at + wanted.length - 1);
    if (!first || !last || to + 1 > last.length || from > first.length) return [];
    const range = document.createRange();
    range.setStart(first, from);
    range.setEnd(last, to + 1);
    return [range];
  });
}
