import { someOf } from '../plural.ts';
import type { TaskId } from '../task.ts';

/** Work of another task, which an attempt began with. */
export interface MergeFirst {
  readonly task_id: string;
  readonly attempt: number;
  readonly complete: boolean;
}

/** When a tree passed (RFC 3339), and how long that took, with its setup. */
export interface Evidence {
  readonly tested_at: string;
  readonly tested_seconds: number;
}

/** The outcome of a merge. `conflict`: nothing was changed; `why` says the reason, `files` where. */
export type Merged =
  | ({
      readonly status: 'merged';
      readonly commit: string;
      readonly into: string;
      /** The commands that passed on exactly this tree; absent: none ran. */
      readonly tested?: readonly string[];
    } & Partial<Evidence>)
  /** `commit`: a commit of the branch that has the work; absent when there is no work. */
  | { readonly status: 'nothing'; readonly commit?: string }
  | {
      readonly status: 'conflict';
      readonly branch: string;
      readonly why: string;
      readonly files: readonly string[];
      /** The branch has commits that the attempt did not begin with; a squash may still work. */
      readonly moved_on?: true;
      /** Both sides changed the same lines: a person decides, with git. */
      readonly same_lines?: true;
      /** A person replaced the commit of the attempt on its branch, and decides, with git. */
      readonly rewritten?: true;
      /** No branch is checked out (detached HEAD): a person checks one out, with git. */
      readonly detached?: true;
      readonly merge_first?: MergeFirst;
      /** The command that did not pass with the work on the branch, and the end of its output. */
      readonly failed?: { readonly command: string; readonly output: string };
      /** It may be no fault of this work: the branch fails by itself, or a command did not end. */
      readonly unblamed?: true;
      /** It was discarded, or has work that was: another attempt begins without that. */
      readonly run_again?: true;
      /** Its task was opened again after this was asked for. */
      readonly reopened?: true;
      /** Tasks whose work is on the branch, and was not when the attempt began. */
      readonly with?: readonly string[];
    };

export type MergeConflict = Extract<Merged, { status: 'conflict' }>;

/** What lets the work land after a conflict. */
export type Remedy =
  | 'merge_first'
  | 'merge_again'
  /** Its task is open: another attempt. */
  | 'run'
  /** The same, of a task that is over. */
  | 'reopen'
  | 'update'
  | 'squash'
  | 'switch_branch'
  | 'git_merge';

type Facts = Omit<MergeConflict, 'status' | 'branch' | 'why' | 'files'>;

export const remedyFor = (facts: { readonly [Name in keyof Facts]: unknown }): Remedy => {
  const is = (name: keyof Facts): boolean => facts[name] !== undefined;
  if (is('merge_first')) return 'merge_first';
  if (is('unblamed')) return 'merge_again';
  if (is('reopened')) return 'run';
  if (is('run_again')) return 'reopen';
  if (is('failed') || is('same_lines')) return 'update';
  if (is('moved_on')) return 'squash';
  // As `jj` leaves a project: the same command again would find the same.
  if (is('detached')) return 'switch_branch';
  return is('rewritten') ? 'git_merge' : 'merge_again';
};

/** The work and the branch do not fit: the work can go on from the branch as it is now. */
export const isUpdatable = (conflict: MergeConflict): boolean =>
  ['update', 'squash'].includes(remedyFor(conflict));

/** The work of an attempt that is to land on the branch. */
export interface QueueMember {
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly title: string;
  /** `ff` keeps the commits of the attempt; `merge` does so, too, in a merge commit. */
  readonly style: 'squash' | 'ff' | 'merge';
  /** False: a person said that it lands without a test. */
  readonly verify: boolean;
  /** It lands although its task is not complete. */
  readonly force?: true;
  /** Its work, which landed before, is taken back. */
  readonly undo?: true;
  /** A person asked for it, or the end of the attempt. */
  readonly by: 'person' | 'task';
  readonly priority: number;
  /** When the task was created: of two that are alike the older one lands first. */
  readonly createdAt: string;
  /** The newest attempt of its task when it was asked for. */
  readonly latest?: number;
  /** The tasks that it depends on: they land before it. When it is undone, those that depend on it. */
  readonly after: readonly TaskId[];
  /** One for each that waits for the outcome. */
  readonly tickets: readonly string[];
  /** Its task is not complete any more, or was so again: it counts only if it landed before. */
  readonly reopened?: true;
  /** An obstacle stopped the batch that it was in: it is tried by itself. */
  readonly alone?: true;
}

