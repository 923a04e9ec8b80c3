import type { Writable } from 'node:stream';
import type { Assistant, AssistantDialog, AssistantEvent, ConversationPorts } from './port.ts';

/** An assistant may leave so many bytes of its standard input unread. */
const mostUnread = 16 * 1024 * 1024;
/** After a cancel an assistant has this time to stop by itself. */
const cancelGraceMs = 1_000;

export interface SilenceWatch {
  refresh(): void;
  /** No time passes until the returned function is called. */
  pause(): () => void;
  isOver(): boolean;
  end(): void;
}

/** Calls `onSilent` after a silence of `ms`. */
export const watchSilence = (ms: number, onSilent: () => void): SilenceWatch => {
  let isOver = false;
  let pauses = 0;
  const begin = () =>
    setTimeout(() => {
      isOver = true;
      onSilent();
    }, ms);
  let timer = begin();
  return {
    refresh: () => {
      if (pauses === 0) timer.refresh();
    },
    pause: () => {
      pauses += 1;
      clearTimeout(timer);
      return () => {
        pauses -= 1;
        if (pauses > 0) return;
        clearTimeout(timer);
        timer = begin();
      };
    },
    isOver: () => isOver,
    end: () => clearTimeout(timer),
  };
};

export interface Dialog extends AssistantDialog {
  /** Begins with the standard input of the program. */
  begin(stdin: Writable): void;
}

interface DialogStart
  extends Pick<ConversationPorts, 'start' | 'root' | 'askPermission' | 'mustAsk'> {
  readonly assistant: Pick<Assistant, 'converse'>;
  readonly prompt: string;
  readonly freshPrompt: string;
}

interface DialogPorts {
  readonly take: (event: AssistantEvent) => void;
  readonly silence: SilenceWatch;
  readonly tooMuch: () => void;
}

/** Null for an assistant without a dialog. The conversation begins with the program. */
export const openDialog = (
  { assistant, start, prompt, freshPrompt, root, askPermission, mustAsk }: DialogStart,
  { take, silence, tooMuch }: DialogPorts,
): Dialog | null => {
  const { converse } = assistant;
  if (converse === undefined) return null;
  let conversation: AssistantDialog | null = null;
  let endDone = (): void => {};
  const done = new Promise<void>((resolve) => {
    endDone = resolve;
  });
  const begin = (stdin: Writable): void => {
    const send = (line: string): void => {
      if (stdin.writable) stdin.write(`${line}\n`);
      if (stdin.writableLength > mostUnread) tooMuch();
    };
    conversation = converse({
      start,
      prompts: { resumed: prompt, fresh: freshPrompt },
      root,
      send,
      end: () => stdin.end(),
      onEvent: take,
      mustAsk,
      askPermission: async (call) => {
        const goOn = silence.pause();
        try {
          return await askPermission(call);
        } finally {
          goOn();
        }
      },
    });
    void conversation.done.then(endDone);
  };
  return {
    begin,
    read: (line) => conversation?.read(line),
    cancel: () => conversation?.cancel(),
    close: (reason) => conversation?.close(reason),
    done,
  };
};

/** Aborted with `signal`; with a dialog, when the assistant has stopped or had time for it. */
export const stopSignal = (signal: AbortSignal, dialog: Dialog | null): AbortSignal => {
  if (dialog === null) return signal;
  const stop = new AbortController();
  const cancel = (): void => {
    dialog.cancel();
    const timer = setTimeout(() => stop.abort(), cancelGraceMs);
    void dialog.done.then(() => {
      clearTimeout(timer);
      stop.abort();
    });
  };
  if (signal.aborted) stop.abort();
  else signal.addEventListener('abort', cancel, { once: true });
  return stop.signal;
};
