import type { TaskId } from '../../machines/task.ts';
import { requireGit } from './git.ts';
import type { GitDirs } from './git-dirs.ts';
import type { WorkFiles, Workspace } from './port.ts';
import type { WorkParts } from './work-parts.ts';
import { firstBase, type WorkRecord } from './work-records.ts';

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

const readWorkFiles = async (
  dirs: GitDirs,
  record: WorkRecord,
  earlier: readonly WorkRecord[],
): Promise<WorkFiles> => {
  const { git } = dirs;
  const commit = tipOf(record);
  const changed = (await changedSince(dirs, record, earlier)).sort();
  const entries = async (path: string): Promise<readonly { size: number; path: string }[]> => {
    const list = ['ls-tree', '-r', '-l', '-z', commit, '--', path];
    const found = split(await requireGit('the files cannot be listed', git(list)));
    return found.flatMap((line) => {
      const [, size, name] = regular.exec(line) ?? [];
      return name === undefined ? [] : [{ size: Number(size), path: name }];
    });
  };
  return {
    changed,
    list: async (path) => (await entries(path)).map((each) => each.path).sort(),
    read: async (path, bytesAtMost) => {
      const [found, ...others] = await entries(path);
      if (found?.path !== path || others.length > 0 || found.size > bytesAtMost) return null;
      const blob = git(['cat-file', 'blob', `${commit}:${path}`]);
      return (await requireGit('the file cannot be read', blob)).toString();
    },
  };
};

/** Reads the commit of an attempt, never its folder. */
export const createInspect =
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
