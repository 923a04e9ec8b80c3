import type { Workspace } from '../../src/actors/workspace/port.ts';
import { createSharedWorkspace } from '../../src/actors/workspace/worktrees/select-workspace.ts';
import type { WorkView } from '../../src/actors/workspace/worktrees/work-view.ts';
import type {
  Car,
  MergeConflict,
  Merged,
  Outcome,
  QueueMember,
} from '../../src/machines/merge-queue/merge-queue-context.ts';
import type { TaskId } from '../../src/machines/task.ts';
import {
  namesIn,
  type Project,
  type Tree,
  treeWith,
  treeWithout,
  type Work,
  workKey,
} from './project.ts';
import { candidateFolder } from './test-in.ts';
import { type Life, through, type World } from './world.ts';

const shared: Workspace = {
  ...createSharedWorkspace({ projectRoot: '/simulated' }),
  diff: async (_, attempt) => ({ attempt: attempt ?? 1, patch: '+++ b/a.js\n', guarded: [] }),
  open: async () => ({
    root: '/simulated',
    readable: [],
    notes: [],
    git: null,
    conflicts: [],
    isUsersCommit: true,
    isNew: false,
  }),
};

const into = 'main';
const branch = '';
const conflict = (why: string, files: readonly string[] = []): MergeConflict => ({
  ...{ status: 'conflict', branch, why, files },
});

const viewOf = (work: Work | undefined): WorkView | null => {
  if (work?.change == null || !work.isSaved) return null;
  const { merged, discarded, refused, isComplete } = work;
  return {
    ...{ branch: work.branch, commit: work.change.name, files: 1, insertions: 1, deletions: 0 },
    ...(merged && { merged_at: new Date(merged.at).toISOString(), merge_commit: merged.commit }),
    ...(discarded && { discarded_at: new Date(discarded.at).toISOString() }),
    ...(isComplete ? {} : { incomplete: true as const }),
    ...(merged
      ? { merge: { state: 'landed' as const } }
      : refused !== null && { merge: { state: 'refused' as const, message: refused } }),
  };
};

type Side = Pick<Car, 'commit' | 'tree'>;

/** Changes of one side in the files of the other, which did not know of them. */
const sameFiles = (
  { change }: Project,
  ours: Tree,
  known: Tree,
  own: readonly string[],
): readonly string[] => {
  const files = new Set(own.map((name) => change(name)?.file));
  const later = namesIn(ours).filter((name) => !namesIn(known).includes(name));
  return later.filter((name) => !own.includes(name) && files.has(change(name)?.file));
};

/** Notes what landed, or was taken back, when the branch has the commit. */
const settle = (project: Project, work: Work | undefined, now: number): Work['landing'] => {
  const landing = work?.landing ?? null;
  if (work === undefined || landing === null || !project.has(project.head(), landing.commit))
    return null;
  work.landing = null;
  if (landing.undoes)
    Object.assign(work, { merged: null, discarded: { at: now, reason: 'undone' } });
  else Object.assign(work, { merged: { commit: landing.commit, at: now }, refused: null });
  return landing;
};

/** Merges work onto a side, as the real workspace does. Null: it waits for what lands before it. */
const couple = (
  project: Project,
  cars: readonly Car[],
  { style, undo, reopened, taskId, attempt }: QueueMember,
  now: number,
): Car | Merged | null => {
  const { treeOf, parentOf, has, commit } = project;
  const head = project.head();
  const last = cars.at(-1);
  const ours: Side = last ?? { commit: head, tree: treeOf(head) };
  const work = project.works.get(workKey(taskId, attempt));
  const landed = settle(project, work, now);
  if (landed !== null && landed.undoes === (undo === true))
    return { status: 'merged', commit: landed.commit, into };
  if (reopened) return conflict('its task is not complete any more');
  if (work?.change == null || !work.isSaved) return { status: 'nothing' };
  const { change, base, includes, merged } = work;
  if (work.discarded !== null) return conflict('it was discarded');
  const carOf = (tree: Tree, since: string, undoes?: string): Car | Merged =>
    tree === ours.tree
      ? { status: 'nothing', commit: ours.commit }
      : {
          ...{ taskId, attempt, branch: work.branch, from: change.name, tree },
          commit: commit(tree, ours.commit, taskId),
          since: project.landedSince(since),
          ...(undoes === undefined ? {} : { undoes }),
        };
  if (undo) {
    if (merged === null || !has(head, merged.commit)) return { status: 'nothing' };
    const before = treeOf(parentOf(merged.commit) ?? 'm0');
    const own = namesIn(treeOf(merged.commit)).filter((name) => !namesIn(before).includes(name));
    if (sameFiles(project, ours.tree, treeOf(merged.commit), own).length > 0)
      return last === undefined ? conflict('later changes of main are in the same lines') : null;
    return carOf(treeWithout(ours.tree, new Set(own)), merged.commit, merged.commit);
  }
  if (merged !== null && has(head, merged.commit))
    return { status: 'nothing', commit: merged.commit };
  const isThere = ({ merged: at, ...other }: Work): boolean =>
    (at !== null && has(head, at.commit)) ||
    cars.some((car) => car.taskId === other.taskId && car.attempt === other.attempt);
  const first = includes.find((other) => !isThere(other));
  if (first?.discarded != null) return conflict(`${first.taskId}'s work in it was discarded`);
  if (first !== undefined) {
    const merge_first = {
      task_id: first.taskId,
      attempt: first.attempt,
      complete: first.isComplete,
    };
    const why = `${first.taskId}'s work is in it and is not merged yet`;
    return last === undefined ? { ...conflict(why), merge_first } : null;
  }
  if (style === 'ff' && ours.commit !== base)
    return last === undefined ? { ...conflict('main has moved on'), moved_on: true } : null;
  const known = treeWith(treeOf(base), ...includes.flatMap((other) => other.change?.name ?? []));
  const files = sameFiles(project, ours.tree, known, [change.name]);
  if (files.length > 0)
    return last === undefined ? { ...conflict('the same lines', files), same_lines: true } : null;
  const car = carOf(treeWith(ours.tree, change.name), base);
  if (!('status' in car)) return car;
  if (last !== undefined) return null;
  if (car.status === 'nothing' && car.commit !== undefined)
    work.merged = { commit: car.commit, at: now };
  return car;
};

