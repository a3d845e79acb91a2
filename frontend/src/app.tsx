/** The frame of the page: header, navigation, and the parts below each other. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Boundary } from "./common/boundary";
import { number, shorten } from "./common/format";
import { followFragments, visit } from "./common/navigation";
import { Section } from "./common/section";
import type { Capture, Page } from "./data";
import { Explorer } from "./explorer/explorer";
import { CHOOSER, wordsOf } from "./sections/kinds";
import { captureLabel, Comparison, entries, firstCapture, Lessons, Sections, Together, Verdict } from "./sections/sections";
import { applyTheme, nextTheme, storedTheme, type Theme, THEME_TITLES } from "./theme";

export function App({ page }: { page: Page }): JSX.Element {
  const [chosen, choose] = useState(() => firstCapture(page));
  const [theme, setTheme] = useState<Theme>(storedTheme);
  const capture = page.captures[chosen];
  useEffect(() => applyTheme(theme), [theme]);
  // Also for the fragment of the address: the parts did not exist when the browser looked for it.
  useEffect(followFragments, []);
  // Effects of the parts run before those of the whole: from here on keys and links are listened to.
  useEffect(() => void (document.documentElement.dataset["ready"] = "yes"), []);
  if (!capture && page.lessons.length === 0) return <p>This page contains no capture.</p>;
  const chooseAbove = (index: number): void => {
    choose(index);
    // The lessons stand between the list and what it changes: without a look at that, nothing would seem to happen.
    if (page.kind === "tour") visit("shown", false);
  };
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <div class="masthead">
        <header class="top">
          <h1>{shorten(page.title)}</h1>
          {page.captures.length > 1 ? (
            <label class="captures">
              <span>{CHOOSER[page.kind]}</span>
              <select value={chosen} onChange={(event) => chooseAbove(Number(event.currentTarget.value))}>
                {page.captures.map((_, index) => (
                  <option value={index}>{captureLabel(page, index)}</option>
                ))}
              </select>
            </label>
          ) : null}
          <button type="button" class="theme" onClick={() => setTheme(nextTheme(theme))} title="Light, dark, or system theme">
            {THEME_TITLES[theme]}
          </button>
        </header>
        <Parts page={page} capture={capture} />
      </div>
      <main id="main" tabIndex={-1}>
        {page.lessons.length > 0 ? <Lessons page={page} /> : null}
        {page.kind === "comparison" ? <Comparison page={page} /> : null}
        {page.together ? <Together page={page} chosen={chosen} choose={choose} /> : null}
        {capture ? <Shown key={chosen} page={page} capture={capture} /> : null}
      </main>
      <footer class="bottom">{page.generator}</footer>
    </>
  );
}

/** One capture, all of it. */
function Shown({ page, capture }: { page: Page; capture: Capture }): JSX.Element {
  const named = page.together !== null || page.kind === "tour";
  return (
    <div>
      {named ? (
        <p id="shown" class="eyebrow of-process">
          {wordsOf(page.kind).one} {shorten(capture.label, 120)}
        </p>
      ) : null}
      <Verdict capture={capture} />
      <Section id="explorer" title="Explorer">
        <Boundary>
          <Explorer capture={capture} />
        </Boundary>
      </Section>
      <Sections capture={capture} />
    </div>
  );
}

/** The navigation. */
function Parts({ page, capture }: { page: Page; capture: Capture | undefined }): JSX.Element {
  const parts = useMemo(() => (capture ? entries(capture) : []), [capture]);
  return (
    <nav class="parts" aria-label="Parts of this report">
      {page.lessons.length > 0 ? (
        <a href="#lessons">
          Lessons<span class="unseen">, </span>
          <span class="badge">{number(page.lessons.length)}</span>
        </a>
      ) : null}
      {page.kind === "comparison" ? <a href="#comparison">Comparison</a> : null}
      {page.together ? <a href="#together">{wordsOf(page.kind).all}</a> : null}
      {capture ? (
        <>
          <a href="#verdict">Verdict</a>
          <a href="#explorer">Explorer</a>
        </>
      ) : null}
      {parts.map((part) => (
        <a href={`#${part.id}`}>
          {part.title}
          {part.badge ? (
            <>
              <span class="unseen">, {part.spoken ?? ""}</span>
              <span class="badge" {...(part.spoken ? { "aria-hidden": "true" as const } : {})}>
                {part.badge}
              </span>
            </>
          ) : null}
        </a>
      ))}
    </nav>
  );
}
