/** What all parts share: fragments, texts that are too long, compilations by their ids, processes and parts that fail. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { messageOf } from "../src/common/boundary";
import { exploredCompilations, positionOf } from "../src/common/compilations";
import { fileName, MAX_TEXT, shorten, together } from "../src/common/format";
import { fragmentId, hasAddress, positionIn } from "../src/common/navigation";
import { bounded } from "../src/common/text";
import type { Capture, Page } from "../src/data";
import { countsByPane } from "../src/explorer/counterpart-bar";
import { unlisted } from "../src/explorer/detail";
import { sourceFiles } from "../src/explorer/files";
import { buildLinks } from "../src/explorer/links";
import { captureLabel, firstCapture } from "../src/sections/together";

test("a fragment names an id, and a damaged one nothing", () => {
  assert.equal(fragmentId("#break-41"), "break-41");
  assert.equal(fragmentId("#a%20b"), "a b");
  assert.deepEqual(["", "#", "breaks", "#%E0%zz", "#%"].map(fragmentId), ["", "", "", "", ""]);
});

test("ids with a position, counted from 1", () => {
  assert.equal(positionIn("break-41", "break"), 41);
  assert.equal(positionIn("compilation-1", "compilation"), 1);
  for (const id of ["break-0", "break-", "break-x", "break-1-title", "breaks", "compilations", ""]) {
    assert.equal(positionIn(id, "break"), null, id);
  }
});

test("in the frame of a notebook there is no address to add a fragment to", () => {
  assert.deepEqual(["about:srcdoc", "about:blank", "file:///a.html", "https://a/b"].map(hasAddress), [
    false,
    false,
    true,
    true,
  ]);
});

test("long texts are cut at a character", () => {
  assert.equal(shorten("short"), "short");
  assert.equal(shorten("abcdef", 4), "abc…");
  assert.equal(shorten("x".repeat(1_000_000)).length, 300);
  assert.equal(shorten("ab😀cd", 4), "ab…");
  assert.equal(bounded("x"), "x");
  assert.match(bounded("x".repeat(MAX_TEXT + 500)), /x… \(501 more characters not shown\)$/);
});

test("files are named after their folders on every system", () => {
  assert.equal(fileName("/home/me/model.py"), "model.py");
  assert.equal(fileName("C:\\Users\\me\\model.py"), "model.py");
  assert.equal(fileName("C:\\Users\\me\\model.py", 2), "me/model.py");
  assert.equal(fileName("C:\\Users/me\\model.py", 3), "Users/me/model.py");
  const capture = {
    paths: [{ path: "C:\\work\\model.py", short: "C:\\work\\model.py", library: false, torch: false }],
    sources: [{ path: 0, total: 1, pieces: [] }],
    stacks: [],
    graphs: [],
    lowerings: [],
  } as unknown as Capture;
  assert.deepEqual(
    sourceFiles(capture, buildLinks(capture, null)).map((file) => file.label),
    ["model.py"],
  );
});

test("a compilation is in the explorer where it has graphs or kernels, and always in the table", () => {
  const capture = {
    compilations: [{ id: "0/0" }, { id: "0/1" }, { id: "0/1" }],
    graphs: [{ compilation: "0/0" }],
    lowerings: [{ compilation: null }],
  } as unknown as Capture;
  assert.deepEqual([...exploredCompilations(capture)], ["0/0", null]);
  assert.deepEqual(
    ["0/0", "0/1", "9/9"].map((id) => positionOf(capture, id)),
    [1, 2, undefined],
  );
});

test("processes are named with the sign of how they went, the first to show is one there is", () => {
  const page = {
    captures: [{ label: "a" }, { label: "b" }],
    first: 1,
    together: { sentence: "", tone: "bad", members: [{ tone: "plain" }, { tone: "bad" }] },
  } as unknown as Page;
  assert.deepEqual([captureLabel(page, 0), captureLabel(page, 1)], ["a", "✕ b"]);
  assert.equal(captureLabel({ ...page, together: null }, 1), "b");
  assert.equal(firstCapture(page), 1);
  assert.equal(firstCapture({ ...page, first: 7 }), 0);
});

test("counterparts are counted by pane, loose ones where there are no others", () => {
  const part = (kind: "node" | "kernel", item: number, weak: boolean) => ({ kind, holder: 0, item, weak });
  assert.deepEqual(countsByPane([part("node", 0, false), part("node", 1, true), part("kernel", 0, false)]), {
    source: 0,
    graph: 1,
    kernels: 1,
  });
  assert.deepEqual(countsByPane([part("node", 0, true)]), { source: 0, graph: 1, kernels: 0 });
});

test("what cannot be listed is said, and why", () => {
  assert.match(unlisted(3), /^3 nodes, .*left out/);
  assert.match(unlisted(0), /not recorded/);
  assert.equal(messageOf(new RangeError("Invalid array length")), "RangeError: Invalid array length");
  assert.equal(messageOf("x".repeat(5_000)).length, 300);
});

test("a figure and its unit stay on one line", () => {
  assert.equal(together("0.92× (95 % interval)"), "0.92× (95\u00a0% interval)");
  assert.equal(together("14 lessons in 4 min 44 s on 2 cores"), "14 lessons in 4\u00a0min 44\u00a0s on 2 cores");
  assert.equal(together("took 3 steps, 5 µs"), "took 3 steps, 5\u00a0µs");
});
