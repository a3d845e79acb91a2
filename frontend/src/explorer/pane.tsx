/** What the three panes share: the frame, pointing and pinning by pointer and keys, and scrolling to what is asked for. */
import type { ComponentChildren, HTMLAttributes, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { moveFocus, rove, scrollWithin } from "./keyboard";
import type { Lighting, PaneHooks } from "./lighting";
import { type PaneName, type Thing, thingAt } from "./things";

export interface PaneState {
  /** What is to be scrolled to as soon as it is rendered. */
  ask: (target: Thing) => void;
  /** After another tab was chosen: shows there what belongs to the pinned thing. */
  follow: () => void;
  root: { current: HTMLElement | null };
  scroller: { current: HTMLElement | null };
}

/**
 * Registers a pane with the lighting and keeps both in step with what is rendered.
 *
 * `content` stands for what the pane shows: whenever it changes, the elements are indexed anew.
 */
export function usePane(
  name: PaneName,
  lighting: Lighting,
  hooks: Omit<PaneHooks, "root">,
  content: readonly unknown[],
): PaneState {
  const root = useRef<HTMLElement>(null);
  const scroller = useRef<HTMLElement>(null);
  const wanted = useRef<Thing | null>(null);
  const following = useRef(false);
  const latest = useRef(hooks);
  latest.current = hooks;
  const [, render] = useState(0);
  useLayoutEffect(() => {
    if (!root.current) return undefined;
    return lighting.attach(name, {
      root: root.current,
      current: () => latest.current.current(),
      holders: () => latest.current.holders(),
      standIn: (target) => latest.current.standIn(target),
      show: (target) => latest.current.show(target),
    });
  }, [lighting]);
  useLayoutEffect(() => {
    if (scroller.current) rove(scroller.current, null);
    lighting.refresh(name);
  }, content);
  useLayoutEffect(() => {
    if (!following.current) return;
    following.current = false;
    const target = lighting.firstIn(name);
    if (target) latest.current.show(target);
  });
  useLayoutEffect(() => {
    const target = wanted.current;
    if (!target || !scroller.current) return;
    const element = lighting.find(target)[0];
    if (!element) return;
    wanted.current = null;
    scrollWithin(scroller.current, element, "middle");
  });
  const ask = (target: Thing): void => {
    wanted.current = target;
    render((number) => number + 1);
  };
  const follow = (): void => {
    following.current = true;
    render((number) => number + 1);
  };
  return { ask, follow, root, scroller };
}

/** Handlers for the part of a pane that scrolls. */
export function itemHandlers(
  lighting: Lighting,
  own: { click?: (event: MouseEvent) => boolean; key?: (event: KeyboardEvent) => boolean } = {},
): HTMLAttributes<HTMLDivElement> {
  const focused = (event: Event): Element | null =>
    event.target instanceof Element ? event.target.closest("[data-item]") : null;
  return {
    onPointerOver: (event) => lighting.point(thingAt(event.target)),
    onPointerLeave: () => lighting.point(null),
    onFocusIn: (event) => {
      const item = focused(event);
      if (item) rove(event.currentTarget, item);
      lighting.point(thingAt(event.target));
    },
    onFocusOut: () => lighting.point(null),
    onClick: (event) => {
      if (own.click?.(event)) return;
      // A click that ends a selection of text is no click.
      if (getSelection()?.type === "Range") return;
      if (event.target instanceof Element && event.target.closest("button, a, summary")) return;
      const target = thingAt(event.target);
      if (target) lighting.toggle(target);
    },
    onKeyDown: (event) => {
      if (own.key?.(event) || moveFocus(event.currentTarget, event)) return;
      const item = focused(event);
      if (!item || item !== event.target || (event.key !== "Enter" && event.key !== " ")) return;
      const target = thingAt(item);
      if (!target) return;
      event.preventDefault();
      lighting.toggle(target);
    },
  };
}

export function PaneFrame(props: {
  name: PaneName;
  title: string;
  state: PaneState;
  head: ComponentChildren;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <section class={`pane pane-${props.name}`} data-pane={props.name} aria-label={props.title} ref={props.state.root}>
      <header class="pane-head">
        <h3>{props.title}</h3>
        {props.head}
      </header>
      {props.children}
    </section>
  );
}

/** The frame of a pane that cannot be shown. */
export function brokenPane(name: PaneName, title: string): (sentence: JSX.Element) => JSX.Element {
  return (sentence) => (
    <section class={`pane pane-${name}`} data-pane={name} aria-label={title}>
      <header class="pane-head">
        <h3>{title}</h3>
      </header>
      <div class="pane-missing">{sentence}</div>
    </section>
  );
}

/** What a pane says where it has nothing to show. */
export function Missing({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="pane-missing">{children}</p>;
}

export function isChip(event: Event): Thing | null {
  const chip = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-chip]") : null;
  const [holder, item] = (chip?.dataset["chip"] ?? "").split(":");
  return chip && holder && item ? { kind: "kernel", holder: Number(holder), item: Number(item) } : null;
}
