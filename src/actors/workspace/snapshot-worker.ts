import { parentPort } from 'node:worker_threads';
import { messageOf } from '../../machines/message-of.ts';
import { GitError } from './git.ts';
import { takeSnapshot } from './snapshot.ts';
import type { SnapshotJob } from './snapshot-job.ts';

/** Asked of the thread; `flag` is 1 when the job was aborted, also while the thread is busy. */
export interface Asked {
  readonly id: number;
  readonly job: SnapshotJob;
  readonly flag: SharedArrayBuffer;
}

export type Told =
  | { readonly id: number; readonly snapshot: Awaited<ReturnType<typeof takeSnapshot>> }
  | { readonly id: number; readonly failure: { readonly message: string; readonly isGit: boolean } };

const running = new Map<number, AbortController>();

const run = async ({ id, job, flag }: Asked): Promise<Told> => {
  const abort = new AbortController();
  running.set(id, abort);
  try {
    const isAborted = (): boolean => Atomics.load(new Int32Array(flag), 0) === 1;
    return { id, snapshot: await takeSnapshot(job, abort.signal, isAborted) };
  } catch (error) {
    const message = messageOf(error);
    return { id, failure: { message, isGit: error instanceof GitError } };
  } finally {
    running.delete(id);
  }
};

parentPort?.on('message', (asked: Asked | { readonly abort: number }) => {
  if ('abort' in asked) running.get(asked.abort)?.abort();
  else void run(asked).then((told) => parentPort?.postMessage(told));
});
