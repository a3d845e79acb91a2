/** The three linked panes: source, graph, kernels. */
import type { JSX } from "preact";
import type { Capture } from "../data";

export function Explorer({ capture }: { capture: Capture }): JSX.Element {
  return <p>{capture.graphs.length} graphs</p>;
}
