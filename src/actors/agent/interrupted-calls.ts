import type { Failure } from '../../machines/task.ts';

/** Why an attempt may not go on when the policy is `fail`. */
export const interruptedFailure: Failure = {
  code: 'internal',
  message: 'the server stopped while a call was at work, and it is not known what that did',
  facts: { interrupted: true },
  retryable: false,
};

export const questionAbout = (calls: string): string =>
  `The server stopped while this was at work: ${calls}. It is not known what it did. Answer 'repeat' to make the call again, or say in your words what the agent shall know instead.`;

/** The one answer that means the call; every other is told to the agent. */
export const isRepeat = (decision: string | null): boolean => decision?.trim().toLowerCase() === 'repeat';

/** What the agent is told of such a call when it is not made again. */
export const unknownOutcome =
  'The server stopped while this call was at work. It is not known whether it was carried out: look before you do it again.';
