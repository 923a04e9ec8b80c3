import { messageOf } from '../../machines/message-of.ts';
import type { Client } from '../client/client.ts';
import type { Io } from '../output/io.ts';
import { renderTask } from '../output/render/render-task.ts';
import { askPerson } from '../runs/ask-person.ts';
import type { TaskProgress } from './progress.ts';

export interface AnswerHerePorts {
  readonly client: Client;
  readonly io: Io;
  /** The first task that asks. */
  readonly asking: () => TaskProgress | null;
  /** Nothing is drawn while a person types. */
  readonly typing: (isTyping: boolean) => void;
  /** After Ctrl-C, Enter answers something else. */
  readonly isInterrupted: () => boolean;
}

export interface AnswerHere {
  /** Looks who asks now. */
  look(): void;
  stop(): void;
}

const inputIdOf = (task: TaskProgress | null): string | null =>
  task?.view.awaiting?.input_id ?? null;

/**
 * While a task asks, Enter opens its question in the terminal of `agent run`. Reads the terminal only
 * then: a run in the background would be stopped by it. The question is withdrawn when somebody else
 * has answered.
 */
export const answerHere = ({
  client,
  io,
  asking,
  typing,
  isInterrupted,
}: AnswerHerePorts): AnswerHere => {
  const { ask } = io;
  let open: { readonly inputId: string; readonly abort: AbortController } | null = null;
  let isListening = false;
  let isStopped = false;
  const stopListening = (): void => {
    if (!isListening) return;
    isListening = false;
    process.stdin.off('data', onLine);
    if (!isInterrupted()) process.stdin.pause();
  };
  const answer = async ({ view }: TaskProgress, inputId: string): Promise<void> => {
    const abort = new AbortController();
    open = { inputId, abort };
    typing(true);
    try {
      io.out(renderTask(view, io.width, []));
      const kind = view.awaiting?.kind ?? 'input';
      const given = ask === null ? null : await askPerson(ask, kind, abort.signal);
      if (given === null || abort.signal.aborted) return;
      const { task_id, attempt } = view;
      await client.call('respond', { task_id, attempt, input_id: inputId, ...given });
    } catch (error) {
      io.err(`agent: ${messageOf(error)}`);
    } finally {
      open = null;
      typing(false);
      look();
    }
  };
  const onLine = (): void => {
    if (isInterrupted()) return;
    const task = asking();
    const inputId = inputIdOf(task);
    if (task === null || inputId === null || open !== null) return;
    stopListening();
    void answer(task, inputId);
  };
  const look = (): void => {
    const inputId = inputIdOf(asking());
    if (open !== null) {
      if (open.inputId !== inputId) open.abort.abort();
      return;
    }
    if (inputId === null || isInterrupted() || isStopped) stopListening();
    else if (!isListening) listen();
  };
  const listen = (): void => {
    isListening = true;
    process.stdin.on('data', onLine);
    process.stdin.resume();
  };
  return {
    look,
    stop: () => {
      isStopped = true;
      open?.abort.abort();
      stopListening();
    },
  };
};
