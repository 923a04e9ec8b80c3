import type {
  Car,
  Landed,
  MergeConflict,
  Merged,
  Outcome,
  QueueMember,
  Train,
} from '../../../machines/merge-queue/merge-queue-context.ts';
import { someOf } from '../../../machines/plural.ts';
import type { Onto } from '../../../machines/review.ts';
import type { TaskId } from '../../../machines/task.ts';
import { commitOf, commitTree, contains, mergeTrees, moveBranch } from '../git/commits.ts';
import { GitError } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { readSigning, type Signing, unsigned } from '../git/signing.ts';
import { firstBase, mergeBase, type WorkRecord } from '../git/work-records.ts';
import {
  findSide,
  type Merge,
  mergeOnto,
  type Side,
  sameLines,
  updateCheckout,
} from '../merging/merge.ts';
import { type Checkout, stop } from '../merging/obstacles.ts';
import type { Regenerated } from '../merging/regenerate.ts';
import type { Update } from '../merging/update-files.ts';
import type { TakenIn, TrainToLand, Updated, Workspace } from '../port.ts';
import { workOf } from './changes.ts';
import { findCheckedOut } from './open-work.ts';
import { sizeOfWork } from './save-work.ts';
import { findUnmerged, tipOfWork } from './unmerged.ts';
import { unresolvedIn } from './verified-work.ts';
import type { WorkParts } from './work-parts.ts';

type SavedRecord = WorkRecord & { readonly commit: string };

const landedAtMost = 10;

/**
 * Tasks that landed on the branch since it left the history of a commit, the last first; of those that
 * changed some files, if any are given.
 */
const landedSince = async (
  { git }: GitDirs,
  head: string,
  commit: string,
  files: readonly string[] = [],
): Promise<readonly string[]> => {
  const format = '--format=%(trailers:key=Task,valueonly,separator=%x2C)';
  const found = await git([
    'log',
    `-${landedAtMost}`,
    '--first-parent',
    format,
    `${commit}..${head}`,
    ...(files.length === 0 ? [] : ['--', ...files]),
  ]);
  const ids = found.stdout.toString().split(/[,\n]/).filter(Boolean);
  return found.ok ? [...new Set(ids)] : [];
};

/** Names the tasks that changed the same lines. */
const namingOthers = async <Outcome extends Merged>(
  dirs: GitDirs,
  merged: Outcome,
  tip: string,
  head: string,
): Promise<Outcome> => {
  if (merged.status !== 'conflict' || merged.same_lines !== true) return merged;
  const others = await landedSince(dirs, head, tip, merged.files);
  if (others.length === 0) return merged;
  return { ...merged, why: `${merged.why} (${someOf(others)})`, with: others };
};

const peopleAtMost = 20;

/** People with commits on the branch of an attempt since it was saved, those of the project's branch left out. */
const peopleOn = async (
  { git }: GitDirs,
  head: string,
  saved: string,
  tip: string,
): Promise<readonly string[]> => {
  if (tip === saved) return [];
  const asked = [
    'log',
    `-${peopleAtMost}`,
    '--no-merges',
    '--format=%an <%ae>',
    tip,
    `^${saved}`,
    `^${head}`,
  ];
  const found = await git(asked);
  const names = found.stdout.toString().split('\n').filter(Boolean);
  return found.ok
    ? [...new Set(names)].filter((name) => !name.endsWith('<agent-server@localhost>'))
    : [];
};

const inOneLine = (command: string): string => command.replace(/\s+/g, ' ').trim();

/** The message of a commit that lands, with its evidence. */
const messageOfCar = (
  { taskId, attempt, title }: QueueMember,
  { undoes, people = [] }: Pick<Car, 'undoes' | 'people'>,
  tree: string,
  commands: readonly string[] | null,
): string => {
  const evidence = commands?.map((command) => `Verified: ${inOneLine(command)}\n`) ?? [];
  const verified = commands === null ? '' : `${evidence.join('')}Verified-Tree: ${tree}\n`;
  const subject =
    undoes === undefined ? title : `Undo "${title}"\n\nThis reverts commit ${undoes}.`;
  const authors = people.map((person) => `Co-authored-by: ${person}\n`).join('');
  return `${subject}\n\nTask: ${taskId}\nAttempt: ${attempt}\n${verified}${authors}`;
};