type Named = Pick<QueueMember, 'taskId' | 'attempt'>;

export interface Outcome extends Named {
  readonly merged: Merged;
}

/** An outcome, for those who wait for it. */
export interface Settled extends Outcome {
  readonly tickets: readonly string[];
}

/** The work of a member, merged onto the branch and onto all cars before it. */
export interface Car extends Named {
  /** The branch of the attempt. */
  readonly branch: string;
  /** The commit of the attempt. */
  readonly from: string;
  readonly tree: string;
  /** Has this tree, and is on no branch. */
  readonly commit: string;
  /** People who committed on the branch of the attempt, as `Name <address>`. */
  readonly people?: readonly string[];
  /** The commit of the branch that it takes back. */
  readonly undoes?: string;
  /** Tasks that landed since the attempt began, the last first. */
  readonly since: readonly string[];
}

/** The members of a batch that merge cleanly, each onto those before. */
export interface Train {
  /** The branch, as people call it, and as it was. */
  readonly into: string;
  readonly head: string;
  readonly tree: string;
  readonly cars: readonly Car[];
  /** Members that cannot be merged, and those with nothing to merge: they are told before a test. */
  readonly ended: readonly Outcome[];
}

/** A test of the first cars of a train. */
export type Proven =
  /** Null: no command is known. */
  | {
      readonly passed: true;
      readonly commands: readonly string[] | null;
      readonly evidence?: Evidence;
    }
  | {
      readonly passed: false;
      /** `the command "npm test" ended with exit code 1` */
      readonly why: string;
      readonly failed?: { readonly command: string; readonly output: string };
      /** A command did not end: the branch alone is not tested, too. */
      readonly hangs?: true;
    };

/** `moved`: the branch has another commit by now. */
export type Landed =
  | { readonly status: 'landed'; readonly into: string; readonly commits: readonly string[] }
  | { readonly status: 'moved' }
  | { readonly status: 'stopped'; readonly why: MergeConflict };

export interface MergeQueueInput {
  readonly queueId: string;
  /** The server into whose clone it merges. Absent in queues saved earlier. */
  readonly server?: string;
  /** Most members that are tested together. */
  readonly maxBatch: number;
  readonly members: readonly QueueMember[];
}

export interface MergeQueueContext extends MergeQueueInput {
  /** Those that are built, tested and landed together. */
  readonly batch: readonly QueueMember[];
  readonly train: Train | null;
  /** The most cars that are known to pass together; 0: the branch itself; -1: that is not known. */
  readonly green: number;
  /** The fewest cars that are known to fail; one more than there are: none is. */
  readonly red: number;
  /** The commands that `green` passed. */
  readonly commands: readonly string[] | null;
  readonly evidence?: Evidence;
  /** Why `red` failed. */
  readonly failure: Extract<Proven, { passed: false }> | null;
  /** What came of members of the batch, and is not told yet. */
  readonly ended: readonly Outcome[];
  /** Those of the last members: who waits is answered from here, in each process that has the queue. */
  readonly outcomes: readonly Settled[];
}

export type MergeQueueEvent =
  | { readonly type: 'join'; readonly members: readonly QueueMember[] }
  /** Nobody waits for the outcome of a ticket any more. */
  | { readonly type: 'leave'; readonly ticket: string }
  /** What people asked for of a task is not to land any more. */
  | { readonly type: 'withdraw'; readonly taskId: TaskId; readonly merged: MergeConflict };

const outcomesAtMost = 500;

const isSame = (one: Named, other: Named): boolean =>
  one.taskId === other.taskId && one.attempt === other.attempt;

