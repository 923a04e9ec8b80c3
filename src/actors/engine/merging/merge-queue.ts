import { randomBytes, randomUUID } from 'node:crypto';
import { fromPromise } from 'xstate';
import { z } from 'zod';
import { ServiceError } from '../../../machines/errors.ts';
import {
  inLandingOrder,
  isWithdrawn,
  type Landed,
  type MergeConflict,
  type Merged,
  type MergeQueueContext,
  type MergeQueueEvent,
  type MergeQueueInput,
  type QueueMember,
  type Train,
} from '../../../machines/merge-queue/merge-queue-context.ts';
import {
  type MergeQueueSnapshot,
  mergeQueueMachine,
} from '../../../machines/merge-queue/merge-queue-machine.ts';
import { messageOf } from '../../../machines/message-of.ts';
import { plural } from '../../../machines/plural.ts';
import type { TaskId } from '../../../machines/task.ts';
import { statusInTracker, type TrackedTask } from '../../../machines/tracked-task.ts';
import { UnreadableStateError } from '../../journal/chart-versions.ts';
import { entry, mergeData, mergeEntry } from '../../journal/event-types.ts';

import { type TaskView, toView } from '../../journal/task-view.ts';
import { createSerialQueue } from '../../process/serial-queue.ts';
import type { Results } from '../../results/results.ts';
import type { Entry, NewEntry, Store } from '../../store/port.ts';
import type { TrackerReads } from '../../tracker/port.ts';
import type { Workspace } from '../../workspace/port.ts';
import type { WorkReads, WorkView } from '../../workspace/worktrees/work-view.ts';
import { createHost, type Host, type HostPorts } from '../hosting/host.ts';
import { nameIn } from '../servers/task-owner.ts';
import type { TrainProof } from './prove-train.ts';

const queuePrefix = 'mq-';

type Named = Pick<QueueMember, 'taskId' | 'attempt'>;
export type MergeWish = Pick<
  QueueMember,
  'taskId' | 'attempt' | 'style' | 'verify' | 'by' | 'force' | 'undo'
>;

type Withdrawn = Pick<MergeConflict, 'why' | 'reopened' | 'run_again'>;

export interface PlannedMerge {
  readonly task_id: TaskId;
  readonly attempt: number;
  /** None: it would land untested. */
  readonly commands: readonly string[];
}

/** Merges into the project's branch, in one queue. */
export interface MergeQueue
  extends Pick<Host<MergeQueueSnapshot, MergeQueueEvent, MergeQueueInput>, 'restore' | 'stop'> {
  /**
   * Puts work into the queue, all of it at once. @returns what came of each, as it comes. An aborted
   * signal takes out what has not landed, and rejects.
   */
  merge(wishes: readonly MergeWish[], signal: AbortSignal): readonly Promise<Merged>[];
  /** The order in which work would land, and the commands that it must pass; nothing is merged. */
  plan(wishes: readonly MergeWish[]): Promise<readonly PlannedMerge[]>;
  /** Whether this is asked for already, and not told of yet. */
  isIn(wish: MergeWish): Promise<boolean>;
  /** Takes out what people asked for of a task; they are told `why`. @returns whether it was there */
  withdraw(taskId: TaskId, why: Withdrawn): Promise<boolean>;
  /** In words and as the state of its chart. */
  check(): Promise<{ readonly ok: boolean; readonly detail: string; readonly state: string }>;
  /** With the place of the work in the queue. */
  readonly workOf: WorkReads;
  /** Ends a queue that cannot be restored, shown as a task; null: no such queue has this id. */
  giveUp(id: TaskId): Promise<TaskView | null>;
  failing(): ReadonlySet<string>;
}

export interface MergeQueuePorts extends HostPorts {
  readonly store: Pick<Store, 'actor' | 'openHosted' | 'latest'>;
  readonly tracker: Pick<TrackerReads, 'findMany'>;
  /** The number of the newest attempt of a task. */
  readonly latestAttempt: (taskId: TaskId) => Promise<number>;
  readonly workspace: Pick<Workspace, 'build' | 'land' | 'noteRefused' | 'workOf'>;
  readonly results: Pick<Results, 'noteMerge'>;
  readonly proof: TrainProof;
  readonly maxBatch: () => number;
  /** Whether the user's git signs the commits that land. */
  readonly signs: () => boolean;
  /** Lets another attempt go on with refused work, where the configuration says so. */
  readonly sendBack: (taskId: TaskId, attempt: number, merged: Merged) => Promise<void>;
  /** The task of work that was taken back is open again. */
  readonly reopen: (taskId: TaskId, reason: string) => Promise<void>;
  readonly record: (entry: NewEntry) => Promise<void>;
}

