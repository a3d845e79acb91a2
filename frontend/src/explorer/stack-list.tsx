/** A stack as links to its lines, innermost first; frames of libraries are folded. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count, shorten } from "../common/format";
import type { Lighting } from "./lighting";
import { thing } from "./things";

export function StackList({ lighting, stack }: { lighting: Lighting; stack: number | null }): JSX.Element {
  const [all, setAll] = useState(false);
  const { capture } = lighting.links;
  const found = stack === null ? undefined : capture.stacks[stack];
  if (!found) return <span class="quiet">no stack was recorded</span>;
  const frames = [...found.frames].reverse();
  const kept = frames.filter(([path, line], index) => {
    if (all || index === 0) return true;
    const isEnd = [found.line, found.own].some((end) => end?.[0] === path && end[1] === line);
    return isEnd || capture.paths[path]?.library === false;
  });
  return (
    <ol class="stack">
      {kept.map(([path, line, name]) => (
        <li class={capture.paths[path]?.library ? "quiet" : ""}>
          <FrameLink lighting={lighting} path={path} line={line} /> <span class="quiet">in {shorten(name, 80)}</span>
        </li>
      ))}
      {frames.length > kept.length ? (
        <li>
          <button type="button" class="link" onClick={() => setAll(true)}>
            {count(frames.length - kept.length, "library frame")} more
          </button>
        </li>
      ) : null}
    </ol>
  );
}

function FrameLink({ lighting, path, line }: { lighting: Lighting; path: number; line: number }): JSX.Element {
  const { capture } = lighting.links;
  const text = `${shorten(capture.paths[path]?.short ?? "?", 160)}:${line}`;
  const recorded = capture.sources.some((source) => source.path === path);
  if (!recorded) return <code class="place">{text}</code>;
  return (
    <button type="button" class="place link" onClick={() => lighting.goTo(thing("line", path, line))}>
      {text}
    </button>
  );
}
