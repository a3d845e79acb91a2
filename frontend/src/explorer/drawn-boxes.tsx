/** The boxes and lines of the drawing that are in view. */
import type { JSX } from "preact";
import { count, shorten } from "../common/format";
import type { Graph } from "../data";
import { hueOf, hueStyle } from "./colors";
import { type Box, boxId, HEADER } from "./layout";
import { kernelsOfNode, type Links, type Reference } from "./links";
import { place } from "./things";
import type { Group } from "./tree";
import { pathOf, type Seen } from "./viewport";

/** Below this scale texts are specks that only cost time. */
const LEGIBLE = 0.32;
const CHARACTER = 6.7;

export function DrawnBoxes(props: { links: Links; index: number; graph: Graph; seen: Seen; scale: number }): JSX.Element {
  const { links, index, graph, seen } = props;
  const legible = props.scale >= LEGIBLE;
  const open = seen.boxes.filter((box) => box.open);
  const closed = seen.boxes.filter((box) => !box.open);
  return (
    <>
      {open.map((box) => (
        <OpenGroup key={boxId(box)} box={box} legible={legible} dense={seen.dense.has(box)} scale={props.scale} />
      ))}
      {seen.lines.map(({ line, parent }) => (
        <path
          key={`${boxId(parent)} ${line.from} ${line.to}`}
          class={fromInputs(parent, line.from) ? "edge of-input" : "edge"}
          data-from={endOf(parent, line.from)}
          data-to={endOf(parent, line.to)}
          d={pathOf(line.points)}
          marker-end={legible ? "url(#arrow)" : undefined}
        />
      ))}
      {closed.map((box) =>
        box.group ? (
          <ClosedGroup key={boxId(box)} links={links} index={index} box={box} group={box.group} legible={legible} />
        ) : (
          <NodeBox key={boxId(box)} links={links} index={index} graph={graph} box={box} legible={legible} />
        ),
      )}
    </>
  );
}

function endOf(parent: Box, child: number): string | undefined {
  const box = parent.children[child];
  return box ? boxId(box) : undefined;
}

function fromInputs(parent: Box, child: number): boolean {
  return parent.children[child]?.group?.kind === "inputs";
}

function cut(text: string, width: number, character = CHARACTER): string {
  const most = Math.floor((width - 14) / character);
  return text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text;
}

function OpenGroup(props: { box: Box; legible: boolean; dense: boolean; scale: number }): JSX.Element {
  const { box, legible, dense, scale } = props;
  const label = shorten(box.group?.label ?? "");
  // Far away a group that is all there is to see carries its name in letters as large as they are near by.
  const named = dense && box.width * scale > label.length * CHARACTER + 6 && box.height * scale > 14;
  return (
    <g
      class={`open-group depth-${box.depth % 2}${dense ? " dense" : ""}`}
      data-box={boxId(box)}
      transform={`translate(${box.x} ${box.y})`}
      role="button"
      data-item=""
      tabindex={-1}
      aria-expanded="true"
      aria-label={`${label}, ${count(box.group?.size ?? 0, "node")}`}
    >
      <rect width={box.width} height={box.height} rx="8" />
      {named ? (
        <text class="far-name" transform={`translate(${box.width / 2} ${box.height / 2}) scale(${1 / scale})`}>
          {label}
        </text>
      ) : null}
      {legible && !dense ? (
        <>
          <text class="box-name" x="10" y="16">
            {cut(label, box.width - 40)}
          </text>
          <g class="fold" data-toggle={boxId(box)} transform={`translate(${box.width - 24} 4)`}>
            <title>Collapse</title>
            <rect width="18" height={HEADER - 8} rx="4" />
            <path d="M5 8H13" />
          </g>
        </>
      ) : null}
    </g>
  );
}

function ClosedGroup(props: { links: Links; index: number; box: Box; group: Group; legible: boolean }): JSX.Element {
  const { box, group, links } = props;
  const kernels = kernelsWithin(links, props.index, group);
  const strip = Math.min(kernels.length, 24);
  return (
    <g
      class={`closed-group ${group.kind}`}
      data-box={boxId(box)}
      transform={`translate(${box.x} ${box.y})`}
      role="button"
      data-item=""
      tabindex={-1}
      aria-expanded="false"
      aria-label={`${shorten(group.label)}, ${count(group.size, "node")}, collapsed`}
    >
      <title>{`${shorten(group.path || group.label)}: ${count(group.size, "node")}`}</title>
      <rect class="behind" x="4" y="4" width={box.width - 4} height={box.height - 2} rx="6" />
      <rect class="face" width={box.width - 4} height={box.height - 4} rx="6" />
      {kernels.slice(0, strip).map((kernel, position) => (
        <rect
          class="strip"
          x={8 + (position * (box.width - 20)) / strip}
          y={box.height - 9}
          width={(box.width - 20) / strip}
          height="3"
          style={hueStyle(hueOf(links, kernel))}
        />
      ))}
      {props.legible ? (
        <>
          <text class="box-name" x="26" y="15">
            {cut(group.label, box.width - 24)}
          </text>
          <text class="box-note" x="26" y="25">
            {count(group.size, "node")}
          </text>
          <g class="fold" data-toggle={boxId(box)} transform="translate(5 7)">
            <title>Expand</title>
            <rect width="16" height="16" rx="4" />
            <path d="M4 8H12M8 4V12" />
          </g>
        </>
      ) : null}
    </g>
  );
}

/** The kernels of everything in a group, in order, each once. */
function kernelsWithin(links: Links, index: number, group: Group): Reference[] {
  const found = new Map<string, Reference>();
  const visit = (current: Group): void => {
    for (const child of current.children) {
      if (found.size >= 24) return;
      if (typeof child === "object") visit(child);
      else for (const kernel of kernelsOfNode(links, index, child)) found.set(place(...kernel), kernel);
    }
  };
  visit(group);
  return [...found.values()];
}

function NodeBox(props: { links: Links; index: number; graph: Graph; box: Box; legible: boolean }): JSX.Element | null {
  const { box, links, index } = props;
  const node = box.node === null ? undefined : props.graph.nodes[box.node];
  if (!node || box.node === null) return null;
  const kernels = kernelsOfNode(links, index, box.node);
  const first = kernels[0];
  const note = node.kind === "call" ? node.target : node.kind;
  return (
    <g
      class={`node-box ${node.kind}${first ? " colored" : ""}`}
      data-box={boxId(box)}
      data-node={place(index, box.node)}
      transform={`translate(${box.x} ${box.y})`}
      role="button"
      data-item=""
      tabindex={-1}
      aria-label={`${shorten(node.name)}${node.type === "" ? "" : `, ${shorten(node.type)}`}, ${shorten(note)}`}
      style={first ? hueStyle(hueOf(links, first)) : undefined}
    >
      <title>{`${shorten(node.name)}: ${shorten(node.type)}\n${shorten(note)}(${shorten(node.arguments)})`}</title>
      <rect width={box.width} height={box.height} rx={node.kind === "call" ? 5 : 17} />
      {props.legible ? (
        <>
          <text class="box-name" x={box.width / 2} y="15">
            {cut(node.name, box.width)}
          </text>
          <text class="box-note" x={box.width / 2} y="28">
            {cut(node.type === "" ? note : node.kind === "call" ? note : node.type, box.width, 5.6)}
          </text>
        </>
      ) : null}
    </g>
  );
}
