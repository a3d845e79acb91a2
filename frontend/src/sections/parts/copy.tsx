/** A text to take along: shown as it is, with a button that copies it. */
import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";

/** A browser may refuse the clipboard to a page from a file: then the text is selected, and one key copies it. */
function select(element: HTMLElement): void {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = getSelection();
  selection?.removeAllRanges();
  selection?.addRange(range);
}

export function Copyable(props: {
  text: string;
  what: string;
  class?: string;
  /** The name of a text that scrolls in its own box: the box can then be reached and scrolled with the keyboard. */
  label?: string;
  children: ComponentChildren;
}): JSX.Element {
  const held = useRef<HTMLPreElement>(null);
  const [told, tell] = useState("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(props.text);
      tell("Copied");
    } catch {
      if (held.current) select(held.current);
      tell("Selected. Copy it with Ctrl+C or ⌘C.");
    }
  };
  return (
    <div class="copyable">
      <pre
        ref={held}
        class={props.class ?? ""}
        {...(props.label ? { role: "region" as const, "aria-label": props.label, tabIndex: 0 } : {})}
      >
        {props.children}
      </pre>
      <div class="copy-line">
        <button type="button" class="copy" onClick={() => void copy()} aria-label={`Copy ${props.what}`}>
          Copy
        </button>
        <span role="status">{told}</span>
      </div>
    </div>
  );
}