/** Who wants work to land, and who wants it taken back, do not wait for the same. */
const wantsSame = (one: QueueMember, other: QueueMember): boolean =>
  isSame(one, other) && one.undo === other.undo;

/** Dependencies first, then by priority, then by age. */
export const inLandingOrder = (members: readonly QueueMember[]): readonly QueueMember[] => {
  const left = new Set(
    members.toSorted(
      (one, other) => one.priority - other.priority || (one.createdAt < other.createdAt ? -1 : 1),
    ),
  );
  const ordered: QueueMember[] = [];
  while (left.size > 0) {
    const ids = new Set([...left].map(({ taskId }) => taskId));
    const isFree = ({ taskId, after }: QueueMember): boolean =>
      after.every((id) => id === taskId || !ids.has(id));
    // In a cycle the first one goes first.
    const next = [...left].find(isFree) ?? [...left][0];
    if (next === undefined) break;
    left.delete(next);
    ordered.push(next);
  }
  return ordered;
};

const mustBeAlone = ({ style, verify, alone }: QueueMember): boolean =>
  style === 'ff' || !verify || alone === true;

/** The next members that are built and tested together. */
export const nextBatch = ({
  members,
  maxBatch,
}: Pick<MergeQueueContext, 'members' | 'maxBatch'>): readonly QueueMember[] => {
  const ordered = inLandingOrder(members).filter(
    (member, at, all) => all.findIndex((each) => isSame(each, member)) === at,
  );
  const end = ordered.findIndex((member, at) => at > 0 && mustBeAlone(member));
  const [first] = ordered;
  if (first !== undefined && mustBeAlone(first)) return [first];
  return ordered.slice(0, Math.min(maxBatch, end < 0 ? ordered.length : end));
};

/** Who joins for what is here already waits for the same outcome. */
export const withMembers = (
  { members, batch }: Pick<MergeQueueContext, 'members' | 'batch'>,
  joining: readonly QueueMember[],
): Pick<MergeQueueContext, 'members' | 'batch'> => {
  const adopt = (member: QueueMember): QueueMember => {
    const same = joining.filter((each) => wantsSame(each, member));
    return { ...member, tickets: [...member.tickets, ...same.flatMap((each) => each.tickets)] };
  };
  const isNew = (member: QueueMember): boolean =>
    ![...members, ...batch].some((each) => wantsSame(each, member));
  return {
    members: [...members.map(adopt), ...joining.filter(isNew)],
    batch: batch.map(adopt),
  };
};

const withoutTicket = (members: readonly QueueMember[], ticket: string): readonly QueueMember[] =>
  members.flatMap((member) => {
    if (!member.tickets.includes(ticket)) return [member];
    const tickets = member.tickets.filter((each) => each !== ticket);
    return tickets.length === 0 ? [] : [{ ...member, tickets }];
  });

/** Those who wait for something else remain. A member for whose outcome nobody waits is none. */
export const leaving = (
  { members, batch }: MergeQueueContext,
  ticket: string,
): Pick<MergeQueueContext, 'members' | 'batch'> => ({
  members: withoutTicket(members, ticket),
  batch: withoutTicket(batch, ticket),
});

/** Whether the batch is another one without those who wait for this ticket alone. */
export const isTheOnlyOne = ({ batch }: MergeQueueContext, ticket: string): boolean =>
  batch.some(({ tickets }) => tickets.length === 1 && tickets[0] === ticket);

export const isWithdrawn = ({ taskId, by }: QueueMember, task: TaskId): boolean =>
  taskId === task && by === 'person';

const settled = (
  outcomes: readonly Settled[],
  more: readonly Settled[],
): Pick<MergeQueueContext, 'outcomes'> => ({
  outcomes: [...outcomes, ...more].slice(-outcomesAtMost),
});

