import type { TaskView } from '../../actors/journal/task-view.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { Client, Frame } from '../client/client.ts';
import { type AskPerson, isYes } from '../output/ask.ts';
import type { Io } from '../output/io.ts';

export interface PersonAnswer {
  readonly text?: string;
  readonly decision?: 'allow' | 'deny';
}

const questionTries = 5;

const askDecision = async (ask: AskPerson, signal?: AbortSignal): Promise<PersonAnswer | null> => {
  for (let tries = 0; tries < questionTries; tries += 1) {
    const said = await ask('Allow? [y/n] ', signal);
    if (said === null) return null;
    if (isYes(said)) return { decision: 'allow' };
    if (!/^no?$/i.test(said)) continue;
    const why = await ask('Why not? The agent is told (Enter: no reason): ', signal);
    if (why === null) return null;
    return why === '' ? { decision: 'deny' } : { decision: 'deny', text: why };
  }
  return null;
};

/** Asks on the terminal for the answer to an open question. @returns null without an answer */
export const askPerson = async (
  ask: AskPerson,
  kind: NonNullable<TaskView['awaiting']>['kind'],
  signal?: AbortSignal,
): Promise<PersonAnswer | null> => {
  if (kind === 'approval') return askDecision(ask, signal);
  const text = await ask('Answer: ', signal);
  return text === null || text === '' ? null : { text };
};

/** Takes answers in the terminal of a run, until somebody else has answered. */
export interface Answering {
  see(frame: Frame): void;
  /** True while a question is on the terminal. */
  isOpen(): boolean;
  stop(): void;
}

const kinds: Readonly<Record<string, 'input' | 'approval'>> = {
  input_required: 'input',
  approval_required: 'approval',
};

export const createAnswering = (client: Client, { ask, err }: Io): Answering => {
  let open: AbortController | null = null;
  const stop = (): void => {
    open?.abort();
    open = null;
  };
  const answer = async (
    { task_id, attempt, data }: Frame,
    kind: 'input' | 'approval',
    own: AbortController,
  ): Promise<void> => {
    const given = ask === null ? null : await askPerson(ask, kind, own.signal);
    if (open === own) open = null;
    if (given === null || own.signal.aborted) return;
    await client.call('respond', {
      task_id,
      attempt,
      input_id: String(data['input_id']),
      ...given,
    });
  };
  return {
    see: (frame) => {
      const kind = kinds[frame.type];
      const phase = frame.type === 'status_update' ? String(frame.data['phase']) : 'awaiting';
      if (!phase.startsWith('awaiting')) stop();
      if (kind === undefined || ask === null) return;
      stop();
      const own = new AbortController();
      open = own;
      answer(frame, kind, own).catch((error: unknown) => err(`agent: ${messageOf(error)}`));
    },
    isOpen: () => open !== null,
    stop,
  };
};
