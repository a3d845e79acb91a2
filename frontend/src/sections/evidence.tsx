/** What a lesson has shown: sentences, tables and listings, in the order they were shown. */
import type { JSX } from "preact";
import { CodeLine } from "../common/code";
import { diffClasses } from "../common/diff";
import { count, shorten } from "../common/format";
import { Prose } from "../common/prose";
import { Shortened } from "../common/text";
import type { Evidence, LessonTable, Listing, Tone } from "../data";
import { Copyable } from "./parts/copy";
import { usePrinting } from "./parts/printing";
import { Table, usePaged } from "./parts/table";

const FIRST_ROWS = 60;
const FIRST_LINES = 150;

export function EvidenceView({ item }: { item: Evidence }): JSX.Element {
  if (item.kind === "table") return <TableView table={item} />;
  if (item.kind === "listing") return <ListingView listing={item} />;
  return (
    <p class="remark">
      <Prose text={item.text} />
    </p>
  );
}

function TableView({ table }: { table: LessonTable }): JSX.Element {
  const [some, more] = usePaged(table.rows, "rows", FIRST_ROWS);
  const printing = usePrinting();
  const right = (column: number): boolean => table.columns[column]?.align === "right";
  return (
    <div class="lesson-table">
      <Table
        caption={shorten(table.title)}
        columns={table.columns.map((column, index) => ({ title: shorten(column.title), figures: right(index) }))}
      >
        {(printing ? table.rows : some).map((row) => (
          <tr>
            {row.map((cell, column) =>
              column === 0 && !right(0) ? (
                <th scope="row">
                  <Cell text={cell} first />
                </th>
              ) : (
                <td class={right(column) ? "figures" : ""}>
                  <Cell text={cell} />
                </td>
              ),
            )}
          </tr>
        ))}
      </Table>
      {printing ? null : more}
    </div>
  );
}

/** What became of a call, in a word: easier to see in color. */
const TONES: Record<string, Tone> = { compiles: "warn", reuses: "good", eager: "plain", raises: "bad" };

function Cell({ text, first }: { text: string; first?: boolean }): JSX.Element {
  if (!first && Object.hasOwn(TONES, text)) return <span class={`outcome ${TONES[text] ?? ""}`}>{text}</span>;
  return text.length > 300 ? <Shortened text={text} /> : <Prose text={text} />;
}

function ListingView({ listing }: { listing: Listing }): JSX.Element {
  const [some, more] = usePaged(listing.lines, "lines", FIRST_LINES);
  const printing = usePrinting();
  const texts = listing.lines.map((line) => line[0]);
  const classes = listing.language === "diff" ? diffClasses(texts) : [];
  return (
    <figure class="listing" data-listing={listing.language}>
      <figcaption>{shorten(listing.title)}</figcaption>
      <Copyable
        class="listing-code"
        what={shorten(listing.title, 120) || "the listing"}
        label={`${shorten(listing.title, 120)}, ${count(listing.lines.length, "line")}`}
        text={texts.join("\n")}
      >
        {(printing ? listing.lines : some).map((line, index) => (
          <div class={`diff-line ${classes[index] ?? ""}`.trim()}>{line[0] === "" ? " " : <CodeLine line={line} />}</div>
        ))}
      </Copyable>
      {printing ? null : more}
    </figure>
  );
}
