/**
 * Lights up what belongs to the thing that is pointed at or pinned.
 *
 * Panes hold thousands of elements and the pointer crosses dozens a second, so nothing is rendered anew for it: classes are
 * set on the elements directly, found through an index that each pane's content is scanned into when it changes.
 */
import type { GraphNode } from "../data";
import { highlight } from "./highlight";
import { type Counterpart, counterparts, type Links } from "./links";
import { keyOf, PANE_OF, type PaneName, parseMarks, same, type Thing } from "./things";

/** What a pane offers, so that things in it can be lit and shown. */
export interface PaneHooks {
  root: HTMLElement;
  /** The file, graph or lowering that is shown. */
  current(): number | null;
  /** Tabs in their order. */
  holders(): number[];
  /** The element that stands for a thing folded away. */
  standIn(target: Thing): Element | null;
  /** Selects the tab, unfolds and scrolls until the thing is visible; says whether it has such a thing. */
  show(target: Thing): boolean;
}

const PANES: PaneName[] = ["source", "graph", "kernels"];
/** As in explorer.css. */
const STACKED = "(max-width: 900px)";
const MARKED = "[data-line],[data-node],[data-kernel]";

export class Lighting {
  private readonly panes = new Map<PaneName, PaneHooks>();
  private readonly elements = new Map<PaneName, Map<string, Element[]>>();
  private readonly listeners = new Set<(pinned: Thing | null) => void>();
  private lit: Element[] = [];
  private marked: Element[] = [];
  private pointed: Thing | null = null;
  private frame = 0;
  private matches: ReadonlySet<string> = new Set();
  private match: Thing | null = null;
  private query = "";
  pinned: Thing | null = null;

  constructor(readonly links: Links) {}

  attach(pane: PaneName, hooks: PaneHooks): () => void {
    this.panes.set(pane, hooks);
    return () => {
      this.panes.delete(pane);
      this.elements.delete(pane);
    };
  }

  pane(name: PaneName): PaneHooks | undefined {
    return this.panes.get(name);
  }

  onPinned(listener: (pinned: Thing | null) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** To be called after a pane's content changed. */
  refresh(pane: PaneName): void {
    this.elements.delete(pane);
    this.light();
    this.mark();
  }

  /** Only what is pinned is lit while something is: the pointer is then on its way to the counterparts. */
  point(target: Thing | null): void {
    if (same(target, this.pointed)) return;
    this.pointed = target;
    if (this.pinned !== null || this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.light();
    });
  }

  /** Pins a thing and shows its counterparts in the other panes; pinning it again releases it. */
  toggle(target: Thing): void {
    if (same(target, this.pinned)) this.pin(null);
    else {
      this.pin(target);
      this.showCounterparts(target);
    }
  }

  pin(target: Thing | null): void {
    this.pinned = target;
    this.light();
    for (const listener of this.listeners) listener(target);
  }

  /** Pins a thing and shows it and its counterparts: for links that lead here from elsewhere. */
  goTo(target: Thing): void {
    const hooks = this.panes.get(PANE_OF[target.kind]);
    if (!hooks?.show(target)) return;
    // Where the panes stand below each other, the one that is meant may be out of sight.
    if (matchMedia(STACKED).matches) hooks.root.scrollIntoView({ block: "nearest" });
    this.pin(target);
    this.showCounterparts(target);
  }

  /** What a search found, and the one of it that is looked at. */
  setMatches(matches: ReadonlySet<string>, match: Thing | null, query: string): void {
    this.matches = matches;
    this.query = query;
    this.match = match;
    if (match) this.panes.get(PANE_OF[match.kind])?.show(match);
    this.mark();
  }

  find(target: Thing): Element[] {
    return this.index(PANE_OF[target.kind]).get(keyOf(target)) ?? [];
  }

  private showCounterparts(target: Thing): void {
    const found = counterparts(this.links, target);
    for (const pane of PANES) {
      const hooks = this.panes.get(pane);
      if (!hooks || pane === PANE_OF[target.kind]) continue;
      const best = firstToShow(this.preferred(found, pane), hooks.current(), hooks.holders());
      if (best) hooks.show(best);
    }
  }

  /** What of the pinned thing to show in a pane that was turned to another tab. */
  firstIn(pane: PaneName): Thing | null {
    const current = this.panes.get(pane)?.current() ?? null;
    if (!this.pinned || current === null) return null;
    if (PANE_OF[this.pinned.kind] === pane && this.pinned.holder === current) return this.pinned;
    return firstToShow(this.preferred(counterparts(this.links, this.pinned), pane), current, [current]);
  }

