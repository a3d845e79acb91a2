/** Recompiles by what made them necessary, each with what helps against it. */
import type { JSX } from "preact";
import { count, seconds, shorten } from "../common/format";
import { Prose } from "../common/prose";
import type { Capture, RecompileCause } from "../data";
import { Copyable } from "./parts/copy";
import { Folded } from "./parts/folded";
import { CompilationLink } from "./parts/links";
import { usePaged } from "./parts/table";

const FIRST_LINKS = 12;

export function RecompileCauses({ capture }: { capture: Capture }): JSX.Element | null {
  const [shown, more] = usePaged(capture.recompile_causes, "causes", 20);
  if (capture.recompile_causes.length === 0) return null;
  return (
    <>
      {shown.map((cause, index) => (
        <CauseCard capture={capture} cause={cause} number={index + 1} />
      ))}
      {more}
    </>
  );
}

/** Compile time of the recompiles of one cause. */
export function spentOn(capture: Pick<Capture, "compilations">, cause: Pick<RecompileCause, "compilations">): number {
  const wanted = new Set(cause.compilations);
  return capture.compilations
    .filter((item) => wanted.has(item.id))
    .reduce((sum, item) => sum + (item.seconds ?? 0) + (item.backward_seconds ?? 0), 0);
}

function CauseCard(props: { capture: Capture; cause: RecompileCause; number: number }): JSX.Element {
  const { capture, cause } = props;
  const spent = spentOn(capture, cause);
  const names = new Set(
    capture.recompiles.filter((item) => cause.compilations.includes(item.compilation)).map((item) => item.name),
  );
  const [first, ...others] = cause.remedies;
  return (
    <article class="cause card tone-warn" data-cause={cause.variable}>
      <h3>
        <span class="number">{props.number}</span>
        <span>
          {cause.variable ? <code>{shorten(cause.variable, 120)}</code> : "Recompiled"}
          {cause.values.length > 1 ? <code class="values"> {shorten(cause.values.join(" → "), 160)}</code> : null}
        </span>
      </h3>
      <p class="aside">
        {count(cause.compilations.length, "recompile")}
        {names.size > 1 ? ` in ${count(names.size, "function")}` : ""}
        {spent > 0 ? `, ${seconds(spent)} of compile time` : ""}:{" "}
        {cause.compilations.slice(0, FIRST_LINKS).map((id, index) => (
          <>
            {index > 0 ? ", " : ""}
            <CompilationLink capture={capture} id={id} />
          </>
        ))}
        {cause.compilations.length > FIRST_LINKS ? ", …" : ""}
      </p>
      <p class="why">
        <Prose text={cause.why} />
      </p>
      {first ? (
        <div class="proposal">
          <h4>
            Try this: <Prose text={first.title} /> <span class="standing suggested">not tried</span>
          </h4>
          <RemedyBody remedy={first} />
        </div>
      ) : null}
      {others.length > 0 ? (
        <Folded printed summary={count(others.length, "other remedy", "other remedies")}>
          {() =>
            others.map((remedy) => (
              <div class="proposal">
                <h4>
                  <Prose text={remedy.title} />
                </h4>
                <RemedyBody remedy={remedy} />
              </div>
            ))
          }
        </Folded>
      ) : null}
    </article>
  );
}

function RemedyBody({ remedy }: { remedy: RecompileCause["remedies"][number] }): JSX.Element {
  return (
    <>
      {remedy.code ? (
        <Copyable class="settings" what="the code" text={remedy.code}>
          {remedy.code}
        </Copyable>
      ) : null}
      {remedy.changes ? (
        <p class="aside">
          <Prose text={remedy.changes} />
        </p>
      ) : null}
    </>
  );
}
