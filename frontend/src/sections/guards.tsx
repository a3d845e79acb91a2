/**
 * Guards: what compiled code depends on.
 *
 * There can be thousands. They are folded by compilation and made when opened; a filter opens all that it leaves.
 */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { count, number, shorten } from "../common/format";
import { PlaceLink } from "../common/place";
import { Nothing, Section } from "../common/section";
import { Shortened } from "../common/text";
import type { Capture, GuardGroup } from "../data";
import { Accidents, Specializations } from "./accidents";
import { byCompilation, type GuardedCompilation, matches } from "./guard-groups";
import { Folded } from "./parts/folded";
import { CompilationLink } from "./parts/links";
import { Table, usePaged } from "./parts/table";

export function Guards({ capture }: { capture: Capture }): JSX.Element {
  const [filter, setFilter] = useState("");
  const grouped = useMemo(() => {
    const left = capture.guards.filter((group) => matches(group, filter));
    const order = capture.compilations.map((item) => item.id);
    return byCompilation(left, order);
  }, [capture, filter]);
  if (capture.guards.length === 0) {
    return (
      <Section id="guards" title="Guards">
        <Nothing>
          No guards were recorded. <code>compile-inspect guards TARGET</code> shows what compiled code depends on; with{" "}
          <code>--what-if</code> which inputs would compile again.
        </Nothing>
        <Accidents capture={capture} />
        <Specializations capture={capture} />
      </Section>
    );
  }
  const left = grouped.reduce((sum, entry) => sum + entry.own.length + entry.noise.length, 0);
  return (
    <Section
      id="guards"
      title="Guards"
      note="The conditions that compiled code depends on. If one no longer holds, torch recompiles."
    >
      <Accidents capture={capture} />
      <Specializations capture={capture} />
      <h3>All guards, by compilation and variable</h3>
      <p class="filter">
        <label>
          Filter{" "}
          <input
            type="search"
            value={filter}
            placeholder="variable, kind or condition"
            onInput={(event) => setFilter(event.currentTarget.value)}
          />
        </label>{" "}
        <span role="status">
          {filter ? `${number(left)} of ${count(capture.guards.length, "variable")}` : count(capture.guards.length, "variable")}
        </span>
      </p>
      {grouped.length === 0 ? <Nothing>No guard matches.</Nothing> : null}
      {grouped.map((entry) => (
        // A new filter decides anew what is open, whatever was opened before it.
        <OfCompilation key={`${entry.compilation} ${filter !== ""}`} capture={capture} entry={entry} open={filter !== ""} />
      ))}
    </Section>
  );
}

function OfCompilation(props: { capture: Capture; entry: GuardedCompilation; open: boolean }): JSX.Element {
  const { capture, entry } = props;
  const compilation = capture.compilations.find((item) => item.id === entry.compilation);
  return (
    <Folded
      class="guarded"
      open={props.open}
      summary={
        <>
          <code>{entry.compilation || "no compilation"}</code> {shorten(compilation?.name ?? "")}{" "}
          <span class="aside">
            {count(entry.own.length, "variable")}
            {entry.noise.length > 0 ? `, and ${number(entry.noise.length)} that need no action` : ""}
          </span>
        </>
      }
    >
      {() => (
        <>
          <p class="aside">
            <CompilationLink capture={capture} id={entry.compilation} />
            {compilation ? ` · ${count(compilation.guards, "guard")} in all` : ""}
          </p>
          {entry.own.length > 0 ? (
            <GuardTable capture={capture} groups={entry.own} caption={`Guards of ${entry.compilation}`} />
          ) : (
            <Nothing>No guard here depends on the program.</Nothing>
          )}
          {entry.noise.length > 0 ? (
            <Folded open={props.open} summary={`${count(entry.noise.length, "variable")} that need no action`}>
              {() => <GuardTable capture={capture} groups={entry.noise} caption={`Other guards of ${entry.compilation}`} />}
            </Folded>
          ) : null}
        </>
      )}
    </Folded>
  );
}

function GuardTable(props: { capture: Capture; groups: GuardGroup[]; caption: string }): JSX.Element {
  const [shown, more] = usePaged(props.groups, "variables", 100);
  return (
    <>
      <Table
        caption={props.caption}
        quietCaption
        columns={[{ title: "Variable" }, { title: "Condition" }, { title: "Kind" }, { title: "Read at" }]}
      >
        {shown.map((group) => (
          <tr data-guard={shorten(group.variable)}>
            <th scope="row">
              <code>
                <Shortened text={group.variable} />
              </code>
            </th>
            <td>
              {group.conditions.map(([, condition]) => (
                <div>
                  <Shortened text={condition} />
                </div>
              ))}
            </td>
            <td>
              {group.conditions.map(([kind]) => (
                <div class="guard-kind">{shorten(kind, 80)}</div>
              ))}
            </td>
            <td>
              <PlaceLink capture={props.capture} place={group.place} />
            </td>
          </tr>
        ))}
      </Table>
      {more}
    </>
  );
}
