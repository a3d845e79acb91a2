/** Small colored marks: the kernels that compute a line or a node. */
import type { JSX } from "preact";
import { shorten } from "../common/format";
import { hueOf, hueStyle, isBackward } from "./colors";
import type { Links, Reference } from "./links";
import { place } from "./things";

const MAX_CHIPS = 4;

export function Chips({ links, kernels }: { links: Links; kernels: Reference[] }): JSX.Element | null {
  if (kernels.length === 0) return null;
  const more = kernels.length - MAX_CHIPS;
  return (
    <span class="chips" aria-hidden="true">
      {kernels.slice(0, MAX_CHIPS).map((kernel) => (
        <span
          class={isBackward(links.capture, kernel[0]) ? "chip backward" : "chip"}
          data-chip={place(...kernel)}
          style={hueStyle(hueOf(links, kernel))}
          title={chipTitle(links, kernel)}
        />
      ))}
      {more > 0 ? <span class="chips-more">+{more}</span> : null}
    </span>
  );
}

export function chipTitle(links: Links, [lowering, kernel]: Reference): string {
  const found = links.capture.lowerings[lowering];
  return `${found?.direction ?? ""} kernel ${kernel + 1}: ${shorten(found?.kernels[kernel]?.name ?? "?", 80)}`;
}
