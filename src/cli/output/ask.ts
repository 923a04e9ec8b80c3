import { Writable } from 'node:stream';
import { stripControls } from './safe-text.ts';

/**
 * Asks on the terminal. @returns the answer; null at the end of the input, after Ctrl-C, and when
 * the question is withdrawn
 */
export type AskPerson = (question: string, signal?: AbortSignal) => Promise<string | null>;

/** Takes what is typed and shows nothing. */
const silent = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() });

/**
 * Asks for a secret, which is not shown. @returns the lines that came with the one, as a paste may
 * have several; null at the end of the input, and after Ctrl-C
 */
export const askSecret = async (
  question: string,
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
): Promise<string | null> => {
  const { createInterface } = await import('node:readline');
  return new Promise((resolve) => {
    const lines: string[] = [];
    const reader = createInterface({ input, output: silent(), terminal: true, historySize: 0 });
    // Only now: the terminal shows what is typed before.
    output.write(stripControls(question));
    reader.once('close', () => {
      output.write('\n');
      resolve(lines.length === 0 ? null : lines.join('\n'));
    });
    reader.on('SIGINT', () => {
      lines.length = 0;
      reader.close();
      process.kill(process.pid, 'SIGINT');
    });
    reader.on('line', (line) => {
      lines.push(line);
      // The rest of a paste is in the same chunk.
      setImmediate(() => reader.close());
    });
  });
};

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
