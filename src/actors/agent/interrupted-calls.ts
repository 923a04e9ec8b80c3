import type { Failure } from '../../machines/task.ts';

/** `ask` a person, `repeat` the call, or `fail` the attempt. */
export type OnInterrupted = 'ask' | 'repeat' | 'fail';

export const interruptedFailure: Failure = {
  code: 'internal',
  message: 'the server stopped while a call was running; its outcome is unknown',
  facts: { interrupted: true },
  retryable: false,
};

export const questionAbout = (calls: string): string =>
  `The server stopped while this was at work: ${calls}. Its outcome is unknown. Answer 'repeat' to make the call again, or tell the agent what to do instead.`;

/** Any other answer goes to the agent as a text. */
export const isRepeat = (decision: string | null): boolean =>
  decision?.trim().toLowerCase() === 'repeat';

/** Before the next turn of an attempt that goes on in another process. */
export const restartedText =
  'The server stopped in the meantime, and has started again. Files are as they were. Processes that you started have ended; start again what you still need.';

export const unknownOutcome =
  'The server stopped while this call was running. Its outcome is unknown: look before you do it again.';
