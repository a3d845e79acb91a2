/** Whether the ways of running the function give what eager gives, and what is to blame where one does not. */
import type { JSX } from "preact";
import { count, shorten } from "../common/format";
import { PlaceLink } from "../common/place";
import { Nothing, Section } from "../common/section";
import { Shortened } from "../common/text";
import type { Agreement, Capture } from "../data";
import { Folded } from "./parts/folded";
import { ToneText } from "./parts/tone";

export function Agreements({ capture }: { capture: Capture }): JSX.Element {
  return (
    <Section id="agreement" title="Agreement with eager">
      {capture.agreements.length === 0 ? (
        <Nothing>
          Compiled code was not compared with eager. <code>compile-inspect verify TARGET --capture FILE</code> compares values
          and gradients.
        </Nothing>
      ) : null}
      {capture.agreements.map((agreement) => (
        <OneAgreement capture={capture} agreement={agreement} />
      ))}
    </Section>
  );
}

function OneAgreement({ capture, agreement }: { capture: Capture; agreement: Agreement }): JSX.Element {
  return (
    <div class="agreement">
      <h3>
        <code>{shorten(agreement.name)}</code>{" "}
        <span class="aside">{agreement.gradients ? "values and gradients" : "values"}</span>
      </h3>
      <p class="note">
        Compared at {count(agreement.points.length, "input")}: <Shortened text={agreement.points.join("; ")} most={1_000} />.
      </p>
      {agreement.notes.map((note) => (
        <p class="note">
          <Shortened text={note} most={1_000} />
        </p>
      ))}
      <ul class="variants">
        {agreement.variants.map((variant) => (
          <VariantView capture={capture} variant={variant} />
        ))}
      </ul>
    </div>
  );
}

function VariantView({ capture, variant }: { capture: Capture; variant: Agreement["variants"][number] }): JSX.Element {
  // Where all is well, the reason says the verdict once more and at how many inputs.
  const repeated = variant.reason.startsWith(variant.verdict);
  return (
    <li class={`card tone-${variant.tone}`} data-variant={variant.name} data-agreement={variant.tone}>
      <h4>
        <code>{variant.name}</code>{" "}
        <ToneText tone={variant.tone}>{shorten(repeated ? variant.reason : variant.verdict)}</ToneText>
      </h4>
      {variant.reason && !repeated ? (
        <p>
          <Shortened text={variant.reason} most={1_000} />
        </p>
      ) : null}
      {variant.differences.length > 0 ? (
        <Folded open={variant.tone === "bad"} printed summary={count(variant.differences.length, "difference")}>
          {() => <Texts texts={variant.differences} />}
        </Folded>
      ) : null}
      {variant.assumptions.length > 0 ? (
        <Folded
          printed
          summary={`Correct only while ${count(variant.assumptions.length, "assumption holds", "assumptions hold")}`}
        >
          {() => <Texts texts={variant.assumptions} />}
        </Folded>
      ) : null}
      {variant.blame ? (
        <p class="blame">
          <strong>Blame:</strong> {shorten(variant.blame, 1_000)} <PlaceLink capture={capture} place={variant.place} />
        </p>
      ) : null}
      {variant.notes.map((note) => (
        <p class="aside">
          <Shortened text={note} most={1_000} />
        </p>
      ))}
    </li>
  );
}

function Texts({ texts }: { texts: string[] }): JSX.Element {
  return (
    <ul>
      {texts.map((text) => (
        <li>
          <Shortened text={text} most={1_000} />
        </li>
      ))}
    </ul>
  );
}
