import type { StartConflict } from '../../../machines/agent/agent-context.ts';
import { describeRefusal, refusal } from '../../../machines/errors.ts';
import { describeFailure } from '../../../machines/message-of.ts';
import {
  roleUse,
  type SlotGuard,
  type SupervisorContext,
  slotGuards,
} from '../../../machines/supervisor/supervisor-context.ts';

import { allowedCommands } from '../../../machines/task/command-refusals.ts';
import { type RunGuard, runGuardNames, runGuards } from '../../../machines/task/run-guards.ts';
import type { TaskContext } from '../../../machines/task/task-context.ts';
import type { TaskSnapshot } from '../../../machines/task/task-machine.ts';
import type { Finding, Role, TaskId } from '../../../machines/task.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { ExplainedPullRequest } from '../publishing/explain-pull-request.ts';

/** A guard of the task chart or of the supervisor, evaluated now. */
interface ExplainedGuard {
  readonly guard: RunGuard | SlotGuard;
  readonly value: boolean;
  readonly inputs: Readonly<Record<string, unknown>>;
}

export interface Explanation {
  readonly task_id: string;
  readonly state: unknown;
  readonly guards: readonly ExplainedGuard[];
  readonly allowed_events: readonly string[];
  /** The last refusal or failure; else what the task waits for. */
  readonly reason: string | null;
  readonly deadline: string | null;
  readonly request_reason: string | null;
  readonly pull_request?: ExplainedPullRequest;
  /** Work of earlier tasks that the latest attempt lacks, and the files in conflict. */
  readonly conflicts: readonly {
    readonly task_id: string;
    readonly branch: string;
    readonly files: readonly string[];
  }[];
}

export interface SlotUse {
  readonly running: number;
  readonly waiting: number;
  readonly cap: number;
  readonly queueLimit: number;
  /** One sentence while the queue is paused, else null. */
  readonly paused: string | null;
}

const inputs: Readonly<
  Record<RunGuard, (context: TaskContext) => Readonly<Record<string, unknown>>>
> = {
  taskExists: ({ finding }) => ({ exists: finding?.exists }),
  dependenciesComplete: ({ finding }) => ({ unmet: finding?.unmet }),
  heldByNobodyElse: ({ finding }) => ({ holder: finding?.holder }),
  projectCanBeUsed: ({ finding }) => ({ ...finding?.projectProblem }),
  modelCanBeCalled: ({ finding }) => ({
    missing_credential: finding?.missingCredential,
    problem: finding?.assistantProblem,
  }),
  withinBudget: ({ finding }) => {
    const used = finding?.usedBudget ?? null;
    return used === null
      ? {}
      : {
          budget: used.budget,
          detail: used.reason,
          ends: used.budget === 'run' ? null : new Date(used.until).toISOString(),
        };
  },
  hasAttemptsLeft: ({ retriesLeft, failure }) => ({
    retries_left: retriesLeft,
    retryable: failure?.retryable ?? null,
  }),
};

interface ExplainInputs {
  readonly finding: Finding;
  readonly slots: SlotUse;
  readonly supervisor: SupervisorContext;
  /** The role of the next run. */
  readonly role: Role;
  /** One phrase for each unmet dependency: `bd-a1 (failed: no disk)`. */
  readonly blockers: readonly string[];
  /** One sentence when its dependencies never end. */
  readonly cycle: string | null;
  readonly awaiting: TaskView['awaiting'];
  readonly phase: TaskView['phase'];
  readonly conflicts: readonly StartConflict[];
  /** Whether a person does it. */
  readonly isPersons?: boolean;
}

const slotReason = ({ slots, supervisor, role }: ExplainInputs): string => {
  if (slots.paused !== null) return slots.paused;
  const own = roleUse(supervisor, role);
  if (own?.cap === 0)
    return `this server runs no ${role}; it waits for a slot of another one; ${slots.waiting} wait`;
  const isRoleFull = own !== null && own.running >= own.cap;
  const slot =
    isRoleFull && slots.running < slots.cap
      ? `a slot of the role ${role}, which has ${own.cap}`
      : `one of ${slots.cap} slots`;
  return `it waits for ${slot}; ${slots.waiting} wait`;
};

/** Somebody else who has a task that is not over and that nobody runs here. */
const holderAtRest = (snapshot: TaskSnapshot, { finding }: ExplainInputs): string | null =>
  snapshot.hasTag('resting') && !snapshot.hasTag('settled') ? finding.holder : null;

/** The reason of a task without a refusal and without a failure. */
const waitReason = (snapshot: TaskSnapshot, given: ExplainInputs): string | null => {
  const { blockers, cycle, awaiting, isPersons = false } = given;
  if (awaiting !== undefined)
    return `it waits for a person: ${awaiting.question ?? 'may it do what it is about to do?'}`;
  if (snapshot.matches({ queued: 'waitingForSlot' })) return slotReason(given);
  if (cycle !== null && snapshot.matches('queued')) return cycle;
  if (snapshot.matches({ queued: 'waitingForDependencies' }))
    return blockers.length === 0
      ? 'its dependencies are complete; it is about to start'
      : `it starts by itself when its dependencies are complete; it waits for ${blockers.join(', ')}`;
  if (!snapshot.hasTag('resting')) return null;
  const holder = holderAtRest(snapshot, given);
  if (holder !== null)
    return describeRefusal(
      refusal('tracker_conflict', { task_id: snapshot.context.taskId, holder }),
    );
  if (blockers.length > 0) return cycle ?? `it waits for ${blockers.join(', ')}`;
  return isPersons ? 'it waits for a person, who closes it' : 'nobody has asked for a run';
};

