import { noUsage } from '../../src/machines/task.ts';
import { at, done, type Row } from './chart.ts';

const tell = { type: 'tell', text: 'use tabs', at };
const given = { role: 'engineer', attempt: 1, retriesLeft: 1, deadlineAt: at + 1_000 } as const;
const retryable = { code: 'model_failed', message: 'away', facts: {}, retryable: true } as const;

const keeping: readonly string[] = [
  ...['checking', 'waitingForDependencies', 'asking', 'waitingForSlot', 'backingOff', 'parked'].map(
    (state) => `queued.${state}`,
  ),
  ...['claiming', 'working', 'verifying', 'returning', 'parking'].map(
    (state) => `started.${state}`,
  ),
  ...['claiming', 'parking'].map((state) => `started.telling.${state}`),
];
const failing = ['started.failing', 'started.telling.failing'];

const full = { before: 0, texts: Array(20).fill('x') };
const outcome = { status: 'done', summary: 'ok', artifacts: [], usage: noUsage } as const;

/** What happens to messages that no agent can read now. */
export const messageRows: readonly Row[] = [
  ...keeping.flatMap((from): readonly Row[] => [
    {
      says: 'a message is kept behind those before',
      ...{ from, event: tell, to: from },
      given: { ...given, kept: { before: 2, texts: ['one'] } },
      expected: { kept: { before: 2, texts: ['one', 'use tabs'] } },
    },
    {
      says: 'more than 20 messages are refused',
      ...{ from, event: tell, to: from },
      given: { ...given, kept: full },
      expected: { kept: full },
    },
  ]),
  ...failing.flatMap((from): readonly Row[] => [
    {
      says: 'a message is kept for the attempt that follows',
      ...{ from, event: tell, to: from },
      given: { ...given, failure: retryable },
      expected: { kept: { before: 0, texts: ['use tabs'] } },
    },
    {
      says: 'a message is refused when no attempt follows',
      ...{ from, event: tell, to: from },
      given: { ...given, failure: retryable, retriesLeft: 0, kept: { before: 7, texts: [] } },
      expected: { kept: { before: 7, texts: [] } },
    },
  ]),
  {
    says: 'what the agent took is gone, what it left comes first',
    from: 'started.working',
    event: done('work', { ...outcome, heard: 4, unread: ['left'] }),
    given: { ...given, kept: { before: 2, texts: ['three', 'four', 'five'] } },
    to: 'started.recording',
    expected: { kept: { before: 3, texts: ['left', 'five'] } },
  },
];
