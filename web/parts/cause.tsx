import type { TaskView } from '../data/tasks.ts';
import { causeIn, numbered } from '../model/format.ts';
import { LongText } from './long-text.tsx';

/** Why an attempt failed, in a line; what the message and the command say beyond it is folded. */
export const Cause = ({ error }: { error: TaskView['error'] }) => {
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
