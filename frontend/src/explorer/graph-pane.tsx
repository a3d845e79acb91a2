/** The stages of a compilation as graphs, in text or drawn. */
import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { count } from "../common/format";
import { graphTabs } from "./compilations";
import { GraphText } from "./graph-text";
import { missingSentence, noGraphs } from "./missing";
import type { Lighting } from "./lighting";
import { isChip, itemHandlers, Missing, PaneFrame, usePane } from "./pane";
import { TabList } from "./tabs";
import type { Thing } from "./things";
import { allOpen, buildTree, closedAround, groupsAround, openForText } from "./tree";

type ViewName = "text" | "drawn";

export function GraphPane({ lighting }: { lighting: Lighting }): JSX.Element {
  const { links } = lighting;
  const { capture } = links;
  const tabs = useMemo(() => graphTabs(capture, links.graphs), [links]);
  const [index, setIndex] = useState<number | null>(tabs[0]?.index ?? null);
  const [view, setView] = useState<ViewName>("text");
  const graph = index === null ? undefined : capture.graphs[index];
  const tree = useMemo(() => (graph ? buildTree(graph) : null), [graph]);
  // What is open is kept per graph, so that going back and forth between stages loses nothing.
  const [opened, setOpened] = useState<ReadonlyMap<number, ReadonlySet<number>>>(new Map());
  const open = useMemo(
    () => (index === null ? undefined : opened.get(index)) ?? (tree ? openForText(tree) : new Set<number>()),
    [opened, index, tree],
  );
  const setOpen = (next: ReadonlySet<number>): void => {
    if (index !== null) setOpened(new Map(opened).set(index, next));
  };
  const current = useRef(index);
  current.current = index;
  const pane = usePane(
    "graph",
    lighting,
    {
      current: () => current.current,
      holders: () => tabs.map((tab) => tab.index),
      standIn: (target) => {
        const group = tree ? closedAround(tree, target.item, open) : null;
        return group ? (pane.root.current?.querySelector(`[data-group="${target.holder}:${group.id}"]`) ?? null) : null;
      },
      show: (target) => show(target),
    },
    [index, view, open],
  );
  const show = (target: Thing): void => {
    const wanted = capture.graphs[target.holder];
    if (!wanted || !links.graphs.includes(target.holder)) return;
    setIndex(target.holder);
    setOpened((known) => {
      const wantedTree = target.holder === index && tree ? tree : buildTree(wanted);
      const before = known.get(target.holder) ?? openForText(wantedTree);
      const closed = groupsAround(wantedTree, target.item).filter((group) => !before.has(group.id));
      if (closed.length === 0) return known;
      return new Map(known).set(target.holder, new Set([...before, ...closed.map((group) => group.id)]));
    });
    pane.ask(target);
  };
  const toggle = (element: Element, wanted?: boolean): void => {
    const id = Number(element.getAttribute("data-group")?.split(":")[1]);
    const next = new Set(open);
    if (wanted ?? !open.has(id)) next.add(id);
    else next.delete(id);
    setOpen(next);
  };
  const content = useMemo(
    () =>
      graph && tree && index !== null && view === "text" ? (
        <GraphText links={links} index={index} graph={graph} root={tree.root} open={open} />
      ) : null,
    [graph, tree, open, view],
  );
  if (!graph || !tree || index === null) {
    return (
      <PaneFrame name="graph" title="Graph" state={pane} head={null}>
        <Missing>{noGraphs(capture)}</Missing>
      </PaneFrame>
    );
  }
  return (
    <PaneFrame
      name="graph"
      title="Graph"
      state={pane}
      head={
        <>
          <TabList
            label="Stages"
            tabs={tabs.map((tab) => ({
              key: `graph:${tab.index}`,
              label: tab.label,
              title: `${capture.graphs[tab.index]?.title ?? ""}, ${count(capture.graphs[tab.index]?.nodes.length ?? 0, "node")}`,
              holder: tab.index,
            }))}
            selected={`graph:${index}`}
            choose={(key) => setIndex(Number(key.slice("graph:".length)))}
          />
          <div class="pane-tools">
            <span class="quiet">{count(graph.nodes.length, "node")}</span>
            <button type="button" class="small" onClick={() => setOpen(allOpen(tree))}>
              Expand all
            </button>
            <button type="button" class="small" onClick={() => setOpen(new Set([tree.root.id]))}>
              Collapse all
            </button>
            <span class="toggle" role="group" aria-label="View">
              {(["text", "drawn"] as const).map((name) => (
                <button type="button" class="small" data-view={name} aria-pressed={view === name} onClick={() => setView(name)}>
                  {name === "text" ? "Text" : "Drawn"}
                </button>
              ))}
            </span>
          </div>
        </>
      }
    >
      {missingSentence(graph) === "" ? null : <p class="pane-note">{missingSentence(graph)}</p>}
      <div
        class="pane-scroll"
        ref={(element) => void (pane.scroller.current = element)}
        role="tree"
        aria-label={`Nodes: ${graph.title}`}
        {...itemHandlers(lighting, {
          click: (event) => {
            const kernel = isChip(event);
            if (kernel) lighting.goTo(kernel);
            const group = event.target instanceof Element ? event.target.closest("[data-group]") : null;
            if (group) toggle(group);
            return kernel !== null || group !== null;
          },
          key: (event) => {
            const group = event.target instanceof Element && event.target.matches("[data-group]") ? event.target : null;
            if (!group || !["Enter", " ", "ArrowLeft", "ArrowRight"].includes(event.key)) return false;
            event.preventDefault();
            toggle(group, event.key === "ArrowRight" ? true : event.key === "ArrowLeft" ? false : undefined);
            return true;
          },
        })}
      >
        {content}
      </div>
    </PaneFrame>
  );
}