  /** Inputs carry the stacks of their first use; where something is computed from one line, that is what is meant. */
  private preferred(found: Counterpart[], pane: PaneName): Counterpart[] {
    const parts = found.filter((part) => PANE_OF[part.kind] === pane);
    const { graphs } = this.links.capture;
    const nodeOf = (part: Thing): GraphNode | undefined => graphs[part.holder]?.nodes[part.item];
    const called = parts.filter((part) => part.kind !== "node" || nodeOf(part)?.kind === "call");
    // What several kernels compute anew, such as positions, says less about one of them than what only it computes.
    const single = called.filter((part) => part.kind !== "node" || (nodeOf(part)?.kernels.length ?? 0) < 2);
    return single.length > 0 ? single : called.length > 0 ? called : parts;
  }

  private index(pane: PaneName): Map<string, Element[]> {
    const known = this.elements.get(pane);
    if (known) return known;
    const index = new Map<string, Element[]>();
    for (const element of this.panes.get(pane)?.root.querySelectorAll<HTMLElement | SVGElement>(MARKED) ?? []) {
      const found = parseMarks(element.dataset);
      if (!found) continue;
      const key = keyOf(found);
      const list = index.get(key);
      if (list) list.push(element);
      else index.set(key, [element]);
    }
    this.elements.set(pane, index);
    return index;
  }

  private light(): void {
    for (const element of this.lit) {
      element.classList.remove("lit", "weak", "chosen", "lit-inside");
      if (element.hasAttribute("aria-selected")) element.setAttribute("aria-selected", "false");
    }
    this.lit = [];
    const active = this.pinned ?? this.pointed;
    const counts = new Map<string, number>();
    if (active) {
      for (const part of counterparts(this.links, active)) this.lightOne(part, counts);
      for (const element of this.find(active)) this.add(element, ...(this.pinned ? ["lit", "chosen"] : ["lit"]));
    }
    this.countOnTabs(counts);
  }

  private lightOne(part: Counterpart, counts: Map<string, number>): void {
    const pane = PANE_OF[part.kind];
    if (!part.weak) counts.set(`${pane}:${part.holder}`, (counts.get(`${pane}:${part.holder}`) ?? 0) + 1);
    const hooks = this.panes.get(pane);
    if (!hooks || hooks.current() !== part.holder) return;
    const found = this.index(pane).get(keyOf(part));
    for (const element of found ?? []) this.add(element, "lit", ...(part.weak ? ["weak"] : []));
    const standIn = found || part.weak ? null : hooks.standIn(part);
    if (standIn && !standIn.classList.contains("lit-inside")) this.add(standIn, "lit-inside");
  }

  private add(element: Element, ...classes: string[]): void {
    element.classList.add(...classes);
    if (!classes.includes("weak")) element.classList.remove("weak");
    if (classes.includes("chosen") && element.hasAttribute("aria-selected")) element.setAttribute("aria-selected", "true");
    this.lit.push(element);
  }

  private countOnTabs(counts: Map<string, number>): void {
    for (const [name, hooks] of this.panes) {
      for (const tab of hooks.root.querySelectorAll<HTMLElement>("[data-holder]")) {
        const holder = Number(tab.dataset["holder"]);
        const lit = holder === hooks.current() ? 0 : (counts.get(`${name}:${holder}`) ?? 0);
        if (lit === 0) delete tab.dataset["lit"];
        else {
          tab.dataset["lit"] = String(lit);
          tab.dataset["badge"] = lit > 99 ? "99+" : String(lit);
        }
      }
    }
  }

  private mark(): void {
    for (const element of this.marked) element.classList.remove("match", "match-current");
    this.marked = [];
    if (this.matches.size === 0) return highlight([], "");
    for (const pane of PANES) {
      for (const [key, elements] of this.index(pane)) {
        if (!this.matches.has(key)) continue;
        for (const element of elements) {
          element.classList.add("match");
          if (this.match && keyOf(this.match) === key) element.classList.add("match-current");
          this.marked.push(element);
        }
      }
    }
    highlight(this.marked, this.query);
  }
}

/** The counterpart to bring into view: one in the tab that is open if it can be, strong before weak. */
export function firstToShow(found: Counterpart[], current: number | null, holders: number[]): Counterpart | null {
  const strong = found.filter((part) => !part.weak);
  const inOrder = holders.flatMap((holder) => strong.filter((part) => part.holder === holder).slice(0, 1));
  return strong.find((part) => part.holder === current) ?? inOrder[0] ?? found.find((part) => part.holder === current) ?? null;
}
