/** The lessons of a tour: what there are with their answers in a sentence each, then each with its evidence. */
import type { JSX } from "preact";
import { Boundary } from "../common/boundary";
import { seconds, shorten } from "../common/format";
import { firstSentence, Prose } from "../common/prose";
import type { Lesson, Page } from "../data";
import { EvidenceView } from "./evidence";
import { Folded } from "./parts/folded";

export function lessonId(lesson: Lesson): string {
  return `lesson-${lesson.key}`;
}

export function LessonsSection({ page }: { page: Page }): JSX.Element {
  return (
    <section id="lessons" class="section lessons" aria-labelledby="lessons-title">
      <h2 id="lessons-title" class="sentence">
        {shorten(page.sentence, 1_000)}
      </h2>
      {page.origin ? <p class="origin">{shorten(page.origin, 1_000)}</p> : null}
      <Contents lessons={page.lessons} />
      {page.lessons.map((lesson, index) => (
        <Boundary>
          <LessonView lesson={lesson} next={page.lessons[index + 1]} number={index + 1} />
        </Boundary>
      ))}
    </section>
  );
}

function Contents({ lessons }: { lessons: Lesson[] }): JSX.Element {
  return (
    <nav aria-label="Lessons">
      <ol class="contents">
        {lessons.map((lesson) => (
          <li data-content={lesson.key}>
            <div class="content-head">
              <a href={`#${lessonId(lesson)}`}>{shorten(lesson.title)}</a>
              <span class="took">
                <span class="unseen">, took </span>
                {seconds(lesson.seconds)}
              </span>
            </div>
            <p>
              <Prose text={firstSentence(lesson.answer)} most={400} />
            </p>
          </li>
        ))}
      </ol>
    </nav>
  );
}

function LessonView(props: { lesson: Lesson; next: Lesson | undefined; number: number }): JSX.Element {
  const { lesson, next } = props;
  const id = lessonId(lesson);
  return (
    <article id={id} class="lesson" data-lesson={lesson.key} aria-labelledby={`${id}-title`}>
      <header class="lesson-head">
        <h3 id={`${id}-title`}>
          <a class="number" href={`#${id}`} aria-label={`Link to lesson ${props.number}`}>
            {props.number}
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
        <h4>Answer, from this run</h4>
        {lesson.answer.map((text) => (
          <p>
            <Prose text={text} />
          </p>
        ))}
      </div>
      {lesson.notes.map((note) => (
        <p class="notice" data-notice="not-here">
          <strong>Not here:</strong> <Prose text={note} />
        </p>
      ))}
      {lesson.evidence.length > 0 ? (
        <div class="evidence">
          <h4>What was seen</h4>
          {lesson.evidence.map((item) => (
            <EvidenceView item={item} />
          ))}
        </div>
      ) : null}
      {lesson.theory.length > 0 ? (
        <Folded printed class="theory" summary="The theory behind it">
          {() =>
            lesson.theory.map((text) => (
              <p>
                <Prose text={text} />
              </p>
            ))
          }
        </Folded>
      ) : null}
      <nav class="lesson-links" aria-label={`After lesson ${props.number}`}>
        <a href="#lessons">All lessons</a>
        {next ? <a href={`#${lessonId(next)}`}>Next: {shorten(next.title, 120)}</a> : null}
      </nav>
    </article>
  );
}
