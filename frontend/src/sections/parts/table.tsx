/**
 * Tables that scroll in a box of their own, so that a wide one never widens the page.
 *
 * Long ones show their first rows and a button for the rest: what nobody scrolls to is not worth the time of the first paint.
 */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { number } from "../../common/format";

export interface Column {
  title: string;
  /** Figures are set flush right, so that their digits stand below each other. */
  figures?: boolean;
}

export function Table(props: {
  caption: string;
  columns: Column[];
  quietCaption?: boolean;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="table-box" role="region" aria-label={props.caption} tabIndex={0}>
      <table class="data-table">
        <caption class={props.quietCaption ? "unseen" : ""}>{props.caption}</caption>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <th scope="col" class={column.figures ? "figures" : ""}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

export const PAGE_SIZE = 200;

/** The items to show at first, the button that shows all of them (null where all are shown), and what it does. */
export function usePaged<T>(
  items: T[],
  noun: string,
  size = PAGE_SIZE,
): [shown: T[], more: JSX.Element | null, showAll: () => void] {
  const [all, setAll] = useState(false);
  const showAll = (): void => setAll(true);
  if (all || items.length <= size) return [items, null, showAll];
  const button = (
    <p class="more">
      {number(size)} of {number(items.length)} {noun}.{" "}
      <button type="button" onClick={showAll}>
        Show all
      </button>
    </p>
  );
  return [items.slice(0, size), button, showAll];
}