/** Nothing is noted of it: the work can be merged as before. */
export const withdrawing = (
  { members, batch, outcomes }: MergeQueueContext,
  { taskId: task, merged }: Pick<Outcome, 'taskId' | 'merged'>,
  alsoFromBatch: boolean,
): Partial<MergeQueueContext> => {
  const isLeft = (member: QueueMember): boolean => !isWithdrawn(member, task);
  const gone = [...members, ...(alsoFromBatch ? batch : [])].filter((each) => !isLeft(each));
  const ends = gone.map(({ taskId, attempt, tickets }) => {
    return { taskId, attempt, tickets, merged };
  });
  return {
    members: members.filter(isLeft),
    ...(alsoFromBatch ? { batch: batch.filter(isLeft) } : {}),
    ...settled(outcomes, ends),
  };
};

/** How many cars are tested next: all of them, then half of those between green and red. */
export const carsToTest = ({
  train,
  green,
  red,
}: Pick<MergeQueueContext, 'train' | 'green' | 'red'>): number => {
  const all = train?.cars.length ?? 0;
  return red > all ? all : Math.floor((green + red) / 2);
};

export type Search = Pick<MergeQueueContext, 'green' | 'red' | 'commands' | 'evidence' | 'failure'>;

/** Of a train that is not tested yet. */
const newSearch = (cars: number): Search => ({
  green: -1,
  red: cars + 1,
  commands: null,
  evidence: undefined,
  failure: null,
});

/** The search in a new train. A person can say that no test is needed. */
export const searchIn = ({ batch }: MergeQueueContext, { cars }: Train): Search => {
  const isByWord = batch.some(({ verify }) => !verify);
  return { ...newSearch(cars.length), ...(isByWord ? { green: cars.length } : {}) };
};

export const afterTest = (context: MergeQueueContext, proven: Proven): Search => {
  const { green, red, commands, evidence, failure } = context;
  const tested = carsToTest(context);
  return proven.passed
    ? { green: tested, red, commands: proven.commands, evidence: proven.evidence, failure }
    : {
        commands,
        evidence,
        failure: proven,
        green: proven.hangs && tested === 1 ? 0 : green,
        red: tested,
      };
};

/** Nothing lies between what passes and what fails. */
export const isFound = ({ green, red }: Pick<Search, 'green' | 'red'>): boolean => red - green <= 1;

const namedWithAtMost = 100;
const saidAtMost = 3;

/** Why a car did not pass where all before it did. */
const refusedCar = (
  { train, failure }: Pick<MergeQueueContext, 'train' | 'failure'>,
  at: number,
): Outcome | null => {
  const car = train?.cars[at];
  if (car === undefined || failure === null) return null;
  const { taskId, attempt, branch } = car;
  const before = train?.cars.slice(0, at).map((each) => each.taskId) ?? [];
  // A command that does not end says nothing about the others.
  const landed = failure.hangs === true ? [] : [...before.toReversed(), ...car.since];
  const others = [...new Set(landed)].slice(0, namedWithAtMost);
  const where =
    failure.hangs === true
      ? "a command does not end on the project's branch with it"
      : others.length === 0
        ? "it fails on the project's branch as it is now"
        : others.length <= saidAtMost
          ? `it fails together with ${others.join(', ')} (landed)`
          : `it fails by itself, or with one of what landed since it began (${someOf(others, saidAtMost)})`;
  const { why, failed } = failure;
  return {
    taskId,
    attempt,
    merged: {
      status: 'conflict',
      branch,
      why: `${where}: ${why}`,
      files: [],
      failed,
      ...(failure.hangs === true ? { unblamed: true } : {}),
      ...(others.length === 0 ? {} : { with: others }),
    },
  };
};

/** The branch itself fails: no car is to blame. */
const refusedAll = ({ train, failure }: MergeQueueContext): readonly Outcome[] =>
  (train?.cars ?? []).map(({ taskId, attempt, branch }) => ({
    taskId,
    attempt,
    merged: {
      status: 'conflict',
      branch,
      why: `the project's branch itself does not pass, without this work: ${failure?.why}; merge what mends it by itself`,
      files: [],
      unblamed: true,
      failed: failure?.failed,
    },
  }));