const conflict = (why: string, files: readonly string[] = []): MergeConflict => ({
  status: 'conflict',
  branch: '',
  why,
  files,
});
const detached: MergeConflict = {
  ...conflict('the project is on no branch (detached HEAD)'),
  detached: true,
};

const endAll = (members: readonly QueueMember[], merged: Merged): Train => ({
  into: '',
  head: '',
  tree: '',
  cars: [],
  ended: members.map(({ taskId, attempt }) => ({ taskId, attempt, merged })),
});

const testedBy = ({
  commands,
  tested_at,
  tested_seconds,
}: NonNullable<WorkRecord['landing']>): WorkRecord['tested'] =>
  commands === null || tested_at === undefined || tested_seconds === undefined
    ? null
    : { commands, tested_at, tested_seconds };

interface SettledLanding {
  readonly merged: Extract<Merged, { status: 'merged' }>;
  readonly undoes: boolean;
}

/** Notes that work landed, or was taken back, when the branch has the commit. */
const createSettle =
  ({ records }: WorkParts, remember: Remember) =>
  async (
    dirs: GitDirs,
    head: string,
    into: string,
    noted: WorkRecord | null,
  ): Promise<SettledLanding | null> => {
    if (noted?.landing == null) return null;
    const { landing } = noted;
    const { commit, tip, undoes } = landing;
    if (!(await contains(dirs, head, commit))) return null;
    const record = { ...noted, landing: null };
    const tested = testedBy(landing);
    if (!undoes) await remember(dirs, record, tip, commit, tested);
    else {
      const reason = `undone in ${into} (${head.slice(0, 12)})`;
      const discarded = { at: Date.now(), reason, undone: true } as const;
      await records.write({ ...record, merged: null, merged_at: null, discarded });
    }
    const { commands, ...when } = tested ?? {};
    const evidence = commands === undefined ? {} : { tested: commands, ...when };
    return { merged: { status: 'merged', commit, into, ...evidence }, undoes };
  };
type Settle = ReturnType<typeof createSettle>;

type Remember = (
  dirs: GitDirs,
  record: WorkRecord,
  tip: string,
  merged: string,
  tested?: WorkRecord['tested'],
) => Promise<void>;

const createRemember =
  ({ records }: WorkParts, onMerged: (record: WorkRecord) => void): Remember =>
  async (dirs, record, tip, merged, tested = null) => {
    const work = { ...record, commit: tip };
    const size = tip === record.commit ? record.size : sizeOfWork(await workOf(dirs, work));
    const after = { ...work, size, merged, merged_at: Date.now(), refused: null, tested };
    onMerged(after);
    await records.write(after);
  };

/** Why the work of a record cannot be merged, before git merges it; else the commit that has it. */
const tipToMerge = async (
  dirs: GitDirs,
  records: WorkParts['records'],
  record: SavedRecord,
  cars: readonly Car[],
): Promise<string | MergeConflict> => {
  const { branch } = record;
  const tip = await tipOfWork(dirs, records, record);
  const refused = (why: string): MergeConflict => ({ ...conflict(why), branch });
  if (tip === null)
    return {
      ...refused(`somebody rewrote ${branch}: it does not have the commit of the attempt any more`),
      rewritten: true,
    };
  const left = await unresolvedIn(dirs, record, tip);
  if (left.length > 0)
    return { ...sameLines('', branch, left), why: 'conflict markers are left in it' };
  const first = await findUnmerged(dirs, records, record, cars);
  if (first === null) return tip;
  const { task_id: earlier } = first;
  if ((await records.read(earlier, first.attempt))?.discarded != null)
    return {
      ...refused(`${earlier}'s work is in it and was discarded: run it again, without that`),
      run_again: true,
    };
  return { ...refused(`${earlier}'s work is in it and is not merged yet`), merge_first: first };
};

type Coupling = Pick<Train, 'cars' | 'into'> & { readonly head: Side };

/**
 * Takes back work that landed: merges a commit on top of the merged one, with the tree from before it, so
 * that any git can. @returns null when what the cars before it bring is in the way
 */