const isOf = (member: Named, other: Named): boolean =>
  member.taskId === other.taskId && member.attempt === other.attempt;

/**
 * Members that a person asked for and whose tasks are not complete any more, or are so by another attempt:
 * reopened, sent back, deleted.
 */
const reopenedIn = async (
  { tracker, latestAttempt }: Pick<MergeQueuePorts, 'tracker' | 'latestAttempt'>,
  members: readonly QueueMember[],
): Promise<readonly QueueMember[]> => {
  const asked = members.filter(({ by, force }) => by === 'person' && force !== true);
  const found = await tracker.findMany(asked.map(({ taskId }) => taskId));
  const complete = new Set(
    found.filter((task) => statusInTracker(task) === 'complete').map(({ id }) => id),
  );
  const isReopened = await Promise.all(
    asked.map(
      async ({ taskId, attempt, latest = attempt }) =>
        !complete.has(taskId) || (await latestAttempt(taskId)) > latest,
    ),
  );
  return asked.filter((_, at) => isReopened[at]);
};

const buildTrain = async (
  {
    workspace,
    proof,
    ...reads
  }: Pick<MergeQueuePorts, 'workspace' | 'tracker' | 'latestAttempt' | 'proof'>,
  { batch }: MergeQueueContext,
  signal: AbortSignal,
): Promise<Train> => {
  // While the tracker is away: what landed in a crash is found now, and the rest is asked for again.
  const reopened = await reopenedIn(reads, batch).catch((): readonly QueueMember[] => []);
  const members = batch.map((member) =>
    reopened.includes(member) ? { ...member, reopened: true as const } : member,
  );
  return workspace.build(members, signal, proof.regenerate());
};

const landTrain = async (
  {
    workspace,
    signs,
    ...reads
  }: Pick<MergeQueuePorts, 'workspace' | 'tracker' | 'latestAttempt' | 'signs'>,
  { train, batch, green, commands, evidence }: MergeQueueContext,
  signal: AbortSignal,
): Promise<Landed> => {
  if (train === null) return { status: 'moved' };
  const cars = train.cars.slice(0, green);
  const members = cars.flatMap((car) => batch.filter((member) => isOf(member, car)));
  const { into, head } = train;
  const isWanted = async () => (await reopenedIn(reads, members)).length === 0;
  return workspace.land(
    { into, head, cars, members, commands, evidence, sign: signs(), isWanted },
    signal,
  );
};

/** The answer of a method; the evidence is in `work.tested` and in the log. */
const withoutEvidence = (merged: Merged): Merged => {
  if (merged.status !== 'merged') return merged;
  const { tested_at: _at, tested_seconds: _seconds, ...rest } = merged;
  return rest;
};

/** Writes down what came of each member of a batch. */
const createTell = (
  ports: Pick<
    MergeQueuePorts,
    'workspace' | 'results' | 'record' | 'sendBack' | 'reopen' | 'now' | 'log'
  >,
) => {
  const { workspace, results, record, sendBack, reopen, now, log } = ports;
  const write = async (member: QueueMember, merged: Merged): Promise<void> => {
    const { taskId, attempt, by, verify, undo = false } = member;
    if (merged.status === 'conflict' && !undo) {
      await workspace.noteRefused(taskId, attempt, merged);
      const data = { level: 'warn', message: `not merged: ${merged.why}` };
      await record(entry(taskId, attempt, 'log', now(), data));
      // A task that merges at its end goes on by itself.
      if (by === 'person') await sendBack(taskId, attempt, merged);
    }
    if (merged.status === 'merged') {
      const landed = { ...merged, byWord: !verify, undone: undo };
      const { message } = mergeData(landed);
      await record(
        by === 'person'
          ? mergeEntry(taskId, attempt, landed, now())
          : entry(taskId, attempt, 'log', now(), mergeData(landed)),
      );
      if (undo) await reopen(taskId, message);
      await results.noteMerge(taskId, attempt, message, now());
    }
  };
  return async ({ batch, ended }: MergeQueueContext): Promise<void> => {
    for (const { taskId, attempt, merged } of ended) {
      const member = batch.find((each) => isOf(each, { taskId, attempt }));
      if (member === undefined) continue;
      await write(member, merged).catch((error: unknown) =>
        log('could not write down what came of a merge', { task: taskId, attempt, error }),
      );
    }
  };
};

