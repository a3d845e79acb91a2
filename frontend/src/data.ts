/**
 * What a page is given: the JSON that `compile_inspect.reporters.html` writes into it.
 *
 * Everything in here is data. Texts come from the user's program and may hold anything, markup included: they reach the
 * page as text nodes only. Indices count from 0, line numbers from 1, times are in seconds unless a name says otherwise.
 */

export interface Page {
  version: 1;
  title: string;
  /** Name and version of what wrote the page. */
  generator: string;
  kind: PageKind;
  /** What the page says first, also where its script does not run: of the tour, of all processes, or of each capture. */
  sentence: string;
  /** The machine of a tour, in one line; empty elsewhere, as each capture has its own. */
  origin: string;
  /** What a tour has shown; empty on other pages. */
  lessons: Lesson[];
  /** All captures, where there are several; null for one, and for a comparison. */
  together: Together | null;
  /** The capture to show first: of several processes the one with most compilations. */
  first: number;
  /** The captures; a tour may have none. */
  captures: Capture[];
}

/** What the captures of a page are: processes of one program, two versions of one thing, or the models of a tour. */
export type PageKind = "program" | "comparison" | "tour";

/** One fact, in a sentence. */
export interface Statement {
  sentence: string;
  tone: Tone;
}

export interface Together {
  sentence: string;
  tone: Tone;
  further: Statement[];
  /** One for every capture, in their order. */
  members: { label: string; sentence: string; tone: Tone; further: Statement[] }[];
}

export interface Lesson {
  /** Letters, digits, `_` and `-`, no two alike: links to it are `#lesson-KEY`. */
  key: string;
  title: string;
  question: string;
  /** Paragraphs. */
  theory: string[];
  /** In the order it was shown. */
  evidence: Evidence[];
  /** Sentences with figures of this run. */
  answer: string[];
  /** What could not be run on this machine, and why. */
  notes: string[];
  seconds: number;
}

export type Evidence = Remark | LessonTable | Listing;

export interface Remark {
  kind: "remark";
  text: string;
}

export interface LessonTable {
  kind: "table";
  title: string;
  columns: { title: string; align: "left" | "right" }[];
  rows: string[][];
}

export interface Listing {
  kind: "listing";
  title: string;
  /** Lines of a diff and of a text have no highlighting; those of a diff are colored by how they begin. */
  language: "python" | "cpp" | "diff" | "text";
  lines: Line[];
}

export interface Capture {
  /** The file's name, or the process of a program with several. */
  label: string;
  verdict: Verdict;
  /** What was left out to keep the page small, and how to get it. */
  left_out: string[];
  complete: boolean;
  notes: string[];
  missing: { collector: string; reason: string; times: number }[];
  environment: { title: string; rows: [name: string, value: string][] }[];
  paths: Path[];
  sources: Source[];
  stacks: Stack[];
  compilations: Compilation[];
  graphs: Graph[];
  lowerings: Lowering[];
  breaks: Break[];
  guards: GuardGroup[];
  accidents: Accident[];
  specializations: Specialization[];
  recompiles: Recompile[];
  recompile_causes: RecompileCause[];
  limits: Limit[];
  time: Time;
  timings: Timing[];
  agreements: Agreement[];
  caches: CacheLookup[];
  cuda_graphs: CudaGraph[];
}

export type Tone = "good" | "warn" | "bad" | "plain";

export interface Verdict {
  /** The most important fact. */
  sentence: string;
  tone: Tone;
  /** The other facts, the most important first. */
  further: Statement[];
  /** Command, versions, device: one line. */
  origin: string;
  facts: Fact[];
  /** What is worth doing, most worthwhile first; at most three. */
  recommendations: Recommendation[];
}

export interface Fact {
  /** A stable name: `compilations`, `breaks`, `recompiles`, `agreement`, `speed`, `payback`, `time`, `kernels`, `cache`. */
  key: string;
  label: string;
  value: string;
  detail: string;
  tone: Tone;
  /** The fragment that leads to the evidence, such as `#breaks`; empty where there is none. */
  link: string;
}

export interface Recommendation {
  title: string;
  why: string;
  link: string;
  /** What supports it: `proven` by a trial, `measured`, or `suggested` from what was recorded alone. */
  standing: "proven" | "measured" | "suggested";
}

