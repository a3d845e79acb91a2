/** A line of source as a button that shows it in the explorer, or as text where its file was not recorded. */
import type { JSX } from "preact";
import type { Capture, Place } from "../data";
import { shorten } from "./format";
import { revealPlace } from "./navigation";

export function placeText(capture: Capture, place: Place): string {
  return `${shorten(capture.paths[place.path]?.short ?? "?", 160)}:${place.line}`;
}

export function PlaceLink({ capture, place }: { capture: Capture; place: Place | null }): JSX.Element | null {
  if (place === null) return null;
  const text = placeText(capture, place);
  const shown = capture.sources.some((source) => source.path === place.path);
  if (!shown) return <code class="place">{text}</code>;
  return (
    <button type="button" class="place link" title="Show in the explorer" onClick={() => revealPlace(place)}>
      {text}
    </button>
  );
}