/** A server that takes over from another one has another clone: the branch in that was not meant. */
const requireOwn = (node: string, { server }: Pick<MergeQueueContext, 'server'>): void => {
  if (server === undefined || server === nameIn(node)) return;
  throw new Error(
    `it was to land in the clone of the server ${server}, which ended: merge it again`,
  );
};

const provideQueueActors = (ports: MergeQueuePorts): typeof mergeQueueMachine => {
  const { proof, node } = ports;
  const own = <Output>(
    work: (context: MergeQueueContext, signal: AbortSignal) => Promise<Output>,
  ) =>
    fromPromise<Output, MergeQueueContext>(async ({ input, signal }) => {
      requireOwn(node, input);
      return work(input, signal);
    });
  const tell = createTell(ports);
  return mergeQueueMachine.provide({
    actors: {
      build: own((context, signal) => buildTrain(ports, context, signal)),
      test: own(proof.prove),
      land: own((context, signal) => landTrain(ports, context, signal)),
      tell: fromPromise(({ input }) => tell(input)),
    },
  });
};

const inWords = (queue: MergeQueueSnapshot | null): string => {
  if (queue === null || queue.status === 'done') return 'nothing is merged now';
  const { batch, members } = queue.context;
  const waiting = members.length === 0 ? '' : `, ${members.length} more in the queue`;
  return `${queue.value}: ${plural(batch.length, 'merge')}${waiting}`;
};

const lineOf = ({ context: { members, batch, train } }: MergeQueueSnapshot) => ({
  waiting: members.map(({ taskId }) => taskId),
  batch: batch.map(({ taskId }) => taskId),
  cars: train?.cars.map(({ taskId }) => taskId) ?? [],
});

const lineSchema = z.object({ waiting: z.array(z.string()), batch: z.array(z.string()) });

/** The tasks that waited in a queue, as its last entry names them. */
const tasksIn = ({ data }: Entry): readonly string[] => {
  const { waiting, batch } = lineSchema.parse(JSON.parse(data));
  return [...new Set([...batch, ...waiting])];
};

const viewOfGivenUp = (id: TaskId, left: readonly string[], at: number): TaskView => {
  const time = new Date(at).toISOString();
  const tracked: TrackedTask = {
    id,
    title: 'Merge queue',
    status: 'open',
    labels: ['agent-cancelled'],
    priority: 0,
    description: `These tasks waited in it, and can be merged again: ${left.join(', ') || 'none'}`,
    assignee: null,
    dependencies: [],
    unmet: [],
    ready: false,
    createdAt: time,
    updatedAt: time,
    closedAt: null,
  };
  return toView({ tracked, task: null, agent: null, changedAt: at });
};

const hasTicket = ({ context }: MergeQueueSnapshot, ticket: string): boolean =>
  [...context.members, ...context.batch, ...context.outcomes].some(({ tickets }) =>
    tickets.includes(ticket),
  );

const stateOf = (
  { context: { members, batch, ended, train }, value }: MergeQueueSnapshot,
  taskId: TaskId,
  attempt: number,
): NonNullable<WorkView['merge']>['state'] | null => {
  const isIt = (member: Named) => isOf(member, { taskId, attempt });
  if (members.some(isIt)) return 'waiting';
  // Once what came of it is told, nobody looks again when the queue goes on.
  if (!batch.some(isIt) || (value === 'telling' && ended.some(isIt))) return null;
  return value === 'testing' && train?.cars.some(isIt) ? 'testing' : 'waiting';
};

/** So often who joins tries again. */
const joinTries = 2;
const tasksAtMost = 10_000;

/** Tasks and all that they depend on. */
const withAllBefore = async (
  tracker: MergeQueuePorts['tracker'],
  ids: readonly TaskId[],
): Promise<ReadonlyMap<TaskId, TrackedTask>> => {
  const found = new Map<TaskId, TrackedTask>();
  let next = ids;
  while (next.length > 0 && found.size < tasksAtMost) {
    const tasks = await tracker.findMany(next);
    for (const task of tasks) found.set(task.id, task);
    next = [...new Set(tasks.flatMap(({ dependencies }) => dependencies))].filter(
      (id) => !found.has(id),
    );
  }
  return found;
};