const coupleInverse = async (
  dirs: GitDirs,
  { head, cars, into }: Coupling,
  record: SavedRecord,
  signal: AbortSignal | undefined,
): Promise<Car | Merged | null> => {
  const { merged, commit, role, branch, attempt } = record;
  if (merged === null || !(await contains(dirs, head.commit, merged))) return { status: 'nothing' };
  const before = await findSide(dirs, merged === commit ? firstBase(record) : `${merged}^1`);
  if (before === null) return { status: 'nothing' };
  const inverse = { tree: before.tree, parents: [merged], message: 'Undo', role };
  const from = await commitTree(dirs, inverse, signal);
  const merge = { branch, commit: from, style: 'squash', role, into, base: null } as const;
  const last = cars.at(-1);
  const side = await mergeOnto(dirs, last ?? head, merge, signal);
  const taskId = record.task_id as TaskId;
  if (!('status' in side)) {
    const since = await landedSince(dirs, head.commit, merged);
    return { taskId, attempt, branch, from, undoes: merged, since, ...side };
  }
  if (last !== undefined) return null;
  if (side.status !== 'conflict') return side;
  const why = `later changes of ${into} are in the same lines`;
  return namingOthers(dirs, { ...side, why }, merged, head.commit);
};

/** The car, unless something of the user is in its way. */
const unlessStopped = async (
  dirs: GitDirs,
  checkout: Checkout,
  update: Omit<Update, 'target'>,
  car: Car,
): Promise<Car | MergeConflict> => {
  // Work that cannot be looked at holds up no other.
  const stopped = await updateCheckout(dirs, checkout, {
    ...update,
    target: car.commit,
    isTrial: true,
  }).catch((error: unknown) => {
    if (error instanceof GitError) return stop(error.message);
    throw error;
  });
  return stopped === null ? car : { ...conflict(stopped.why, stopped.files), branch: car.branch };
};

/** @returns the car; what came of the member; null: it waits for those before it */
const createMergeWork =
  ({ records }: WorkParts, remember: Remember) =>
  async (
    dirs: GitDirs,
    { head, cars, into }: Coupling,
    { taskId, attempt, style, undo }: QueueMember,
    regenerated: Regenerated,
    signal: AbortSignal,
  ): Promise<Car | Merged | null> => {
    const record = await records.read(taskId, attempt);
    if (record?.commit == null) return { status: 'nothing' };
    if (record.discarded !== null)
      return { ...conflict('it was discarded'), branch: record.branch, run_again: true };
    if (record.kind !== dirs.repository.kind) return null;
    const { branch, role, commit, merged: before } = record;
    if (undo) return coupleInverse(dirs, { head, cars, into }, { ...record, commit }, signal);
    const tip = await tipToMerge(dirs, records, { ...record, commit }, cars);
    if (tip === commit && before !== null && (await contains(dirs, head.commit, before)))
      return { status: 'nothing', commit: before };
    const last = cars.at(-1);
    if (typeof tip !== 'string')
      return last === undefined || tip.merge_first === undefined ? tip : null;
    const resolve: Merge['resolve'] = (ours, conflicted) =>
      regenerated.resolve(dirs, ours, { taskId, attempt, role }, conflicted);
    const merge = { branch, commit: tip, style, role, into, base: mergeBase(record), resolve };
    const merged = await mergeOnto(dirs, last ?? head, merge, signal);
    if (!('status' in merged)) {
      const since = await landedSince(dirs, head.commit, tip);
      const { commit: own, tree } = merged;
      const people = await peopleOn(dirs, head.commit, commit, tip);
      return { taskId, attempt, branch, from: tip, since, people, commit: own, tree };
    }
    // What the cars before it bring may not land.
    if (last !== undefined) return null;
    if (merged.status === 'nothing' && merged.commit !== undefined)
      await remember(dirs, record, tip, merged.commit);
    return namingOthers(dirs, merged, tip, head.commit);
  };

