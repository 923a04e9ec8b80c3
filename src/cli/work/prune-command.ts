import { basename } from 'node:path';
import { createRetention, type Retention } from '../../actors/engine/servers/retention.ts';
import { createHistories, type Histories } from '../../actors/store/rows/histories.ts';
import {
  type FinishedAttempt,
  type FinishedWork,
  keyOfAttempt,
} from '../../actors/workspace/worktrees/finished-work.ts';
import { bytesText } from '../../machines/bytes.ts';
import { plural } from '../../machines/plural.ts';
import type { TaskId } from '../../machines/task.ts';
import type { CommandContext } from '../client/command-context.ts';
import { hasTasks, openTasks } from '../client/open-tasks.ts';
import { redactorFor } from '../client/redactor.ts';
import { loadConfig } from '../config/config.ts';
import { stateFiles } from '../config/places/project.ts';
import { storeFor } from '../config/store.ts';
import { trackerFor } from '../config/tracker.ts';
import { finishedWorkFor, workspaceFor } from '../config/workspace.ts';
import { exitCodes } from '../output/exit-codes.ts';

interface Removed {
  readonly kind: 'branch' | 'worktree' | 'history';
  readonly task_id: string;
  readonly name: string;
  readonly bytes: number;
}

interface Kept {
  readonly task_id: string;
  readonly name: string;
  readonly why: string;
}

interface PruneParts {
  readonly work: FinishedWork;
  readonly retention: Retention;
  readonly histories: Histories;
  readonly isPending: (taskId: string) => Promise<boolean>;
  /** Of the given tasks, those that the tracker does not have any more. */
  readonly deleted: (taskIds: readonly string[]) => Promise<ReadonlySet<string>>;
  close(): void;
}

const openPruneParts = async (
  { project, env, io }: CommandContext,
  configFile: string | undefined,
): Promise<PruneParts> => {
  const loaded = loadConfig({ config: configFile, project }, env);
  const { config } = loaded;
  const choice = storeFor(config, project, env);
  const kept = hasTasks(project, choice);
  const redact = redactorFor({ project, env }, config);
  const { ledger, store } = await openTasks(project, {
    kept,
    choice,
    redact,
    log: (message) => io.err(`note: ${message}`),
  });
  const workspace = await workspaceFor(loaded, project, env);
  const work = finishedWorkFor(config, project, env, workspace, store);
  const histories = createHistories(ledger.db);
  const tracker = trackerFor(
    config,
    project.root,
    env,
    () => {},
    () => ledger,
    redact,
  );
  const days = (): number => config.store.retention_days;
  return {
    work,
    histories,
    retention: createRetention({
      histories,
      tracker,
      work,
      days,
      now: Date.now,
      reportsFolder: stateFiles(project.stateDir).reports,
    }),
    deleted: async (taskIds) => {
      const there = new Set<string>(
        (await tracker.findMany(taskIds as readonly TaskId[])).map(({ id }) => id),
      );
      return new Set(taskIds.filter((id) => !there.has(id)));
    },
    isPending: async (taskId) => (await store.actor(taskId))?.pending === true,
    close: store.close,
  };
};

const notMerged = 'not merged';

interface PruneOptions {
  readonly dryRun: boolean;
  /** Also removes work that is not merged, where there is a reason, and branches beside. */
  readonly superseded: boolean;
}

const workNameOf = ({ branch, folder, taskId, attempt }: FinishedAttempt): string =>
  branch ?? (folder === null ? `${taskId}@${attempt}` : basename(folder));

const removalsOf = async (
  work: FinishedWork,
  each: FinishedAttempt,
): Promise<readonly Removed[]> => {
  const { taskId: task_id, branch, folder } = each;
  return [
    ...(branch === null ? [] : [{ kind: 'branch' as const, task_id, name: branch, bytes: 0 }]),
    ...(folder === null
      ? []
      : [
          {
            kind: 'worktree' as const,
            task_id,
            name: basename(folder),
            bytes: await work.sizeOf(each),
          },
        ]),
  ];
};

const pruneBeside = async (
  work: FinishedWork,
  each: FinishedAttempt,
  { dryRun, superseded }: PruneOptions,
  { removed, kept }: { readonly removed: Removed[]; readonly kept: Kept[] },
): Promise<void> => {
  const { beside, taskId: task_id, attempt } = each;
  const offered = `${notMerged}; it is beside the work of attempt ${attempt}`;
  const left = superseded && !dryRun ? await work.pruneBeside(each) : null;
  for (const name of beside)
    if (superseded && left === null) removed.push({ kind: 'branch', task_id, name, bytes: 0 });
    else kept.push({ task_id, name, why: left ?? offered });
};

