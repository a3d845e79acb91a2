/** The lessons of a tour: sentences with names in them, changes of files, and what captures are called. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { diffClasses, signClass } from "../src/common/diff";
import { firstSentence, pieces } from "../src/common/prose";
import { CHOOSER, wordsOf } from "../src/sections/kinds";
import { lessonId } from "../src/sections/lessons";
import type { Lesson } from "../src/data";

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

test("the first sentence ends at its dot, not at one in a name or a number", () => {
  assert.equal(firstSentence(["With torch.compile it took 9.1 s. It compiles.", "More."]), "With torch.compile it took 9.1 s.");
  assert.equal(firstSentence(["torch 2.13 and e.g. `f` took 1.5 s"]), "torch 2.13 and e.g.");
  assert.equal(firstSentence(["Of 3 models, i.e. all of them, none. Why?"]), "Of 3 models, i.e. all of them, none.");
  assert.equal(firstSentence(["Does it help here?\nYes."]), "Does it help here?");
  assert.equal(firstSentence(["A call took 3.1 s.  12 kernels ran."]), "A call took 3.1 s.");
  assert.equal(firstSentence(["No end"]), "No end");
  // Too little to say anything: the next one comes along.
  assert.equal(firstSentence(["No. Of 20 lines 2 became no node. More."]), "No. Of 20 lines 2 became no node.");
  assert.equal(firstSentence(["No.", "Of 20 lines 2 became no node."]), "No. Of 20 lines 2 became no node.");
  assert.equal(firstSentence([]), "");
});

test("a long text without an end takes no time", () => {
  const start = performance.now();
  assert.equal(firstSentence([". a".repeat(20_000)]).length, 60_000);
  assert.ok(performance.now() - start < 1_000);
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
  assert.equal(wordsOf("program").above(1_200), "1,200 processes together");
  const models = wordsOf("tour");
  assert.doesNotMatch(JSON.stringify([models, models.above(2)]), /process/i);
});

test("a lesson is found by its key", () => {
  assert.equal(lessonId({ key: "graph_breaks" } as Lesson), "lesson-graph_breaks");
});
