/**
 * The generated module from top to bottom.
 *
 * It may hold ten thousand lines, so a stretch of it gets elements only when it comes near the view. Lines have one height,
 * which makes room for the others exactly.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Line, Lowering } from "../data";
import { hueOf, hueStyle } from "./colors";
import { CodeLines } from "./kernel-card";
import type { Lighting } from "./lighting";
import { type Segment, segments } from "./segments";
import { place } from "./things";

export function WholeModule(props: { lighting: Lighting; lowering: Lowering; index: number }): JSX.Element {
  const { lighting, lowering, index } = props;
  return (
    <div class="whole-module">
      {segments(lowering).map((segment) => (
        <Stretch
          lighting={lighting}
          index={index}
          segment={segment}
          lines={lowering.code.slice(segment.first - 1, segment.last)}
        />
      ))}
    </div>
  );
}

function Stretch(props: { lighting: Lighting; index: number; segment: Segment; lines: Line[] }): JSX.Element {
  const { segment, index, lighting } = props;
  const element = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(false);
  useEffect(() => {
    if (!element.current || near) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) setNear(true);
      },
      { root: element.current.closest(".pane-scroll"), rootMargin: "800px" },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [near]);
  const kernel = segment.kernel;
  const marks =
    kernel === null
      ? {}
      : {
          "data-kernel": place(index, kernel),
          style: { ...hueStyle(hueOf(lighting.links, [index, kernel])), "--lines": String(props.lines.length) },
        };
  return (
    <div
      class={kernel === null ? "stretch" : "stretch of-kernel"}
      ref={element}
      style={{ "--lines": String(props.lines.length) }}
      {...(kernel !== null && segment.start
        ? { "data-item": "", tabIndex: -1, role: "group", "aria-label": `Kernel ${kernel + 1}` }
        : {})}
      {...marks}
    >
      {near ? <CodeLines lines={props.lines} first={segment.first} /> : null}
    </div>
  );
}
