import { type FSWatcher, watch } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import type { TaskId } from '../../../machines/task.ts';
import type { SerialQueue } from '../../process/serial-queue.ts';
import { commitOf, findObjects } from '../git/commits.ts';
import { findRepository } from '../git/find-repository.ts';
import { requireGit } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import type { WorkRecord } from '../git/work-records.ts';
import type { MergeListener } from '../port.ts';
import type { WorkParts } from './work-parts.ts';

const fileKeyOf = ({ task_id, attempt }: Pick<WorkRecord, 'task_id' | 'attempt'>): string =>
  `${task_id}@${attempt}`;

/** Which of the attempts whose records were read are merged. */
const createKnownMerges = () => {
  /** The merged commit of each record that was read, or null. */
  const known = new Map<string, string | null>();
  const unmerged = new Map<string, WorkRecord>();
  return {
    /** @returns true when its merge was not known */
    take: (record: WorkRecord): boolean => {
      const key = fileKeyOf(record);
      const isNews = record.merged !== null && known.get(key) !== record.merged;
      known.set(key, record.merged);
      const isOpen = record.merged === null && record.discarded === null;
      if (isOpen && record.closed && record.commit !== null) unmerged.set(key, record);
      else unmerged.delete(key);
      return isNews;
    },
    setMerged: (record: WorkRecord): void => {
      known.set(fileKeyOf(record), record.merged);
      unmerged.delete(fileKeyOf(record));
    },
    unmerged: (): readonly WorkRecord[] => [...unmerged.values()],
    /** Finished work in the repository of the project, which a person may merge by hand. */
    unmergedInProject: (): readonly WorkRecord[] =>
      [...unmerged.values()].filter(({ kind }) => kind === 'project'),
  };
};

/** Several changes of files belong to one merge. */
const gatherEventsMs = 50;
/** Git locks HEAD while it moves the branch that is checked out. */
const namesOfHead: ReadonlySet<string> = new Set(['HEAD', 'HEAD.lock']);

/** The commits that have the work of a record: its own, and the one that a forge made. */
const commitsOfWork = ({ commit, landing }: WorkRecord): readonly string[] =>
  [commit, landing?.undoes === false ? landing.commit : null].filter((each) => each !== null);

/** The records whose work HEAD has. */
const findMerged = async (
  dirs: GitDirs,
  head: string,
  records: readonly WorkRecord[],
): Promise<readonly WorkRecord[]> => {
  const commits = records.flatMap(commitsOfWork);
  const found = await findObjects(
    dirs,
    commits.map((id) => `${id}^{commit}`),
  );
  const there = commits.filter((_, at) => found[at] !== null);
  const said = await requireGit(
    'the commits cannot be read',
    dirs.git(['rev-list', '--stdin'], { input: [...there, `^${head}`, ''].join('\n') }),
  );
  const left = new Set(said.toString().split('\n'));
  const merged = new Set(there.filter((id) => !left.has(id)));
  return records.filter((record) => commitsOfWork(record).some((id) => merged.has(id)));
};

/** Finds what is merged: in the records of attempts, and among the commits that HEAD has. */
const createMergeReader = (
  { records, stores }: WorkParts,
  report: (record: WorkRecord, into: string) => void,
) => {
  const known = createKnownMerges();
  let isBegun = false;
  let lastHead: string | null = null;

  const note = async (record: WorkRecord): Promise<void> => {
    if (!known.take(record) || !isBegun) return;
    report(record, await stores.use(record.kind, async (dirs) => stores.targetOf(dirs).into));
  };
  return {
    known,
    isBegun: (): boolean => isBegun,
    readAll: async (): Promise<void> => {
      for (const record of await records.all()) await note(record);
      isBegun = true;
    },
    /** `names`: as `bd-a1@2`. */
    readRecords: async (names: readonly string[]): Promise<void> => {
      for (const name of names) {
        const at = name.lastIndexOf('@');
        const record = await records.read(name.slice(0, at), Number(name.slice(at + 1)));
        if (record !== null) await note(record);
      }
    },
    readHead: (): Promise<void> =>
      stores.use('project', async (dirs) => {
        const head = await commitOf(dirs, 'HEAD');
        if (head === null || head === lastHead) return;
        const { into, branch } = stores.targetOf(dirs);
        // Somebody looks at the branch of an attempt, or at a commit: nothing was merged.
        if (branch === null || branch.startsWith('agent/')) return;
        for (const record of await findMerged(dirs, head, known.unmergedInProject())) {
          const merged = { ...record, merged: head, merged_at: Date.now() };
          await records.write(merged);
          known.setMerged(merged);
          report(merged, into);
        }
        lastHead = head;
      }),
  };
};