/** Those that the test showed not to pass. */
export const refusedByTest = (context: MergeQueueContext): readonly Outcome[] => {
  const { red } = context;
  if (red === 0) return refusedAll(context);
  const refused = refusedCar(context, red - 1);
  return refused === null ? [] : [refused];
};

type Ending = Pick<MergeQueueContext, 'ended' | 'batch' | 'members'>;

/** What came of members of the batch; so members that depend on a refused one are refused, too. */
export const ending = (
  { batch, members }: Pick<MergeQueueContext, 'batch' | 'members'>,
  known: readonly Outcome[],
): Ending => {
  const ended = [...known];
  const refused = new Set<TaskId>(
    known.flatMap(({ taskId, merged }) => (merged.status === 'conflict' ? [taskId] : [])),
  );
  // Another wish for work of the batch waits for the next one.
  const waiting = members.filter((member) => !batch.some((each) => isSame(each, member)));
  const left = [...batch, ...waiting].filter(
    (member) => !known.some((outcome) => isSame(outcome, member)),
  );
  const firstRefused = ({ taskId, after }: QueueMember): TaskId | undefined =>
    refused.has(taskId) ? undefined : after.find((id) => id !== taskId && refused.has(id));
  const withThem = new Set<QueueMember>();
  for (;;) {
    const next = left.find((member) => firstRefused(member) !== undefined);
    if (next === undefined) break;
    const { taskId, attempt, undo } = next;
    const how = undo ? 'which depends on it, is not undone' : 'which it depends on, is not merged';
    const why = `${firstRefused(next)}, ${how}`;
    ended.push({ taskId, attempt, merged: { status: 'conflict', branch: '', why, files: [] } });
    refused.add(taskId);
    withThem.add(next);
  }
  return {
    ended,
    batch: [...batch, ...waiting.filter((member) => withThem.has(member))],
    members: members.filter((member) => !withThem.has(member)),
  };
};

/** The batch is over: what has no outcome waits again. */
export const afterBatch = (context: MergeQueueContext): Partial<MergeQueueContext> => {
  const { ended, batch } = context;
  const ends = ended.map((outcome): Settled => {
    const tickets = batch.find((member) => isSame(member, outcome))?.tickets ?? [];
    return { ...outcome, tickets };
  });
  const left = batch.filter((member) => !ended.some((each) => isSame(each, member)));
  return {
    members: [...left, ...context.members],
    batch: [],
    train: null,
    ended: [],
    ...newSearch(0),
    ...settled(context.outcomes, ends),
  };
};

/** What came of the batch when its first cars landed. */
export const endedByLanding = (
  context: MergeQueueContext,
  { into, commits }: Extract<Landed, { status: 'landed' }>,
): readonly Outcome[] => {
  const { train, commands, evidence } = context;
  const landed = commits.flatMap((commit, at): readonly Outcome[] => {
    const car = train?.cars[at];
    if (car === undefined) return [];
    const tested = commands === null ? {} : { tested: commands, ...evidence };
    const merged: Merged = { status: 'merged', commit, into, ...tested };
    return [{ taskId: car.taskId, attempt: car.attempt, merged }];
  });
  return [...landed, ...refusedByTest(context)];
};

/** Something in the user's folder is in the way: of several each is tried by itself. */
export const endedByObstacle = (context: MergeQueueContext, why: MergeConflict): Ending => {
  const { train, batch, members, green } = context;
  const [first] = train?.cars ?? [];
  if (green > 1 || first === undefined) {
    const alone = batch.map((member): QueueMember => ({ ...member, alone: true }));
    return ending({ batch: alone, members }, []);
  }
  const { taskId, attempt, branch } = first;
  return ending(context, [{ taskId, attempt, merged: { ...why, branch } }]);
};

/** Nothing of the batch could be done. */
export const endedByError = ({ batch }: MergeQueueContext, why: string): readonly Outcome[] =>
  batch.map(({ taskId, attempt }) => ({
    taskId,
    attempt,
    merged: { status: 'conflict', branch: '', why, files: [] },
  }));
