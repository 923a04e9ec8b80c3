import { useEffect } from 'preact/hooks';
import { type Decided, decisions, followDecisions } from '../../data/decisions.ts';
import { now } from '../../data/now.ts';
import { tasks } from '../../data/tasks.ts';
import { clock, dayWord, oneLine } from '../../model/format.ts';
import { Icon, type IconName } from '../../parts/icon.tsx';
import { taskPath } from '../../shell/router.ts';

interface Shown {
  readonly icon: IconName;
  readonly tone: string;
  readonly words: string;
  /** Where what was said, `*`, belongs to the words: `Merged into main`. */
  readonly joint?: string;
}

const shownAs: Readonly<Record<Decided['kind'], Shown>> = {
  answered: { icon: 'question', tone: 'done', words: 'Answered', joint: '“*”' },
  allowed: { icon: 'shield', tone: 'done', words: 'Allowed' },
  denied: { icon: 'cross', tone: 'fail', words: 'Denied' },
  unanswered: { icon: 'clock', tone: 'wait', words: 'Nobody answered; the default counts' },
  commented: { icon: 'pencil', tone: 'wait', words: 'Reviewed', joint: 'with *' },
  sent_back: { icon: 'pencil', tone: 'wait', words: 'Sent back', joint: 'with *' },
  approved: { icon: 'check', tone: 'done', words: 'Approved the work' },
  merged: { icon: 'merge', tone: 'done', words: 'Merged', joint: 'into *' },
  undone: { icon: 'merge', tone: 'wait', words: 'Undone', joint: 'in *' },
  discarded: { icon: 'cross', tone: 'wait', words: 'Discarded the work', joint: '“*”' },
  retried: { icon: 'play', tone: 'wait', words: 'Asked to retry' },
  reopened: { icon: 'play', tone: 'wait', words: 'Reopened' },
  closed: { icon: 'check', tone: 'done', words: 'Closed' },
};

const Row = ({ decided }: { decided: Decided }) => {
  const { kind, about, said, task_id: id, at } = decided;
  const { icon, tone, words, joint } = shownAs[kind];
  const text = said === undefined ? '' : oneLine(said);
  return (
    <li>
      <time dateTime={at}>{clock(Date.parse(at))}</time>
      <Icon name={icon} tone={tone} />
      <div>
        <p class="lines">
          {`${words} ${joint?.replace('*', () => text) ?? ''}`}
          {about !== undefined && <code>{oneLine(about)}</code>}
        </p>
        <p class="lines small">
          <a class="id" href={taskPath(id)}>
            {id}
          </a>{' '}
          {tasks.value.get(id)?.title}
          {joint === undefined && text !== '' && ` · ${text}`}
        </p>
      </div>
    </li>
  );
};

/** Decisions by day, the last one first. */
export const DecidedList = () => {
  useEffect(followDecisions, []);
  if (decisions.value.length === 0) return null;
  const days = new Map<string, Decided[]>();
  for (const decided of decisions.value) {
    const day = dayWord(Date.parse(decided.at), now.value);
    days.set(day, [...(days.get(day) ?? []), decided]);
  }
  return (
    <aside class="decided" aria-label="Decided">
      <h2>Decided</h2>
      {[...days].map(([day, all]) => (
        <section key={day}>
          <h3>{day}</h3>
          <ul>
            {all.map((decided) => (
              <Row key={decided.seq} decided={decided} />
            ))}
          </ul>
        </section>
      ))}
    </aside>
  );
};
