/** A part of the page that the navigation leads to. */
import type { ComponentChildren, JSX } from "preact";

export function Section(props: { id: string; title: string; note?: string; children: ComponentChildren }): JSX.Element {
  return (
    <section id={props.id} class="section" aria-labelledby={`${props.id}-title`}>
      <h2 id={`${props.id}-title`}>
        <a class="anchor" href={`#${props.id}`}>
          {props.title}
        </a>
      </h2>
      {props.note ? <p class="note">{props.note}</p> : null}
      {props.children}
    </section>
  );
}

/** What is said where a section has nothing to show, so that nobody wonders whether it was looked at. */
export function Nothing({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="nothing">{children}</p>;
}
