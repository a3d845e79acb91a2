/** Scales, ticks, labels, and the layouts of charts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { byteTicks, bytesLabel, countLabel, secondsLabel } from "../src/sections/chart/labels";
import { linearScale, linearTicks, logScale, logTicks, padded, wantsLog } from "../src/sections/chart/scales";
import { stylesOf } from "../src/sections/chart/series";
import {
  byName,
  depthOf,
  familyOf,
  lanesOf,
  layout,
  neighbor,
  parentsOf,
  type Phase,
  wholeView,
  workersOf,
} from "../src/sections/flame";
import { largestSteps, peakStep, stepLine } from "../src/sections/memory-steps";
import { histogram, pile } from "../src/sections/speed/pile";
import { apart } from "../src/sections/speed/points";

test("a linear scale maps ends to ends, and one value to the middle", () => {
  const scale = linearScale([10, 20], [0, 100]);
  assert.deepEqual([scale(10), scale(15), scale(20)], [0, 50, 100]);
  assert.equal(linearScale([5, 5], [0, 100])(5), 50);
});

test("a logarithmic scale gives every power of ten the same room", () => {
  const scale = logScale([1, 100], [0, 200]);
  assert.ok(Math.abs(scale(10) - 100) < 1e-9);
  assert.equal(scale(0), 0);
  assert.equal(scale(-3), 0);
});

test("linear ticks are round and inside of the ends", () => {
  assert.deepEqual(linearTicks([0, 1], 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(linearTicks([0, 18.1], 9), [0, 5, 10, 15]);
  assert.deepEqual(linearTicks([0.1, 0.5], 4), [0.1, 0.2, 0.3, 0.4, 0.5]);
  assert.deepEqual(linearTicks([3, 3], 4), [3]);
  assert.deepEqual(linearTicks([-1, 1], 2), [-1, 0, 1]);
});

test("logarithmic ticks are powers of ten, more or fewer as there is room", () => {
  assert.deepEqual(logTicks([1, 1000], 5), [1, 10, 100, 1000]);
  assert.deepEqual(logTicks([1, 100], 6), [1, 2, 5, 10, 20, 50, 100]);
  assert.deepEqual(logTicks([1, 1e8], 4), [1, 100, 1e4, 1e6, 1e8]);
  assert.ok(logTicks([3.1, 4.4], 5).length >= 2, "less than a power of ten apart");
  assert.deepEqual(logTicks([0, 10], 5), []);
});

test("an axis is logarithmic only where values are positive and far apart", () => {
  assert.equal(wantsLog([1, 10], 5), true);
  assert.equal(wantsLog([1, 2], 5), false);
  assert.equal(wantsLog([0, 10], 5), false);
  assert.equal(wantsLog([], 5), false);
});

test("padding leaves room at both ends, also around a single value", () => {
  const [low, high] = padded([1, 2], false, 0.1);
  assert.ok(low < 1 && high > 2);
  const [least, most] = padded([3], true);
  assert.ok(least < 3 && most > 3 && least > 0);
  assert.deepEqual(padded([], false), [0, 1]);
});

test("labels are short and in a unit that fits", () => {
  assert.equal(secondsLabel(0.0005), "500 µs");
  assert.equal(secondsLabel(0.0005, 0.002), "0.5 ms");
  assert.equal(secondsLabel(20), "20 s");
  assert.equal(secondsLabel(0), "0");
  assert.deepEqual([1, 250, 1000, 2.5e6].map(countLabel), ["1", "250", "1k", "2.5M"]);
  assert.equal(bytesLabel(32 * 1024), "32 KiB");
  assert.deepEqual(byteTicks(100 * 1024, 4), [0, 32768, 65536, 98304]);
});

test("eager is neutral, others differ from each other in color, shape and dash", () => {
  const styles = stylesOf(["eager", "inductor", "aot", "inductor"]);
  assert.equal(styles.size, 3);
  assert.equal(styles.get("eager")?.color, 0);
  assert.notEqual(styles.get("inductor")?.shape, styles.get("aot")?.shape);
  assert.notEqual(styles.get("inductor")?.dash, styles.get("aot")?.dash);
});

const phase = (name: string, start: number, seconds: number, depth: number, thread = 0, compilation = "0/0"): Phase => ({
  name,
  compilation: thread === 0 ? compilation : "",
  start,
  seconds,
  own: seconds,
  depth,
  thread,
});
const PHASES = [
  phase("dynamo", 0, 10, 0),
  phase("backend_compile", 1, 8, 1),
  phase("code_gen", 2, 3, 2),
  phase("compile_fx", 5, 2, 2),
  phase("compile_file", 3, 4, 0, 1),
];

test("a flame chart has a lane for each thread and a row for each depth", () => {
  assert.deepEqual(lanesOf(PHASES), [
    { thread: 0, row: 0, rows: 3 },
    { thread: 1, row: 3, rows: 1 },
  ]);
  const flame = layout(PHASES, wholeView(PHASES), 1000);
  assert.equal(flame.rows, 4);
  assert.deepEqual(
    flame.bars.find((bar) => bar.phase === 2),
    { phase: 2, x: 200, width: 300, row: 2, merged: 1 },
  );
});

test("a view into a phase cuts what surrounds it and leaves out what lies outside", () => {
  const flame = layout(PHASES, [2, 5], 300);
  assert.deepEqual(
    flame.bars.map((bar) => bar.phase),
    [0, 1, 2, 4],
  );
  assert.deepEqual([flame.bars[0]?.x, flame.bars[0]?.width], [0, 300]);
});

test("thousands of short phases become few bars", () => {
  const many = Array.from({ length: 5000 }, (_, index) => phase("short", index / 5000, 1 / 6000, 0));
  const flame = layout(many, wholeView(many), 800);
  assert.ok(flame.bars.length <= 800, `${flame.bars.length} bars`);
  assert.equal(
    flame.bars.reduce((sum, bar) => sum + bar.merged, 0),
    5000,
  );
});

test("the arrow keys lead through a flame chart", () => {
  const parents = parentsOf(PHASES);
  assert.deepEqual(parents, [-1, 0, 1, 1, -1]);
  const flame = layout(PHASES, wholeView(PHASES), 1000);
  assert.equal(neighbor(flame, parents, 0, "ArrowDown"), 1);
  assert.equal(neighbor(flame, parents, 2, "ArrowRight"), 3);
  assert.equal(neighbor(flame, parents, 2, "ArrowUp"), 1);
  assert.equal(neighbor(flame, parents, 3, "ArrowRight"), null);
  assert.equal(neighbor(flame, parents, 3, "ArrowDown"), 4, "on to the next thread");
  assert.equal(neighbor(flame, parents, 0, "x"), null);
});

test("phases of one name are added up, and belong to a part of torch", () => {
  const [first] = byName([...PHASES, phase("code_gen", 8, 9, 0)]);
  assert.deepEqual([first?.name, first?.times, first?.own], ["code_gen", 2, 12]);
  assert.equal(familyOf("aot_trace_joint_graph"), "AOTAutograd");
  assert.equal(familyOf("bytecode_tracing"), "Dynamo");
  assert.equal(familyOf("gc"), "other");
});

test("threads without a compilation work beside it", () => {
  assert.deepEqual([...workersOf(PHASES)], [1]);
  assert.equal(byName(PHASES).find((item) => item.name === "compile_file")?.beside, 4);
  assert.equal(byName(PHASES).find((item) => item.name === "dynamo")?.beside, 0);
});

test("every value is counted once", () => {
  assert.deepEqual(histogram([0, 1, 2, 3, 9.9, 10], [0, 10], 5), [2, 2, 0, 0, 2]);
  assert.deepEqual(histogram([5, 5], [5, 5], 3), [2, 0, 0]);
});

test("dots that would cover each other are piled up within their row", () => {
  const dots = pile([10, 10, 10, 100], 4, 20);
  assert.equal(dots.length, 4);
  assert.equal(new Set(dots.map(([x, y]) => `${x} ${y}`)).size, 4);
  const crowded = pile(new Array<number>(500).fill(7), 4, 20);
  assert.ok(crowded.every(([, y]) => Math.abs(y) <= 20.001));
  assert.deepEqual(pile([], 4, 20), []);
});

test("labels move apart and stay inside", () => {
  const placed = apart([50, 51, 52], 10, 0, 60);
  assert.deepEqual(
    [...placed].sort((a, b) => a - b),
    [40, 50, 60],
  );
  assert.deepEqual(apart([5, 40], 10, 0, 60), [5, 40]);
});

test("memory: the peak, the largest steps and the outline", () => {
  const memory = {
    peak: 9,
    steps: [
      ["a", 4, null],
      ["b", 9, 0],
      ["c", 9, null],
      ["d", 1, 1],
    ] as [string, number, number | null][],
  };
  assert.equal(peakStep(memory), 1);
  assert.equal(peakStep({ peak: 0, steps: [] }), -1);
  assert.deepEqual(
    largestSteps(memory, 2).map((item) => [item.name, item.change]),
    [
      ["b", 5],
      ["c", 0],
    ],
  );
  assert.equal(
    stepLine(
      [1, 2],
      (index) => index * 10,
      (value) => value,
    ),
    "M0.0 1.0L10.0 1.0L10.0 2.0L20.0 2.0",
  );
});

test("phases of any depth are drawn", () => {
  const phases = [-1, 0, 1.5, 1e9].map((depth, index) => ({ ...phase("a", index, 1, 0), depth }));
  assert.deepEqual(phases.map(depthOf), [0, 0, 1, 200]);
  assert.equal(lanesOf(phases)[0]?.rows, 201);
  assert.deepEqual(parentsOf(phases), [-1, -1, 1, -1]);
  assert.equal(layout(phases, wholeView(phases), 500).bars.length, 4);
});
