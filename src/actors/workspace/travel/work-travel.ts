import { messageOf } from '../../../machines/message-of.ts';
import type { AttemptInput } from '../../../machines/task.ts';
import { moveBranch } from '../commits.ts';
import { GitError } from '../git.ts';
import type { WorkTravel } from '../port.ts';
import type { WorkParts } from '../work-parts.ts';
import type { WorkRecord } from '../work-records.ts';
import { carriedName } from './carried-work.ts';
import { createSending } from './send-work.ts';
import { createTaking } from './take-work.ts';
import type { CommonRepository } from './transport.ts';

/** Forgets an attempt that others went on with; its work here stays on a branch. */
const createForgetting =
  (
    { records, placesOf, release, stores }: WorkParts,
    save: (attempt: AttemptInput, title: string) => Promise<unknown>,
  ) =>
  async (attempt: AttemptInput): Promise<readonly string[]> => {
    const { taskId, attempt: number } = attempt;
    const before = await records.read(taskId, number);
    if (before === null) return [];
    if (!before.closed)
      await save(attempt, `Work of ${taskId} on a server that stopped`).catch(() => undefined);
    const kept = await records.read(taskId, number);
    await release(placesOf(taskId, number));
    await records.remove(taskId, number);
    if (kept?.closed === true && kept.commit !== null && !before.closed)
      return [`What this server had of it is on the branch ${kept.branch}.`];
    if (!before.closed)
      await stores
        .use(before.kind, (dirs) => moveBranch(dirs, before.branch, null, before.base))
        .catch(() => undefined);
    return [];
  };

/** Work of attempts on other servers (ADR 0118). `common` null: nothing of it is there. */
export const createWorkTravel = (
  parts: WorkParts,
  common: CommonRepository | null,
  save: (attempt: AttemptInput, title: string) => Promise<unknown>,
) => {
  const { records, stores } = parts;
  const forgetOwn = createForgetting(parts, save);
  const sending = common === null ? null : createSending(parts, common);
  const taking = common === null || sending === null ? null : createTaking(parts, common, sending);

  /** @returns why it could not be sent; null when it was, or another server has the attempt */
  const sendClosed = async (record: WorkRecord): Promise<string | null> => {
    if (sending === null) return null;
    const why = await stores
      .use(record.kind, (dirs) => sending.closed(dirs, record))
      .then(() => null, messageOf);
    if ((why !== null) !== record.unsent) await records.write({ ...record, unsent: why !== null });
    return why;
  };

  const travel: WorkTravel = {
    hasRepository: common !== null,
    keep: async ({ taskId, attempt }, step, signal) => {
      const record = sending === null ? null : await records.read(taskId, attempt);
      if (sending === null || record === null || record.closed) return;
      const isKept = await stores.use(record.kind, (dirs) =>
        sending.folder(dirs, record, step, signal),
      );
      if (!isKept) throw new GitError('another server goes on with this attempt');
    },
    take: async (attempt, signal) => {
      let notes: readonly string[] | null = null;
      // Not before the common repository has answered.
      const makeRoom = async (): Promise<void> => {
        notes ??= await forgetOwn(attempt);
      };
      const key = { task_id: attempt.taskId, attempt: attempt.attempt };
      const carried =
        taking === null
          ? null
          : await stores.begin(
              ({ dirs, head }) => taking.folder(dirs, head, key, makeRoom, signal),
              signal,
            );
      await makeRoom();
      const told = { notes: notes ?? [] };
      if (carried === null) return { has: 'nothing', ...told };
      const { step } = carried;
      return step === null ? { has: 'all', ...told } : { has: 'step', step, ...told };
    },
    takeWork: async (taskIds, signal) => {
      if (taking === null) return;
      await stores.begin(async ({ dirs }) => {
        for (const taskId of taskIds) await taking.closedWork(dirs, taskId, signal);
      }, signal);
    },
  };
  return {
    travel,
    sendClosed,
    /** Sends what could not be sent before. @returns what still cannot */
    sendUnsent: async (): Promise<readonly string[]> => {
      const failed: string[] = [];
      for (const record of sending === null ? [] : await records.all())
        if (record.closed && record.unsent) {
          const why = await sendClosed(record);
          if (why !== null) failed.push(`${carriedName(record)} is not at other servers: ${why}`);
        }
      return failed;
    },
  };
};
