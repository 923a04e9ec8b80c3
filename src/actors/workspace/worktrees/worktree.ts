import { join } from 'node:path';
import {
  isUpdatable,
  type MergeConflict,
} from '../../../machines/merge-queue/merge-queue-context.ts';
import { messageOf } from '../../../machines/message-of.ts';
import type { TaskId } from '../../../machines/task.ts';
import {
  createSerialQueue,
  createSerialQueues,
  type SerialQueue,
} from '../../process/serial-queue.ts';
import { createSetupCache } from '../folders/setup-cache.ts';
import { commitOf } from '../git/commits.ts';
import { requireGit } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { readGitSettings } from '../git/repository-config.ts';
import { firstBase, type WorkRecord } from '../git/work-records.ts';
import { createRegeneration } from '../merging/regenerate.ts';
import type {
  Changes,
  DiffPart,
  InCommit,
  NamedAttempt,
  ProjectFiles,
  WorkFiles,
  Workspace,
} from '../port.ts';
import { fetchBranch, pushBranch } from '../travel/forge-branch.ts';
import { createWorkTravel, limitTravel, treeOf } from '../travel/work-travel.ts';

import { findAbsent } from './absent.ts';
import { removeFolder } from './attempt-folder.ts';
import { changesOf, liveChanges } from './changes.ts';
import { createLanding } from './land-work.ts';
import { createOpening } from './open-work.ts';
import { createRadar } from './radar.ts';
import { createSaving } from './save-work.ts';
import { tipOfWork } from './unmerged.ts';
import { createInCommit, createUsersFiles } from './users-commit.ts';
import { createVerification } from './verified-work.ts';
import { createMergeWatch } from './watch-merges.ts';
import { createWorkParts, type WorkParts, type WorktreeOptions } from './work-parts.ts';
import { createWorkReads } from './work-view.ts';

const split = (said: Buffer): string[] => said.toString().split('\0').filter(Boolean);

/** `100644 blob <id>    <size>\t<path>`; a link and a submodule have other modes. */
const regular = /^100(?:644|755) blob [0-9a-f]+ +(\d+)\t([\s\S]+)$/;

const changedBetween = async ({ git }: GitDirs, base: string, commit: string) => {
  const names = ['diff-tree', '-r', '-z', '--name-only', '--no-renames', base, commit];
  return split(await requireGit('the changes cannot be read', git(names)));
};

const tipOf = (record: WorkRecord): string => record.commit ?? firstBase(record);

/** Paths that one of the attempts changed, and that still differ from where the first began. */
const changedSince = async (
  dirs: GitDirs,
  record: WorkRecord,
  earlier: readonly WorkRecord[],
): Promise<string[]> => {
  const [first] = earlier;
  const own = await changedBetween(dirs, firstBase(record), tipOf(record));
  if (first === undefined) return own;
  const each = earlier.map((one) => changedBetween(dirs, firstBase(one), tipOf(one)));
  const some = new Set([...own, ...(await Promise.all(each)).flat()]);
  const left = await changedBetween(dirs, firstBase(first), tipOf(record));
  return left.filter((path) => some.has(path));
};

/** Reads a commit. */
const filesOf = ({ git }: GitDirs, commit: string): Omit<ProjectFiles, 'prefix'> => {
  const find: ProjectFiles['find'] = async (...paths) => {
    const list = ['ls-tree', '-r', '-l', '-z', commit, '--', ...paths];
    const found = split(await requireGit('the files cannot be listed', git(list)));
    return found.flatMap((line) => {
      const [, size, path] = regular.exec(line) ?? [];
      return path === undefined ? [] : [{ size: Number(size), path }];
    });
  };
  return {
    find,
    read: async (path, bytesAtMost) => {
      const [found, ...others] = await find(path);
      if (found?.path !== path || others.length > 0 || found.size > bytesAtMost) return null;
      const blob = git(['cat-file', 'blob', `${commit}:${path}`]);
      return (await requireGit('the file cannot be read', blob)).toString();
    },
  };
};

const readWorkFiles = async (
  dirs: GitDirs,
  record: WorkRecord,
  earlier: readonly WorkRecord[],
): Promise<WorkFiles> => {
  const changed = (await changedSince(dirs, record, earlier)).sort();
  const { find, read } = filesOf(dirs, tipOf(record));
  return {
    changed,
    list: async (path) => (await find(path)).map((each) => each.path).sort(),
    read,
  };
};

/** Reads the commit of an attempt, never its folder. */
const createInspect =
  ({ records, stores }: WorkParts): Workspace['inspect'] =>
  async (taskId: TaskId, attempt, read, earlier = []) => {
    const record = await records.read(taskId, attempt);
    if (record === null || !record.closed) return null;
    const before: WorkRecord[] = [];
    for (const each of earlier) {
      const found = await records.read(each.taskId, each.attempt);
      if (found?.closed === true && found.kind === record.kind) before.push(found);
    }
    return stores.use(record.kind, async (dirs) => read(await readWorkFiles(dirs, record, before)));
  };