const allBefore = (tasks: ReadonlyMap<TaskId, TrackedTask>, id: TaskId): readonly TaskId[] => {
  const before = new Set<TaskId>(tasks.get(id)?.dependencies);
  for (const each of before)
    for (const next of tasks.get(each)?.dependencies ?? []) before.add(next);
  before.delete(id);
  return [...before];
};

const membersOf = async (
  { tracker, latestAttempt }: Pick<MergeQueuePorts, 'tracker' | 'latestAttempt'>,
  wishes: readonly (MergeWish & { readonly ticket: string })[],
): Promise<readonly QueueMember[]> => {
  const found = await withAllBefore(
    tracker,
    wishes.map(({ taskId }) => taskId),
  );
  const wanted = new Set<string>(wishes.map(({ taskId }) => taskId));
  const latest = await Promise.all(wishes.map(({ taskId }) => latestAttempt(taskId)));
  return wishes.map(({ ticket, ...wish }, at) => {
    const task = found.get(wish.taskId);
    return {
      ...wish,
      title: task?.title ?? wish.taskId,
      priority: task?.priority ?? 0,
      createdAt: task?.createdAt ?? '',
      latest: latest[at] ?? wish.attempt,
      after:
        wish.undo === true
          ? wishes.flatMap(({ taskId }) =>
              allBefore(found, taskId).includes(wish.taskId) ? [taskId] : [],
            )
          : allBefore(found, wish.taskId).filter(
              (id) => wanted.has(id) || task?.dependencies.includes(id),
            ),
      tickets: [ticket],
    };
  });
};

const createPlan =
  ({
    proof,
    ...reads
  }: Pick<MergeQueuePorts, 'tracker' | 'latestAttempt' | 'proof'>): MergeQueue['plan'] =>
  async (wishes) => {
    const members = await membersOf(
      reads,
      wishes.map((wish) => ({ ...wish, ticket: '' })),
    );
    return Promise.all(
      inLandingOrder(members).map(async ({ taskId, attempt, verify }) => {
        const input = await proof.attemptOf(taskId, attempt);
        return { task_id: taskId, attempt, commands: verify ? proof.commandsOf([input]) : [] };
      }),
    );
  };