const parkedReason = (snapshot: TaskSnapshot): string | null => {
  const { parked } = snapshot.context;
  if (!snapshot.hasTag('parked') || parked === undefined) return null;
  const at = new Date(parked.until).toISOString();
  if (parked.budget === 'run')
    return `it is parked until its run may cost more: ${parked.reason}; to go on: agent run ${snapshot.context.taskId} --max-cost <more>`;
  if (parked.budget !== undefined)
    return `it is parked until ${at}: ${parked.reason}; to go on before: agent config set budget.${parked.budget}_usd <more>`;
  return `it is parked until ${at}: ${parked.reason}; to try now: agent retry ${snapshot.context.taskId}`;
};

const lastFailure = ({ context: { failure } }: TaskSnapshot): string | null =>
  failure === null ? null : describeFailure(failure);
/** A refusal of an earlier request has no part in the end of a task. */
const endReason = (snapshot: TaskSnapshot): string | null =>
  snapshot.hasTag('failed') ? lastFailure(snapshot) : snapshot.context.reason;

/** The supervisor's guards, as if the task asked now and alone. */
const explainSlots = (
  taskId: TaskId,
  { slots: { running, waiting, cap, queueLimit, paused }, supervisor, role }: ExplainInputs,
): readonly ExplainedGuard[] => {
  const own = roleUse(supervisor, role);
  const ofRole = own === null ? {} : { role, role_running: own.running, role_cap: own.cap };
  return [
    {
      guard: 'queueHasRoom',
      value: slotGuards.queueHasRoom(
        { context: supervisor },
        { request: { taskId, admitted: false } },
      ),
      inputs: { waiting, limit: queueLimit },
    },
    {
      guard: 'slotIsFree',
      value: paused === null && slotGuards.slotIsFree({ context: supervisor }, { roles: [role] }),
      inputs: { running, waiting, cap, paused, ...ofRole },
    },
  ];
};

/** The slot of a task that asks a person is lent: it wants one again after the answer. */
const hasSlot = (snapshot: TaskSnapshot, { phase }: ExplainInputs): boolean =>
  snapshot.hasTag('started') && phase !== 'waiting_for_slot';

/** Guards that do not refuse a request for a run. */
const notForRequests: ReadonlySet<ExplainedGuard['guard']> = new Set<RunGuard | SlotGuard>([
  'hasAttemptsLeft',
  'slotIsFree',
  'withinBudget',
]);

/** True when the chart accepts the command and a guard would then refuse it. */
const wouldBeRefused = (
  command: string,
  isClosed: boolean,
  guards: readonly ExplainedGuard[],
): boolean => {
  const failing = guards.filter(({ guard, value }) => !value && !notForRequests.has(guard));
  // Closing a closed task succeeds.
  if (command === 'close')
    return !isClosed && failing.some(({ guard }) => guard === 'dependenciesComplete');
  return ['run', 'retry'].includes(command) && failing.length > 0;
};

const isoOrNull = (at: number | null): string | null =>
  at === null ? null : new Date(at).toISOString();

/** Past tense of refusals whose guard holds by now: a task may have been away with its branch. */
const pastRefusals: Readonly<
  Partial<Record<string, { readonly guard: RunGuard; readonly was: string }>>
> = {
  task_not_found: { guard: 'taskExists', was: 'it was missing in the tracker' },
  tracker_conflict: { guard: 'heldByNobodyElse', was: 'somebody else held it in the tracker' },
  project_refused: { guard: 'projectCanBeUsed', was: 'agents could not work in the project' },
  credential_missing: { guard: 'modelCanBeCalled', was: 'no model was set up' },
};

/** Evaluates the guards with the newest finding; changes nothing. */
export const explain = (snapshot: TaskSnapshot, given: ExplainInputs): Explanation => {
  const { finding, blockers, cycle, awaiting } = given;
  const context: TaskContext = { ...snapshot.context, finding };
  const guards = [
    // A parked attempt goes on by itself.
    ...runGuardNames
      .filter((guard) => guard !== 'hasAttemptsLeft' || !snapshot.hasTag('parked'))
      .map((guard) => ({
        guard,
        value: runGuards[guard]({ context }),
        inputs: inputs[guard](context),
      })),
    ...(hasSlot(snapshot, given) ? [] : explainSlots(context.taskId, given)),
  ];
  const { refusal: refused, deadlineAt } = snapshot.context;
  // The dependencies may have changed since the refusal.
  const since =
    refused?.code === 'dependencies_unmet' && blockers.length > 0
      ? `; now: ${cycle ?? blockers.join(', ')}`
      : '';
  const once = refused === null ? undefined : pastRefusals[refused.code];
  const refusedWhy =
    once !== undefined && runGuards[once.guard]({ context })
      ? `${once.was} when its run was to begin; nobody has asked for a run since`
      : refused === null
        ? null
        : `${describeRefusal(refused)}${since}`;
  const reason = snapshot.hasTag('settled')
    ? endReason(snapshot)
    : (parkedReason(snapshot) ??
      refusedWhy ??
      lastFailure(snapshot) ??
      waitReason(snapshot, given));
  return {
    task_id: context.taskId,
    state: snapshot.value,
    guards,
    allowed_events:
      holderAtRest(snapshot, given) === null
        ? allowedCommands(snapshot, awaiting !== undefined).filter(
            (name) =>
              !wouldBeRefused(name, snapshot.hasTag('complete'), guards) &&
              !(name === 'run' && given.isPersons === true),
          )
        : ['close', 'reopen'].filter((name) => !wouldBeRefused(name, false, guards)),
    reason,
    deadline: awaiting === undefined ? isoOrNull(deadlineAt) : (awaiting.deadline ?? null),
    request_reason: context.requestReason ?? null,
    conflicts: given.conflicts.map(({ taskId: task_id, ...conflict }) => ({
      task_id,
      ...conflict,
    })),
  };
};
