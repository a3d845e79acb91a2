/** Everything on the page but the explorer, in the order it is shown. */
import type { JSX } from "preact";
import type { Capture, Page } from "../data";
import { Agreements } from "./agreement";
import { Breaks } from "./breaks";
import { Caches } from "./caches";
import { ComparisonSection } from "./comparison";
import { Compilations } from "./compilations";
import { entriesOf, type Entry } from "./entries";
import { Environment } from "./environment";
import { Guards } from "./guards";
import { MemorySection } from "./memory";
import { Recompiles } from "./recompiles";
import { Speed } from "./speed/speed";
import { CompileTime } from "./time";
import { Verdict as VerdictSection } from "./verdict";

export type { Entry };

export function entries(capture: Capture): Entry[] {
  return entriesOf(capture);
}

/** The verdict, at the top of the page. */
export function Verdict({ capture }: { capture: Capture }): JSX.Element {
  return <VerdictSection capture={capture} />;
}

/** All sections after the explorer. */
export function Sections({ capture }: { capture: Capture }): JSX.Element {
  return (
    <>
      <Breaks capture={capture} />
      <Guards capture={capture} />
      <Recompiles capture={capture} />
      <CompileTime capture={capture} />
      <Speed capture={capture} />
      <Agreements capture={capture} />
      <MemorySection capture={capture} />
      <Caches capture={capture} />
      <Compilations capture={capture} />
      <Environment capture={capture} />
    </>
  );
}

/** Two captures held against each other. */
export function Comparison({ page }: { page: Page }): JSX.Element {
  return <ComparisonSection page={page} />;
}
