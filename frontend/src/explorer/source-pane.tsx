/** The program as it was written, each line with the kernels that compute it. */
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { CodeLine } from "../common/code";
import { count } from "../common/format";
import { Chips } from "./chips";
import { firstFile, type SourceFile, sourceFiles, type SourceRow, sourceRows } from "./files";
import type { Lighting } from "./lighting";
import { kernelsOfLine, type Links } from "./links";
import { isChip, itemHandlers, Missing, PaneFrame, usePane } from "./pane";
import { TabList } from "./tabs";
import { place, type Thing } from "./things";

export function SourcePane({ lighting }: { lighting: Lighting }): JSX.Element {
  const { links } = lighting;
  const { capture } = links;
  const files = useMemo(() => sourceFiles(capture, links), [links]);
  const [path, setPath] = useState(() => firstFile(files));
  const [library, setLibrary] = useState(() => files.find((file) => file.path === path)?.library ?? false);
  const file = files.find((item) => item.path === path);
  const current = useRef(path);
  current.current = path;
  const pane = usePane(
    "source",
    lighting,
    {
      current: () => current.current,
      holders: () => files.map((item) => item.path),
      standIn: () => null,
      show: (target) => show(target),
    },
    [path, links],
  );
  const show = (target: Thing): boolean => {
    const wanted = files.find((item) => item.path === target.holder);
    if (!wanted) return false;
    if (wanted.library) setLibrary(true);
    setPath(wanted.path);
    pane.ask(target);
    return true;
  };
  useLayoutEffect(() => {
    // A file opens where the compilation has something in it, not at its imports.
    if (file && file.linked.size > 0) pane.ask({ kind: "line", holder: file.path, item: Math.min(...file.linked) });
  }, []);
  const rows = useMemo(() => (file ? sourceRows(capture, file) : []), [file]);
  const content = useMemo(() => (file ? <Lines lighting={lighting} file={file} rows={rows} /> : null), [file, rows]);
  const tabs = files
    .filter((item) => library || !item.library || item.path === path)
    .map((item) => ({
      key: `file:${item.path}`,
      label: item.label,
      title: item.recorded ? item.title : `${item.title} (source not recorded)`,
      holder: item.path,
    }));
  const hidden = files.filter((item) => item.library).length;
  return (
    <PaneFrame
      name="source"
      title="Source"
      state={pane}
      head={
        <>
          <TabList
            label="Files"
            tabs={tabs}
            selected={`file:${path}`}
            choose={(key) => {
              setPath(Number(key.slice("file:".length)));
              pane.follow();
            }}
          />
          {hidden > 0 ? (
            <button type="button" class="small" aria-pressed={library} onClick={() => setLibrary(!library)}>
              library files ({hidden})
            </button>
          ) : null}
        </>
      }
    >
      {file && !file.recorded ? (
        <p class="pane-note">
          The source of this file was not recorded. These are the lines that operations of this compilation came from.
        </p>
      ) : null}
      {file?.recorded && file.linked.size === 0 && links.graphs.length > 0 ? (
        <p class="pane-note">No operation of this compilation came from this file.</p>
      ) : null}
      <div
        class="pane-scroll code-scroll"
        ref={(element) => void (pane.scroller.current = element)}
        {...(file ? { role: "listbox", "aria-label": `Lines of ${file.label}` } : {})}
        {...itemHandlers(lighting, {
          click: (event) => {
            const kernel = isChip(event);
            if (kernel) lighting.goTo(kernel);
            return kernel !== null;
          },
        })}
      >
        {content ?? <Missing>No source was recorded: the files could not be read, or nothing was compiled.</Missing>}
      </div>
    </PaneFrame>
  );
}

function Lines(props: { lighting: Lighting; file: SourceFile; rows: SourceRow[] }): JSX.Element {
  const { links } = props.lighting;
  // As much room for chips as the line with most of them needs.
  const most = Math.max(0, ...[...props.file.linked].map((line) => kernelsOfLine(links, props.file.path, line).length));
  const gutter = 42 + Math.min(most, 4) * 10 + (most > 4 ? 8 + 7 * String(most - 4).length : 0);
  return (
    <div class="source-lines" role="presentation" style={{ "--gutter": `${gutter}px` }}>
      {props.rows.map((row) =>
        row.kind === "gap" ? (
          <div class="source-gap" role="presentation">
            … {count(row.lines, "line")}
          </div>
        ) : (
          <SourceLine links={links} file={props.file} row={row} />
        ),
      )}
    </div>
  );
}

function SourceLine(props: { links: Links; file: SourceFile; row: SourceRow & { kind: "line" } }): JSX.Element {
  const { links, file, row } = props;
  const linked = file.linked.has(row.number) || links.passing.has(place(file.path, row.number));
  const kernels = file.linked.has(row.number) ? kernelsOfLine(links, file.path, row.number) : [];
  return (
    <div
      class={linked ? "source-row linked" : "source-row"}
      role="option"
      aria-selected="false"
      tabIndex={-1}
      data-item=""
      data-line={place(file.path, row.number)}
    >
      <span class="gutter">
        <span class="line-number">{row.number}</span>
        <Chips links={links} kernels={kernels} />
      </span>
      <code style={{ "--hang": hangOf(row.line[0]) }}>
        <CodeLine line={row.line} />
      </code>
    </div>
  );
}

/** How far the rest of a wrapped line is set in, in letters: beyond its beginning, but never so far that nothing fits. */
export function hangOf(text: string): number {
  const indent = text.length - text.trimStart().length;
  return Math.min(indent, 16) + 4;
}
