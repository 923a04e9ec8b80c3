import { signal } from '@preact/signals';
import type { Decided } from '../../src/actors/journal/event-types.ts';
import { followFrames } from './live.ts';
import { call } from './source.ts';

export type { Decided };

/** The last one first. */
export const decisions = signal<readonly Decided[]>([]);

/** Reads what was decided, and again whenever something is. */
export const followDecisions = (): (() => void) => {
  const read = (): void =>
    void call<{ readonly decisions: readonly Decided[] }>('decisions')
      .then((found) => {
        decisions.value = found.decisions;
      })
      .catch(() => null);
  read();
  return followFrames({
    onFresh: read,
    onFrames: (frames) => {
      if (frames.some(({ data }) => data['decision'] !== undefined)) read();
    },
  });
};
