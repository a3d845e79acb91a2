/** What Inductor expects compiled code to need of memory, step by step. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { bytes, count, number, percent } from "../common/format";
import { reveal } from "../common/navigation";
import { Nothing, Section } from "../common/section";
import type { Capture, Lowering, Memory } from "../data";
import { BottomAxis, ChartBox, LeftAxis, type Tip, TipNote } from "./chart/frame";
import { byteTicks, bytesLabel, countLabel } from "./chart/labels";
import { linearScale } from "./chart/scales";
import { kernelOfStep, largestSteps, peakStep, stepLine } from "./memory-steps";
import { Folded } from "./parts/folded";
import { CompilationLink } from "./parts/links";
import { Table } from "./parts/table";

const HEIGHT = 210;
const LARGEST = 8;

type WithMemory = Lowering & { memory: Memory };

export function MemorySection({ capture }: { capture: Capture }): JSX.Element {
  const known = capture.lowerings
    .map((lowering, index) => ({ lowering, index }))
    .filter((item): item is { lowering: WithMemory; index: number } => (item.lowering.memory?.steps.length ?? 0) > 0);
  const largest = known.reduce((most, item) => Math.max(most, item.lowering.memory.peak), 0);
  const openFirst = known.find((item) => item.lowering.memory.peak === largest)?.index;
  return (
    <Section
      id="memory"
      title="Memory"
      {...(known.length > 0 ? { note: "Inductor’s estimate of the memory in use while each step of a graph runs." } : {})}
    >
      {known.length === 0 ? (
        <Nothing>
          No estimate was recorded. Inductor makes one; other backends do not.{" "}
          <code>compile-inspect bench TARGET --capture FILE</code> measures the memory of a call.
        </Nothing>
      ) : null}
      {known.map(({ lowering, index }) => (
        <Folded
          class="memory-of"
          open={index === openFirst}
          printed={known.length <= 6}
          summary={
            <>
              <code>{lowering.compilation ?? lowering.id}</code> {lowering.direction}{" "}
              <span class="aside">
                peak {bytes(lowering.memory.peak)} in {count(lowering.memory.steps.length, "step")}
              </span>
            </>
          }
        >
          {() => <OfLowering capture={capture} lowering={lowering} index={index} />}
        </Folded>
      ))}
    </Section>
  );
}

function OfLowering(props: { capture: Capture; lowering: WithMemory; index: number }): JSX.Element {
  const { capture, lowering } = props;
  const { memory } = lowering;
  const [step, setStep] = useState(() => peakStep(memory));
  const show = (name: string): void => {
    const kernel = kernelOfStep(lowering, name);
    if (kernel >= 0) reveal({ kind: "kernel", lowering: props.index, kernel });
  };
  const [name, size] = memory.steps[step] ?? ["", 0];
  return (
    <>
      {lowering.compilation ? (
        <p class="aside">
          Compilation <CompilationLink capture={capture} id={lowering.compilation} />
        </p>
      ) : null}
      <ChartBox most={1100}>
        {(width) => <StepChart width={width} memory={memory} step={step} onStep={setStep} onOpen={() => show(name)} />}
      </ChartBox>
      <p class="chart-line" role="status">
        Step {step + 1} of {memory.steps.length}: <StepName lowering={lowering} name={name} onShow={show} />, {bytes(size)} in
        use ({percent(size, memory.peak)} of the peak)
      </p>
      <Table
        caption={`The steps of ${lowering.compilation ?? lowering.id} ${lowering.direction} with the most memory in use`}
        quietCaption
        columns={[
          { title: "Step", figures: true },
          { title: "Name" },
          { title: "In use", figures: true },
          { title: "Change", figures: true },
        ]}
      >
        {largestSteps(memory, LARGEST).map((item) => (
          <tr data-step={item.name}>
            <td class="figures">{number(item.index + 1)}</td>
            <th scope="row">
              <StepName lowering={lowering} name={item.name} onShow={show} />
            </th>
            <td class="figures">{bytes(item.bytes)}</td>
            <td class="figures">
              {item.change > 0 ? `+${bytes(item.change)}` : item.change < 0 ? `−${bytes(-item.change)}` : "0"}
            </td>
          </tr>
        ))}
      </Table>
    </>
  );
}

function StepName(props: { lowering: Lowering; name: string; onShow: (name: string) => void }): JSX.Element {
  const kernel = props.lowering.kernels[kernelOfStep(props.lowering, props.name)];
  if (!kernel) return <code>{props.name}</code>;
  return (
    <button
      type="button"
      class="link step-name"
      title="Show the kernel in the explorer"
      onClick={() => props.onShow(props.name)}
    >
      {kernel.name}
    </button>
  );
}

function StepChart(props: {
  width: number;
  memory: Memory;
  step: number;
  onStep: (step: number) => void;
  onOpen: () => void;
}): JSX.Element {
  const { width, memory, step } = props;
  const [tip, setTip] = useState<Tip | null>(null);
  const values = memory.steps.map(([, size]) => size);
  const [left, right, top, bottom] = [72, width - 10, 26, HEIGHT - 42];
  const x = linearScale([0, values.length], [left, right]);
  const y = linearScale([0, memory.peak * 1.08 || 1], [bottom, top]);
  const line = stepLine(values, x, y);
  const peak = peakStep(memory);
  const peakAt = (x(peak) + x(peak + 1)) / 2;
  const [name, size] = memory.steps[step] ?? ["", 0];
  const go = (to: number): void => props.onStep(Math.max(0, Math.min(values.length - 1, to)));
  const moves: Record<string, number> = {
    ArrowLeft: step - 1,
    ArrowRight: step + 1,
    Home: 0,
    End: values.length - 1,
    PageUp: step - 10,
    PageDown: step + 10,
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "Enter") props.onOpen();
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    go(to);
  };
  const onMove = (event: MouseEvent & { currentTarget: SVGSVGElement }): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    const index = Math.max(0, Math.min(values.length - 1, Math.floor(((at - left) / (right - left)) * values.length)));
    go(index);
    const [stepName, stepSize] = memory.steps[index] ?? ["", 0];
    setTip({ x: event.clientX - box.left, y: event.clientY - box.top, text: `${index + 1}: ${stepName} · ${bytes(stepSize)}` });
  };
  return (
    <>
      <svg
        class="plot memory-plot"
        viewBox={`0 0 ${width} ${HEIGHT}`}
        width={width}
        height={HEIGHT}
        role="slider"
        tabindex={0}
        aria-label={`Memory in use over ${values.length} steps, peak ${bytes(memory.peak)}. Arrow keys go from step to step.`}
        aria-valuemin={1}
        aria-valuemax={values.length}
        aria-valuenow={step + 1}
        aria-valuetext={`${name}, ${bytes(size)}`}
        onKeyDown={onKey}
        onMouseMove={onMove}
        onMouseLeave={() => setTip(null)}
        onClick={props.onOpen}
      >
        <LeftAxis
          scale={y}
          ticks={byteTicks(memory.peak, 4)}
          left={left}
          right={right}
          wished={4}
          label={(value) => bytesLabel(value, memory.peak)}
        />
        <BottomAxis scale={x} top={bottom} bottom={bottom} wished={8} label={countLabel} title="steps" />
        <path class="area" d={`${line}L${x(values.length)} ${y(0)}L${x(0)} ${y(0)}Z`} />
        <path class="outline" d={line} />
        <rect
          class="step-now"
          x={x(step)}
          width={Math.max(1.5, x(step + 1) - x(step))}
          y={y(size)}
          height={Math.max(0, y(0) - y(size))}
        />
        <g class="peak" transform={`translate(${peakAt} ${y(memory.peak)})`}>
          <path d="M0 -3l-5 -8h10z" />
          <text y="-14" text-anchor={peakAt > width - 70 ? "end" : peakAt < left + 50 ? "start" : "middle"}>
            peak {bytes(memory.peak)}
          </text>
        </g>
      </svg>
      <TipNote tip={tip} width={width} />
    </>
  );
}