/** The workspace of one server over the repository that outlives it. */
export const workspaceOf = (world: World, life: Life): Workspace => {
  const { project, random, weather, clock, invariants } = world;
  if (project === null) return shared;
  const { works, treeOf } = project;
  const asked = <Result>(atMostMs: number, act: () => Result): Promise<Result> =>
    through(world, life, atMostMs, act);
  const find = (taskId: string, attempt: number) => works.get(workKey(taskId, attempt));
  /** The latest work of a task, which who depends on it begins with while it is not merged. */
  const toInclude = (taskId: TaskId): readonly Work[] => {
    const latest = [...works.values()].findLast(
      (work) => work.taskId === taskId && work.isComplete,
    );
    return latest?.change == null || latest.merged !== null || latest.discarded !== null
      ? []
      : [...latest.includes, latest];
  };

  return {
    ...shared,
    open: async ({ taskId, attempt }, after = [], signal) => {
      project.begin({ taskId, attempt, includes: [...new Set(after.flatMap(toInclude))] });
      return shared.open({ taskId, attempt, role: 'engineer', options: {} }, after, signal);
    },
    save: (input, _title, isComplete = true) =>
      asked(200, () => {
        const work = project.begin({ ...input, includes: [] });
        if (!work.isSaved && random.chance(0.9)) work.change = project.newChange();
        Object.assign(work, { isSaved: true, isComplete });
        const { change, base } = work;
        return change === null
          ? null
          : {
              ...{ branch: work.branch, base, commit: change.name, notes: [] },
              ...{ files: 1, insertions: 1, deletions: 0 },
            };
      }),
    workOf: async (taskId, attempt) => viewOf(find(taskId, attempt)),
    build: (members, signal) =>
      asked(400, () => {
        signal?.throwIfAborted();
        const [cars, ended]: [Car[], Outcome[]] = [[], []];
        for (const member of members) {
          const found = couple(project, cars, member, clock.now());
          if (found === null) continue;
          const { taskId, attempt } = member;
          if ('status' in found) ended.push({ taskId, attempt, merged: found });
          else cars.push(found);
        }
        const head = project.head();
        invariants.merges.built(head, cars);
        return { into, head, tree: treeOf(head), cars, ended };
      }),
    land: async (train) => {
      const { head, cars, isWanted } = train;
      if (project.head() === head && (await isWanted?.()) === false) return { status: 'moved' };
      return asked(400, () => {
        if (project.head() !== head) return { status: 'moved' } as const;
        if (cars.some((car) => find(car.taskId, car.attempt)?.discarded !== null))
          return { status: 'moved' } as const;
        if (!weather.calm && random.chance(0.05))
          return {
            status: 'stopped',
            why: conflict('your changes of a file are in the way'),
          } as const;
        const commits: string[] = [];
        for (const { tree, taskId } of cars)
          commits.push(project.commit(tree, commits.at(-1) ?? head, taskId));
        const target = commits.at(-1) ?? head;
        invariants.merges.lands(train);
        for (const [at, { taskId, attempt, undoes }] of cars.entries()) {
          const work = find(taskId, attempt);
          const landing = { commit: commits[at] ?? target, undoes: undoes !== undefined };
          if (work !== undefined) work.landing = landing;
        }
        project.moveTo(target);
        // Between the branch and what is written of it is where a crash hurts most.
        if (random.chance(5 * weather.crash)) life.crash();
        if (life.alive)
          for (const { taskId, attempt } of cars)
            settle(project, find(taskId, attempt), clock.now());
        return { status: 'landed', into, commits } as const;
      });
    },
    noteRefused: (taskId, attempt, why) =>
      asked(50, () => {
        invariants.merges.refused(taskId, attempt, why);
        const work = find(taskId, attempt);
        if (work !== undefined && work.merged === null) work.refused = why.why;
      }),
    inCandidate: (commit, work) =>
      work({ root: `${candidateFolder}${commit}`, readable: [], git: null }),
    discard: (taskId, attempt, reason) =>
      asked(50, () => {
        const work = find(taskId, attempt);
        if (work?.change == null || !work.isSaved) return null;
        if (work.merged !== null) return 'merged';
        work.discarded ??= { at: clock.now(), reason };
        return 'discarded';
      }),
  };
};
