import type { TaskView } from '../data/tasks.ts';
import { causeIn, numbered } from '../model/format.ts';
import { LongText } from './long-text.tsx';
import { TaskLine } from './task-link.tsx';

type Failure = NonNullable<TaskView['error']>;

/** Why an attempt failed, in a line; what the message and the command say beyond it is folded. */
export const Cause = ({ error }: { error: Pick<Failure, 'message' | 'facts'> | undefined }) => {
  const message = error?.message ?? 'The attempt failed.';
  const output = error?.facts['output'];
  const cause = causeIn(message);
  const more = [
    ...(cause === message ? [] : [message]),
    ...(typeof output === 'string' && output !== '' ? [output] : []),
  ].join('\n\n');
  return (
    <div class="cause">
      <p class="tone-fail">{cause}</p>
      {more !== '' && (
        <details>
          <summary>Show {numbered(more.split('\n').length, 'line')} more</summary>
          <pre class="box sunken">
            <LongText text={more} />
          </pre>
        </details>
      )}
    </div>
  );
};

const othersAtMost = 3;

/** Why the work was not merged: the command or the files, and the tasks with whose work it fails. */
export const Refused = ({ task: { work } }: { task: TaskView }) => {
  const { state, message = '', command, output, paths, with: others } = work?.merge ?? {};
  return state !== 'refused' ? null : (
    <>
      <Cause error={{ message, facts: { output } }} />
      {(command ?? paths) !== undefined && <code>{command ?? paths?.join(', ')}</code>}
      {others && <p class="quiet small">Landed since:</p>}
      {others?.slice(0, othersAtMost).map((id) => (
        <TaskLine key={id} id={id} />
      ))}
      {(others?.length ?? 0) > othersAtMost && (
        <p class="quiet small">and {(others?.length ?? 0) - othersAtMost} more</p>
      )}
    </>
  );
};
