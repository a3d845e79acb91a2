/** A part of the page on its own: where the data of one makes it fail, the others still work. */
import { Component, type ComponentChildren, type JSX } from "preact";
import { shorten } from "./format";
import { Section } from "./section";

interface Props {
  /** What surrounds the sentence that stands in for the part. */
  frame?: (sentence: JSX.Element) => JSX.Element;
  children: ComponentChildren;
}

export class Boundary extends Component<Props, { message: string | null }> {
  override state = { message: null };

  static override getDerivedStateFromError(error: unknown): { message: string } {
    return { message: messageOf(error) };
  }

  override componentDidCatch(error: unknown): void {
    console.error(error);
  }

  override render(): ComponentChildren {
    const { message } = this.state;
    if (message === null) return this.props.children;
    const sentence = (
      <p class="broken" role="alert">
        This part cannot be shown ({message}): the capture may be damaged.
      </p>
    );
    return this.props.frame ? this.props.frame(sentence) : sentence;
  }
}

export function messageOf(error: unknown): string {
  return shorten(error instanceof Error ? `${error.name}: ${error.message}` : String(error), 300);
}

/** A section of its own: its title stays, so that links to it still lead somewhere. */
export function SectionBoundary(props: { id: string; title: string; children: ComponentChildren }): JSX.Element {
  const frame = (sentence: JSX.Element): JSX.Element => (
    <Section id={props.id} title={props.title}>
      {sentence}
    </Section>
  );
  return <Boundary frame={frame}>{props.children}</Boundary>;
}
