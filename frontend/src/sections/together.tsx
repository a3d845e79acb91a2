/** Several captures: processes of one program with what they did together, or the models of a tour; and which is shown. */
import type { JSX } from "preact";
import { shorten, together as unbroken } from "../common/format";
import type { Page } from "../data";
import { wordsOf } from "./kinds";
import { Table, usePaged } from "./parts/table";
import { SIGNS, ToneSign, ToneText } from "./parts/tone";
import { Further } from "./verdict";

/** The capture to begin with, also where a page names none that it has. */
export function firstCapture(page: Pick<Page, "first" | "captures">): number {
  return page.captures[page.first] ? page.first : 0;
}

/** The name of a capture in the list to choose from, with the sign of how it went. */
export function captureLabel(page: Page, index: number): string {
  const label = shorten(page.captures[index]?.label ?? "", 80);
  const tone = page.together?.members[index]?.tone ?? "plain";
  return tone === "plain" ? label : `${SIGNS[tone]} ${label}`;
}

export function TogetherSection(props: { page: Page; chosen: number; choose: (index: number) => void }): JSX.Element | null {
  const { together } = props.page;
  const words = wordsOf(props.page.kind);
  const [shown, more] = usePaged(together?.members ?? [], words.many, 16);
  if (!together) return null;
  return (
    <section id="together" class="section together" aria-labelledby="together-title">
      <p class="eyebrow">{words.above(together.members.length)}</p>
      <h2 id="together-title" class={`sentence ${together.tone}`}>
        <ToneSign tone={together.tone} />
        <span>{unbroken(together.sentence)}</span>
      </h2>
      <Further statements={together.further} />
      <Table
        caption={`${words.all}; the selected one is shown below`}
        quietCaption
        columns={[{ title: words.one }, { title: "Outcome" }]}
      >
        {shown.map((member, index) => (
          <tr data-member={index} class={index === props.chosen ? "current" : ""}>
            <th scope="row">
              <button
                type="button"
                class="link"
                aria-pressed={index === props.chosen}
                title={`Show this ${words.one.toLowerCase()}`}
                onClick={() => props.choose(index)}
              >
                {shorten(member.label, 120)}
              </button>
              {index === props.chosen ? <div class="aside">shown below</div> : null}
            </th>
            <td>
              <ToneText tone={member.tone}>{shorten(member.sentence, 600)}</ToneText>
            </td>
          </tr>
        ))}
      </Table>
      {more}
    </section>
  );
}
