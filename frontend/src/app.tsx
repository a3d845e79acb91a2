/** The frame of the page: header, navigation, and the parts below each other. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Section } from "./common/section";
import type { Page } from "./data";
import { Explorer } from "./explorer/explorer";
import { Comparison, entries, Sections, Verdict } from "./sections/sections";
import { applyTheme, nextTheme, storedTheme, type Theme, THEME_TITLES } from "./theme";

export function App({ page }: { page: Page }): JSX.Element {
  const [chosen, choose] = useState(0);
  const [theme, setTheme] = useState<Theme>(storedTheme);
  const capture = page.captures[chosen];
  useEffect(() => applyTheme(theme), [theme]);
  useEffect(() => {
    // The parts did not exist when the browser looked for the fragment of the address.
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    target?.scrollIntoView({ block: "start" });
  }, []);
  const parts = useMemo(() => (capture ? entries(capture) : []), [capture]);
  if (!capture) return <p>This page holds no capture.</p>;
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <h1>{page.title}</h1>
        {page.captures.length > 1 ? (
          <label class="captures">
            <span>{page.comparison ? "Showing" : "Process"}</span>
            <select value={chosen} onChange={(event) => choose(Number(event.currentTarget.value))}>
              {page.captures.map((item, index) => (
                <option value={index}>{item.label}</option>
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
        <a href="#verdict">Verdict</a>
        <a href="#explorer">Explorer</a>
        {parts.map((part) => (
          <a href={`#${part.id}`}>
            {part.title}
            {part.badge ? <span class="badge">{part.badge}</span> : null}
          </a>
        ))}
      </nav>
      <main id="main" tabIndex={-1}>
        {page.comparison ? <Comparison page={page} /> : null}
        <div key={chosen}>
          <Verdict capture={capture} />
          <Section id="explorer" title="Explorer">
            <Explorer capture={capture} />
          </Section>
          <Sections capture={capture} />
        </div>
      </main>
      <footer class="bottom">{page.generator}</footer>
    </>
  );
}
