/** The tabs of a pane. Those that hold something lit show how much; the number is set by the lighting, not rendered. */
import type { JSX } from "preact";

export interface TabItem {
  /** The value of `data-tab`. */
  key: string;
  label: string;
  title?: string;
  /** The file, graph or lowering behind it, for the count of what is lit there. */
  holder: number | null;
}

export function TabList(props: {
  label: string;
  tabs: TabItem[];
  selected: string;
  choose: (key: string) => void;
}): JSX.Element {
  const { tabs, selected, choose } = props;
  const move = (event: KeyboardEvent): void => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const position = tabs.findIndex((tab) => tab.key === selected);
    const next = by === undefined ? undefined : tabs[(position + by + tabs.length) % tabs.length];
    if (!next || !(event.currentTarget instanceof Element)) return;
    event.preventDefault();
    choose(next.key);
    event.currentTarget.querySelector<HTMLElement>(`[data-tab="${next.key}"]`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={props.label} onKeyDown={move}>
      {tabs.map((tab) => (
        <button
          key={tab.key}
          type="button"
          role="tab"
          class="tab"
          data-tab={tab.key}
          data-holder={tab.holder ?? undefined}
          aria-selected={tab.key === selected}
          tabIndex={tab.key === selected ? 0 : -1}
          title={tab.title}
          onClick={() => choose(tab.key)}
        >
          {tab.label}
        </button>
      ))}
    </div>
  );
}
