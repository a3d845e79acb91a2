/** Guards on numbers that will change, and sizes that were pinned: what makes torch compile again without anybody meaning it. */
import type { JSX } from "preact";
import { shorten } from "../common/format";
import { PlaceLink } from "../common/place";
import { Shortened } from "../common/text";
import type { Accident, Capture } from "../data";
import { accidentGroups } from "./guard-groups";
import { CompilationLink } from "./parts/links";
import { Table, usePaged } from "./parts/table";
import { ToneText } from "./parts/tone";

export function Accidents({ capture }: { capture: Capture }): JSX.Element | null {
  if (capture.accidents.length === 0) return null;
  return (
    <div class="accidents">
      <h3>Numbers that are compiled in but change</h3>
      <p class="note">Compiled code is only valid for these values; another value triggers a recompile.</p>
      <AccidentTable capture={capture} accidents={capture.accidents} caption="Numbers that change" />
    </div>
  );
}

function AccidentTable(props: { capture: Capture; accidents: Accident[]; caption: string }): JSX.Element {
  const groups = accidentGroups(props.accidents);
  const [shown, more] = usePaged(groups, "numbers", 100);
  const remedies = [...new Set(groups.map((group) => group.accident.remedy))];
  return (
    <>
      <Table
        caption={props.caption}
        quietCaption
        columns={[{ title: "Variable" }, { title: "Value" }, { title: "Suspicion" }, { title: "Where" }, { title: "In" }]}
      >
        {shown.map((group) => (
          <tr data-accident={shorten(group.variable)}>
            <th scope="row">
              <code>
                <Shortened text={group.variable} />
              </code>
              <div class="aside">{shorten(group.accident.holder)}</div>
            </th>
            <td>
              <code>
                <Shortened text={group.values.slice(0, 6).join(", ")} />
              </code>
              {group.values.length > 6 ? ` and ${group.values.length - 6} more` : ""}
            </td>
            <td>
              <ToneText tone="warn">{shorten(group.accident.suspicion)}</ToneText>
            </td>
            <td>
              <PlaceLink capture={props.capture} place={group.accident.place} />
            </td>
            <td>
              {group.compilations.slice(0, 4).map((id, index) => (
                <>
                  {index > 0 ? ", " : ""}
                  <CompilationLink capture={props.capture} id={id} />
                </>
              ))}
              {group.compilations.length > 4 ? " …" : ""}
            </td>
          </tr>
        ))}
      </Table>
      {more}
      {remedies.map((remedy) => (
        <p class="remedy">
          <strong>Remedy</strong>
          {remedies.length > 1 ? ` for ${holdersOf(groups, remedy)}` : ""}: {shorten(remedy, 2_000)}
        </p>
      ))}
    </>
  );
}

function holdersOf(groups: ReturnType<typeof accidentGroups>, remedy: string): string {
  const holders = groups.filter((group) => group.accident.remedy === remedy).map((group) => group.accident.holder);
  return [...new Set(holders)].join(" or ");
}

export function Specializations({ capture }: { capture: Capture }): JSX.Element | null {
  const [shown, more] = usePaged(capture.specializations, "sizes", 100);
  if (shown.length === 0) return null;
  return (
    <div class="specializations">
      <h3>Specialized sizes</h3>
      <p class="note">torch first made these sizes symbolic; a line of code then required one value.</p>
      <Table
        caption="Sizes specialized to a number, and the lines that caused it"
        quietCaption
        columns={[{ title: "Variable" }, { title: "Value" }, { title: "At" }, { title: "Reason" }, { title: "In" }]}
      >
        {shown.map((item) => (
          <tr data-specialization={shorten(item.variable)}>
            <th scope="row">
              <code>
                <Shortened text={item.variable} />
              </code>
            </th>
            <td>
              <code>
                <Shortened text={item.value} />
              </code>
            </td>
            <td>
              <PlaceLink capture={capture} place={item.place} />
            </td>
            <td>
              <Shortened text={item.reason} />
            </td>
            <td>
              <CompilationLink capture={capture} id={item.compilation} />
            </td>
          </tr>
        ))}
      </Table>
      {more}
    </div>
  );
}