/** The newest queue of this server takes all that is to be merged. */
export const createMergeQueue = (ports: MergeQueuePorts): MergeQueue => {
  const { store, workspace, node, maxBatch, now, log } = ports;
  /** Those who wait, by their tickets. */
  const waiters = new Map<string, (merged: Merged) => void>();
  const host = createHost<MergeQueueSnapshot, MergeQueueEvent, MergeQueueInput>(ports, {
    kind: 'mergeQueue',
    machine: provideQueueActors(ports),
    idOf: ({ queueId }) => queueId,
    shown: lineOf,
    open: () => store.openHosted('mergeQueue'),
    published: ({ context }) => {
      for (const { tickets, merged } of waiters.size === 0 ? [] : context.outcomes)
        for (const ticket of tickets) waiters.get(ticket)?.(withoutEvidence(merged));
    },
    ended: async ({ context }) => {
      if (newest === context.queueId) newest = null;
    },
  });
  const inTurn = createSerialQueue();
  let newest: string | null = null;

  /** One that an earlier start of this server left goes on first. */
  const findOpen = async (): Promise<string | null> => {
    if (newest !== null) return newest;
    await host.restore();
    const left = (await store.openHosted('mergeQueue')).find(
      ({ owner, taskId }) => owner === node && !host.failing().has(taskId),
    );
    return left?.taskId ?? null;
  };

  /** Null: there is none, or none that can be restored. */
  const readState = async (id = newest): Promise<MergeQueueSnapshot | null> => {
    try {
      return id === null ? null : await host.stateOf(id);
    } catch (error) {
      if (error instanceof UnreadableStateError) return null;
      throw error;
    }
  };

  const join = async (members: readonly QueueMember[], tries = joinTries): Promise<void> => {
    const [ticket = ''] = members.flatMap(({ tickets }) => tickets);
    const isIn = (snapshot: MergeQueueSnapshot): boolean => hasTicket(snapshot, ticket);
    const open = await findOpen();
    if (open !== null) await host.send(open, { type: 'join', members }, isIn);
    const state = await readState(open);
    if (state?.status === 'active') {
      newest = open;
      if (isIn(state)) return;
      // It failed while it was told: two queues would merge into one branch.
      const detail = 'the mergeQueue was not saved: try again';
      if (tries === 0) throw new ServiceError('internal', { detail });
      return join(members, tries - 1);
    }
    const queueId = `${queuePrefix}${randomBytes(4).toString('hex')}`;
    // It may be over before its beginning is answered.
    newest = queueId;
    const server = nameIn(node);
    await host.begin({ queueId, server, maxBatch: maxBatch(), members }, () => true);
  };

  const leave = (tickets: readonly string[]): void => {
    const open = newest;
    if (open === null) return;
    for (const ticket of tickets)
      host.send(open, { type: 'leave', ticket }, () => true).catch(() => {});
  };

  return {
    merge: (wishes, signal) => {
      const named = wishes.map((wish) => ({ ...wish, ticket: randomUUID() }));
      const joined = inTurn(async () => {
        signal.throwIfAborted();
        await join(await membersOf(ports, named));
        // Who asked went away meanwhile.
        if (signal.aborted) leave(named.map(({ ticket }) => ticket));
      });
      const waiting = new Map<string, (reason: unknown) => void>();
      // One for all of them: a signal may outlive the merge, and there may be a thousand.
      const giveUp = (): void => {
        leave([...waiting.keys()]);
        for (const reject of [...waiting.values()]) reject(signal.reason);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      const forget = (ticket: string): void => {
        waiters.delete(ticket);
        waiting.delete(ticket);
        if (waiting.size === 0) signal.removeEventListener('abort', giveUp);
      };
      return named.map(({ ticket }) =>
        new Promise<Merged>((resolve, reject) => {
          waiters.set(ticket, resolve);
          waiting.set(ticket, reject);
          joined.catch(reject);
        }).finally(() => forget(ticket)),
      );
    },
    plan: createPlan(ports),
    isIn: async (wish) => {
      const queue = await readState();
      if (queue === null) return false;
      const { members, batch, ended } = queue.context;
      return [...members, ...batch].some(
        (each) =>
          isOf(each, wish) && each.undo === wish.undo && !ended.some((it) => isOf(it, each)),
      );
    },
    withdraw: async (taskId, why) => {
      const open = newest;
      const ticketsIn = (queue: MergeQueueSnapshot): readonly string[] =>
        [...queue.context.members, ...queue.context.batch].flatMap((member) =>
          isWithdrawn(member, taskId) ? member.tickets : [],
        );
      const before = await readState(open);
      const tickets = before === null ? [] : ticketsIn(before);
      if (open === null || tickets.length === 0) return false;
      // What lands meanwhile stays.
      const merged: MergeConflict = { status: 'conflict', branch: '', files: [], ...why };
      const isOut = (queue: MergeQueueSnapshot): boolean => ticketsIn(queue).length === 0;
      await host.send(open, { type: 'withdraw', taskId, merged }, isOut);
      const after = await readState(open);
      return (after?.context.outcomes ?? []).some(
        ({ merged, tickets: [ticket = ''] }) =>
          merged.status === 'conflict' && merged.why === why.why && tickets.includes(ticket),
      );
    },
    check: async () => {
      try {
        const queue = newest === null ? null : await host.stateOf(newest);
        return { ok: true, detail: inWords(queue), state: queue?.value ?? 'empty' };
      } catch (error) {
        return { ok: false, detail: messageOf(error), state: 'unknown' };
      }
    },
    workOf: async (taskId, attempt) => {
      const work = await workspace.workOf(taskId, attempt);
      const queue = work === null ? null : await readState();
      const state = queue === null ? null : stateOf(queue, taskId, attempt);
      return work === null || state === null ? work : { ...work, merge: { state } };
    },
    giveUp: async (id) => {
      const last = id.startsWith(queuePrefix) ? await store.latest(id, 'mergeQueue') : null;
      if (last === null) return null;
      const left = tasksIn(last);
      const nobody = { waiting: [], batch: [], cars: [], value: 'cancelled' };
      if (!(await host.giveUp(id, nobody))) return null;
      log('a merge queue that cannot be restored was given up', { id, tasks: left });
      return viewOfGivenUp(id, left, now());
    },
    restore: async () => {
      await host.restore();
      newest ??= await findOpen();
    },
    failing: host.failing,
    stop: host.stop,
  };
};
