/** All that is known of the thing that is pinned. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Boundary } from "../common/boundary";
import { CodeLine } from "../common/code";
import { count, number, shorten } from "../common/format";
import { reveal } from "../common/navigation";
import { bounded } from "../common/text";
import type { Line } from "../data";
import { chipTitle } from "./chips";
import { hueOf, hueStyle, isBackward } from "./colors";
import { stageLabel } from "./compilations";
import { apartFrom, pairText } from "./fusion";
import type { Lighting } from "./lighting";
import { counterparts, type Reference } from "./links";
import { unindented } from "./code-lines";
import { moduleText } from "./modules";
import { StackList } from "./stack-list";
import { compilationsOfLine } from "./targets";
import { keyOf, type Thing, thing } from "./things";

export function Detail({ lighting }: { lighting: Lighting }): JSX.Element {
  const [pinned, setPinned] = useState<Thing | null>(lighting.pinned);
  useEffect(() => lighting.onPinned(setPinned), [lighting]);
  return (
    <aside class="detail" aria-label="Details" aria-live="polite" data-detail="">
      {pinned === null ? (
        <p class="quiet">
          Point at a line, a node or a kernel to see related items. Click it, or press Enter, to select it and read the details
          here. Each color is a kernel; filled marks are forward, hollow marks backward. <kbd>/</kbd> searches, <kbd>Esc</kbd>{" "}
          clears the selection.
        </p>
      ) : (
        <>
          <button type="button" class="small detail-close" onClick={() => lighting.pin(null)} aria-label="Clear selection">
            ✕
          </button>
          <Boundary key={keyOf(pinned)}>
            {pinned.kind === "line" ? <LineDetail lighting={lighting} target={pinned} /> : null}
            {pinned.kind === "node" ? <NodeDetail lighting={lighting} target={pinned} /> : null}
            {pinned.kind === "kernel" ? <KernelDetail lighting={lighting} target={pinned} /> : null}
          </Boundary>
        </>
      )}
    </aside>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function KernelButtons({ lighting, kernels }: { lighting: Lighting; kernels: Reference[] }): JSX.Element {
  const [all, setAll] = useState(false);
  const { links } = lighting;
  const shown = all ? kernels : kernels.slice(0, 12);
  return (
    <span class="kernel-buttons">
      {shown.map(([lowering, kernel]) => (
        <button
          type="button"
          class={isBackward(links.capture, lowering) ? "kernel-button backward" : "kernel-button"}
          style={hueStyle(hueOf(links, [lowering, kernel]))}
          title={chipTitle(links, [lowering, kernel])}
          onClick={() => lighting.goTo(thing("kernel", lowering, kernel))}
        >
          {shorten(links.capture.lowerings[lowering]?.kernels[kernel]?.name ?? "?", 80)}
        </button>
      ))}
      {kernels.length > shown.length ? (
        <button type="button" class="small" onClick={() => setAll(true)}>
          {kernels.length - shown.length} more
        </button>
      ) : null}
    </span>
  );
}

function strongKernels(lighting: Lighting, target: Thing): Reference[] {
  return counterparts(lighting.links, target).flatMap((part) =>
    part.kind === "kernel" && !part.weak ? [[part.holder, part.item] as const] : [],
  );
}

function LineDetail({ lighting, target }: { lighting: Lighting; target: Thing }): JSX.Element {
  const { capture } = lighting.links;
  const found = counterparts(lighting.links, target);
  const nodes = found.filter((part) => part.kind === "node" && !part.weak);
  const passing = found.filter((part) => part.kind === "node" && part.weak);
  const graphs = new Set(nodes.map((part) => part.holder));
  const kernels = strongKernels(lighting, target);
  return (
    <>
      <h4>
        {shorten(capture.paths[target.holder]?.short ?? "?")}:{target.item}
      </h4>
      <LineText line={lineOf(lighting, target)} />
      <dl>
        <Fact name="Operations">
          {nodes.length > 0
            ? `${count(nodes.length, "node")} in ${count(graphs.size, "graph")} of this compilation came from this line`
            : "no node of this compilation came from this line"}
          {passing.length > 0 ? `; ${number(passing.length)} more were called through it` : ""}
        </Fact>
        <Elsewhere lighting={lighting} target={target} />
        {kernels.length > 0 ? (
          <Fact name="Kernels">
            <KernelButtons key={`${target.holder}:${target.item}`} lighting={lighting} kernels={kernels} />
          </Fact>
        ) : null}
      </dl>
    </>
  );
}

/** After a graph break the rest of a function is a compilation of its own, where one would not look for the line. */
function Elsewhere({ lighting, target }: { lighting: Lighting; target: Thing }): JSX.Element | null {
  const { capture, graphs } = lighting.links;
  const own = capture.graphs[graphs[0] ?? -1]?.compilation;
  const others = compilationsOfLine(capture, target.holder, target.item).filter((id) => id !== null && id !== own);
  if (others.length === 0) return null;
  const show = (id: string): void => reveal({ kind: "line", path: target.holder, line: target.item, compilation: id });
  return (
    <Fact name="Also in">
      <span class="kernel-buttons" data-elsewhere="">
        {others.slice(0, 8).map((id) => (
          <button type="button" class="small" onClick={() => show(id ?? "")}>
            {id} {shorten(capture.compilations.find((item) => item.id === id)?.name ?? "", 80)}
          </button>
        ))}
        {others.length > 8 ? ` and ${others.length - 8} more compilations` : ""}
      </span>
    </Fact>
  );
}

