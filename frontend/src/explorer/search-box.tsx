/** Search over the three panes: marks what is found, counts it, and goes through it. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { number } from "../common/format";
import { graphTabs, loweringTabs } from "./compilations";
import { sourceFiles } from "./files";
import type { Lighting } from "./lighting";
import { type Matches, NO_MATCHES, type Scope, search } from "./search";

/** Typing is not interrupted: the search runs when it pauses. */
const PAUSE = 120;

export function SearchBox({ lighting }: { lighting: Lighting }): JSX.Element {
  const [query, setQuery] = useState("");
  const [matches, setMatches] = useState<Matches>(NO_MATCHES);
  const [position, setPosition] = useState<number | null>(null);
  const input = useRef<HTMLInputElement>(null);
  // Before anything is painted: another compilation makes another box, and no key may fall between the two.
  useLayoutEffect(() => {
    const focus = (event: KeyboardEvent): void => {
      const busy = event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]");
      if (event.key !== "/" || busy || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    document.addEventListener("keydown", focus);
    return () => document.removeEventListener("keydown", focus);
  }, []);
  const run = (text: string): Matches => {
    const found = search(scopeOf(lighting), text);
    setMatches(found);
    setPosition(null);
    lighting.setMatches(found.keys, null, text);
    return found;
  };
  useEffect(() => {
    const timer = setTimeout(() => run(query), query === "" ? 0 : PAUSE);
    return () => clearTimeout(timer);
  }, [query]);
  const go = (by: number): void => {
    const { list, keys } = matches;
    if (list.length === 0) return;
    const next = position === null ? (by > 0 ? 0 : list.length - 1) : (position + by + list.length) % list.length;
    setPosition(next);
    lighting.setMatches(keys, list[next] ?? null, query);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === "Enter") {
      event.preventDefault();
      go(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      event.preventDefault();
      setQuery("");
    }
  };
  const { counts, list } = matches;
  return (
    <div class="search" role="search">
      <input
        ref={input}
        type="search"
        data-search=""
        placeholder="Search code, nodes, kernels  ( / )"
        aria-label="Search source, graphs and kernels"
        value={query}
        onInput={(event) => setQuery(event.currentTarget.value)}
        onKeyDown={press}
      />
      <span class="search-counts" role="status" data-search-counts="">
        {query.trim() === "" ? null : list.length === 0 ? (
          "no matches"
        ) : (
          <>
            {position === null ? "" : `${number(position + 1)} of ${number(list.length)} — `}
            source {number(counts.source)} · graph {number(counts.graph)} · kernels {number(counts.kernels)}
          </>
        )}
      </span>
      {list.length > 0 ? (
        <span class="toggle">
          <button type="button" class="small" aria-label="Previous match" onClick={() => go(-1)}>
            ↑
          </button>
          <button type="button" class="small" aria-label="Next match" onClick={() => go(1)}>
            ↓
          </button>
        </span>
      ) : null}
    </div>
  );
}

/** Everything of the compilation, what is shown first. */
function scopeOf(lighting: Lighting): Scope {
  const { links } = lighting;
  const first = (list: number[], current: number | null | undefined): number[] =>
    [...list].sort((one, other) => Number(other === current) - Number(one === current));
  return {
    capture: links.capture,
    files: sourceFiles(links.capture, links),
    graphs: first(
      graphTabs(links.capture, links.graphs).map((tab) => tab.index),
      lighting.pane("graph")?.current(),
    ),
    lowerings: first(
      loweringTabs(links.capture, links.lowerings).map((tab) => tab.index),
      lighting.pane("kernels")?.current(),
    ),
  };
}
