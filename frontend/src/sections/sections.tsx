/** Everything on the page but the explorer, in the order it is shown. */
import type { JSX } from "preact";
import type { Capture, Page } from "../data";

/** An entry of the navigation: a fragment, a title, and a short count or empty text shown beside it. */
export interface Entry {
  id: string;
  title: string;
  badge: string;
}

export function entries(_capture: Capture): Entry[] {
  return [];
}

/** The verdict, at the top of the page. */
export function Verdict({ capture }: { capture: Capture }): JSX.Element {
  return <p>{capture.verdict.sentence}</p>;
}

/** All sections after the explorer. */
export function Sections({ capture }: { capture: Capture }): JSX.Element {
  return <p>{capture.label}</p>;
}

/** Two captures held against each other. */
export function Comparison({ page }: { page: Page }): JSX.Element {
  return <p>{page.title}</p>;
}
