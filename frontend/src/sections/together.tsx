/** Several processes of one program: what they did together, and which of them is worth a look. */
import type { JSX } from "preact";
import { count, shorten } from "../common/format";
import type { Page } from "../data";
import { Table, usePaged } from "./parts/table";
import { SIGNS, ToneSign, ToneText } from "./parts/tone";

/** The capture to begin with, also where a page names none that it has. */
export function firstCapture(page: Pick<Page, "first" | "captures">): number {
  return page.captures[page.first] ? page.first : 0;
}

/** The name of a capture in the list to choose from, with the sign of how it went. */
export function captureLabel(page: Page, index: number): string {
  const label = shorten(page.captures[index]?.label ?? "", 80);
  const tone = page.together?.processes[index]?.tone ?? "plain";
  return tone === "plain" ? label : `${SIGNS[tone]} ${label}`;
}

export function TogetherSection(props: { page: Page; chosen: number; choose: (index: number) => void }): JSX.Element | null {
  const { together } = props.page;
  const [shown, more] = usePaged(together?.processes ?? [], "processes", 16);
  if (!together) return null;
  return (
    <section id="together" class="section together" aria-labelledby="together-title">
      <p class="eyebrow">{count(together.processes.length, "process", "processes")} together</p>
      <h2 id="together-title" class={`sentence ${together.tone}`}>
        <ToneSign tone={together.tone} />
        <span>{together.sentence}</span>
      </h2>
      <Table
        caption="Processes; the chosen one is shown below"
        quietCaption
        columns={[{ title: "Process" }, { title: "How it went" }]}
      >
        {shown.map((process, index) => (
          <tr data-process={index} class={index === props.chosen ? "current" : ""}>
            <th scope="row">
              <button
                type="button"
                class="link"
                aria-pressed={index === props.chosen}
                title="Show this process"
                onClick={() => props.choose(index)}
              >
                {shorten(process.label, 120)}
              </button>
              {index === props.chosen ? <div class="aside">shown below</div> : null}
            </th>
            <td>
              <ToneText tone={process.tone}>{shorten(process.sentence, 600)}</ToneText>
            </td>
          </tr>
        ))}
      </Table>
      {more}
    </section>
  );
}
