/** Everything on the page but the explorer, in the order it is shown. */
import type { JSX } from "preact";
import { SectionBoundary } from "../common/boundary";
import type { Capture, Page } from "../data";
import { Agreements } from "./agreement";
import { Breaks } from "./breaks";
import { Caches } from "./caches";
import { ComparisonSection } from "./comparison";
import { Compilations } from "./compilations";
import { entriesOf, type Entry } from "./entries";
import { Environment } from "./environment";
import { Guards } from "./guards";
import { wordsOf } from "./kinds";
import { LessonsSection } from "./lessons";
import { MemorySection } from "./memory";
import { Recompiles } from "./recompiles";
import { Speed } from "./speed/speed";
import { CompileTime } from "./time";
import { captureLabel, firstCapture, TogetherSection } from "./together";
import { Verdict as VerdictSection } from "./verdict";

export { captureLabel, firstCapture };
export type { Entry };

export function entries(capture: Capture): Entry[] {
  return entriesOf(capture);
}

/** The verdict, at the top of the page. */
export function Verdict({ capture }: { capture: Capture }): JSX.Element {
  return (
    <SectionBoundary id="verdict" title="Verdict">
      <VerdictSection capture={capture} />
    </SectionBoundary>
  );
}

const PARTS: [id: string, title: string, part: (props: { capture: Capture }) => JSX.Element][] = [
  ["breaks", "Graph breaks", Breaks],
  ["guards", "Guards", Guards],
  ["recompiles", "Recompiles", Recompiles],
  ["time", "Compile time", CompileTime],
  ["speed", "Speed", Speed],
  ["agreement", "Agreement with eager", Agreements],
  ["memory", "Memory", MemorySection],
  ["caches", "Caches and CUDA graphs", Caches],
  ["compilations", "Compilations", Compilations],
  ["environment", "Environment", Environment],
];

/** All sections after the explorer. */
export function Sections({ capture }: { capture: Capture }): JSX.Element {
  return (
    <>
      {PARTS.map(([id, title, Part]) => (
        <SectionBoundary id={id} title={title}>
          <Part capture={capture} />
        </SectionBoundary>
      ))}
    </>
  );
}

/** Two captures held against each other. */
export function Comparison({ page }: { page: Page }): JSX.Element {
  return (
    <SectionBoundary id="comparison" title="Comparison">
      <ComparisonSection page={page} />
    </SectionBoundary>
  );
}

/** What a tour has shown. */
export function Lessons({ page }: { page: Page }): JSX.Element {
  return (
    <SectionBoundary id="lessons" title="Lessons">
      <LessonsSection page={page} />
    </SectionBoundary>
  );
}

/** All processes of a program, or all models of a tour. */
export function Together(props: { page: Page; chosen: number; choose: (index: number) => void }): JSX.Element {
  return (
    <SectionBoundary id="together" title={wordsOf(props.page.kind).all}>
      <TogetherSection {...props} />
    </SectionBoundary>
  );
}
