/** Guards, the timeline, payback and comparison: what sections make of their data. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Break, Capture, Compilation, Fact, GuardGroup, Measurement, Timing, TimingPoint } from "../src/data";
import { cacheSummary } from "../src/sections/caches";
import {
  compareBreaks,
  compareCompilations,
  compareEnvironment,
  compareFacts,
  compareSpeed,
  kernelCounts,
} from "../src/sections/compare";
import { entriesOf } from "../src/sections/entries";
import { accidentGroups, byCompilation, matches } from "../src/sections/guard-groups";
import { fragment } from "../src/sections/parts/links";
import { spentOn } from "../src/sections/recompile-causes";
import { columnsFor } from "../src/sections/verdict";
import { shareOf } from "../src/sections/time";
import { proofText, ratioInWords } from "../src/sections/proposal";
import { callsBetween, costOf, crossing, paybackText, reach, totalAfter } from "../src/sections/speed/payback";
import { sweptSize, sweptVariants } from "../src/sections/speed/points";
import { frameOf, timelineOf } from "../src/sections/timeline";

const EMPTY: Capture = {
  label: "x",
  verdict: { sentence: "", tone: "plain", further: [], origin: "", facts: [], recommendations: [] },
  left_out: [],
  complete: true,
  notes: [],
  missing: [],
  environment: [],
  paths: [],
  sources: [],
  stacks: [],
  compilations: [],
  graphs: [],
  lowerings: [],
  breaks: [],
  guards: [],
  accidents: [],
  specializations: [],
  recompiles: [],
  recompile_causes: [],
  limits: [],
  time: { total: 0, phases: [] },
  timings: [],
  agreements: [],
  caches: [],
  cuda_graphs: [],
};

const compilation = (id: string, more: Partial<Compilation> = {}): Compilation => ({
  id,
  name: "forward",
  place: { path: 0, line: 1, name: "forward" },
  outcome: "compiled",
  tone: "good",
  backend: "inductor",
  started: 0,
  seconds: 1,
  backward_seconds: null,
  operations: 0,
  guards: 0,
  symbols: [],
  recompile: false,
  resume: false,
  attempts: 1,
  restart_reasons: [],
  failure: "",
  ...more,
});

const measurement = (variant: string, median: number | null, more: Partial<Measurement> = {}): Measurement => ({
  variant,
  refused: "",
  samples: [],
  median,
  low: median === null ? null : median * 0.9,
  high: median === null ? null : median * 1.1,
  speed: null,
  build: null,
  payback: null,
  peak_bytes: null,
  warnings: [],
  assumes: [],
  ...more,
});

test("guards are put together by compilation, noise apart", () => {
  const group = (compilation: string, variable: string, noise = false): GuardGroup => ({
    compilation,
    variable,
    noise,
    place: null,
    conditions: [["TENSOR_MATCH", `${variable} is a Tensor`]],
  });
  const groups = [group("0/1", "x"), group("0/0", "y"), group("0/0", "z", true), group("9/9", "w")];
  const found = byCompilation(groups, ["0/0", "0/1", "1/0"]);
  assert.deepEqual(
    found.map((entry) => [entry.compilation, entry.own.length, entry.noise.length]),
    [
      ["0/0", 1, 1],
      ["0/1", 1, 0],
      ["9/9", 1, 0],
    ],
  );
  assert.equal(matches(groups[0]!, "tensor X"), true);
  assert.equal(matches(groups[0]!, "tensor q"), false);
  assert.equal(matches(groups[0]!, "  "), true);
});

test("one variable that was compiled in several times is one accident", () => {
  const accident = {
    compilation: "0/0",
    variable: "self.step",
    value: "0",
    holder: "h",
    suspicion: "s",
    remedy: "r",
    place: null,
  };
  const [group, ...others] = accidentGroups([accident, { ...accident, compilation: "0/1", value: "1" }]);
  assert.equal(others.length, 0);
  assert.deepEqual(
    [group?.values, group?.compilations],
    [
      ["0", "1"],
      ["0/0", "0/1"],
    ],
  );
});

test("versions of one function share a row of the timeline", () => {
  assert.deepEqual(["0/1", "[0/0]/3", "7"].map(frameOf), ["0", "[0/0]", "7"]);
  const timeline = timelineOf({
    compilations: [
      compilation("0/0"),
      compilation("1/0", { started: 2 }),
      compilation("0/1", { started: 3, recompile: true, seconds: 4 }),
    ],
  });
  assert.deepEqual(
    timeline.rows.map((row) => row.marks.map((mark) => mark.kind)),
    [["first", "recompile"], ["first"]],
  );
  assert.deepEqual([timeline.timed, timeline.end], [true, 7]);
});

test("without recorded times, the order is the axis", () => {
  const timeline = timelineOf({ compilations: [compilation("0/0", { started: null }), compilation("0/1", { tone: "bad" })] });
  assert.equal(timeline.timed, false);
  assert.deepEqual(
    timeline.rows[0]?.marks.map((mark) => [mark.start, mark.kind]),
    [
      [0, "first"],
      [1, "failed"],
    ],
  );
});

test("a build pays back where the lines cross", () => {
  const eager = measurement("eager", 0.003);
  const payback = { calls: 5000, low: 4800, high: 5300, unclear: false, gain: 0.002 };
  const build = { cold: 10, warm: 3, order_dependent: 0.1, text: "10.00 s cold, 3.00 s warm" };
  const fast = measurement("inductor", 0.0011, { build, payback });
  const line = costOf(eager, eager)!;
  const other = costOf(fast, eager)!;
  assert.equal(line.build, 0, "eager is there from the start");
  assert.ok(Math.abs(crossing(line, other)! - 5000) < 1e-6, "where the table says it does");
  assert.ok(Math.abs(totalAfter(line, 5000) - totalAfter(other, 5000)) < 1e-9);
  const [least, most] = reach(line, [other]);
  assert.ok(least < 500 && most > 30_000, `${least} to ${most}`);
  assert.deepEqual(other.between, [4800, 5300]);
  const unknown = { ...build, cold: null, warm: null, text: "100.0 ms warm, order-dependent" };
  assert.equal(costOf(measurement("inductor", 0.0011, { build: unknown }), eager), null, "no line without a cold build");
});

test("what is slower never pays back, what needs no build does at once", () => {
  const eager = { variant: "eager", build: 0, call: 1 };
  assert.equal(crossing(eager, { variant: "a", build: 5, call: 1.5 }), null);
  assert.equal(crossing(eager, { variant: "b", build: 0, call: 0.5 }), 0);
  assert.equal(costOf(measurement("c", null), undefined), null);
  assert.ok(reach(eager, [{ variant: "a", build: 5, call: 1.5 }]).every(Number.isFinite));
  assert.deepEqual(reach(eager, []), [1, 1000]);
});

test("calls of a curve begin and end where the axis does", () => {
  const calls = callsBetween(1, 1000, 3);
  assert.deepEqual(calls.map(Math.round), [1, 10, 100, 1000]);
});

test("payback is told as in the terminal", () => {
  const of = (calls: number | null, low: number | null, high: number | null, unclear = false): string =>
    paybackText({ calls, low, high, unclear, gain: 0 });
  assert.equal(of(5000, 4800, 5300), "5,000 (4,800–5,300)");
  assert.equal(of(null, null, null), "never");
  assert.equal(of(null, 900, null), "unclear (900–never)");
  assert.equal(of(5000, 900, null, true), "unclear (900–never)");
});

const point = (sizes: [string, number][], measurements: Measurement[]): TimingPoint => ({ sizes, inputs: [], measurements });

test("a sweep is drawn over the one size that differs", () => {
  assert.deepEqual(
    sweptSize([
      point(
        [
          ["b", 1],
          ["n", 4],
        ],
        [],
      ),
      point(
        [
          ["b", 8],
          ["n", 4],
        ],
        [],
      ),
    ]),
    { name: "b", values: [1, 8] },
  );
  assert.equal(
    sweptSize([
      point(
        [
          ["b", 1],
          ["n", 4],
        ],
        [],
      ),
      point(
        [
          ["b", 8],
          ["n", 5],
        ],
        [],
      ),
    ]),
    null,
  );
  assert.equal(sweptSize([point([], [])]), null);
});

test("where a variant did not run, its line has no point", () => {
  const timing = {
    points: [
      point([["b", 8]], [measurement("eager", 2)]),
      point([["b", 1]], [measurement("eager", 1), measurement("a", null)]),
    ],
  } as unknown as Timing;
  assert.deepEqual(
    sweptVariants(timing).map((item) => [item.variant, item.points.map((one) => one.x)]),
    [["eager", [1, 8]]],
  );
});

const aBreak = (kind: string, text: string, first = 1): Break =>
  ({ kind, excerpt: { first, lines: [[text]], marked: first }, place: null }) as unknown as Break;

test("breaks are the same by kind and by the text of their line, wherever it moved", () => {
  const { gone, added, both } = compareBreaks(
    [aBreak("branch", "if x:"), aBreak("print", "print(x)"), aBreak("print", "print(x)", 4)],
    [aBreak("branch", "  if x:", 9), aBreak("print", "print(x)"), aBreak("item", "x.item()")],
  );
  assert.deepEqual([gone.length, added.map((item) => item.kind), both.length], [1, ["item"], 2]);
});

const fact = (key: string, value: string, tone: Fact["tone"] = "plain"): Fact => ({
  key,
  label: key,
  value,
  detail: "",
  tone,
  link: "",
});
const withFacts = (facts: Fact[], more: Partial<Capture>): Capture => ({
  ...EMPTY,
  ...more,
  verdict: { ...EMPTY.verdict, facts },
});

test("facts are compared by what they count, not by how they are written", () => {
  const before = withFacts([fact("breaks", "2", "warn"), fact("time", "10 s"), fact("agreement", "1 of 1 agree", "good")], {
    breaks: [aBreak("a", ""), aBreak("b", "")],
    time: { total: 10, phases: [] },
  });
  const after = withFacts([fact("breaks", "0", "good"), fact("time", "30 s"), fact("agreement", "1 of 1 differ", "bad")], {
    time: { total: 30, phases: [] },
  });
  const told = compareFacts(before, after).map((item) => [item.key, item.direction, item.difference, item.tone]);
  assert.deepEqual(told, [
    ["breaks", "down", "−2", "good"],
    ["time", "up", "3.00×", "bad"],
    ["agreement", "none", "differs", "bad"],
  ]);
  assert.deepEqual(
    compareFacts(before, before).map((item) => item.tone),
    ["plain", "plain", "plain"],
  );
});

test("what only one capture has, or says without a tone, is not judged", () => {
  const told = (before: Fact[], after: Fact[]): string[] =>
    compareFacts(withFacts(before, {}), withFacts(after, {})).map((item) => item.tone);
  assert.deepEqual(told([fact("payback", "never", "bad")], []), ["plain"]);
  assert.deepEqual(told([], [fact("breaks", "3", "warn")]), ["plain"]);
  assert.deepEqual(told([fact("agreement", "1 of 1 differ", "bad")], [fact("agreement", "not checked", "plain")]), ["plain"]);
});

test("a version that fails to compile is not better for what it does not do", () => {
  const lowering = { direction: "forward", kernels: [{ kind: "cpp", fuses: 1 }] };
  const before = withFacts([fact("compilations", "1"), fact("time", "9 s"), fact("kernels", "1")], {
    compilations: [compilation("0/0")],
    lowerings: [lowering] as unknown as Capture["lowerings"],
    time: { total: 9, phases: [] },
  });
  const after = withFacts([fact("compilations", "1"), fact("time", "1 s"), fact("kernels", "0")], {
    compilations: [compilation("0/0", { tone: "bad", outcome: "failed" })],
    time: { total: 1, phases: [] },
  });
  assert.deepEqual(
    compareFacts(before, after).map((item) => [item.key, item.tone]),
    [
      ["compilations", "plain"],
      ["failed", "bad"],
      ["time", "plain"],
      ["kernels", "plain"],
    ],
  );
  assert.equal(compareFacts(after, before).find((item) => item.key === "failed")?.tone, "good");
});

test("compile time that differs by less than noise is neither better nor worse", () => {
  const of = (total: number): Capture => withFacts([fact("time", `${total} s`)], { time: { total, phases: [] } });
  assert.equal(compareFacts(of(10), of(10.5))[0]?.tone, "plain");
});

test("speed is better only where the intervals leave no doubt", () => {
  const of = (median: number): Capture => ({
    ...EMPTY,
    timings: [
      {
        target: "f",
        device: "cpu",
        gradients: false,
        points: [point([["b", 1]], [measurement("inductor", median)])],
      } as unknown as Timing,
    ],
  });
  assert.deepEqual(
    compareSpeed(of(2), of(1)).map((item) => [item.ratio, item.tone]),
    [[2, "good"]],
  );
  assert.equal(compareSpeed(of(1), of(1.05))[0]?.tone, "plain");
  assert.equal(compareSpeed(of(1), of(2))[0]?.tone, "bad");
  assert.deepEqual(compareSpeed(of(1), EMPTY), []);
});

test("the environment shows what differs, and what only one has", () => {
  const of = (rows: [string, string][]): Capture => ({ ...EMPTY, environment: [{ title: "Machine", rows }] });
  assert.deepEqual(
    compareEnvironment(
      of([
        ["torch", "2.1"],
        ["CPU", "a"],
        ["Command", "python a.py"],
        ["Process", "1"],
      ]),
      of([
        ["torch", "2.2"],
        ["CPU", "a"],
        ["GPU", "b"],
        ["Process", "2"],
        ["Recorded by", "compile-inspect 1"],
      ]),
    ),
    [
      { group: "Machine", name: "torch", before: "2.1", after: "2.2" },
      { group: "Machine", name: "GPU", before: "–", after: "b" },
    ],
  );
});

test("functions are the same by name and file, the rest of one wherever it begins", () => {
  const rest = (line: number): Capture => ({
    ...EMPTY,
    compilations: [compilation("0/0", { name: `forward (the rest, from line ${line})`, resume: true })],
  });
  assert.deepEqual(
    compareCompilations(rest(3), rest(8)).map((item) => [item.before.versions, item.after.versions]),
    [[1, 1]],
  );
});

test("library calls are launches, but not fused", () => {
  const lowering = {
    direction: "forward",
    kernels: [
      { kind: "extern", nodes: [1, 2], fuses: 2 },
      { kind: "cpp", nodes: [], fuses: 2 },
    ],
  };
  const counts = kernelCounts({ ...EMPTY, lowerings: [lowering] as unknown as Capture["lowerings"] });
  assert.deepEqual(counts, { all: 2, fused: 1, by: { forward: 2 } });
});

test("caches are summed up", () => {
  const lookup = (outcome: string, saved: number | null) => ({
    cache: "FX graph",
    outcome,
    tone: "plain" as const,
    compilation: "",
    reason: "",
    saved,
  });
  assert.equal(
    cacheSummary([lookup("hit", 2), lookup("miss", null), lookup("miss", null)]),
    "1 hit, 2 misses; 2.00 s of compile time saved",
  );
});

test("nothing but fragments of the page is linked to", () => {
  assert.equal(fragment("#break-1"), "#break-1");
  assert.deepEqual(["javascript:alert(1)", "https://x", "", "#a b"].map(fragment), ["", "", "", ""]);
});

test("proofs and ratios in words", () => {
  assert.equal(proofText("The break is still there. It is."), ": the break is still there. It is.");
  assert.equal(proofText(""), ".");
  assert.equal(ratioInWords(2, 1), "Speedup 2.00×.");
  assert.equal(ratioInWords(1, 1.001), "No change in call time.");
});

test("the badges of the navigation are read as words, and those of damaged parts left out", () => {
  const caches = [{ outcome: "hit" }, { outcome: "miss" }] as unknown as Capture["caches"];
  const found = entriesOf({ ...EMPTY, caches, guards: null as unknown as [] });
  assert.equal(found.find((entry) => entry.id === "caches")?.spoken, "1 of 2 lookups hit");
  assert.equal(found.find((entry) => entry.id === "guards")?.badge, "");
});

test("the navigation names every part, also of an empty capture", () => {
  const ids = entriesOf(EMPTY).map((entry) => entry.id);
  assert.deepEqual(ids.slice(0, 3), ["breaks", "guards", "recompiles"]);
  assert.equal(new Set(ids).size, ids.length);
});

test("cards stand in rows that they fill", () => {
  assert.deepEqual([8, 9, 10, 12, 4].map(columnsFor), [4, 3, 5, 4, 4]);
});

test("the bar of a phase is as long as its percentage says, without what passed beside it", () => {
  assert.equal(shareOf({ own: 3, beside: 1 }, 8), 25);
  assert.equal(shareOf({ own: 27, beside: 27 }, 43), 0);
  assert.equal(shareOf({ own: 9, beside: 0 }, 8), 100);
  assert.equal(shareOf({ own: 1, beside: 0 }, 0), 0);
});

test("the compile time of a cause is that of its recompiles", () => {
  const compilations = [
    compilation("0/0", { seconds: 8 }),
    compilation("0/1", { seconds: 2, backward_seconds: 1 }),
    compilation("1/1", { seconds: null }),
  ];
  assert.equal(spentOn({ compilations }, { compilations: ["0/1", "1/1"] }), 3);
});
