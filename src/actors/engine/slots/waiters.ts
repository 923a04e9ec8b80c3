/** Callers that wait for an event, one for each key; a later caller replaces the earlier one. */
export interface Waiters<Answer> {
  /** After an abort of the signal, `onAbort` decides when the promise rejects. */
  wait(key: string, signal: AbortSignal, onAbort: (reject: () => void) => void): Promise<Answer>;
  /** Answers the caller of a key, if there is one. */
  answer(key: string, answer: Answer): void;
}

export const createWaiters = <Answer>(): Waiters<Answer> => {
  const waiting = new Map<string, (answer: Answer) => void>();
  return {
    wait: (key, signal, onAbort) =>
      new Promise((resolve, reject) => {
        waiting.set(key, resolve);
        signal.addEventListener('abort', () => {
          waiting.delete(key);
          onAbort(() => reject(signal.reason));
        });
      }),
    answer: (key, answer) => {
      waiting.get(key)?.(answer);
      waiting.delete(key);
    },
  };
};
