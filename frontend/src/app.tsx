/** The frame of the page: header, navigation, and the parts below each other. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Boundary } from "./common/boundary";
import { shorten } from "./common/format";
import { followFragments } from "./common/navigation";
import { Section } from "./common/section";
import type { Page } from "./data";
import { Explorer } from "./explorer/explorer";
import { captureLabel, Comparison, entries, firstCapture, Sections, Together, Verdict } from "./sections/sections";
import { applyTheme, nextTheme, storedTheme, type Theme, THEME_TITLES } from "./theme";

export function App({ page }: { page: Page }): JSX.Element {
  const [chosen, choose] = useState(() => firstCapture(page));
  const [theme, setTheme] = useState<Theme>(storedTheme);
  const capture = page.captures[chosen];
  useEffect(() => applyTheme(theme), [theme]);
  // Also for the fragment of the address: the parts did not exist when the browser looked for it.
  useEffect(followFragments, []);
  const parts = useMemo(() => (capture ? entries(capture) : []), [capture]);
  if (!capture) return <p>This page holds no capture.</p>;
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <h1>{shorten(page.title)}</h1>
        {page.captures.length > 1 ? (
          <label class="captures">
            <span>{page.comparison ? "Showing" : "Process"}</span>
            <select value={chosen} onChange={(event) => choose(Number(event.currentTarget.value))}>
              {page.captures.map((_, index) => (
                <option value={index}>{captureLabel(page, index)}</option>
              ))}
            </select>
          </label>
        ) : null}
        <button type="button" class="theme" onClick={() => setTheme(nextTheme(theme))} title="Light, dark, or as the system">
          {THEME_TITLES[theme]}
        </button>
      </header>
      <nav class="parts" aria-label="Parts of this report">
        {page.comparison ? <a href="#comparison">Comparison</a> : null}
        {page.together ? <a href="#together">All processes</a> : null}
        <a href="#verdict">Verdict</a>
        <a href="#explorer">Explorer</a>
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
      <main id="main" tabIndex={-1}>
        {page.comparison ? <Comparison page={page} /> : null}
        {page.together ? <Together page={page} chosen={chosen} choose={choose} /> : null}
        <div key={chosen}>
          {page.together ? <p class="eyebrow of-process">Process {shorten(capture.label, 120)}</p> : null}
          <Verdict capture={capture} />
          <Section id="explorer" title="Explorer">
            <Boundary>
              <Explorer capture={capture} />
            </Boundary>
          </Section>
          <Sections capture={capture} />
        </div>
      </main>
      <footer class="bottom">{page.generator}</footer>
    </>
  );
}
