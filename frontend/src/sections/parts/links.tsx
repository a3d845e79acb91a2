/** Links of the sections: to a compilation in the explorer, to evidence on this page, to torch's own pages; nowhere else. */
import type { ComponentChildren, JSX } from "preact";
import { exploredCompilations, positionOf } from "../../common/compilations";
import { shorten } from "../../common/format";
import { reveal } from "../../common/navigation";
import type { Capture } from "../../data";

/**
 * The id of a compilation, as a button that shows it in the explorer.
 *
 * One without graphs and kernels, such as one that failed, is not in there: its row in the table says what is known. Where
 * the capture has no such compilation, the id is text.
 */
export function CompilationLink({ capture, id }: { capture: Capture; id: string }): JSX.Element | null {
  if (!id) return null;
  const position = positionOf(capture, id);
  if (position === undefined) return <code class="compilation-id">{shorten(id, 80)}</code>;
  if (!exploredCompilations(capture).has(id)) {
    return (
      <a class="compilation-id" href={`#compilation-${position}`} title={`Show compilation ${shorten(id, 80)} in the table`}>
        {shorten(id, 80)}
      </a>
    );
  }
  return (
    <button
      type="button"
      class="link compilation-id"
      title={`Show compilation ${shorten(id, 80)} in the explorer`}
      onClick={() => reveal({ kind: "compilation", id })}
    >
      {shorten(id, 80)}
    </button>
  );
}

/** A fragment of this page that is safe to link to; empty where the data names anything else. */
export function fragment(link: string): string {
  return /^#[\w-]+$/.test(link) ? link : "";
}

/** An address of the web; whatever else the data may hold is shown as text. */
export function WebLink({ address, children }: { address: string; children: ComponentChildren }): JSX.Element {
  if (!address.startsWith("https://")) return <>{children}</>;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