const createReadProject =
  ({ records, stores }: WorkParts): Workspace['readProject'] =>
  async (attempt, read) => {
    const readAt = async (dirs: GitDirs, head: string | null) =>
      head === null ? null : await read({ ...filesOf(dirs, head), prefix: dirs.repository.prefix });
    if (attempt === null)
      return stores.current(async (dirs) =>
        // Ours has the folder as an attempt found it last.
        readAt(dirs, dirs.repository.kind === 'own' ? null : await commitOf(dirs, 'HEAD')),
      );
    const record = await records.read(attempt.taskId, attempt.attempt);
    return record === null ? null : stores.use(record.kind, (dirs) => readAt(dirs, record.head));
  };

const createDiff =
  ({ options, records, stores, placesOf }: WorkParts) =>
  async (taskId: TaskId, attempt: number, part?: DiffPart): Promise<Changes | null> => {
    const record = await records.read(taskId, attempt);
    if (record === null || record.pruned) return null;
    const { commit, closed } = record;
    if (closed && commit === null) return { attempt: record.attempt, patch: '', guarded: [] };
    return stores.use(record.kind, async (dirs) =>
      closed && commit !== null
        ? changesOf(
            ...([dirs, record.attempt, firstBase(record)] as const),
            (await tipOfWork(dirs, records, { ...record, commit })) ?? commit,
            part,
          )
        : liveChanges(dirs, record, placesOf(record.task_id, record.attempt), options, part),
    );
  };

const createPush =
  ({ options, records, stores }: WorkParts): Workspace['push'] =>
  async (taskId, attempt, target, signal) => {
    const record = await records.read(taskId, attempt);
    if (record?.closed !== true || record.commit === null || record.kind === 'own') return null;
    const { commit } = record;
    return stores.use(record.kind, async (dirs) => {
      const tip = (await tipOfWork(dirs, records, { ...record, commit })) ?? commit;
      const env = options.userEnv ?? {};
      const pushed = await pushBranch(options.program, dirs, tip, target, env, signal);
      return pushed.status === 'pushed' ? { ...pushed, tree: await treeOf(dirs, tip) } : pushed;
    });
  };

const createFetch =
  ({ options, stores }: WorkParts): Workspace['fetch'] =>
  (branch, signal) =>
    stores.use('project', (dirs) =>
      fetchBranch(options.program, dirs, branch, options.userEnv ?? {}, signal),
    );

const folderKey = (taskId: TaskId, attempt: number): string => `${taskId}@${attempt}`;

type ByAttempt = ReturnType<typeof createSerialQueues>;
type Save = ReturnType<typeof createSaving>;

/** Saves and removes what earlier attempts left. */
const createSweep =
  (
    { records, stores, removals, placesOf }: WorkParts,
    save: Save,
    inTurn: SerialQueue,
    byAttempt: ByAttempt,
  ): Workspace['sweep'] =>
  async (isOver) => {
    await stores.tidy();
    const cut = await inTurn(stores.recover).catch(messageOf);
    stores.shown();
    const failed = [...(await removals.sweep()), ...(cut === null ? [] : [cut])];
    for (const { task_id, attempt, closed } of await records.all()) {
      const taskId = task_id as TaskId;
      if (!closed && !(await isOver(taskId, attempt))) continue;
      const again = async (): Promise<void> => {
        // Its end elsewhere may have been written here meanwhile.
        const isClosed = closed || (await records.read(taskId, attempt))?.closed === true;
        if (isClosed) await removeFolder(placesOf(taskId, attempt), removals);
        else await save({ taskId, attempt }, `Work of ${taskId}`, false);
      };
      await byAttempt(folderKey(taskId, attempt), again).catch((error: unknown) =>
        failed.push(`${taskId}#${attempt}: ${messageOf(error)}`),
      );
    }
    return failed;
  };

/** Builds again each time when files that it needed have been made. */
const createBuild = (
  { stores, records }: WorkParts,
  build: ReturnType<typeof createLanding>['build'],
  inCandidate: InCommit,
  inTurn: SerialQueue,
): Workspace['build'] => {
  const regeneration = createRegeneration(inCandidate);
  return async (members, signal = new AbortController().signal, regenerate) => {
    const regenerated = regeneration(regenerate?.commands ?? {});
    for (;;) {
      const train = await inTurn(() => build(members, regenerated, signal));
      const wanted = regenerated.wanted();
      if (wanted === null || regenerate === undefined) return train;
      const kind = (await records.read(wanted.taskId, wanted.attempt))?.kind ?? 'project';
      await stores.use(kind, (dirs) => regenerated.make(dirs, wanted, regenerate, signal));
    }
  };
};

const refusedPathsAtMost = 100;

