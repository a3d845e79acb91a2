/**
 * A graph as a drawing: boxes in boxes, one for each module, that fold, pan and zoom.
 *
 * Panning and zooming only set one transform. Elements exist for what is in view and some way around it; they are rendered
 * anew when the view leaves that, so the size of the graph does not matter.
 */
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Graph } from "../data";
import { liftEdges } from "./edges";
import { DrawnBoxes } from "./drawn-boxes";
import { rove } from "./keyboard";
import { type Box, boxId, findBox, layoutTree } from "./layout";
import type { Lighting } from "./lighting";
import { usePanning, useWheel } from "./panning";
import { type Thing, thingAt } from "./things";
import { closedAround, type Tree } from "./tree";
import {
  bringIntoView,
  contains,
  fit,
  readingOrder,
  type Rectangle,
  seenIn,
  shown,
  start,
  type View,
  zoomAt,
} from "./viewport";

/** Below this scale nothing can be read. */
const READABLE = 0.55;
/** What a drawing starts with where it does not fit. */
const COMFORTABLE = 0.8;
const MARGIN = 0.6;

export interface DrawnHandle {
  /** Says whether it could: what is folded away has no box yet. */
  show(target: Thing): boolean;
  standIn(target: Thing): Element | null;
}

export function GraphDrawn(props: {
  lighting: Lighting;
  index: number;
  graph: Graph;
  tree: Tree;
  open: ReadonlySet<number>;
  setOpen: (open: ReadonlySet<number>) => void;
  handle: { current: DrawnHandle | null };
}): JSX.Element {
  const { lighting, index, graph, tree, open, setOpen } = props;
  const edges = useMemo(() => liftEdges(graph, tree), [tree]);
  const root = useMemo(() => layoutTree(graph, tree, edges, open), [tree, edges, open]);
  const frame = useRef<HTMLDivElement>(null);
  const svg = useRef<SVGSVGElement>(null);
  const world = useRef<SVGGElement>(null);
  const view = useRef<View | null>(null);
  const focusNext = useRef<string | null>(null);
  const stay = useRef<{ id: string; x: number; y: number } | null>(null);
  const [area, setArea] = useState<{ area: Rectangle; scale: number } | null>(null);

  const size = (): { width: number; height: number } => ({
    width: frame.current?.clientWidth || 400,
    height: frame.current?.clientHeight || 400,
  });
  /** Moves the drawing, and asks for other elements where these no longer do. */
  const apply = (next: View): void => {
    view.current = next;
    world.current?.setAttribute("transform", `translate(${next.x} ${next.y}) scale(${next.scale})`);
    const { width, height } = size();
    setArea((known) => {
      const near = known && next.scale < known.scale * 1.4 && next.scale > known.scale / 1.4;
      if (near && contains(known.area, shown(next, width, height, 0))) return known;
      return { area: shown(next, width, height, MARGIN), scale: next.scale };
    });
  };
  const fitAll = (): void => {
    const { width, height } = size();
    apply(fit(root, width, height));
  };
  const zoom = (factor: number): void => {
    const { width, height } = size();
    if (view.current) apply(zoomAt(view.current, factor, width / 2, height / 2));
  };
  const pan = (x: number, y: number): void => {
    if (view.current) apply({ ...view.current, x: view.current.x + x, y: view.current.y + y });
  };

  useLayoutEffect(() => {
    const { width, height } = size();
    const before = stay.current;
    stay.current = null;
    const box = before ? findBox(root, before.id) : null;
    // What was folded or unfolded stays under the pointer; a new graph is shown from its beginning.
    if (before && box && view.current) {
      const { scale } = view.current;
      apply({ scale, x: before.x - box.x * scale, y: before.y - box.y * scale });
    } else {
      apply(start(root, width, height, COMFORTABLE));
    }
    if (view.current) setArea({ area: shown(view.current, width, height, MARGIN), scale: view.current.scale });
  }, [root]);

  const seen = useMemo(
    () => (area ? seenIn(root, area.area, area.scale) : { boxes: [], lines: [], dense: new Set<Box>() }),
    [root, area],
  );
  useLayoutEffect(() => {
    lighting.refresh("graph");
    const focused = document.activeElement;
    if (svg.current) rove(svg.current, focused?.matches("[data-box]") && svg.current.contains(focused) ? focused : null);
    if (focusNext.current === null) return;
    const element = svg.current?.querySelector<SVGElement>(`[data-box="${focusNext.current}"]`);
    focusNext.current = null;
    element?.focus({ preventScroll: true });
  }, [seen]);

  const toggle = (id: string, wanted?: boolean): void => {
    const box = findBox(root, id);
    if (!box?.group || !view.current || (wanted !== undefined && wanted === box.open)) return;
    const { scale, x, y } = view.current;
    stay.current = { id, x: box.x * scale + x, y: box.y * scale + y };
    const next = new Set(open);
    if (box.open) next.delete(box.group.id);
    else next.add(box.group.id);
    if (svg.current?.contains(document.activeElement)) focusNext.current = id;
    setOpen(next);
  };
  const showBox = (box: Box, least = READABLE): void => {
    const { width, height } = size();
    if (view.current) apply(bringIntoView(view.current, box, width, height, least));
  };
  props.handle.current = {
    show: (target) => {
      const box = findBox(root, `node ${target.item}`);
      if (box) showBox(box);
      return box !== null;
    },
    standIn: (target) => {
      const group = closedAround(tree, target.item, open);
      return group ? (svg.current?.querySelector(`[data-box="group ${group.id}"]`) ?? null) : null;
    },
  };
  const focusBox = (from: string, by: number): void => {
    const order = readingOrder(root);
    const position = order.findIndex((box) => boxId(box) === from);
    const next = order[Math.max(0, Math.min(order.length - 1, position + by))];
    if (!next) return;
    const id = boxId(next);
    showBox(next, view.current?.scale ?? READABLE);
    const element = svg.current?.querySelector<SVGElement>(`[data-box="${id}"]`);
    if (element) element.focus({ preventScroll: true });
    else focusNext.current = id;
  };

  const press = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const id = event.target instanceof Element ? event.target.getAttribute("data-box") : null;
    if (!handleKey(event, id)) return;
    event.preventDefault();
  };
  const handleKey = (event: KeyboardEvent, id: string | null): boolean => {
    const steps: { [key: string]: [number, number] } = {
      ArrowUp: [0, 60],
      ArrowDown: [0, -60],
      ArrowLeft: [60, 0],
      ArrowRight: [-60, 0],
    };
    const by = steps[event.key];
    if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") fitAll();
    else if (by && (id === null || event.shiftKey)) pan(...by);
    else if (id !== null && event.key === "ArrowDown") focusBox(id, 1);
    else if (id !== null && event.key === "ArrowUp") focusBox(id, -1);
    else if (id !== null && (event.key === "ArrowLeft" || event.key === "ArrowRight")) toggle(id, event.key === "ArrowRight");
    else if (id !== null && (event.key === "Enter" || event.key === " ")) {
      const target = thingAt(event.target);
      if (target) lighting.toggle(target);
      else toggle(id);
    } else return false;
    return true;
  };

  const { moved, ...drag } = usePanning(view, apply);
  useWheel(frame, (factor, x, y) => {
    if (view.current) apply(zoomAt(view.current, factor, x, y));
  });
  return (
    <div class="drawn" ref={frame} {...drag}>
      <svg
        ref={svg}
        class="drawing"
        role="group"
        aria-label={`Drawing of ${graph.title}: arrow keys pan, plus and minus zoom, 0 fits`}
        tabindex={0}
        onKeyDown={press}
        onPointerOver={(event) => {
          lighting.point(thingAt(event.target));
          lightEdges(event.currentTarget, event.target);
        }}
        onPointerLeave={(event) => {
          lighting.point(null);
          lightEdges(event.currentTarget, null);
        }}
        onFocusIn={(event) => {
          lighting.point(thingAt(event.target));
          lightEdges(event.currentTarget, event.target);
          if (event.target instanceof Element && event.target.matches("[data-box]")) rove(event.currentTarget, event.target);
        }}
        onDblClick={(event) => {
          const box = event.target instanceof Element ? event.target.closest("[data-box]") : null;
          if (box?.getAttribute("data-box")?.startsWith("group")) toggle(box.getAttribute("data-box") ?? "");
        }}
        onClick={(event) => {
          if (moved.current || !(event.target instanceof Element)) return;
          const button = event.target.closest("[data-toggle]");
          if (button) toggle(button.getAttribute("data-toggle") ?? "");
          const target = button ? null : thingAt(event.target);
          if (target) lighting.toggle(target);
        }}
      >
        <defs>
          <marker
            id="arrow"
            viewBox="0 0 8 8"
            refX="7.5"
            refY="4"
            markerUnits="userSpaceOnUse"
            markerWidth="8"
            markerHeight="8"
            orient="auto-start-reverse"
          >
            <path class="arrow" d="M0 0.5L8 4L0 7.5Z" />
          </marker>
        </defs>
        <g ref={world}>
          <DrawnBoxes links={lighting.links} index={index} graph={graph} seen={seen} scale={area?.scale ?? 1} />
        </g>
      </svg>
      <div class="drawn-tools">
        <button type="button" class="small" aria-label="Zoom in" onClick={() => zoom(1.3)}>
          +
        </button>
        <button type="button" class="small" aria-label="Zoom out" onClick={() => zoom(1 / 1.3)}>
          −
        </button>
        <button type="button" class="small" data-fit="" onClick={() => fitAll()}>
          Fit
        </button>
      </div>
    </div>
  );
}

/** Follows the lines into and out of a box. */
function lightEdges(drawing: Element, target: EventTarget | null): void {
  for (const edge of drawing.querySelectorAll(".edge.near")) edge.classList.remove("near");
  const id = target instanceof Element ? target.closest("[data-box]")?.getAttribute("data-box") : null;
  if (!id) return;
  for (const edge of drawing.querySelectorAll(`[data-from="${id}"], [data-to="${id}"]`)) edge.classList.add("near");
}
