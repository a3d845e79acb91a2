/** The lessons of a tour: sentences with names in them, changes of files, and what captures are called. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { diffClasses, signClass } from "../src/common/diff";
import { pieces } from "../src/common/prose";
import { CHOOSER, wordsOf } from "../src/sections/kinds";
import { lessonId } from "../src/sections/lessons";
import { measuredColumns, quantity } from "../src/sections/measured";
import type { Lesson, LessonTable } from "../src/data";

test("what stands between backticks is code, and a single backtick is text", () => {
  assert.deepEqual(pieces("`eager` runs it; `inductor`"), [
    { code: true, text: "eager" },
    { code: false, text: " runs it; " },
    { code: true, text: "inductor" },
  ]);
  assert.deepEqual(pieces("a ` b"), [{ code: false, text: "a ` b" }]);
  assert.deepEqual(pieces("a `b\nc` d"), [{ code: false, text: "a `b\nc` d" }]);
  assert.deepEqual(pieces(""), []);
  assert.deepEqual(pieces("`<img src=x>`"), [{ code: true, text: "<img src=x>" }]);
});

test("nothing of a text is lost in its pieces but the backticks of pairs", () => {
  for (const text of ["``", "`a``b`", "x `y` z `", "```"]) {
    const joined = pieces(text)
      .map((piece) => (piece.code ? `\`${piece.text}\`` : piece.text))
      .join("");
    assert.equal(joined, text);
  }
});

test("lines of a diff have their classes, the names of files are not changes", () => {
  assert.deepEqual(diffClasses(["--- a.py", "+++ a.py", "@@ -1 +1 @@", " x", "-y", "+z", ""]), [
    "hunk",
    "hunk",
    "hunk",
    "",
    "removed",
    "added",
    "",
  ]);
  // A comment of SQL that was taken out, and a sign that was put in.
  assert.deepEqual(diffClasses(["--- gone", " x", "+++ there"]), ["removed", "", "added"]);
  assert.equal(signClass("\\"), "");
});

test("captures are processes, versions or models", () => {
  assert.deepEqual(CHOOSER, { program: "Process", comparison: "Showing", tour: "Models" });
  assert.equal(wordsOf("program").above(1_200), "1,200 processes in total");
  const models = wordsOf("tour");
  assert.doesNotMatch(JSON.stringify([models, models.above(2)]), /process/i);
});

test("a lesson is found by its key", () => {
  assert.equal(lessonId({ key: "graph_breaks" } as Lesson), "lesson-graph_breaks");
});

const table = (columns: string[], rows: string[][]): LessonTable => ({
  kind: "table",
  title: "t",
  columns: columns.map((title) => ({ title: title.replace(">", ""), align: title.startsWith(">") ? "right" : "left" })),
  rows,
});

test("a quantity is a number with a unit, and nothing else", () => {
  const near = (text: string): number => Math.round((quantity(text)?.value ?? NaN) * 1e9);
  assert.deepEqual(
    ["8.84 s", "255.7 µs", "2 min 12 s", "1393 µs", "1,200 ms"].map(near),
    [8_840_000_000, 255_700, 132e9, 1_393_000, 1.2e9],
  );
  assert.deepEqual(quantity("225.5 KiB"), { kind: "size", value: 225.5 * 1024 });
  assert.deepEqual(quantity("70 %"), { kind: "share", value: 70 });
  for (const text of [
    "",
    "-",
    "12",
    "0.64",
    "3e-08",
    "2 + 2",
    "211.9 µs to 141.8 µs",
    "not timed",
    "3 rows",
    "1 s ago",
    "5 constructor",
  ]) {
    assert.equal(quantity(text), null, text);
  }
});

test("columns of measurements are drawn, and others are not", () => {
  const found = measuredColumns(
    table(
      ["Way", ">Line", ">Call", "Note", ">Share"],
      [
        ["eager", "1", "-", "2 s", "1 %"],
        ["inductor", "2", "4.0 ms", "3 s", "99 %"],
        ["other", "3", "1.0 ms", "4 s", "0 %"],
      ],
    ),
  );
  assert.deepEqual(
    found.map((chart) => [chart.title, chart.kind, chart.most, chart.bars.map((bar) => bar.label)]),
    [
      ["Call", "time", 4e-3, ["inductor", "other"]],
      ["Share", "share", 100, ["eager", "inductor", "other"]],
    ],
  );
});

test("a chart needs two measurements of one kind, and not too many rows", () => {
  assert.deepEqual(measuredColumns(table(["A", ">B"], [["a", "1 s"]])), []);
  assert.deepEqual(
    measuredColumns(
      table(
        ["A", ">B"],
        [
          ["a", "1 s"],
          ["b", "-"],
        ],
      ),
    ),
    [],
  );
  assert.deepEqual(
    measuredColumns(
      table(
        ["A", ">B"],
        [
          ["a", "1 s"],
          ["b", "2 KiB"],
        ],
      ),
    ),
    [],
  );
  assert.deepEqual(
    measuredColumns(
      table(
        ["A", ">B"],
        [
          ["a", "0 s"],
          ["b", "0 s"],
        ],
      ),
    ),
    [],
  );
  assert.deepEqual(
    measuredColumns(
      table(
        ["A", ">B"],
        Array.from({ length: 40 }, () => ["a", "1 s"]),
      ),
    ),
    [],
  );
  assert.deepEqual(measuredColumns(table(["A", ">B"], [["a"], ["b"]])), []);
});

test("a number with an interval beside it is a ratio, on a scale that holds 1", () => {
  const [chart] = measuredColumns(
    table(
      ["Model", ">Batch", ">Eager", ">Speedup over eager", ">95 % interval"],
      [
        ["m", "1", "1 ms", "0.64×", "0.63 to 0.65"],
        ["m", "64", "2 ms", "0.75", "0.70 to 0.80"],
      ],
    ),
  );
  assert.equal(chart?.kind, "ratio");
  assert.equal(chart?.most, 1);
  assert.deepEqual(
    chart?.bars.map((bar) => [bar.label, bar.ends]),
    [
      ["m, batch 1", [0.63, 0.65]],
      ["m, batch 64", [0.7, 0.8]],
    ],
  );
});
