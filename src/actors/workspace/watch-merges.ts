import { type FSWatcher, watch } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import type { TaskId } from '../../machines/task.ts';
import type { SerialQueue } from '../process/serial-queue.ts';
import { commitOf, findObjects } from './commits.ts';
import { findRepository } from './find-repository.ts';
import { requireGit } from './git.ts';
import type { GitDirs } from './git-dirs.ts';
import type { MergeListener } from './port.ts';
import type { WorkParts } from './work-parts.ts';
import type { WorkRecord } from './work-records.ts';

/** Several changes of files belong to one merge. */
const gatherEventsMs = 50;
/** Git locks HEAD while it moves the branch that is checked out. */
const namesOfHead: ReadonlySet<string> = new Set(['HEAD', 'HEAD.lock']);

/** Those whose commit HEAD has. */
const findMerged = async (
  dirs: GitDirs,
  head: string,
  records: readonly WorkRecord[],
): Promise<readonly WorkRecord[]> => {
  const commits = records.flatMap(({ commit }) => commit ?? []);
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
  return records.filter(({ commit }) => commit !== null && merged.has(commit));
};

const fileKeyOf = ({ task_id, attempt }: Pick<WorkRecord, 'task_id' | 'attempt'>): string =>
  `${task_id}@${attempt}`;

/**
 * Sees what other programs merge: `agent merge` writes the record of an attempt, `git merge` moves
 * the project's branch. A squash by hand has no commit of the attempt, and is not seen.
 */
export const createMergeWatch = ({ options, records, stores }: WorkParts, inTurn: SerialQueue) => {
  const { program, projectRoot, folder } = options;
  /** The merged commit of each record that was read, or null. */
  const known = new Map<string, string | null>();
  const unmerged = new Map<string, WorkRecord>();
  const changed = new Set<string>();
  const watchers: FSWatcher[] = [];
  let listener: MergeListener | null = null;
  let timer: NodeJS.Timeout | null = null;
  let isBegun = false;
  let isHeadWatched = false;
  let lastHead: string | null = null;

  const report = ({ task_id, attempt }: WorkRecord, into: string): void =>
    listener?.merged({ taskId: task_id as TaskId, attempt, into });

  const nameOfTarget = (kind: WorkRecord['kind']): Promise<string> =>
    stores.use(kind, async (dirs) => stores.targetOf(dirs).into);

  const note = async (record: WorkRecord): Promise<void> => {
    const key = fileKeyOf(record);
    const isNews = isBegun && record.merged !== null && known.get(key) !== record.merged;
    known.set(key, record.merged);
    if (record.merged === null && record.closed && record.commit !== null)
      unmerged.set(key, record);
    else unmerged.delete(key);
    if (isNews) report(record, await nameOfTarget(record.kind));
  };

  const readRecords = async (): Promise<void> => {
    if (isBegun) {
      const names = [...changed];
      changed.clear();
      for (const name of names) {
        const at = name.lastIndexOf('@');
        const record = await records.read(name.slice(0, at), Number(name.slice(at + 1)));
        if (record !== null) await note(record);
      }
    } else {
      for (const record of await records.all()) await note(record);
      isBegun = true;
    }
  };

  const watchFolder = (path: string, onChange: (name: string) => void): void => {
    const watcher = watch(path, { persistent: false }, (_, name) => {
      if (name !== null) onChange(name);
    });
    watcher.on('error', (error) => listener?.failed(error));
    watchers.push(watcher);
  };

  const readHead = async (): Promise<void> => {
    const candidates = [...unmerged.values()].filter(({ kind }) => kind === 'project');
    if (candidates.length === 0) return;
    if (!isHeadWatched) {
      const repository = await findRepository(program, projectRoot);
      if (repository === null || listener === null) return;
      isHeadWatched = true;
      watchFolder(repository.gitDir, (name) => {
        if (namesOfHead.has(name)) lookSoon();
      });
    }
    await stores.use('project', async (dirs) => {
      const head = await commitOf(dirs, 'HEAD');
      if (head === null || head === lastHead) return;
      const { into } = stores.targetOf(dirs);
      for (const record of await findMerged(dirs, head, candidates)) {
        const merged = { ...record, merged: head, merged_at: Date.now() };
        await records.write(merged);
        known.set(fileKeyOf(merged), head);
        unmerged.delete(fileKeyOf(merged));
        report(merged, into);
      }
      lastHead = head;
    });
  };

  const look = (): Promise<void> =>
    inTurn(
      async () => {
        if (listener === null) return;
        await readRecords();
        await readHead();
      },
      { urgency: 'background' },
    ).catch((error: unknown) => listener?.failed(error));

  const lookSoon = (): void => {
    timer ??= setTimeout(() => {
      timer = null;
      void look();
    }, gatherEventsMs).unref();
  };

  const recordName = /^(.+@\d+)\.json$/;
  const start = async (): Promise<void> => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (listener === null) return;
    watchFolder(folder, (name) => {
      const [, record] = recordName.exec(name) ?? [];
      if (record === undefined) return;
      changed.add(record);
      lookSoon();
    });
    await look();
  };

  return {
    /** After a merge of our own. */
    taken: (record: WorkRecord): void => {
      known.set(fileKeyOf(record), record.merged);
      unmerged.delete(fileKeyOf(record));
    },
    watch: (given: MergeListener): (() => void) => {
      listener = given;
      start().catch((error: unknown) => given.failed(error));
      return () => {
        listener = null;
        if (timer !== null) clearTimeout(timer);
        for (const watcher of watchers.splice(0)) watcher.close();
      };
    },
  };
};