/** Merges each member onto the branch and those before it. */
const createBuild = (parts: WorkParts, remember: Remember, settle: Settle) => {
  const { options, records, stores } = parts;
  const mergeWork = createMergeWork(parts, remember);

  /** As `mergeWork`; what landed in a crash is noted first. */
  const couple = async (
    dirs: GitDirs,
    onto: Coupling,
    member: QueueMember,
    regenerated: Regenerated,
    signal: AbortSignal,
  ): Promise<Car | Merged | null> => {
    const { taskId, attempt, undo, reopened } = member;
    const { head, into } = onto;
    const landed = await settle(dirs, head.commit, into, await records.read(taskId, attempt));
    if (landed !== null && landed.undoes === (undo === true)) return landed.merged;
    return reopened
      ? { ...conflict('its task is not complete any more'), reopened: true }
      : mergeWork(dirs, onto, member, regenerated, signal);
  };

  return async (
    dirs: GitDirs,
    members: readonly QueueMember[],
    regenerated: Regenerated,
    signal: AbortSignal,
  ): Promise<Train> => {
    const checkout = await stores.checkout(dirs, options.filters, signal);
    const { into } = checkout;
    if (checkout.branch === null) return endAll(members, detached);
    const head = await findSide(dirs, 'HEAD');
    if (head === null) throw new GitError('the branch of the project has no commit');
    const [cars, ended]: [Car[], Outcome[]] = [[], []];
    for (const member of members) {
      const coupled = await couple(dirs, { head, cars, into }, member, regenerated, signal);
      signal.throwIfAborted();
      if (regenerated.wanted() !== null) break;
      if (coupled === null) continue;
      const { taskId, attempt } = member;
      const found =
        'status' in coupled
          ? coupled
          : await unlessStopped(dirs, checkout, { head: head.commit, signal }, coupled);
      if ('status' in found) ended.push({ taskId, attempt, merged: found });
      else cars.push(found);
    }
    return { into, head: head.commit, tree: head.tree, cars, ended };
  };
};

