import { parentPort } from 'node:worker_threads';
import { messageOf } from '../../../machines/message-of.ts';
import { removeTree } from '../folders/removal.ts';
import { GitError } from '../git/git.ts';
import { takeSnapshot } from './snapshot.ts';
import type { SnapshotJob } from './snapshot-job.ts';

/**
 * A request to the thread. `flag` becomes 1 when the job is aborted, also while the thread is busy.
 */
export interface SnapshotOrder {
  readonly id: number;
  readonly job: SnapshotJob;
  readonly flag: SharedArrayBuffer;
}

export interface AskedToRemove {
  readonly id: number;
  readonly remove: string;
}

export type SnapshotReply =
  | { readonly id: number; readonly removed: true }
  | { readonly id: number; readonly snapshot: Awaited<ReturnType<typeof takeSnapshot>> }
  | {
      readonly id: number;
      readonly failure: { readonly message: string; readonly isGit: boolean };
    };

const running = new Map<number, AbortController>();

const run = async ({ id, job, flag }: SnapshotOrder): Promise<SnapshotReply> => {
  const abort = new AbortController();
  running.set(id, abort);
  try {
    const isAborted = (): boolean => Atomics.load(new Int32Array(flag), 0) === 1;
    return { id, snapshot: await takeSnapshot(job, abort.signal, isAborted) };
  } finally {
    running.delete(id);
  }
};

const remove = async ({ id, remove: path }: AskedToRemove): Promise<SnapshotReply> => {
  await removeTree(path);
  return { id, removed: true };
};

const failedAnswer = (id: number, error: unknown): SnapshotReply => ({
  id,
  failure: { message: messageOf(error), isGit: error instanceof GitError },
});

parentPort?.on('message', (asked: SnapshotOrder | AskedToRemove | { readonly abort: number }) => {
  if ('abort' in asked) return running.get(asked.abort)?.abort();
  const { id } = asked;
  const answer = 'remove' in asked ? remove(asked) : run(asked);
  void answer
    .catch((error: unknown) => failedAnswer(id, error))
    .then((told) => parentPort?.postMessage(told));
});
