import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { GitError } from './git.ts';
import type { Snapshot, SnapshotJob } from './snapshot-job.ts';
import type { Asked, AskedToRemove, Told } from './snapshot-worker.ts';

/** Node runs no TypeScript in a thread: from the sources, the built file is used. */
const workerFile = (): string => {
  const beside = fileURLToPath(new URL('./snapshot-worker.js', import.meta.url));
  const file = existsSync(beside) ? beside : beside.replace('/src/actors/', '/dist/actors/');
  if (existsSync(file)) return file;
  throw new Error(`${file} is missing; run npm run build`);
};

const idleMs = 10_000;

type Answer = Exclude<Told, { readonly failure: unknown }>;

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly worker: Worker;
  readonly waiting: Map<number, Waiting>;
}

let thread: Thread | null = null;
let idle: NodeJS.Timeout | undefined;
let lastId = 0;

const startThread = (): Thread => {
  const worker = new Worker(workerFile(), { execArgv: [] });
  const waiting = new Map<number, Waiting>();
  const own: Thread = { worker, waiting };
  const fail = (error: Error): void => {
    if (thread === own) thread = null;
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  worker.on('message', (told: Told) => {
    const asker = waiting.get(told.id);
    waiting.delete(told.id);
    if (!('failure' in told)) asker?.resolve(told);
    else asker?.reject(told.failure.isGit ? new GitError(told.failure.message) : new Error(told.failure.message));
    if (waiting.size > 0) return;
    worker.unref();
    clearTimeout(idle);
    idle = setTimeout(() => {
      if (thread === own) thread = null;
      void worker.terminate();
    }, idleMs).unref();
  });
  worker.on('error', fail);
  worker.on('exit', (code) => fail(new Error(`the thread that reads folders ended (${code})`)));
  return own;
};

const ask = (
  asked: (id: number) => Asked | AskedToRemove,
): { readonly id: number; readonly answer: Promise<Answer> } => {
  clearTimeout(idle);
  thread ??= startThread();
  const { worker, waiting } = thread;
  lastId += 1;
  const id = lastId;
  const answer = new Promise<Answer>((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    worker.ref();
    worker.postMessage(asked(id));
  });
  return { id, answer };
};

/** Takes a snapshot in a thread of its own, so that reading many files keeps nobody else waiting. */
export const snapshotInThread = async (job: SnapshotJob, signal?: AbortSignal): Promise<Snapshot> => {
  signal?.throwIfAborted();
  const flag = new SharedArrayBuffer(4);
  const { id, answer } = ask((own) => ({ id: own, job, flag }));
  const onAbort = (): void => {
    Atomics.store(new Int32Array(flag), 0, 1);
    thread?.worker.postMessage({ abort: id });
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const told = await answer;
    if ('snapshot' in told) return told.snapshot;
    throw new Error('the thread that reads folders answered something else');
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
};

/** Removes a folder in that thread. */
export const removeInThread = async (path: string): Promise<void> => {
  await ask((id) => ({ id, remove: path })).answer;
};
