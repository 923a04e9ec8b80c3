import type { SnapshotFrom } from 'xstate';
import type { StartConflict } from './agent-context.ts';
import { describeRefusal } from './errors.ts';
import { allowedCommands } from './refusals.ts';
import type { Finding } from './task.ts';
import type { TaskContext } from './task-context.ts';
import { taskMachine } from './task-machine.ts';
import type { TaskView } from './task-view.ts';

/** One guard of the chart, evaluated on what is true now. */
export interface ExplainedGuard {
  readonly guard: string;
  readonly value: boolean;
  readonly inputs: Readonly<Record<string, unknown>>;
}

/** Why a task is where it is, and what may happen next (CONTRACT 3, `explain`). */
export interface Explanation {
  readonly task_id: string;
  readonly state: unknown;
  readonly guards: readonly ExplainedGuard[];
  readonly allowed_events: readonly string[];
  /** What the last request was refused with, or why the last attempt failed. */
  readonly reason: string | null;
  readonly deadline: string | null;
  /** Why a person reopened or retried it. */
  readonly request_reason: string | null;
  /** Work that the latest attempt builds on and does not have, and the files in the way. */
  readonly conflicts: readonly {
    readonly task_id: string;
    readonly branch: string;
    readonly files: readonly string[];
  }[];
}

/** The slots as the supervisor has them now. */
export interface Slots {
  readonly running: number;
  readonly waiting: number;
  readonly cap: number;
  /** How many may wait. */
  readonly limit: number;
  /** Why nobody gets a slot for a while, or null. */
  readonly paused: string | null;
}

const inputs: Readonly<Record<string, (context: TaskContext) => Readonly<Record<string, unknown>>>> = {
  taskExists: ({ finding }) => ({ exists: finding?.exists }),
  dependenciesComplete: ({ finding }) => ({ unmet: finding?.unmet }),
  heldByNobodyElse: ({ finding }) => ({ holder: finding?.holder }),
  modelCanBeCalled: ({ finding }) => ({
    missing_credential: finding?.missingCredential,
    ...(finding?.assistantProblem === undefined ? {} : { problem: finding.assistantProblem }),
  }),
  hasAttemptsLeft: ({ retriesLeft, failure }) => ({ retries_left: retriesLeft, retryable: failure?.retryable ?? null }),
};

type Guard = (args: { context: TaskContext; event: { type: string; at: number } }, params: never) => boolean;

/** What `explain` looks at beside the task's own state. */
export interface Surroundings {
  readonly finding: Finding;
  readonly slots: Slots;
  /** How the tasks stand that it waits for. */
  readonly blockers: readonly string[];
  /** The question that its agent waits with. */
  readonly awaiting: TaskView['awaiting'];
  readonly conflicts: readonly StartConflict[];
}

/** Why nothing happens, where no refusal and no failure says it. */
const idleBecause = (
  snapshot: SnapshotFrom<typeof taskMachine>,
  { slots, blockers, awaiting }: Surroundings,
): string | null => {
  if (awaiting !== undefined)
    return `it waits for a person: ${awaiting.question ?? 'may it do what it is about to do?'} (agent respond)`;
  if (snapshot.matches({ queued: 'waitingForSlot' }))
    return slots.paused ?? `it waits for one of ${slots.cap} slots; ${slots.waiting} wait`;
  if (!snapshot.hasTag('resting')) return null;
  return blockers.length === 0 ? 'nobody has asked for a run' : `it waits for ${blockers.join(', ')}`;
};

/** What the supervisor asks when it decides on a slot. */
const ofSlots = ({ running, waiting, cap, limit, paused }: Slots): readonly ExplainedGuard[] => [
  { guard: 'queueHasRoom', value: waiting < limit, inputs: { waiting, limit } },
  { guard: 'slotIsFree', value: running < cap && paused === null, inputs: { running, waiting, cap, paused } },
];

/** A run that is asked for now does not need them. */
const later: ReadonlySet<string> = new Set(['hasAttemptsLeft', 'slotIsFree']);

/** Whether a command that the chart accepts would be refused for what is true now. */
const isHeldBack = (command: string, isClosed: boolean, guards: readonly ExplainedGuard[]): boolean => {
  const failing = guards.filter(({ guard, value }) => !value && !later.has(guard));
  // Closing what is closed succeeds.
  if (command === 'close') return !isClosed && failing.some(({ guard }) => guard === 'dependenciesComplete');
  return ['run', 'retry'].includes(command) && failing.length > 0;
};

const iso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

/** Evaluates the guards of the charts on the task and on a fresh look at the world; changes nothing. */
export const explain = (snapshot: SnapshotFrom<typeof taskMachine>, surroundings: Surroundings): Explanation => {
  const { finding, slots, blockers, awaiting } = surroundings;
  const context: TaskContext = { ...snapshot.context, finding };
  const guards = taskMachine.implementations.guards as Readonly<Record<string, Guard>>;
  const ofTask = Object.entries(inputs).map(([guard, inputsOf]) => ({
    guard,
    value: guards[guard]?.({ context, event: { type: 'explain', at: 0 } }, undefined as never) ?? false,
    inputs: inputsOf(context),
  }));
  const explained = [...ofTask, ...ofSlots(slots)];
  const { refusal, failure, deadlineAt } = snapshot.context;
  // Since it was refused for them, the tasks that it waits for may have come further.
  const since = refusal?.code === 'dependencies_unmet' && blockers.length > 0 ? `; now: ${blockers.join(', ')}` : '';
  const refused = refusal === null ? null : `${describeRefusal(refusal)}${since}`;
  const failed = failure === null ? null : `${failure.code}: ${failure.message}`;
  return {
    task_id: context.taskId,
    state: snapshot.value,
    guards: explained,
    allowed_events: allowedCommands(snapshot, awaiting !== undefined).filter(
      (name) => !isHeldBack(name, snapshot.hasTag('complete'), explained),
    ),
    reason: refused ?? failed ?? idleBecause(snapshot, surroundings),
    deadline: awaiting === undefined ? iso(deadlineAt) : (awaiting.deadline ?? null),
    request_reason: context.requestReason ?? null,
    conflicts: surroundings.conflicts.map(({ taskId: task_id, ...conflict }) => ({ task_id, ...conflict })),
  };
};
