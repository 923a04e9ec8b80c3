import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads';
import { messageOf } from '../../machines/message-of.ts';

/** Node runs no TypeScript in a thread: from the sources, the built file is used. */
export const builtFile = (url: string): string => {
  const beside = fileURLToPath(url).replace(/\.ts$/, '.js');
  const file = existsSync(beside) ? beside : beside.replace('/src/actors/', '/dist/actors/');
  if (existsSync(file)) return file;
  throw new Error(`${file} is missing; run npm run build`);
};

const memoryMb = 1_024;

/** The thread was ended. The message follows the name of what it did. */
export class ThreadLimit extends Error {
  override readonly name = 'ThreadLimit';
}

interface Question<Asked> {
  readonly id: number;
  readonly question: Asked;
}
type Reply = { readonly id: number } & ({ readonly value: unknown } | { readonly error: string });
type Told<Output, Asked> =
  | { readonly output: Output }
  | { readonly error: string }
  | Question<Asked>;

export interface ThreadJob<Asked> {
  /** The address of the module that calls `serveThread` with the same name. */
  readonly module: string;
  readonly name: string;
  /** Cloned into the thread. */
  readonly input: unknown;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Answers what the thread asks of the main thread. */
  readonly answer?: (question: Asked) => Promise<unknown>;
}

/**
 * Runs work on a text that others wrote in a thread of its own, so that the event loop goes on and a
 * deadline can end it.
 * @throws ThreadLimit at the deadline, or when it needs too much memory
 */
export const runInThread = <Output, Asked = never>(job: ThreadJob<Asked>): Promise<Output> =>
  new Promise((resolve, reject) => {
    const { module, name, input, timeoutMs, signal, answer } = job;
    signal?.throwIfAborted();
    const worker = new Worker(builtFile(module), {
      execArgv: [],
      workerData: { thread: name, input },
      resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    });
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      void worker.terminate();
    };
    const fail = (error: unknown): void => {
      end();
      reject(error);
    };
    const onAbort = (): void => fail(signal?.reason);
    const timer = setTimeout(
      () => fail(new ThreadLimit(`took longer than ${timeoutMs / 1_000} s`)),
      timeoutMs,
    );
    signal?.addEventListener('abort', onAbort, { once: true });
    const reply = async ({ id, question }: Question<Asked>): Promise<void> => {
      const told = await Promise.resolve(answer?.(question)).then(
        (value): Reply => ({ id, value }),
        (error: unknown): Reply => ({ id, error: messageOf(error) }),
      );
      worker.postMessage(told);
    };
    worker.on('message', (told: Told<Output, Asked>) => {
      if ('question' in told) return void reply(told);
      if ('error' in told) return fail(new Error(told.error));
      end();
      resolve(told.output);
    });
    worker.on('error', (error) =>
      fail(
        'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
          ? new ThreadLimit(`needed more than ${memoryMb} MiB of memory`)
          : error,
      ),
    );
    worker.on('exit', (code) => fail(new Error(`the thread ended with exit code ${code}`)));
  });

type Ask<Asked> = <Value>(question: Asked) => Promise<Value>;

const createAsk = <Asked>(port: MessagePort): Ask<Asked> => {
  const waiting = new Map<number, (reply: Reply) => void>();
  let lastId = 0;
  port.on('message', (reply: Reply) => waiting.get(reply.id)?.(reply));
  return <Value>(question: Asked) =>
    new Promise<Value>((resolve, reject) => {
      lastId += 1;
      const id = lastId;
      waiting.set(id, (reply) => {
        waiting.delete(id);
        if ('value' in reply) resolve(reply.value as Value);
        else reject(new Error(reply.error));
      });
      port.postMessage({ id, question });
    });
};

/** Does the work of `runInThread` in its thread, and nothing anywhere else. */
export const serveThread = <Input, Asked = never>(
  name: string,
  work: (input: Input, ask: Ask<Asked>) => unknown,
): void => {
  if (parentPort === null || workerData?.thread !== name) return;
  const port = parentPort;
  void Promise.resolve()
    .then(() => work(workerData.input, createAsk(port)))
    .then(
      (output) => port.postMessage({ output }),
      (error: unknown) => port.postMessage({ error: messageOf(error) }),
    );
};