/** One look at all of the works that are not dropped, to which it adds what it removes. */
const pruneOnce = async (
  { work, isPending, deleted }: PruneParts,
  works: readonly FinishedAttempt[],
  options: PruneOptions,
  dropped: Set<string>,
) => {
  const removed: Removed[] = [];
  const kept: Kept[] = [];
  const keyOf = ({ taskId, attempt }: FinishedAttempt) => keyOfAttempt(taskId, attempt);
  const open = works.filter(({ stays }) => stays === notMerged).map(({ taskId }) => taskId);
  const gone = open.length === 0 ? new Set<string>() : await deleted(open);
  /** Why it stays, or null. */
  const whyKept = ({ taskId, stays, superseded }: FinishedAttempt): string | null => {
    const reason = gone.has(taskId) ? 'its task was deleted' : superseded;
    if (stays !== notMerged || reason === null) return stays;
    return options.superseded ? null : `${notMerged}; ${reason}`;
  };
  const isThere = ({ branch, folder }: FinishedAttempt): boolean =>
    branch !== null || folder !== null;
  for (const each of works.filter((work) => isThere(work) || work.beside.length > 0)) {
    if (dropped.has(keyOf(each))) continue;
    if (await isPending(each.taskId)) continue;
    await pruneBeside(work, each, options, { removed, kept });
    if (!isThere(each)) continue;
    const stays = whyKept(each);
    const parts = stays === null ? await removalsOf(work, each) : [];
    const why = stays ?? (options.dryRun ? null : await work.prune(each));
    if (why === null) {
      removed.push(...parts);
      dropped.add(keyOf(each));
    } else kept.push({ task_id: each.taskId, name: workNameOf(each), why });
  }
  return { removed, kept };
};

/**
 * Branches and worktrees of attempts whose work is merged. Those of tasks at work are not even
 * looked at. It looks again as long as something went: others may have stayed only for that.
 */
const pruneWork = async (parts: PruneParts, options: PruneOptions) => {
  const removed = new Map<string, Removed>();
  const dropped = new Set<string>();
  for (;;) {
    const works = await parts.work.all(dropped);
    const once = await pruneOnce(parts, works, options, dropped);
    const before = removed.size;
    for (const each of once.removed) removed.set(`${each.kind} ${each.name}`, each);
    if (removed.size === before) return { works, removed: [...removed.values()], kept: once.kept };
  }
};

const pruneHistories = async (
  { retention, histories }: PruneParts,
  works: readonly FinishedAttempt[],
  dryRun: boolean,
) => {
  const removed: Removed[] = [];
  for await (const taskId of retention.old(works)) {
    const bytes = await histories.bytesOf(taskId);
    if (dryRun || (await retention.remove(taskId, works)))
      removed.push({ kind: 'history', task_id: taskId, name: taskId, bytes });
  }
  return removed;
};

const prunedTotal = (removed: readonly Removed[]): string => {
  const count = (kind: Removed['kind'], many?: string): readonly string[] => {
    const some = removed.filter((each) => each.kind === kind).length;
    return some === 0 ? [] : [plural(some, kind, many)];
  };
  const bytes = removed.reduce((sum, each) => sum + each.bytes, 0);
  const counts = [
    ...count('branch', 'branches'),
    ...count('worktree'),
    ...count('history', 'histories'),
  ].join(', ');
  return bytes === 0 ? counts : `${counts}: ${bytesText(bytes)}`;
};

const printText = (
  { io }: CommandContext,
  {
    dryRun,
    removed,
    kept,
  }: {
    readonly dryRun: boolean;
    readonly removed: readonly Removed[];
    readonly kept: readonly Kept[];
  },
): void => {
  for (const { name, why } of kept) io.out(`kept     ${name}: ${why}`);
  const verb = dryRun ? 'would remove' : 'removed';
  for (const { kind, name, bytes } of removed)
    io.out(`${verb}  ${kind.padEnd(8)} ${name}${bytes === 0 ? '' : `  ${bytesText(bytes)}`}`);
  io.out(removed.length === 0 ? 'there is nothing to remove' : `${verb} ${prunedTotal(removed)}`);
  if (kept.some(({ why }) => why.startsWith(`${notMerged};`)))
    io.err(
      'note: to remove those with a reason too, and the work on them: agent prune --superseded',
    );
  if (kept.some(({ why }) => why === notMerged))
    io.err('note: take the other work with agent merge <id>, or refuse it with agent discard <id>');
};

/**
 * Removes what nobody needs of finished tasks. It works on the project's database and repository,
 * also beside a server. Exit code 1 if a folder could not be removed.
 */
export const prune = async (
  context: CommandContext,
  { config, ...options }: PruneOptions & { readonly config: string | undefined },
): Promise<number> => {
  const { dryRun } = options;
  const parts = await openPruneParts(context, config);
  try {
    const { works, removed: ofWork, kept } = await pruneWork(parts, options);
    const removed = [...ofWork, ...(await pruneHistories(parts, works, dryRun))];
    const failures = dryRun ? [] : await parts.work.finish();
    while (!dryRun && (await parts.histories.shrink()));
    const bytes = removed.reduce((sum, each) => sum + each.bytes, 0);
    if (context.json) context.io.json({ dry_run: dryRun, removed, kept, bytes });
    else printText(context, { dryRun, removed, kept });
    for (const failure of failures) context.io.err(`agent: ${failure}`);
    return failures.length === 0 ? exitCodes.done : exitCodes.failed;
  } finally {
    parts.close();
  }
};
