/** What Inductor made of it: kernels in the order of their launches, or the whole generated module. */
import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { count, shorten } from "../common/format";
import type { Lowering } from "../data";
import { hueOf } from "./colors";
import { loweringTabs } from "./compilations";
import { type Apart, keptApart, pairText, ordered } from "./fusion";
import { KernelCard } from "./kernel-card";
import type { Lighting } from "./lighting";
import { noKernels } from "./missing";
import { itemHandlers, Missing, PaneFrame, usePane } from "./pane";
import { TabList } from "./tabs";
import type { Thing } from "./things";
import { WholeModule } from "./whole-module";

/** With more kernels than this their code starts folded: the list is then what is looked through. */
const MAX_OPEN = 24;

export function KernelsPane({ lighting, compilation }: { lighting: Lighting; compilation: string | null }): JSX.Element {
  const { links } = lighting;
  const { capture } = links;
  const tabs = useMemo(() => loweringTabs(capture, links.lowerings), [links]);
  const [index, setIndex] = useState<number | null>(tabs[0]?.index ?? null);
  const [whole, setWhole] = useState(false);
  const lowering = index === null ? undefined : capture.lowerings[index];
  const [open, setOpen] = useState<boolean | null>(null);
  const isOpen = open ?? (lowering?.kernels.length ?? 0) <= MAX_OPEN;
  const current = useRef(index);
  current.current = index;
  const pane = usePane(
    "kernels",
    lighting,
    {
      current: () => current.current,
      holders: () => tabs.map((tab) => tab.index),
      standIn: () => null,
      show: (target) => show(target),
    },
    [index, whole, isOpen],
  );
  const show = (target: Thing): boolean => {
    if (!capture.lowerings[target.holder]?.kernels[target.item] || !links.lowerings.includes(target.holder)) return false;
    setIndex(target.holder);
    pane.ask(target);
    return true;
  };
  const content = useMemo(() => {
    if (!lowering || index === null) return null;
    if (whole) return <Module lighting={lighting} lowering={lowering} index={index} />;
    return <KernelList key={`${index} ${isOpen}`} lighting={lighting} lowering={lowering} index={index} open={isOpen} />;
  }, [lowering, whole, isOpen]);
  if (!lowering) {
    return (
      <PaneFrame name="kernels" title="Kernels" state={pane} head={null}>
        <Missing>{noKernels(links, compilation)}</Missing>
      </PaneFrame>
    );
  }
  return (
    <PaneFrame
      name="kernels"
      title="Kernels"
      state={pane}
      head={
        <>
          <TabList
            label="Directions"
            tabs={[
              ...tabs.map((tab) => ({ key: `lowering:${tab.index}`, label: tab.label, holder: tab.index })),
              { key: "module", label: "Whole module", title: lowering.code_path, holder: null },
            ]}
            selected={whole ? "module" : `lowering:${index}`}
            choose={(key) => {
              setWhole(key === "module");
              if (key !== "module") setIndex(Number(key.slice("lowering:".length)));
              pane.follow();
            }}
          />
          <div class="pane-tools">
            <span class="quiet">
              {count(lowering.kernels.length, "kernel")}
              {lowering.from_cache ? ", from the cache" : ""}
            </span>
            {whole ? (
              <span class="toggle" role="group" aria-label="Which module">
                {tabs.map((tab) => (
                  <button
                    type="button"
                    class="small"
                    aria-pressed={tab.index === index}
                    onClick={() => {
                      setIndex(tab.index);
                      pane.follow();
                    }}
                  >
                    {tab.label}
                  </button>
                ))}
              </span>
            ) : (
              <button type="button" class="small" onClick={() => setOpen(!isOpen)}>
                {isOpen ? "Fold code" : "Unfold code"}
              </button>
            )}
          </div>
        </>
      }
    >
      <div
        class="pane-scroll"
        ref={(element) => void (pane.scroller.current = element)}
        {...itemHandlers(lighting, { key: toggleByKey })}
      >
        {content}
      </div>
    </PaneFrame>
  );
}

/** Left and right fold and unfold the code of the kernel that has the focus. */
function toggleByKey(event: KeyboardEvent): boolean {
  if (!(event.target instanceof Element) || !event.target.matches(".kernel-card")) return false;
  if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return false;
  const button = event.target.querySelector<HTMLElement>("[data-code-toggle]");
  if (button && (button.getAttribute("aria-expanded") === "true") === (event.key === "ArrowLeft")) button.click();
  event.preventDefault();
  return true;
}

function Module(props: { lighting: Lighting; lowering: Lowering; index: number }): JSX.Element {
  if (props.lowering.code.length === 0) {
    return (
      <Missing>
        The generated module was left out of this page
        {props.lowering.code_path ? `; its file was ${props.lowering.code_path}` : ""}.
      </Missing>
    );
  }
  return <WholeModule key={props.index} {...props} />;
}

function KernelList(props: { lighting: Lighting; lowering: Lowering; index: number; open: boolean }): JSX.Element {
  const { lowering, index, lighting } = props;
  const apart = keptApart(lowering);
  if (lowering.kernels.length === 0) {
    return <Missing>This graph needs no kernel: it contains no computation.</Missing>;
  }
  return (
    <>
      <ol class="kernel-list" aria-label="Kernels in launch order">
        {lowering.kernels.map((kernel, number) => (
          <>
            <KernelCard
              lowering={lowering}
              index={index}
              number={number}
              kernel={kernel}
              hue={hueOf(lighting.links, [index, number])}
              open={props.open}
            />
            {(apart.between.get(number) ?? []).map((item) => (
              <li class="apart">
                {apartTitle(item)}: {shorten(item.reason)}
                {item.times > 1 ? ` (asked ${item.times} times)` : ""}
              </li>
            ))}
          </>
        ))}
      </ol>
      <KeptApart lowering={lowering} list={apart.rest} />
    </>
  );
}

/** The two kernels by their numbers: the later one is not always the next. */
function apartTitle(item: Apart): string {
  const [early, late] = ordered(item);
  return late === early + 1 ? "Not fused with the next" : `${early + 1} not fused with ${late + 1}`;
}

/** Everything else that was kept apart, by reason. */
function KeptApart({ lowering, list }: { lowering: Lowering; list: Apart[] }): JSX.Element | null {
  if (list.length === 0) return null;
  const byReason = new Map<string, Apart[]>();
  for (const item of list) byReason.set(item.reason, [...(byReason.get(item.reason) ?? []), item]);
  return (
    <details class="kept-apart">
      <summary>Not fused: {count(list.length, "pair")} of kernels that are not adjacent</summary>
      {[...byReason].map(([reason, items]) => (
        <details>
          <summary>
            {shorten(reason)} <span class="quiet">({count(items.length, "pair")})</span>
          </summary>
          <ul>
            {items.slice(0, 100).map((item) => (
              <li>{pairText(lowering, item)}</li>
            ))}
            {items.length > 100 ? <li class="quiet">and {items.length - 100} more</li> : null}
          </ul>
        </details>
      ))}
    </details>
  );
}
