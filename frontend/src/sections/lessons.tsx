/** The lessons of a tour: a list that stays in view, and each question with its answer; the evidence of one at a time. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Boundary } from "../common/boundary";
import { count, seconds, shorten, together } from "../common/format";
import { onVisit, visit } from "../common/navigation";
import { Prose } from "../common/prose";
import type { Lesson, LessonTable, Page } from "../data";
import { EvidenceView } from "./evidence";
import { measuredColumns } from "./measured";
import { MeasuredCharts } from "./measured-chart";
import { Folded } from "./parts/folded";
import { usePrinting } from "./parts/printing";

export function lessonId(lesson: Lesson): string {
  return `lesson-${lesson.key}`;
}

export function LessonsSection({ page }: { page: Page }): JSX.Element {
  const { lessons } = page;
  const [open, setOpen] = useState<string | null>(null);
  // A link to a lesson shows all of it.
  useEffect(() => onVisit((id) => lessons.some((lesson) => lessonId(lesson) === id) && setOpen(id)), [lessons]);
  return (
    <section id="lessons" class="section lessons" aria-labelledby="lessons-title">
      <h2 id="lessons-title" class="sentence">
        {together(shorten(page.sentence, 1_000))}
      </h2>
      {page.origin ? <p class="origin">{shorten(page.origin, 1_000)}</p> : null}
      <div class="tour">
        <Contents lessons={lessons} />
        <div class="lesson-list">
          {lessons.map((lesson, index) => (
            <Boundary>
              <LessonView
                lesson={lesson}
                next={lessons[index + 1]}
                number={index + 1}
                open={open === lessonId(lesson)}
                setOpen={(wanted) => setOpen(wanted ? lessonId(lesson) : null)}
              />
            </Boundary>
          ))}
        </div>
      </div>
    </section>
  );
}

/** The lesson that is being read: the last one whose head is above the upper part of the window. */
function useCurrent(lessons: Lesson[]): string | null {
  const [current, setCurrent] = useState<string | null>(null);
  useEffect(() => {
    let asked = 0;
    const look = (): void => {
      asked = 0;
      const above = lessons.filter((lesson) => {
        const element = document.getElementById(lessonId(lesson));
        return element !== null && element.getBoundingClientRect().top < window.innerHeight / 3;
      });
      setCurrent(above[above.length - 1]?.key ?? lessons[0]?.key ?? null);
    };
    const ask = (): void => void (asked ||= requestAnimationFrame(look));
    look();
    addEventListener("scroll", ask, { passive: true });
    addEventListener("resize", ask);
    return () => {
      cancelAnimationFrame(asked);
      removeEventListener("scroll", ask);
      removeEventListener("resize", ask);
    };
  }, [lessons]);
  return current;
}

function Contents({ lessons }: { lessons: Lesson[] }): JSX.Element {
  const current = useCurrent(lessons);
  return (
    <nav class="contents-box" aria-label="Lessons">
      <ol class="contents">
        {lessons.map((lesson) => (
          <li data-content={lesson.key} class={lesson.key === current ? "current" : ""}>
            <a href={`#${lessonId(lesson)}`} {...(lesson.key === current ? { "aria-current": "location" as const } : {})}>
              {shorten(lesson.title)}
            </a>
            <span class="took">
              <span class="unseen">, took </span>
              {seconds(lesson.seconds)}
            </span>
          </li>
        ))}
      </ol>
    </nav>
  );
}

interface LessonProps {
  lesson: Lesson;
  next: Lesson | undefined;
  number: number;
  open: boolean;
  setOpen: (open: boolean) => void;
}

function LessonView({ lesson, next, number, open, setOpen }: LessonProps): JSX.Element {
  const id = lessonId(lesson);
  // The first measurements are the picture of the answer; the others stand with their tables.
  const drawn = lesson.evidence.find((item): item is LessonTable => item.kind === "table" && measuredColumns(item).length > 0);
  return (
    <article id={id} class="lesson" data-lesson={lesson.key} aria-labelledby={`${id}-title`}>
      <header class="lesson-head">
        <h3 id={`${id}-title`}>
          <a class="number" href={`#${id}`} aria-label={`Link to lesson ${number}`}>
            {number}
          </a>
          <span>{shorten(lesson.title)}</span>
        </h3>
        <span class="took">
          <span class="unseen">It took </span>
          {seconds(lesson.seconds)}
        </span>
      </header>
      <p class="question">
        <Prose text={lesson.question} />
      </p>
      <div class="answer">
        <h4>Answer from this run</h4>
        {lesson.answer.map((text) => (
          <p>
            <Prose text={text} />
          </p>
        ))}
      </div>
      {lesson.notes.map((note) => (
        <p class="notice" data-notice="not-here">
          <strong>Not available here:</strong> <Prose text={note} />
        </p>
      ))}
      {drawn ? <MeasuredCharts table={drawn} /> : null}
      {lesson.evidence.length > 0 ? <EvidenceFold lesson={lesson} id={id} open={open} setOpen={setOpen} drawn={drawn} /> : null}
      {lesson.theory.length > 0 ? (
        <Folded printed class="theory" summary="Theory">
          {() =>
            lesson.theory.map((text) => (
              <p>
                <Prose text={text} />
              </p>
            ))
          }
        </Folded>
      ) : null}
      {next ? (
        <nav class="lesson-links" aria-label={`After lesson ${number}`}>
          <a href={`#${lessonId(next)}`}>Next: {shorten(next.title, 120)}</a>
        </nav>
      ) : null}
    </article>
  );
}

interface FoldProps {
  lesson: Lesson;
  id: string;
  open: boolean;
  setOpen: (open: boolean) => void;
  drawn: LessonTable | undefined;
}

/** All that was seen: of one lesson at a time, as that of all is thirty screens long. */
function EvidenceFold({ lesson, id, open, setOpen, drawn }: FoldProps): JSX.Element {
  const printing = usePrinting();
  const shown = open || printing;
  const tables = lesson.evidence.filter((item) => item.kind === "table").length;
  const listings = lesson.evidence.filter((item) => item.kind === "listing").length;
  const parts = [tables > 0 ? count(tables, "table") : "", listings > 0 ? count(listings, "listing") : ""].filter(Boolean);
  const toggle = (wanted: boolean): void => {
    if (printing || wanted === open) return;
    setOpen(wanted);
    // The evidence of another lesson, above this one, is folded at the same time: without this the page would jump.
    if (wanted) visit(id, false);
  };
  return (
    <details class="folded evidence-fold" open={shown} onToggle={(event) => toggle(event.currentTarget.open)}>
      <summary>Evidence{parts.length > 0 ? <span class="aside"> {parts.join(", ")}</span> : null}</summary>
      {shown ? (
        <div class="evidence">
          {lesson.evidence.map((item) => (
            <>
              {item.kind === "table" && item !== drawn ? <MeasuredCharts table={item} /> : null}
              <EvidenceView item={item} />
            </>
          ))}
        </div>
      ) : null}
    </details>
  );
}
