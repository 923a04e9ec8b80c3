import type { Failure } from '../../machines/task.ts';
import type { OpenWorkspace } from '../workspace/port.ts';

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
const restartedText =
  'The server stopped in the meantime, and has started again. Files are as the last call left them; protected paths that an unfinished command made are moved away. Processes that you started have ended; start again what you still need.';

/**
 * Replaces `restartedText` when the folder of the attempt is gone, or is on the machine of a server
 * that died.
 */
const newFolderText =
  'The server stopped in the meantime, and another one goes on in a new folder. Nothing that you changed before is there: look, and do again what is still needed. Processes that you started have ended.';

/** In its place where another server had the folder, and all of it came here. */
const movedText =
  'The server stopped in the meantime, and another one goes on in a new folder, with all that you changed. Files that git ignores are not there, unless they were set up again. Processes that you started have ended; start again what you still need.';

/** In its place where the last changes did not come along. */
const partText =
  'The server stopped in the meantime, and another one goes on in a new folder. It has what you changed, but not your last changes: look, and do again what is missing. Processes that you started have ended.';

const newFolderLog = {
  level: 'warn',
  message:
    'goes on in a new folder: the one that it had is gone, or with another server; what it changed there is not here',
} as const;

type Folder = Pick<OpenWorkspace, 'isNew' | 'taken' | 'lacksWork'>;

const moved = { level: 'info', message: 'goes on here with what it had changed on another server' };
const movedPart = {
  level: 'warn',
  message: 'goes on here with what it had changed on another server, without its last changes',
};

/** Texts for the log and for the agent on the folder of an attempt that goes on. */
export const folderTexts = ({ isNew, taken, lacksWork = false }: Folder) => {
  const [log, left] = [taken?.notes ?? [], taken?.has ?? null];
  const notes = log.map((message) => ({ level: 'info', message }));
  if (left === 'step' && lacksWork) return { text: partText, logs: [...notes, movedPart] };
  if (left === 'step') return { text: movedText, logs: [...notes, moved] };
  if (lacksWork && !isNew) return { text: partText, logs: notes };
  return isNew
    ? { text: newFolderText, logs: [...notes, newFolderLog] }
    : { text: restartedText, logs: notes };
};

export const unknownOutcome =
  'The server stopped while this call was running. Its outcome is unknown: look before you do it again.';
