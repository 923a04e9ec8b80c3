import { stripControls } from './safe-text.ts';

/**
 * Asks on the terminal. @returns the answer; null at the end of the input, after Ctrl-C, and when
 * the question is withdrawn
 */
export type AskPerson = (question: string, signal?: AbortSignal) => Promise<string | null>;

export const isYes = (said: string): boolean => /^y(es)?$/i.test(said);

export const createAsk =
  (input: NodeJS.ReadableStream, output: NodeJS.WritableStream): AskPerson =>
  async (question, signal) => {
    const { createInterface } = await import('node:readline');
    return new Promise((resolve) => {
      const reader = createInterface({ input, output });
      const leave = (): void => reader.close();
      reader.once('close', () => {
        signal?.removeEventListener('abort', leave);
        resolve(null);
      });
      // The reader takes Ctrl-C from the terminal; the command must still see it.
      reader.on('SIGINT', () => {
        reader.close();
        process.kill(process.pid, 'SIGINT');
      });
      signal?.addEventListener('abort', leave, { once: true });
      if (signal?.aborted === true) leave();
      else
        reader.question(stripControls(question), (answer) => {
          resolve(answer.trim());
          reader.close();
        });
    });
  };