export interface Path {
  path: string;
  short: string;
  /** Whether it came with Python or an installed package; torch's own files are `torch` as well. */
  library: boolean;
  torch: boolean;
}

/** A line of code and its highlighting: pairs of a class (an index into TOKEN_CLASSES) and a length, until the line ends. */
export type Line = [text: string, ...tokens: number[]];

export const TOKEN_CLASSES = [
  "plain",
  "keyword",
  "string",
  "number",
  "comment",
  "name",
  "function",
  "type",
  "builtin",
  "decorator",
  "operator",
] as const;

/** The recorded text of a file: whole, or the pieces that matter with what lies between left out. */
export interface Source {
  path: number;
  total: number;
  pieces: { first: number; lines: Line[] }[];
}

export interface Stack {
  /** Outermost first. */
  frames: [path: number, line: number, name: string][];
  /** The innermost line outside torch, which is what an operation is shown at; null where there is none. */
  line: [path: number, line: number] | null;
  /** The innermost line outside every installed package. */
  own: [path: number, line: number] | null;
}

export interface Place {
  path: number;
  line: number;
  name: string;
}

export interface Compilation {
  id: string;
  name: string;
  place: Place;
  outcome: string;
  tone: Tone;
  backend: string;
  /** Seconds after the first phase or compilation of the capture; null where that was not recorded. */
  started: number | null;
  seconds: number | null;
  backward_seconds: number | null;
  /** Operations in its graph. */
  operations: number;
  guards: number;
  symbols: [name: string, value: string][];
  recompile: boolean;
  resume: boolean;
  attempts: number;
  restart_reasons: string[];
  failure: string;
}

export type StageName = "dynamo" | "joint" | "forward" | "backward" | "inference" | "post_grad";
export type DirectionName = "forward" | "backward" | "inference" | "unknown";

export interface Graph {
  id: string;
  compilation: string | null;
  stage: StageName;
  /** The stage in words. */
  title: string;
  direction: DirectionName;
  /** Only the printed form was there, as on a cache hit: stacks then hold one line each. */
  from_text: boolean;
  nodes: GraphNode[];
}

export interface GraphNode {
  name: string;
  kind: "input" | "attribute" | "call" | "output";
  /** What is called, such as `aten.addmm.default`; for others the name in the program. */
  target: string;
  /** Nodes of the same graph that it reads. */
  inputs: number[];
  arguments: string;
  /** `float32[8, 16]`, several joined by commas; empty where it is no tensor. */
  type: string;
  stack: number | null;
  /** The path of the module it belongs to, parts joined by dots; empty at the top. */
  module: string;
  /** Kernels of the lowering of this graph that compute it (post-grad graphs only). */
  kernels: number[];
  /** Why no kernel computes it (post-grad graphs only); empty where one does. */
  fate: string;
}

export interface Lowering {
  id: string;
  compilation: string | null;
  direction: DirectionName;
  /** The post-grad graph it was made of: an index into `graphs`; null where none was recorded. */
  graph: number | null;
  language: "cpp" | "triton" | "python";
  /** The whole generated module; empty where it was left out. */
  code: Line[];
  code_path: string;
  kernels: Kernel[];
  not_fused: NotFused[];
  memory: Memory | null;
  from_cache: boolean;
}

export interface Kernel {
  name: string;
  kind: "cpp" | "triton" | "extern" | "template" | "user" | "other";
  /** The kind in words. */
  title: string;
  /** Nodes of the post-grad graph; empty where the graph was left out. */
  nodes: number[];
  /** How many nodes it computes, whether or not they are here. */
  fuses: number;
  stacks: number[];
  /** Its own source in `code`, first and last line; null for library calls. */
  lines: [first: number, last: number] | null;
  /** The line of `code` that launches it. */
  call: number | null;
}

export interface NotFused {
  /** Kernels that were kept apart; null where a side has no kernel of its own. */
  first: number | null;
  second: number | null;
  names: [first: string, second: string];
  reason: string;
  times: number;
}

export interface Memory {
  peak: number;
  /** Bytes in use while each step runs, and the kernel that it is; null where it is none of its own. */
  steps: [name: string, bytes: number, kernel: number | null][];
}