const createFolderWatches = (onError: (error: Error) => void) => {
  const watchers: FSWatcher[] = [];
  return {
    add: (path: string, onChange: (name: string) => void): void => {
      const watcher = watch(path, { persistent: false }, (_, name) => {
        if (name !== null) onChange(name);
      });
      watcher.on('error', onError);
      watchers.push(watcher);
    },
    close: (): void => {
      for (const watcher of watchers.splice(0)) watcher.close();
    },
  };
};

const recordName = /^(.+@\d+)\.json$/;

/**
 * Sees what other programs merge: `agent merge` writes the record of an attempt, `git merge` moves
 * the project's branch. A squash by hand has no commit of the attempt, and is not seen; that of a forge
 * is.
 */
export const createMergeWatch = (parts: WorkParts, inTurn: SerialQueue) => {
  const { program, projectRoot, folder } = parts.options;
  const changed = new Set<string>();
  let listener: MergeListener | null = null;
  let timer: NodeJS.Timeout | null = null;
  let isHeadWatched = false;
  const watches = createFolderWatches((error) => listener?.failed(error));
  const reader = createMergeReader(parts, ({ task_id, attempt, merged }, into) =>
    listener?.merged({ taskId: task_id as TaskId, attempt, into, commit: merged ?? '' }),
  );

  /** From the first finished work on. @returns false when there is no repository */
  const watchHead = async (): Promise<boolean> => {
    if (isHeadWatched) return true;
    const repository = await findRepository(program, projectRoot);
    if (repository === null || listener === null) return false;
    isHeadWatched = true;
    watches.add(repository.gitDir, (name) => {
      if (namesOfHead.has(name)) lookSoon();
    });
    return true;
  };
  const readChanges = async (): Promise<void> => {
    if (listener === null) return;
    if (reader.isBegun()) {
      const names = [...changed];
      changed.clear();
      await reader.readRecords(names);
    } else await reader.readAll();
    if (reader.known.unmergedInProject().length > 0 && (await watchHead())) await reader.readHead();
  };
  const look = (): Promise<void> =>
    inTurn(readChanges, { urgency: 'background' }).catch((error: unknown) =>
      listener?.failed(error),
    );
  const lookSoon = (): void => {
    timer ??= setTimeout(() => {
      timer = null;
      void look();
    }, gatherEventsMs).unref();
  };

  const start = async (): Promise<void> => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (listener === null) return;
    watches.add(folder, (name) => {
      const [, record] = recordName.exec(name) ?? [];
      if (record === undefined) return;
      changed.add(record);
      lookSoon();
    });
    await look();
  };

  return {
    /** After a merge of our own. */
    taken: reader.known.setMerged,
    /** Work that is over, and neither merged nor discarded. */
    unmerged: async (): Promise<readonly WorkRecord[]> => {
      if (!reader.isBegun()) await look();
      return reader.known.unmerged();
    },
    watch: (given: MergeListener): (() => void) => {
      listener = given;
      start().catch((error: unknown) => given.failed(error));
      return () => {
        listener = null;
        if (timer !== null) clearTimeout(timer);
        watches.close();
      };
    },
  };
};
