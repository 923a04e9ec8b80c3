import type { Random } from './random.ts';

/** What an attempt or a person changed: it has one file, and a fault perhaps. */
export interface Change {
  readonly name: string;
  readonly file: number;
  /** `bad`: it fails by itself; `flaky`: it fails now and then; `hangs`: the test does not end. */
  readonly kind: 'fine' | 'bad' | 'flaky' | 'hangs';
  /** Two changes of one topic fail together. Null: it is of none. */
  readonly topic: number | null;
}

/** The names of the changes in it, and `cure:` with each fault that a person mended; sorted. */
export type Tree = string;

interface Commit {
  readonly tree: Tree;
  readonly parent: string | null;
  readonly taskId: string | null;
}

/** The work of an attempt. */
export interface Work {
  readonly taskId: string;
  readonly attempt: number;
  readonly branch: string;
  /** The commit of the project that it began with, and the unmerged work of others. */
  readonly base: string;
  readonly includes: readonly Work[];
  /** Null: it changed nothing, or is not saved. */
  change: Change | null;
  isSaved: boolean;
  isComplete: boolean;
  merged: { readonly commit: string; readonly at: number } | null;
  discarded: { readonly at: number; readonly reason: string | null } | null;
  refused: string | null;
  /** Noted before the branch moves to the commit. */
  landing: { readonly commit: string; readonly undoes: boolean } | null;
}

/** The repository of the user, which outlives every server. */
export interface Project {
  readonly head: () => string;
  readonly treeOf: (commit: string) => Tree;
  readonly parentOf: (commit: string) => string | null;
  /** A commit that is on no branch. */
  commit(tree: Tree, parent: string, taskId: string | null): string;
  moveTo(commit: string): void;
  /** The commit is in the history of the other one. */
  readonly has: (head: string, commit: string) => boolean;
  /** Tasks that landed since, the last first. */
  readonly landedSince: (commit: string) => readonly string[];
  newChange(): Change;
  readonly change: (name: string) => Change | undefined;
  readonly faultsOf: (tree: Tree) => readonly string[];
  /** A flaky test fails now, and passes when it runs again in the same folder. */
  failsOnce(folder: string): boolean;
  /** A person commits: changes something, or mends what fails. */
  commitByHand(): void;
  readonly works: ReadonlyMap<string, Work>;
  begin(work: Pick<Work, 'taskId' | 'attempt' | 'includes'>): Work;
}

export const namesIn = (tree: Tree): readonly string[] => tree.split(' ').filter(Boolean);
export const treeWith = (tree: Tree, ...names: readonly string[]): Tree =>
  [...new Set([...namesIn(tree), ...names])].toSorted().join(' ');
export const treeWithout = (tree: Tree, gone: ReadonlySet<string>): Tree =>
  namesIn(tree)
    .filter((name) => !gone.has(name))
    .join(' ');

export const workKey = (taskId: string, attempt: number): string => `${taskId}#${attempt}`;

const files = 30;
const topics = 5;

export const createProject = (random: Random): Project => {
  const commits = new Map<string, Commit>([['m0', { tree: '', parent: null, taskId: null }]]);
  const changes = new Map<string, Change>();
  const works = new Map<string, Work>();
  const failed = new Set<string>();
  let head = 'm0';

  const commitOf = (id: string): Commit => {
    const found = commits.get(id);
    if (found === undefined) throw new Error(`there is no commit ${id}`);
    return found;
  };
  const commit: Project['commit'] = (tree, parent, taskId) => {
    const id = `m${commits.size}`;
    commits.set(id, { tree, parent, taskId });
    return id;
  };
  const historyOf = (id: string | null): readonly string[] => {
    const ids: string[] = [];
    for (let at = id; at !== null; at = commitOf(at).parent) ids.push(at);
    return ids;
  };
  const newChange = (): Change => {
    const draw = random.below(100);
    const change: Change = {
      name: `c${changes.size}`,
      file: random.below(files),
      kind: draw < 12 ? 'bad' : draw < 22 ? 'flaky' : draw < 24 ? 'hangs' : 'fine',
      topic: random.chance(0.4) ? random.below(topics) : null,
    };
    changes.set(change.name, change);
    return change;
  };
  const faultsOf = (tree: Tree): readonly string[] => {
    const names = new Set(namesIn(tree));
    const all = [...names].flatMap((name) => changes.get(name) ?? []);
    const alone = all.filter(({ kind }) => kind === 'bad').map(({ name }) => name);
    const pairs = all.flatMap(({ name, topic }, at) =>
      all
        .slice(at + 1)
        .flatMap((other) =>
          topic !== null && other.topic === topic ? `${name}+${other.name}` : [],
        ),
    );
    return [...alone, ...pairs].filter((fault) => !names.has(`cure:${fault}`));
  };
  return {
    head: () => head,
    treeOf: (id) => commitOf(id).tree,
    parentOf: (id) => commitOf(id).parent,
    commit,
    moveTo: (id) => {
      head = id;
    },
    has: (tip, id) => historyOf(tip).includes(id),
    landedSince: (id) => {
      const before = new Set(historyOf(id));
      return historyOf(head).flatMap((each) =>
        before.has(each) ? [] : (commitOf(each).taskId ?? []),
      );
    },
    newChange,
    change: (name) => changes.get(name),
    faultsOf,
    failsOnce: (folder) => {
      if (failed.delete(folder) || random.chance(0.6)) return false;
      failed.add(folder);
      return true;
    },
    commitByHand: () => {
      const { tree } = commitOf(head);
      const faults = faultsOf(tree);
      const names =
        faults.length > 0 && random.chance(0.7)
          ? faults.map((fault) => `cure:${fault}`)
          : [newChange().name];
      head = commit(treeWith(tree, ...names), head, null);
    },
    works,
    begin: ({ taskId, attempt, includes }) => {
      const key = workKey(taskId, attempt);
      const work: Work = works.get(key) ?? {
        ...{ taskId, attempt, includes },
        branch: `agent/${taskId}/${attempt}`,
        base: head,
        ...{ change: null, isSaved: false, isComplete: false },
        ...{ merged: null, discarded: null, refused: null, landing: null },
      };
      works.set(key, work);
      return work;
    },
  };
};
