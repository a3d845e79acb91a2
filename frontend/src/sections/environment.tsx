/** The machine, the versions and the settings that the capture was made with, and what was noted meanwhile. */
import type { JSX } from "preact";
import { shorten } from "../common/format";
import { Nothing, Section } from "../common/section";
import { Shortened } from "../common/text";
import type { Capture } from "../data";
import { Folded } from "./parts/folded";

const MANY = 12;

export function Environment({ capture }: { capture: Capture }): JSX.Element {
  return (
    <Section id="environment" title="Environment">
      {capture.environment.length === 0 ? <Nothing>No information about the machine was recorded.</Nothing> : null}
      <div class="groups">
        {capture.environment.map((group) =>
          group.rows.length > MANY ? (
            <Folded printed summary={`${group.title} (${group.rows.length})`}>
              {() => <Rows rows={group.rows} />}
            </Folded>
          ) : (
            <div>
              <h3>{group.title}</h3>
              <Rows rows={group.rows} />
            </div>
          ),
        )}
      </div>
      {capture.notes.length > 0 ? (
        <div class="notes">
          <h3>Notes</h3>
          <ul>
            {capture.notes.map((note) => (
              <li>
                <Shortened text={note} most={2_000} />
              </li>
            ))}
          </ul>
        </div>
      ) : null}
    </Section>
  );
}

function Rows({ rows }: { rows: [name: string, value: string][] }): JSX.Element {
  return (
    <dl class="pairs environment-rows">
      {rows.map(([name, value]) => (
        <>
          <dt>{shorten(name)}</dt>
          <dd>
            <code>
              <Shortened text={value} most={2_000} />
            </code>
          </dd>
        </>
      ))}
    </dl>
  );
}
