import type { EventObject } from 'xstate';
import type { Acceptance } from '../../machines/task-context.ts';
import type { PreparedChange } from '../tracker/port.ts';

type ToCommit = NonNullable<PreparedChange['toCommit']>;

/**
 * Changes of the tracker that wait for their transition, by the answer that causes it. They are no
 * part of that event, whose text goes to the journal and to the inspector.
 */
export interface PreparedChanges {
  /** @returns the answer for the chart */
  keep(prepared: PreparedChange): Acceptance;
  /** The change that a transition by this event must commit; null without one. */
  of(cause: EventObject & { readonly output?: unknown }): ToCommit | null;
}

export const createPreparedChanges = (): PreparedChanges => {
  const waiting = new WeakMap<object, ToCommit>();
  return {
    keep: ({ refusal, toCommit }) => {
      const answer = { refusal };
      if (toCommit !== undefined) waiting.set(answer, toCommit);
      return answer;
    },
    of: ({ output }) =>
      typeof output === 'object' && output !== null ? (waiting.get(output) ?? null) : null,
  };
};
