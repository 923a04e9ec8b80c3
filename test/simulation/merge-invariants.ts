import type { TrainToLand } from '../../src/actors/workspace/port.ts';
import type {
  Car,
  MergeConflict,
  Merged,
} from '../../src/machines/merge-queue/merge-queue-context.ts';
import { namesIn, type Project, type Tree, type Work, workKey } from './project.ts';

/** Says which invariant of merges does not hold. */
export interface MergeInvariants {
  /** The commands passed on a tree. */
  passed(tree: Tree): void;
  built(head: string, cars: readonly Car[]): void;
  /** The branch is about to move. */
  lands(train: TrainToLand): void;
  refused(taskId: string, attempt: number, why: MergeConflict): void;
  /** How often the branch has moved. */
  moves(): number;
  /**
   * A person hears what came of a merge, or of an undo; `since`: the moves when it was asked for. Of many
   * it is heard when the last one has ended.
   */
  answered(work: Named, merged: Pick<Merged, 'status'>, isUndo: boolean, since: number): void;
  /** Nothing is on its way any more. */
  atEnd(): void;
}

type Named = Pick<Work, 'taskId' | 'attempt'>;

interface Coupled {
  readonly tree: Tree;
  /** The tree that the car was merged onto, and that of the branch. */
  readonly onto: Tree;
  readonly head: Tree;
}

const nothingMerges: MergeInvariants = {
  passed: () => {},
  built: () => {},
  lands: () => {},
  refused: () => {},
  moves: () => 0,
  answered: () => {},
  atEnd: () => {},
};

export const createMergeInvariants = (
  project: Project | null,
  hasCommands: boolean,
  require: (holds: boolean, what: () => string) => void,
): MergeInvariants => {
  if (project === null) return nothingMerges;
  const { works, treeOf } = project;
  const passed = new Set<Tree>();
  const coupled = new Map<string, Coupled>();
  /** Work that landed, and was not taken back since. */
  const landed = new Set<string>();
  /** The number of the last move that brought a change, and of the last one that took it back. */
  const [came, went] = [new Map<string, number>(), new Map<string, number>()];
  let moved = 0;
  const isOn = (name: string): boolean => namesIn(treeOf(project.head())).includes(name);
  const changeOf = ({ taskId, attempt }: Named): string | undefined =>
    works.get(workKey(taskId, attempt))?.change?.name;
  const hangs = (tree: Tree): boolean =>
    namesIn(tree).some((name) => project.change(name)?.kind === 'hangs');
  const passes = (tree: Tree): boolean => !hangs(tree) && project.faultsOf(tree).length === 0;

  return {
    passed: (tree) => void passed.add(tree),
    built: (head, cars) => {
      const base = treeOf(head);
      for (const [at, { taskId, attempt, tree }] of cars.entries())
        coupled.set(workKey(taskId, attempt), {
          ...{ tree, onto: cars[at - 1]?.tree ?? base },
          head: base,
        });
    },
    lands: ({ cars, members }) => {
      const [before, after] = [namesIn(treeOf(project.head())), cars.at(-1)?.tree ?? ''];
      const what = cars.map(({ taskId, attempt }) => workKey(taskId, attempt)).join(', ');
      const isByWord = members.some(({ verify }) => !verify);
      require(!hasCommands || isByWord || passed.has(after), () =>
        `M1 ${what} lands, and its tree did not pass: ${after} (${project.faultsOf(after)})`);
      const [wanted, unwanted] = [new Set<string>(), new Set<string>()];
      for (const car of cars)
        (car.undoes === undefined ? wanted : unwanted).add(changeOf(car) ?? '');
      for (const name of wanted)
        require(!before.includes(name) && namesIn(after).includes(name), () =>
          `M2 ${what} lands, and ${name} ${before.includes(name) ? 'is there already' : 'is not in it'}`);
      for (const name of before)
        require(namesIn(after).includes(name) !== unwanted.has(name), () =>
          `M3 ${what} lands, and ${name} ${unwanted.has(name) ? 'is not taken back' : 'is lost'}`);
      moved += 1;
      for (const name of wanted) came.set(name, moved);
      for (const name of unwanted) went.set(name, moved);
      for (const { taskId, attempt, undoes } of cars) {
        const key = workKey(taskId, attempt);
        if (undoes === undefined) landed.add(key);
        else landed.delete(key);
      }
    },
    refused: (taskId, attempt, { failed, unblamed, why }) => {
      const found = coupled.get(workKey(taskId, attempt));
      if (failed === undefined || found === undefined) return;
      const { tree, onto, head } = found;
      const isRight =
        unblamed === true ? hangs(tree) || !passes(head) : passes(onto) && !passes(tree);
      require(isRight, () => `M4 ${workKey(taskId, attempt)} is refused by mistake: ${why}`);
    },
    moves: () => moved,
    answered: ({ taskId, attempt }, { status }, isUndo, since) => {
      const name = changeOf({ taskId, attempt });
      if (status === 'conflict' || name === undefined) return;
      const key = workKey(taskId, attempt);
      const [isThere, isOurs] = [isOn(name), landed.has(key)];
      const isLater = (moves: typeof came): boolean => (moves.get(name) ?? 0) > since;
      const fits = isUndo
        ? !isThere || isLater(came)
        : isThere || isLater(went) || (status === 'merged' && !isOurs);
      require(fits, () =>
        `M5 ${isUndo ? 'undo' : 'merge'} of ${key} was answered ${status}, and ${name} is ${isThere ? '' : 'not '}on the branch`);
    },
    atEnd: () => {
      for (const [key, { change, merged }] of works) {
        if (change === null) continue;
        require(isOn(change.name) === landed.has(key), () =>
          `M3 ${key} ${landed.has(key) ? 'landed and is not' : 'did not land and is'} on the branch`);
        require(isOn(change.name) === (merged !== null), () =>
          `M6 ${key} is ${merged === null ? 'not ' : ''}said to be merged, and is ${isOn(change.name) ? '' : 'not '}on the branch`);
      }
    },
  };
};
