import { McpError } from './port.ts';

export interface WaitingCall {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: McpError) => void;
}

interface AddedCall {
  readonly id: number;
  /** Rejects with an McpError. */
  readonly answer: Promise<unknown>;
  readonly giveUp: (why: string) => void;
}

/** Calls that wait for an answer, each for a limited time. */
export interface WaitingCalls {
  /** `onGivenUp`: the time is over, or the signal is aborted. */
  add(ms: number, signal: AbortSignal, onGivenUp: (id: number, why: string) => void): AddedCall;
  /** The caller settles it. */
  take(id: number): WaitingCall | undefined;
  rejectAll(why: string): void;
}

export const createWaitingCalls = (): WaitingCalls => {
  const waiting = new Map<number, WaitingCall>();
  let lastId = 0;

  const take = (id: number): WaitingCall | undefined => {
    const found = waiting.get(id);
    waiting.delete(id);
    return found;
  };
  return {
    add: (ms, signal, onGivenUp) => {
      lastId += 1;
      const id = lastId;
      const giveUp = (why: string): void => {
        take(id)?.reject(new McpError(why));
        onGivenUp(id, why);
      };
      const onAbort = (): void => giveUp('cancelled');
      const answer = new Promise((resolve, reject) => {
        const timer = setTimeout(() => giveUp(`no answer within ${ms / 1_000} s`), ms);
        const settle = (): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', onAbort);
        };
        waiting.set(id, {
          resolve: (result) => {
            settle();
            resolve(result);
          },
          reject: (error) => {
            settle();
            reject(error);
          },
        });
        signal.addEventListener('abort', onAbort, { once: true });
      });
      return { id, answer, giveUp };
    },
    take,
    rejectAll: (why) => {
      for (const id of [...waiting.keys()]) take(id)?.reject(new McpError(why));
    },
  };
};
