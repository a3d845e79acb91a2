/** The stages of a compilation as graphs, in text or drawn. */
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../common/format";
import { graphTabs } from "./compilations";
import { useFolds, type ViewName } from "./folds";
import { type DrawnHandle, GraphDrawn } from "./graph-drawn";
import { GraphText } from "./graph-text";
import { rove } from "./keyboard";
import type { Lighting } from "./lighting";
import { missingSentence, noGraphs } from "./missing";
import { isChip, itemHandlers, Missing, PaneFrame, usePane } from "./pane";
import { TabList } from "./tabs";
import type { Thing } from "./things";
import { allOpen, closedAround } from "./tree";

export function GraphPane({ lighting }: { lighting: Lighting }): JSX.Element {
  const { links } = lighting;
  const { capture } = links;
  const tabs = useMemo(() => graphTabs(capture, links.graphs), [links]);
  const [index, setIndex] = useState<number | null>(tabs[0]?.index ?? null);
  const [view, setView] = useState<ViewName>("text");
  const graph = index === null ? undefined : capture.graphs[index];
  const folds = useFolds(capture, view);
  const tree = index === null ? null : folds.tree(index);
  const open = index === null ? new Set<number>() : folds.open(index);
  const setOpen = (next: ReadonlySet<number>): void => {
    if (index !== null) folds.setOpen(index, next);
  };
  const current = useRef(index);
  current.current = index;
  const drawn = useRef<DrawnHandle | null>(null);
  const wanted = useRef<Thing | null>(null);
  const pane = usePane(
    "graph",
    lighting,
    {
      current: () => current.current,
      holders: () => tabs.map((tab) => tab.index),
      standIn: (target) => {
        if (view === "drawn") return drawn.current?.standIn(target) ?? null;
        const group = tree ? closedAround(tree, target.item, open) : null;
        return group ? (pane.root.current?.querySelector(`[data-group="${target.holder}:${group.id}"]`) ?? null) : null;
      },
      show: (target) => show(target),
    },
    [index, view, open],
  );
  const show = (target: Thing): boolean => {
    if (!capture.graphs[target.holder]?.nodes[target.item] || !links.graphs.includes(target.holder)) return false;
    setIndex(target.holder);
    folds.reveal(target.holder, target.item);
    wanted.current = target;
    pane.ask(target);
    return true;
  };
  useLayoutEffect(() => {
    // The drawing is laid out by now; what is outside of its view has no element that could be scrolled to.
    if (view !== "drawn" || !wanted.current || drawn.current?.show(wanted.current)) wanted.current = null;
  });
  const changeView = (name: ViewName): void => {
    setView(name);
    pane.follow();
  };
  const toggle = (element: Element, wantOpen?: boolean): void => {
    const id = Number(element.getAttribute("data-group")?.split(":")[1]);
    const next = new Set(open);
    if (wantOpen ?? !open.has(id)) next.add(id);
    else next.delete(id);
    focusAfter.current = element.getAttribute("data-group");
    setOpen(next);
  };
  const focusAfter = useRef<string | null>(null);
  useLayoutEffect(() => {
    // Indexing the rows anew made the first one the stop of Tab: it stays where the reader is.
    const row = focusAfter.current === null ? null : pane.root.current?.querySelector(`[data-group="${focusAfter.current}"]`);
    focusAfter.current = null;
    if (row && pane.scroller.current) rove(pane.scroller.current, row);
  });
  const content = useMemo(
    () =>
      graph && tree && index !== null && view === "text" ? (
        <GraphText key={index} links={links} index={index} graph={graph} root={tree.root} open={open} />
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
            choose={(key) => {
              setIndex(Number(key.slice("graph:".length)));
              pane.follow();
            }}
          />
          <div class="pane-tools">
            <button type="button" class="small" onClick={() => setOpen(allOpen(tree))}>
              Expand all
            </button>
            <button type="button" class="small" onClick={() => setOpen(new Set([tree.root.id]))}>
              Collapse all
            </button>
            <span class="toggle" role="group" aria-label="View">
              {(["text", "drawn"] as const).map((name) => (
                <button
                  type="button"
                  class="small"
                  data-view={name}
                  aria-pressed={view === name}
                  onClick={() => changeView(name)}
                >
                  {name === "text" ? "Text" : "Drawn"}
                </button>
              ))}
            </span>
          </div>
        </>
      }
    >
      {missingSentence(graph) === "" ? null : <p class="pane-note">{missingSentence(graph)}</p>}
      {view === "drawn" ? (
        <GraphDrawn
          key={index}
          lighting={lighting}
          index={index}
          graph={graph}
          tree={tree}
          open={open}
          setOpen={setOpen}
          handle={drawn}
        />
      ) : (
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
      )}
    </PaneFrame>
  );
}
