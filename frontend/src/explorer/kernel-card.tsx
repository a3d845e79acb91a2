/** One kernel: what it is, how much it fuses, and its code. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { CodeLine } from "../common/code";
import { count, shorten } from "../common/format";
import type { Kernel, Line, Lowering } from "../data";
import { unindented } from "./code-lines";
import { hueStyle } from "./colors";
import { kernelCode } from "./search";
import { place } from "./things";

const FOLDED = 30;

export function KernelCard(props: {
  lowering: Lowering;
  index: number;
  number: number;
  kernel: Kernel;
  hue: number;
  open: boolean;
}): JSX.Element {
  const { kernel, lowering } = props;
  const [open, setOpen] = useState<boolean | null>(null);
  const shown = open ?? props.open;
  const code = kernel.lines ? kernelCode(lowering, kernel) : kernelCode(lowering, kernel).map(unindented);
  const first = kernel.lines?.[0] ?? kernel.call ?? 1;
  const backward = lowering.direction === "backward" ? " backward" : "";
  return (
    <li
      class={`kernel-card${backward}`}
      data-item=""
      data-kernel={place(props.index, props.number)}
      tabIndex={-1}
      style={hueStyle(props.hue)}
      aria-label={`Kernel ${props.number + 1}: ${shorten(kernel.name)}, ${kernel.title}, ${count(kernel.fuses, "node")}`}
    >
      <div class="kernel-head">
        <span class="kernel-number">{props.number + 1}</span>
        <span class="kernel-name">{shorten(kernel.name)}</span>
        <span class="kernel-facts">
          <span class="kernel-kind">{kernel.title}</span>
          <span>{kernel.fuses > 1 ? `fuses ${count(kernel.fuses, "node")}` : count(kernel.fuses, "node")}</span>
          {kernel.lines && code.length > 0 ? (
            <button type="button" class="small" data-code-toggle="" aria-expanded={shown} onClick={() => setOpen(!shown)}>
              {shown ? "Hide code" : `Code, ${count(code.length, "line")}`}
            </button>
          ) : null}
        </span>
      </div>
      {kernel.lines && shown ? <Code lines={code} first={first} /> : null}
      {!kernel.lines && code.length > 0 ? <Code lines={code} first={first} /> : null}
      {code.length === 0 ? <p class="quiet kernel-nothing">The code was not recorded.</p> : null}
    </li>
  );
}

function Code({ lines, first }: { lines: Line[]; first: number }): JSX.Element {
  const [whole, setWhole] = useState(false);
  // Folding away a line or two would cost as much room as it saves.
  const cut = !whole && lines.length > FOLDED + 5;
  return (
    <>
      <div class="code">
        <CodeLines lines={cut ? lines.slice(0, FOLDED) : lines} first={first} />
      </div>
      {lines.length > FOLDED + 5 ? (
        <button type="button" class="small show-all" onClick={() => setWhole(!whole)}>
          {cut ? `Show all ${lines.length} lines` : `Show ${FOLDED} lines`}
        </button>
      ) : null}
    </>
  );
}

export function CodeLines({ lines, first }: { lines: Line[]; first: number }): JSX.Element {
  return (
    <>
      {lines.map((line, index) => (
        <div class="code-line">
          <span class="line-number">{first + index}</span>
          <code>
            <CodeLine line={line} />
          </code>
        </div>
      ))}
    </>
  );
}
