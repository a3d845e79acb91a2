/**
 * The three linked panes: what was written, what the compiler saw in each stage, and the kernels that came of it.
 *
 * Everything here belongs to one compilation at a time; choosing another builds its links and starts the panes anew.
 */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Boundary } from "../common/boundary";
import { onReveal, type Reveal } from "../common/navigation";
import type { Capture } from "../data";
import { choices, firstChoice } from "./compilations";
import { CounterpartBar } from "./counterpart-bar";
import { Detail } from "./detail";
import { Columns } from "./dividers";
import { GraphPane } from "./graph-pane";
import { KernelsPane } from "./kernels-pane";
import { Lighting } from "./lighting";
import { buildLinks } from "./links";
import { brokenPane } from "./pane";
import { SearchBox } from "./search-box";
import { SourcePane } from "./source-pane";
import { compilationOf, targetOf } from "./targets";
import type { Thing } from "./things";

export function Explorer({ capture }: { capture: Capture }): JSX.Element {
  const found = useMemo(() => choices(capture), [capture]);
  const [compilation, choose] = useState(() => firstChoice(found));
  const links = useMemo(() => buildLinks(capture, compilation), [capture, compilation]);
  const lighting = useMemo(() => new Lighting(links), [links]);
  const waiting = useRef<Thing | null>(null);
  useEffect(() => {
    const listen = (reveal: Reveal): void => {
      const wanted = compilationOf(capture, links, reveal);
      const target = targetOf(reveal);
      if (wanted !== undefined && wanted !== compilation && found.some((choice) => choice.id === wanted)) {
        waiting.current = target;
        choose(wanted);
      } else if (target) {
        lighting.goTo(target);
      }
    };
    return onReveal(listen);
  }, [links]);
  useEffect(() => {
    if (waiting.current) lighting.goTo(waiting.current);
    waiting.current = null;
  }, [lighting]);
  const panes = useMemo(
    () => (
      <Columns key={String(compilation)} names={["source", "graph", "kernels"]}>
        {[
          <Boundary frame={brokenPane("source", "Source")}>
            <SourcePane lighting={lighting} />
          </Boundary>,
          <Boundary frame={brokenPane("graph", "Graph")}>
            <GraphPane lighting={lighting} />
          </Boundary>,
          <Boundary frame={brokenPane("kernels", "Kernels")}>
            <KernelsPane lighting={lighting} compilation={compilation} />
          </Boundary>,
        ]}
      </Columns>
    ),
    [lighting],
  );
  useEffect(() => {
    // Wherever the focus went meanwhile; fields have a use for the key of their own.
    const release = (event: KeyboardEvent): void => {
      const busy = event.target instanceof Element && event.target.closest("input, select, textarea");
      if (event.key === "Escape" && !busy && lighting.pinned) lighting.pin(null);
    };
    document.addEventListener("keydown", release);
    return () => document.removeEventListener("keydown", release);
  }, [lighting]);
  return (
    <div class="explorer">
      <div class="explorer-bar">
        {found.length > 0 ? (
          <label class="compilation">
            <span>Compilation</span>
            <select
              data-compilation=""
              value={compilation ?? ""}
              onChange={(event) => choose(event.currentTarget.value === "" ? null : event.currentTarget.value)}
            >
              {found.map((choice) => (
                <option value={choice.id ?? ""}>{choice.label}</option>
              ))}
            </select>
          </label>
        ) : (
          <span class="quiet">No compilation with graphs or kernels was recorded.</span>
        )}
        <Boundary key={String(compilation)}>
          <SearchBox lighting={lighting} />
        </Boundary>
      </div>
      {panes}
      <Detail key={`detail ${String(compilation)}`} lighting={lighting} />
      <Boundary key={`bar ${String(compilation)}`}>
        <CounterpartBar lighting={lighting} />
      </Boundary>
    </div>
  );
}