/** @returns the commits, one for each member, the last of which has the tree that was tested */
const commitCars = async (
  dirs: GitDirs,
  records: WorkParts['records'],
  { head, cars, members, commands }: TrainToLand,
  signing: Signing,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> => {
  const tree = cars.at(-1)?.tree ?? '';
  const commits: string[] = [];
  for (const [at, car] of cars.entries()) {
    const member = members[at];
    const role = (await records.read(car.taskId, car.attempt))?.role;
    if (member === undefined || role === undefined)
      throw new GitError(`the record of ${car.taskId} is gone`);
    const message = messageOfCar(member, car, tree, commands);
    if (signing !== unsigned && member.style === 'ff')
      throw new GitError('a fast-forward cannot be signed (merge.sign): merge it as one commit');
    const keeps = member.style === 'merge' && car.undoes === undefined;
    const parents = [commits.at(-1) ?? head, ...(keeps ? [car.from] : [])];
    const commit = { tree: car.tree, parents, message, role, signing };
    commits.push(member.style === 'ff' ? car.from : await commitTree(dirs, commit, signal));
  }
  return commits;
};

const signingOf = async (
  { program, userEnv = {} }: WorkParts['options'],
  { sign = false }: TrainToLand,
): Promise<Signing> => (sign ? readSigning(program, userEnv) : unsigned);

const hasDiscarded = async (
  records: WorkParts['records'],
  cars: readonly Car[],
): Promise<boolean> => {
  for (const { taskId, attempt } of cars)
    if ((await records.read(taskId, attempt))?.discarded !== null) return true;
  return false;
};

const createLand =
  ({ options, records, stores }: WorkParts, settle: Settle) =>
  async (dirs: GitDirs, train: TrainToLand, signal: AbortSignal | undefined): Promise<Landed> => {
    const { head, cars, evidence, isWanted = async () => true } = train;
    const checkout = await stores.checkout(dirs, options.filters, signal);
    if (checkout.branch === null) return { status: 'stopped', why: detached };
    if (checkout.into !== train.into) {
      const why = `the project switched from ${train.into} to ${checkout.into} meanwhile`;
      return { status: 'stopped', why: conflict(why) };
    }
    if ((await commitOf(dirs, 'HEAD')) !== head) return { status: 'moved' };
    // Then another train is built, without it.
    if ((await hasDiscarded(records, cars)) || !(await isWanted())) return { status: 'moved' };
    const commits = await commitCars(dirs, records, train, await signingOf(options, train), signal);
    const target = commits.at(-1) ?? head;
    const commands = train.commands === null ? null : [...train.commands];
    for (const [at, { taskId, attempt, from: tip, undoes }] of cars.entries()) {
      const record = await records.read(taskId, attempt);
      if (record === null) continue;
      const commit = commits[at] ?? target;
      const landing = { commit, tip, undoes: undoes !== undefined, commands, ...evidence };
      await records.write({ ...record, landing });
    }
    const obstacle = await updateCheckout(dirs, checkout, { head, target, signal });
    if (obstacle !== null)
      return { status: 'stopped', why: conflict(obstacle.why, obstacle.files) };
    for (const { taskId, attempt } of cars)
      await settle(dirs, target, checkout.into, await records.read(taskId, attempt));
    return { status: 'landed', into: checkout.into, commits };
  };

const checkedOut = ({ branch }: WorkRecord): string =>
  `you have ${branch} checked out, here or in another worktree: switch to another branch there first`;

/** Commits of others on the branch of saved work at a forge: its branch here gets them, too. */
const createTakeIn = ({ records, stores }: WorkParts): Workspace['takeIn'] => {
  const takeIn = async (
    dirs: GitDirs,
    record: SavedRecord,
    { commit, pushed }: Parameters<Workspace['takeIn']>[2],
    signal: AbortSignal,
  ): Promise<TakenIn> => {
    const { branch, role, task_id } = record;
    const refuse = (why: string): TakenIn => ({ status: 'refused', why });
    const tip = await tipOfWork(dirs, records, record);
    if (tip === null) return refuse(`somebody rewrote ${branch}`);
    if (!(await contains(dirs, commit, pushed)))
      return refuse(
        `somebody replaced the commits that this server pushed (${commit.slice(0, 12)})`,
      );
    const [theirs, own] = [await findSide(dirs, commit), await findSide(dirs, tip)];
    if (theirs === null || own === null) return refuse(`the commit ${tip} of the work is gone`);
    if (await contains(dirs, tip, commit)) return { status: 'taken', ...own };
    const ref = `refs/heads/${branch}`;
    if ((await findCheckedOut(dirs.repository)).has(ref)) return refuse(checkedOut(record));
    let both = theirs;
    if (!(await contains(dirs, commit, tip))) {
      const { tree, conflicts } = await mergeTrees(dirs, commit, tip, signal);
      if (conflicts !== undefined)
        return refuse(sameLines('what others pushed', branch, conflicts).why);
      const message = `Merge what others pushed into the work of ${task_id}`;
      const merge = { tree, parents: [tip, commit], message, role };
      both = { commit: await commitTree(dirs, merge, signal), tree };
    }
    const isThere = (await commitOf(dirs, ref)) !== null;
    const moved = await moveBranch(dirs, branch, both.commit, isThere ? tip : null);
    return moved.ok ? { status: 'taken', ...both } : refuse(`somebody moved ${branch} meanwhile`);
  };
  return async (taskId, attempt, others, signal) => {
    const record = await records.read(taskId, attempt);
    if (record?.commit == null || !record.closed || record.discarded !== null) return null;
    const { kind, commit } = record;
    return stores.use(kind, (dirs) => takeIn(dirs, { ...record, commit }, others, signal));
  };
};

/** Brings the project's branch, or another one, into saved work, without a file of the user. */
const createUpdating = ({
  records,
  stores,
}: WorkParts): Pick<Workspace, 'update' | 'keepUpdate'> => {
  const updateIn = async (
    dirs: GitDirs,
    record: SavedRecord,
    signal: AbortSignal | undefined,
    other: Onto | undefined,
  ): Promise<Updated> => {
    const { branch, role, task_id } = record;
    // What it began with lands at the forge, too.
    const alone = other === undefined ? record : { ...record, includes: [] };
    const tip = await tipToMerge(dirs, records, alone, []);
    if (typeof tip !== 'string') return tip;
    if ((await findCheckedOut(dirs.repository)).has(`refs/heads/${branch}`))
      return conflict(checkedOut(record));
    const [head, own] = [await findSide(dirs, other?.commit ?? 'HEAD'), await findSide(dirs, tip)];
    if (head === null || own === null) return conflict(`the commit ${tip} of the work is gone`);
    const into = other?.name ?? stores.targetOf(dirs).into;
    const ends = { into, from: tip, head: head.commit, headTree: head.tree };
    if (await contains(dirs, tip, head.commit)) return { ...ends, status: 'current', ...own };
    const base = mergeBase(record);
    const { tree, conflicts } = await mergeTrees(dirs, head.commit, tip, signal, base);
    if (conflicts !== undefined)
      return namingOthers(dirs, sameLines(into, branch, conflicts), tip, head.commit);
    const message = `Merge ${into} into the work of ${task_id}`;
    const merge = { tree, parents: [tip, head.commit], message, role };
    return { ...ends, status: 'clean', commit: await commitTree(dirs, merge, signal), tree };
  };

  const keepIn = async (
    dirs: GitDirs,
    record: WorkRecord,
    { from, head, commit }: Parameters<Workspace['keepUpdate']>[2],
  ): Promise<string | null> => {
    // It had all: that it did not fit before does not count any more.
    if (commit === from) {
      if (record.refused?.updatable) await records.write({ ...record, refused: null });
      return null;
    }
    const ref = `refs/heads/${record.branch}`;
    if ((await findCheckedOut(dirs.repository)).has(ref)) return checkedOut(record);
    const isThere = (await commitOf(dirs, ref)) !== null;
    const moved = await moveBranch(dirs, record.branch, commit, isThere ? from : null);
    if (!moved.ok) return `somebody moved ${record.branch} meanwhile`;
    const after = { ...record, commit, first_base: head, head, refused: null };
    await records.write({ ...after, size: sizeOfWork(await workOf(dirs, after)) });
    return null;
  };

  return {
    update: async (taskId, attempt, signal, other) => {
      const record = await records.read(taskId, attempt);
      if (record?.commit == null || !record.closed || record.merged !== null) return null;
      if (record.discarded !== null) return null;
      const { kind, commit } = record;
      return stores.use(kind, (dirs) => updateIn(dirs, { ...record, commit }, signal, other));
    },
    keepUpdate: async (taskId, attempt, update) => {
      const record = await records.read(taskId, attempt);
      if (record === null) throw new GitError(`the record of ${taskId} is gone`);
      if (record.merged !== null || record.discarded !== null)
        return 'its work was merged or discarded meanwhile';
      return stores.use(record.kind, (dirs) => keepIn(dirs, record, update));
    },
  };
};

/** Saved work becomes part of the project's branch, several attempts at once. */
export const createLanding = (
  parts: WorkParts,
  onMerged: (record: WorkRecord) => void,
): Pick<Workspace, 'land' | 'update' | 'keepUpdate' | 'takeIn' | 'noteLanded'> & {
  /** As of the port. Incomplete when files are wanted first. */
  readonly build: (
    members: readonly QueueMember[],
    regenerated: Regenerated,
    signal: AbortSignal,
  ) => Promise<Train>;
} => {
  const { records, stores } = parts;
  const remember = createRemember(parts, onMerged);
  const settle = createSettle(parts, remember);
  const [buildIn, landIn] = [createBuild(parts, remember, settle), createLand(parts, settle)];
  const kindOf = async (members: readonly QueueMember[]): Promise<WorkRecord['kind'] | null> => {
    for (const { taskId, attempt } of members) {
      const record = await records.read(taskId, attempt);
      if (record?.commit != null) return record.kind;
    }
    return null;
  };
  return {
    ...createUpdating(parts),
    takeIn: createTakeIn(parts),
    noteLanded: async (taskId, attempt, commit) => {
      const record = await records.read(taskId, attempt);
      if (record?.commit == null || record.merged !== null || record.discarded !== null) return;
      const saved = { ...record, commit: record.commit };
      await stores.use(record.kind, async (dirs) => {
        const tip = (await tipOfWork(dirs, records, saved)) ?? saved.commit;
        const landed = { ...record, landing: { commit, tip, undoes: false, commands: null } };
        await records.write(landed);
        const head = await commitOf(dirs, 'HEAD');
        if (head !== null) await settle(dirs, head, stores.targetOf(dirs).into, landed);
      });
    },
    build: async (members, regenerated, signal) => {
      signal.throwIfAborted();
      const kind = await kindOf(members);
      if (kind === null) return endAll(members, { status: 'nothing' });
      const interrupted = await stores.recover();
      if (interrupted === null)
        return stores.use(kind, (dirs) => buildIn(dirs, members, regenerated, signal));
      stores.shown();
      return endAll(members, conflict(interrupted));
    },
    land: async (train, signal) => {
      signal?.throwIfAborted();
      const kind = await kindOf(train.members);
      if (kind === null) throw new GitError('the records of the work are gone');
      return stores.use(kind, (dirs) =>
        landIn(dirs, train, signal).catch((error: unknown): Landed => {
          signal?.throwIfAborted();
          if (!(error instanceof GitError)) throw error;
          return { status: 'stopped', why: conflict(error.message) };
        }),
      );
    },
  };
};
