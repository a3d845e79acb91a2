/** Something folded away, made only once it is opened. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { usePrinting } from "./printing";

export function Folded(props: {
  summary: ComponentChildren;
  /** Whether it is open at first. */
  open?: boolean;
  /** Whether paper shows it too. */
  printed?: boolean;
  class?: string;
  children: () => ComponentChildren;
}): JSX.Element {
  const [open, setOpen] = useState(props.open ?? false);
  const printing = usePrinting();
  const shown = open || (printing && (props.printed ?? false));
  return (
    <details
      class={`folded ${props.class ?? ""}`}
      open={shown}
      onToggle={(event) => !printing && setOpen(event.currentTarget.open)}
    >
      <summary>{props.summary}</summary>
      {shown ? <div class="folded-inside">{props.children()}</div> : null}
    </details>
  );
}