function lineOf(lighting: Lighting, target: Thing): Line | undefined {
  for (const source of lighting.links.capture.sources) {
    if (source.path !== target.holder) continue;
    for (const piece of source.pieces) {
      const line = piece.lines[target.item - piece.first];
      if (line) return line;
    }
  }
  return undefined;
}

function LineText({ line }: { line: Line | undefined }): JSX.Element | null {
  if (!line) return null;
  return (
    <pre class="detail-code">
      <CodeLine line={unindented(line)} />
    </pre>
  );
}

function NodeDetail({ lighting, target }: { lighting: Lighting; target: Thing }): JSX.Element | null {
  const { capture, loweringOfGraph } = lighting.links;
  const graph = capture.graphs[target.holder];
  const node = graph?.nodes[target.item];
  if (!graph || !node) return null;
  const own = loweringOfGraph.get(target.holder);
  const kernels = own === undefined ? strongKernels(lighting, target) : node.kernels.map((kernel) => [own, kernel] as const);
  return (
    <>
      <h4>
        {shorten(node.name)} <span class="quiet">in {stageLabel(graph)}</span>
      </h4>
      <pre class="detail-code">
        {bounded(node.kind === "call" ? `${node.target}(${node.arguments})` : `${node.kind} ${node.target} ${node.arguments}`)}
      </pre>
      <dl>
        {node.type === "" ? null : <Fact name="Type">{bounded(node.type)}</Fact>}
        {node.module === "" ? null : (
          <Fact name="Module">
            <span title={shorten(node.module)}>{shorten(moduleText(node.module))}</span>
          </Fact>
        )}
        {node.fate === "" ? null : <Fact name="No kernel">{node.fate}</Fact>}
        {kernels.length > 0 ? (
          <Fact name={own === undefined ? "Kernels of this line" : kernels.length > 1 ? "Kernels" : "Kernel"}>
            <KernelButtons key={`${target.holder}:${target.item}`} lighting={lighting} kernels={kernels} />
          </Fact>
        ) : null}
        <Fact name="Came from">
          <StackList lighting={lighting} stack={node.stack} />
        </Fact>
        {own === undefined ? null : <Apart lighting={lighting} lowering={own} kernels={node.kernels} />}
      </dl>
    </>
  );
}

/** Of a kernel whose nodes are not in the page. */
export function unlisted(fuses: number): string {
  if (fuses === 0) return "its nodes were not recorded";
  return `${count(fuses, "node")}, not listed because the graph was left out of this page`;
}

function KernelDetail({ lighting, target }: { lighting: Lighting; target: Thing }): JSX.Element | null {
  const { capture } = lighting.links;
  const lowering = capture.lowerings[target.holder];
  const kernel = lowering?.kernels[target.item];
  if (!lowering || !kernel) return null;
  const graph = lowering.graph;
  const nodes = graph === null ? [] : kernel.nodes;
  return (
    <>
      <h4>
        {shorten(kernel.name)}{" "}
        <span class="quiet">
          kernel {target.item + 1} of the {lowering.direction}, {kernel.title}
        </span>
      </h4>
      <LineText line={kernel.call === null ? undefined : lowering.code[kernel.call - 1]} />
      <dl>
        <Fact name="Computes">
          {nodes.length === 0 ? unlisted(kernel.fuses) : null}
          <span class="node-buttons">
            {nodes.slice(0, 60).map((node) => (
              <button type="button" class="link" onClick={() => graph !== null && lighting.goTo(thing("node", graph, node))}>
                {graph === null ? "" : shorten(capture.graphs[graph]?.nodes[node]?.name ?? "?", 80)}
              </button>
            ))}
            {nodes.length > 60 ? ` and ${nodes.length - 60} more` : null}
          </span>
        </Fact>
        <Fact name="Came from">
          {kernel.stacks.length === 0 ? "no line was recorded" : null}
          {kernel.stacks.slice(0, 8).map((stack) => (
            <StackList lighting={lighting} stack={stack} />
          ))}
          {kernel.stacks.length > 8 ? `and ${kernel.stacks.length - 8} more lines` : null}
        </Fact>
        <Apart lighting={lighting} lowering={target.holder} kernels={[target.item]} />
      </dl>
    </>
  );
}

function Apart(props: { lighting: Lighting; lowering: number; kernels: number[] }): JSX.Element | null {
  const lowering = props.lighting.links.capture.lowerings[props.lowering];
  if (!lowering) return null;
  const list = props.kernels.flatMap((kernel) => apartFrom(lowering, kernel));
  if (list.length === 0) return null;
  return (
    <Fact name="Not fused">
      <ul class="apart-list">
        {list.slice(0, 12).map((item) => (
          <li>
            {pairText(lowering, item)}: {item.reason}
          </li>
        ))}
        {list.length > 12 ? <li class="quiet">and {list.length - 12} more pairs</li> : null}
      </ul>
    </Fact>
  );
}
