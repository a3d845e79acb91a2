/** On a small screen the panes stand below each other: how much lit up in those out of sight, and the way there. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { number } from "../common/format";
import type { Lighting } from "./lighting";
import { type Counterpart, counterparts } from "./links";
import { PANE_OF, type PaneName, type Thing } from "./things";

const TITLES: [PaneName, string][] = [
  ["source", "Source"],
  ["graph", "Graph"],
  ["kernels", "Kernels"],
];

/** What belongs to a thing, counted by pane: what belongs to it only loosely where there is nothing else. */
export function countsByPane(found: Counterpart[]): Record<PaneName, number> {
  const strong = found.filter((part) => !part.weak);
  const counts: Record<PaneName, number> = { source: 0, graph: 0, kernels: 0 };
  for (const part of strong.length > 0 ? strong : found) counts[PANE_OF[part.kind]] += 1;
  return counts;
}

export function CounterpartBar({ lighting }: { lighting: Lighting }): JSX.Element | null {
  const [pinned, setPinned] = useState<Thing | null>(lighting.pinned);
  useEffect(() => lighting.onPinned(setPinned), [lighting]);
  const counts = useMemo(() => (pinned ? countsByPane(counterparts(lighting.links, pinned)) : null), [pinned]);
  if (!pinned || !counts) return null;
  const own = PANE_OF[pinned.kind];
  const go = (pane: PaneName): void => lighting.pane(pane)?.root.scrollIntoView({ block: "start" });
  return (
    <div class="counterpart-bar" role="group" aria-label="Related items" data-counterparts="">
      {TITLES.map(([pane, title]) => (
        <button
          type="button"
          data-to-pane={pane}
          disabled={pane !== own && counts[pane] === 0}
          onClick={() => go(pane)}
          aria-label={pane === own ? `Back to ${title}` : `${title}, ${number(counts[pane])}`}
        >
          {pane === own ? title : `${title} ${number(counts[pane])}`}
        </button>
      ))}
      <button type="button" class="let-go" aria-label="Clear selection" onClick={() => lighting.pin(null)}>
        {"\u2715"}
      </button>
    </div>
  );
}
