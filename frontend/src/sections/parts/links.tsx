/** Links of the sections: to a compilation in the explorer, to evidence on this page, to torch's own pages; nowhere else. */
import type { ComponentChildren, JSX } from "preact";
import { reveal } from "../../common/navigation";
import type { Capture } from "../../data";

/** The id of a compilation, as a button that shows it in the explorer; as text where the capture has no such compilation. */
export function CompilationLink({ capture, id }: { capture: Capture; id: string }): JSX.Element | null {
  if (!id) return null;
  if (!capture.compilations.some((item) => item.id === id)) return <code class="compilation-id">{id}</code>;
  return (
    <button
      type="button"
      class="link compilation-id"
      title={`Show compilation ${id} in the explorer`}
      onClick={() => reveal({ kind: "compilation", id })}
    >
      {id}
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
