/** A graph as text: one row per node, folded by module. */
import type { JSX } from "preact";
import { count, shorten } from "../common/format";
import type { Graph } from "../data";
import { Chips } from "./chips";
import { kernelsOfNode, type Links } from "./links";
import { place } from "./things";
import type { Child, Group } from "./tree";

/** Longer arguments are cut here and whole in the details: some hold thousands of characters. */
const MAX_CHARACTERS = 400;

export function GraphText(props: {
  links: Links;
  index: number;
  graph: Graph;
  root: Group;
  open: ReadonlySet<number>;
}): JSX.Element {
  const rows: JSX.Element[] = [];
  const visit = (children: Child[], level: number): void => {
    for (const child of children) {
      if (typeof child === "number") {
        rows.push(
          <NodeRow key={child} links={props.links} graph={props.graph} index={props.index} node={child} level={level} />,
        );
        continue;
      }
      const open = props.open.has(child.id);
      rows.push(<GroupRow key={`group ${child.id}`} index={props.index} group={child} open={open} level={level} />);
      if (open) visit(child.children, level + 1);
    }
  };
  visit(props.root.children, 1);
  return <>{rows}</>;
}

function GroupRow(props: { index: number; group: Group; open: boolean; level: number }): JSX.Element {
  const { group } = props;
  return (
    <div
      class={`group-row ${group.kind}`}
      role="treeitem"
      aria-level={props.level}
      aria-expanded={props.open}
      tabIndex={-1}
      data-item=""
      data-group={place(props.index, group.id)}
      title={shorten(group.path)}
      style={{ "--level": String(props.level) }}
    >
      <span class="group-mark" aria-hidden="true" />
      <span class="group-name">{shorten(group.label)}</span> <span class="quiet">{count(group.size, "node")}</span>
    </div>
  );
}

function NodeRow(props: { links: Links; graph: Graph; index: number; node: number; level: number }): JSX.Element | null {
  const node = props.graph.nodes[props.node];
  if (!node) return null;
  const called = node.kind === "call";
  const shown = shorten(node.arguments, MAX_CHARACTERS);
  return (
    <div
      class={`node-row ${node.kind}`}
      role="treeitem"
      aria-level={props.level}
      aria-selected="false"
      tabIndex={-1}
      data-item=""
      data-node={place(props.index, props.node)}
      style={{ "--level": String(props.level) }}
    >
      <Chips links={props.links} kernels={kernelsOfNode(props.links, props.index, props.node)} />
      <code>
        <span class="node-name">{shorten(node.name)}</span>
        {node.type === "" ? null : <span class="node-type">: {shorten(node.type)}</span>}
        {called || node.kind === "output" ? " = " : null}
        {called || node.kind === "output" ? <span class="node-target">{shorten(node.target)}</span> : null}
        {called ? `(${shown})` : shown === "" ? null : ` ${shown}`}
        {!called && node.kind !== "output" && node.target.toLowerCase() !== node.name.toLowerCase() ? (
          <span class="quiet"> {shorten(node.target)}</span>
        ) : null}
      </code>
    </div>
  );
}
