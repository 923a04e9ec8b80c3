import { randomBytes } from 'node:crypto';
import { mkdirSync, renameSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../../machines/message-of.ts';
import { hasCode } from '../../files/error-code.ts';
import { builtFile } from '../../process/run-in-thread.ts';
import { unlock } from '../folders/removal.ts';
import { GitError } from '../git/git.ts';
import { isPresent } from '../git/plain.ts';
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

const removeInThread = async (path: string): Promise<void> => {
  await askWorker((id) => ({ id, remove: path })).answer;
};

/** Moves folders out of the way at once and removes them in a thread, so that nobody waits. */
export const createRemovals = (folder: string) => {
  const place = join(folder, 'removed');
  const underWay = new Map<string, Promise<string | null>>();

  const removeNow = async (name: string): Promise<string | null> => {
    try {
      await removeInThread(join(place, name));
      return null;
    } catch (error) {
      return `${join(place, name)} could not be removed: ${messageOf(error)}`;
    } finally {
      underWay.delete(name);
    }
  };
  const remove = (name: string): Promise<string | null> => {
    const removal = underWay.get(name) ?? removeNow(name);
    underWay.set(name, removal);
    return removal;
  };

  return {
    giveUp: async (path: string): Promise<void> => {
      if (!(await isPresent(path))) return;
      mkdirSync(place, { recursive: true, mode: 0o700 });
      const name = randomBytes(12).toString('hex');
      try {
        renameSync(path, join(place, name));
      } catch (error) {
        if (!hasCode(error, 'EACCES', 'EPERM')) throw error;
        unlock(path);
        renameSync(path, join(place, name));
      }
      // The next sweep tries again, and reports what it cannot remove.
      void remove(name);
    },
    /** Removes what was given up and is still there. @returns what cannot be removed */
    sweep: async (): Promise<readonly string[]> => {
      const names = await readdir(place).catch((error: unknown) => {
        if (hasCode(error, 'ENOENT')) return [];
        throw error;
      });
      return (await Promise.all(names.map(remove))).flatMap((failure) => failure ?? []);
    },
  };
};

export type Removals = ReturnType<typeof createRemovals>;
