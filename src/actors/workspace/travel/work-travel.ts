import { messageOf } from '../../../machines/message-of.ts';
import type { AttemptInput, TaskId } from '../../../machines/task.ts';
import { withDeadline } from '../../process/deadline.ts';
import { moveBranch } from '../commits.ts';
import { GitError } from '../git.ts';
import type { GitDirs } from '../git-dirs.ts';
import type { WorkTravel } from '../port.ts';
import type { WorkParts } from '../work-parts.ts';
import { carriedName } from './carried-work.ts';
import { createSending } from './send-work.ts';
import { createTaking } from './take-work.ts';
import type { CommonRepository, WorkTransport } from './transport.ts';

const askMs = 15_000;

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
): WorkTravel => {
  const { records, stores } = parts;
  const forgetOwn = createForgetting(parts, save);
  const sending = common === null ? null : createSending(parts, common);
  const taking = common === null || sending === null ? null : createTaking(parts, common, sending);

  /** @returns why it did not go well */
  const ask = async (
    question: (transport: WorkTransport, dirs: GitDirs, limit: AbortSignal) => Promise<void>,
  ): Promise<string | null> => {
    if (common === null) return null;
    return withDeadline(askMs, undefined, 'the common repository', (limit) =>
      stores.current((dirs) => question(common.transport, dirs, limit)),
    ).then(() => null, messageOf);
  };

  return {
    hasRepository: common !== null,
    keep: async (keyed, step, signal) => {
      const record = sending === null ? null : await records.read(keyed.taskId, keyed.attempt);
      if (sending === null || record === null || record.closed) return;
      const isKept = await stores.use(record.kind, (dirs) =>
        sending.folder(dirs, keyed, record, step, signal),
      );
      if (!isKept) throw new GitError('another server goes on with this attempt');
    },
    take: async (attempt, key, signal) => {
      let notes: readonly string[] | null = null;
      // Not before the common repository has answered.
      const makeRoom = async (): Promise<void> => {
        notes ??= await forgetOwn(attempt);
      };
      const keyed = { taskId: attempt.taskId, attempt: attempt.attempt, key };
      const carried =
        taking === null
          ? null
          : await stores.begin(
              ({ dirs, head }) => taking.folder(dirs, head, keyed, makeRoom, signal),
              signal,
            );
      await makeRoom();
      const told = { notes: notes ?? [] };
      if (carried === null) return { has: 'nothing', ...told };
      const { step } = carried;
      return step === null ? { has: 'all', ...told } : { has: 'step', step, ...told };
    },
    takeWork: async (keyed, signal) => {
      if (taking === null) return keyed;
      return stores.current((dirs) => taking.closedWork(dirs, keyed, signal));
    },
    send: async (keyed, signal) => {
      const record = await records.read(keyed.taskId, keyed.attempt);
      if (sending === null || record === null || !record.closed) return null;
      const why = await stores
        .use(record.kind, (dirs) => sending.closed(dirs, keyed, record, signal))
        .then(() => null, messageOf);
      if ((why !== null) !== record.unsent)
        await records.write({ ...record, unsent: why !== null });
      return why;
    },
    check: () => ask((transport, dirs, limit) => transport.check(dirs, limit)),
    remove: (keyed) =>
      ask((transport, dirs, limit) => transport.remove(dirs, carriedName(keyed), limit)),
    unsent: async () =>
      (await records.all()).flatMap(({ task_id, attempt, closed, unsent }) =>
        closed && unsent ? [{ taskId: task_id as TaskId, attempt }] : [],
      ),
  };
};
