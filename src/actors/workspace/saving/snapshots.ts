import { Worker } from 'node:worker_threads';
import { builtFile } from '../../process/run-in-thread.ts';
import { GitError } from '../git/git.ts';
import type { Snapshot, SnapshotJob } from './snapshot-job.ts';
import type { AskedToRemove, SnapshotOrder, SnapshotReply } from './snapshot-worker.ts';

const idleMs = 10_000;
/** Several, so that a large folder delays no other one. */
const mostThreads = 4;

type WorkerAnswer = Exclude<SnapshotReply, { readonly failure: unknown }>;

interface Asker {
  readonly resolve: (answer: WorkerAnswer) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly worker: Worker;
  readonly waiting: Map<number, Asker>;
  idle?: NodeJS.Timeout;
}

let threads: readonly Thread[] = [];
let lastId = 0;

const startThread = (): Thread => {
  const worker = new Worker(builtFile(new URL('./snapshot-worker.js', import.meta.url).href), {
    execArgv: [],
  });
  const waiting = new Map<number, Asker>();
  const own: Thread = { worker, waiting };
  const forget = (): void => {
    threads = threads.filter((thread) => thread !== own);
  };
  const fail = (error: Error): void => {
    forget();
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  worker.on('message', (told: SnapshotReply) => {
    const asker = waiting.get(told.id);
    waiting.delete(told.id);
    if (!('failure' in told)) asker?.resolve(told);
    else
      asker?.reject(
        told.failure.isGit ? new GitError(told.failure.message) : new Error(told.failure.message),
      );
    if (waiting.size > 0) return;
    worker.unref();
    clearTimeout(own.idle);
    own.idle = setTimeout(() => {
      forget();
      void worker.terminate();
    }, idleMs).unref();
  });
  worker.on('error', fail);
  worker.on('exit', (code) => fail(new Error(`the thread that reads folders ended (${code})`)));
  threads = [...threads, own];
  return own;
};

const takeThread = (): Thread => {
  const [first, ...others] = threads.toSorted(
    (one, other) => one.waiting.size - other.waiting.size,
  );
  const taken =
    first !== undefined && (first.waiting.size === 0 || others.length + 1 >= mostThreads)
      ? first
      : startThread();
  clearTimeout(taken.idle);
  return taken;
};

const askWorker = (
  asked: (id: number) => SnapshotOrder | AskedToRemove,
): { readonly id: number; readonly worker: Worker; readonly answer: Promise<WorkerAnswer> } => {
  const { worker, waiting } = takeThread();
  lastId += 1;
  const id = lastId;
  const answer = new Promise<WorkerAnswer>((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    worker.ref();
    worker.postMessage(asked(id));
  });
  return { id, worker, answer };
};

export const snapshotInThread = async (
  job: SnapshotJob,
  signal?: AbortSignal,
): Promise<Snapshot> => {
  signal?.throwIfAborted();
  const flag = new SharedArrayBuffer(4);
  const { id, worker, answer } = askWorker((own) => ({ id: own, job, flag }));
  const onAbort = (): void => {
    Atomics.store(new Int32Array(flag), 0, 1);
    worker.postMessage({ abort: id });
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const told = await answer;
    if ('snapshot' in told) return told.snapshot;
    throw new Error('the thread that reads folders sent an unknown message');
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
};

export const removeInThread = async (path: string): Promise<void> => {
  await askWorker((id) => ({ id, remove: path })).answer;
};