export interface Break {
  kind: string;
  effect: string;
  tone: Tone;
  identifier: string;
  /** torch's own page about it; empty or an https address. */
  link: string;
  why: string;
  explanation: string;
  hints: string[];
  /** Where the user can act; `inside` is the library line it happens in, where that is another one. */
  place: Place | null;
  inside: Place | null;
  excerpt: { first: number; lines: Line[]; marked: number } | null;
  stack: number | null;
  compilations: string[];
  hits: number;
  cost: string;
  proposals: Proposal[];
}

export interface Proposal {
  title: string;
  /** Lines of a unified diff: ` `, `+`, `-`, `@`. */
  diff: [sign: string, text: string][];
  /** The whole diff, as `git apply` takes it. */
  patch: string;
  settings: string[];
  changes: string;
  where: string;
  /** `partly`: proven but for lines that no input reaches, which `reason` names. */
  standing: "proven" | "partly" | "withdrawn" | "untried";
  /** What the trial has shown, in sentences. */
  reason: string;
  /** Of a call before and after. */
  seconds: [before: number, after: number] | null;
}

export interface GuardGroup {
  compilation: string;
  variable: string;
  /** Whether no user can act on it; such groups are folded. */
  noise: boolean;
  place: Place | null;
  conditions: [kind: string, condition: string][];
}

export interface Accident {
  compilation: string;
  variable: string;
  value: string;
  holder: string;
  suspicion: string;
  /** Whether it has failed, is changed by the program, or is only a number. */
  remedy: string;
  place: Place | null;
}

export interface Specialization {
  compilation: string;
  variable: string;
  value: string;
  reason: string;
  place: Place | null;
}

export interface Recompile {
  compilation: string;
  name: string;
  place: Place;
  failures: { against: string; variable: string; reason: string; expected: string; actual: string; place: Place | null }[];
}

/** One change between calls, with all recompiles that it led to. */
export interface RecompileCause {
  why: string;
  /** What changed; empty where torch does not name it. */
  variable: string;
  /** What it was, and what it became. */
  values: string[];
  /** Ids of the compilations, in their order. */
  compilations: string[];
  /** What to try, the least intrusive first; `code` may be empty. */
  remedies: { title: string; code: string; changes: string }[];
}

export interface Limit {
  compilation: string;
  name: string;
  place: Place;
  sentence: string;
}

export interface Time {
  /** Seconds of compiling, all compilations together. */
  total: number;
  /** Phases sorted by thread and start; starts count from the first one. */
  phases: { name: string; compilation: string; start: number; seconds: number; own: number; depth: number; thread: number }[];
}

export interface Timing {
  target: string;
  device: string;
  hardware: string;
  torch: string;
  threads: number;
  gradients: boolean;
  /** What was being done when Ctrl-C ended the run; empty where it ran to its end. */
  interrupted: string;
  /** Which build is which, and why there is no cold one where there is none. */
  notes: string[];
  points: TimingPoint[];
}

export interface TimingPoint {
  sizes: [name: string, size: number][];
  inputs: string[];
  measurements: Measurement[];
}

export interface Measurement {
  variant: string;
  /** Why it did not run; empty where it did. */
  refused: string;
  samples: number[];
  median: number | null;
  low: number | null;
  high: number | null;
  /** How many times faster than eager, with a 95 % interval. */
  speed: [ratio: number, low: number, high: number] | null;
  build: Build | null;
  payback: { calls: number | null; low: number | null; high: number | null; unclear: boolean; gain: number } | null;
  peak_bytes: number | null;
  warnings: string[];
  assumes: string[];
}

/** Seconds of a build: cold and warm in processes of their own; in the measuring process they depend on the order of variants. */
export interface Build {
  cold: number | null;
  warm: number | null;
  order_dependent: number | null;
  /** All of it, labeled: `9.00 s cold, 3.50 s warm`. */
  text: string;
}

export interface Agreement {
  name: string;
  gradients: boolean;
  points: string[];
  notes: string[];
  variants: {
    name: string;
    verdict: string;
    tone: Tone;
    reason: string;
    differences: string[];
    assumptions: string[];
    notes: string[];
    blame: string;
    place: Place | null;
  }[];
}

export interface CacheLookup {
  cache: string;
  outcome: string;
  tone: Tone;
  compilation: string;
  reason: string;
  saved: number | null;
}

export interface CudaGraph {
  outcome: string;
  tone: Tone;
  reason: string;
  compilation: string;
  direction: DirectionName;
  times: number;
  place: Place | null;
}
