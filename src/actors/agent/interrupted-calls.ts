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

/** Tells the agent before its next turn that its attempt continues in another process. */
export const restartedText =
  'The server stopped in the meantime, and has started again. Files are as the last call left them; protected paths that an unfinished command made are moved away. Processes that you started have ended; start again what you still need.';

/**
 * Replaces `restartedText` when the folder of the attempt is gone, or is on the machine of a server
 * that died.
 */
export const newFolderText =
  'The server stopped in the meantime, and another one goes on in a new folder. Nothing that you changed before is there: look, and do again what is still needed. Processes that you started have ended.';

export const newFolderLog = {
  level: 'warn',
  message:
    'goes on in a new folder: the one that it had is gone, or with another server; what it changed there is not here',
} as const;

export const unknownOutcome =
  'The server stopped while this call was running. Its outcome is unknown: look before you do it again.';