/** As it is kept: `redact` removes secrets that a command printed. */
const refusalOf = (
  conflict: MergeConflict,
  redact: (text: string) => string = (text) => text,
): NonNullable<WorkRecord['refused']> => {
  const { why, failed, files, with: others = [] } = conflict;
  return {
    at: Date.now(),
    code: failed === undefined ? 'merge_conflict' : 'verify_failed',
    message: redact(why),
    with: [...others],
    command: failed && redact(failed.command),
    output: (failed && redact(failed.output)) || undefined,
    paths: files.length === 0 ? undefined : files.slice(0, refusedPathsAtMost),
    updatable: isUpdatable(conflict),
  };
};

/**
 * Each attempt works in its own folder, on its own branch; only the branch stays. The folder is
 * data: it is read by open handles, and no git of ours uses it as a working tree (ADR 0021).
 */
export const createWorktreeWorkspace = (options: WorktreeOptions): Workspace => {
  const parts = createWorkParts(options);
  const { records, stores } = parts;
  // Uses of the project's files and branch take turns; uses of an attempt's folder take turns per
  // attempt.
  const inTurn = createSerialQueue();
  const merges = createMergeWatch(parts, inTurn);
  const [open, save, landing, diff] = [
    createOpening(parts),
    createSaving(parts),
    createLanding(parts, merges.taken),
    createDiff(parts),
  ];
  const verification = createVerification(parts);
  const byAttempt = createSerialQueues();
  const inUsersCommit = createInCommit(parts, 'users-commit');
  const inCandidate = createInCommit(parts, 'candidate');
  const sweep = createSweep(parts, save, inTurn, byAttempt);
  const ofAttempt = <Result>(
    { taskId, attempt }: NamedAttempt,
    work: () => Promise<Result>,
  ): Promise<Result> => byAttempt(folderKey(taskId, attempt), work);
  const travel = createWorkTravel(
    parts,
    options.common,
    (attempt, title) => save(attempt, title, false),
    ofAttempt,
  );

  return {
    mode: 'worktree',
    copies: options.copies,
    describe: () => options.description,
    refusal: () => null,
    problem: async () => null,
    open: (attempt, after = [], signal) => inTurn(() => open(attempt, after, signal)),
    absent: (signal) => findAbsent(options, stores.uses, signal),
    travel: limitTravel(travel, inTurn, ofAttempt),
    keep: null,
    setups: {
      cache: createSetupCache(join(options.folder, 'setup')),
      inUsersCommit: (work, signal) => inUsersCommit(null, work, signal),
    },
    usersFiles: createUsersFiles(parts),
    radar: createRadar(parts, merges.unmerged, ofAttempt),
    alone: (work) => work(),
    asCheck: async (attempt, run) => {
      await ofAttempt(attempt, () => verification.begin(attempt.taskId, attempt.attempt));
      const result = await run();
      await ofAttempt(attempt, () => verification.end(attempt.taskId, attempt.attempt));
      return result;
    },
    unresolved: (attempt) =>
      ofAttempt(attempt, () => verification.unresolved(attempt.taskId, attempt.attempt)),
    save: (attempt, title, isComplete = true) =>
      ofAttempt(attempt, () => save(attempt, title, isComplete)),
    push: createPush(parts),
    fetch: createFetch(parts),
    takeIn: (...given) => inTurn(() => landing.takeIn(...given)),
    workOf: createWorkReads(options.folder),
    bringWork: null,
    leftOut: async (taskId, attempt) => (await records.read(taskId, attempt))?.notes ?? [],
    addressOf: (remote) =>
      stores.use('project', async ({ program, repository }) => {
        const settings = await readGitSettings(program, join(repository.commonDir, 'config'));
        return settings.get(`remote.${remote}.url`) ?? null;
      }),
    sweep,
    build: createBuild(parts, landing.build, inCandidate, inTurn),
    land: (train, signal) => inTurn(() => landing.land(train, signal)),
    update: (...given) => inTurn(() => landing.update(...given)),
    keepUpdate: (...given) => inTurn(() => landing.keepUpdate(...given)),
    noteLanded: (...given) => inTurn(() => landing.noteLanded(...given)),
    noteRefused: (taskId, attempt, conflict) =>
      inTurn(async () => {
        const record = await records.read(taskId, attempt);
        if (record === null || record.merged !== null) return;
        await records.write({ ...record, refused: refusalOf(conflict, options.redact) });
      }),
    inCandidate,
    discard: (taskId, attempt, reason) =>
      inTurn(async () => {
        const record = await records.read(taskId, attempt);
        if (record?.closed !== true || (record.commit === null && record.kept.length === 0))
          return null;
        if (record.merged !== null) return 'merged';
        if (record.discarded === null)
          await records.write({
            ...record,
            discarded: { at: Date.now(), reason },
            refused: null,
          });
        return 'discarded';
      }),
    watchMerges: merges.watch,
    inspect: createInspect(parts),
    readProject: createReadProject(parts),
    diff: async (taskId, attempt, part) => {
      const number = attempt ?? (await records.latest(taskId))?.attempt ?? null;
      return number === null
        ? null
        : byAttempt(folderKey(taskId, number), () => diff(taskId, number, part));
    },
  };
};
