import type { Change, Entry } from '../../src/actors/store/port.ts';
import type { SqliteStore } from '../../src/actors/store/sqlite.ts';
import type { TrackedTask } from '../../src/machines/tracked-task.ts';
import { createMergeInvariants, type MergeInvariants } from './merge-invariants.ts';
import type { Project } from './project.ts';

/** As much of a task's saved state as the invariants speak of. */
interface TaskRow {
  readonly value: unknown;
  readonly context: {
    readonly attempt: number;
    readonly deadlineAt: number | null;
    readonly role: string | null;
    readonly refusal: unknown;
    readonly failure: unknown;
    readonly review?: {
      readonly comments: readonly { readonly text: string; readonly isOpen: boolean }[];
    };
    readonly parked?: { readonly hasBegun: boolean; readonly until: number };
  };
  readonly pending: boolean;
}

export interface Rules {
  readonly cap: number;
  readonly roleCap: number;
  readonly maxRetries: number;
  readonly onInterrupted: 'ask' | 'repeat' | 'fail';
  /** A command tests what lands. */
  readonly hasTests: boolean;
}

/**
 * Looks at everything that is committed and done, and says which invariant does not hold.
 */
export interface Invariants {
  /** After each commit of the store. */
  committed(changes: readonly Change[], entries: readonly Entry[]): void;
  /** A call of the model begins; what is given back is called when it has ended. */
  asked(taskId: string, attempt: number, step: string, messages: string): () => void;
  /** A command of an agent is about to run. */
  ran(taskId: string, attempt: number, callId: string): void;
  /** The tracker is about to be told. */
  told(taskId: string, what: 'claim' | 'close'): void;
  wroteResults(taskId: string, attempt: number): void;
  /** The server is dead: nothing of it is at work any more. */
  died(): void;
  /** A person said that unclear calls of an attempt shall be made again. */
  mayRepeat(taskId: string): void;
  /** How many requests to run a task were ever committed. */
  runsOf(taskId: string): number;
  rowOf(taskId: string): TaskRow | null;
  /** How many tasks are at work with a slot that they did not lend. */
  working(): number;
  readonly taskIds: () => readonly string[];
  readonly violations: readonly string[];
  readonly merges: MergeInvariants;
  violated(what: string): void;
}

/** A queue of merges is no task. */
const isHosted = (id: string): boolean => id.startsWith('mergeQueue:');

const settledValues: ReadonlySet<unknown> = new Set(['complete', 'failed', 'cancelled']);
const progress: ReadonlySet<string> = new Set([
  'text_delta',
  'tool_start',
  'tool_output',
  'tool_end',
  'api_call_start',
  'usage',
]);
/** A parked attempt that is refused is saved first. */
const refusedClaims = new Set(['{"queued":"refused"}', '{"queued":"yielding"}']);
const endings: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);
const reopening: ReadonlySet<string> = new Set([
  'retry',
  'review',
  'reopen',
  'close',
  'tracker.observed',
  'cancel',
]);

const isLive = (row: TaskRow | null): boolean =>
  typeof row?.value === 'object' && row.value !== null && 'started' in row.value;
const lentAt: ReadonlySet<unknown> = new Set([
  'awaitingInput',
  'awaitingApproval',
  'awaitingDecision',
  'returning',
]);
type AgentRow = { readonly value: unknown; readonly context: { readonly resumeAt: unknown } };
/** Also one that is set up again in another process, to go on waiting. */
const isLending = ({ value, context }: AgentRow): boolean =>
  lentAt.has(value) || (value === 'preparing' && lentAt.has(context.resumeAt));
const isSettled = (row: TaskRow | null): boolean => settledValues.has(row?.value);

/** The type of the event behind the transition of the task in a change. */
const causeOf = ({ entries }: Change): string => {
  const { cause } = entries.find(({ type }) => type === 'snapshot') ?? { cause: null };
  return cause === null ? '' : (JSON.parse(cause) as { type: string }).type;
};

export interface Setting {
  /**
   * The server hears of a commit later than the store, and until then goes on in the state before.
   */
  readonly far: boolean;
  /** A change of the tracker is in the transaction of its transition. */
  readonly isInTransaction: boolean;
  readonly tracked: (taskId: string) => TrackedTask | null;
  /** Null: nobody merges. */
  readonly project: Project | null;
}

export const createInvariants = (
  rules: Rules,
  store: Pick<SqliteStore, 'steps'>,
  setting: Setting,
): Invariants => {
  const { far } = setting;
  const rows = new Map<string, TaskRow>();
  /** Agents that wait for a person, or for a slot after that: they lend theirs. */
  const lending = new Map<string, boolean>();
  const violations: string[] = [];
  const thinking = new Map<string, Set<number>>();
  /** Results of steps. */
  const finished = new Map<string, string>();
  const executed = new Set<string>();
  const repeatable = new Set<string>();
  const runs = new Map<string, number>();
  const closedStreams = new Map<string, number>();
  const results = new Map<string, number>();
  let lastSeq = 0;

  const violated = (what: string): void => {
    if (violations.length < 10) violations.push(what);
  };
  const require = (holds: boolean, what: () => string): void => {
    if (!holds) violated(what());
  };

  const taskMoved = (
    taskId: string,
    before: TaskRow | null,
    after: TaskRow,
    change: Change,
  ): void => {
    const cause = causeOf(change);
    const moved = `${taskId} went by ${cause} from ${JSON.stringify(before?.value)} to ${JSON.stringify(after.value)}`;
    const began = isLive(after) && !isLive(before);
    const earlier = before?.context.attempt ?? 0;
    const goesOn = before?.context.parked?.hasBegun === true;
    require(after.context.attempt === earlier + (began && !goesOn ? 1 : 0), () =>
      `I12 attempt ${earlier} became ${after.context.attempt}: ${moved}`);
    if (after.pending)
      require(Number.isFinite(after.context.deadlineAt), () => `I5 no deadline: ${moved}`);
    if (isSettled(before) && !isSettled(after))
      require(reopening.has(cause), () => `I4 left its end: ${moved}`);
    if (isSettled(before) && isSettled(after) && before?.value !== after.value)
      require(cause === 'tracker.observed' || cause === 'close', () => `I4 another end: ${moved}`);
    if (JSON.stringify(after.value) === '{"queued":"refused"}')
      require(after.context.refusal !== null, () => `I13 refused without a reason: ${moved}`);
    if (cause === 'run' || cause === 'retry' || cause === 'review')
      runs.set(taskId, (runs.get(taskId) ?? 0) + 1);
    const bound = (runs.get(taskId) ?? 0) * (1 + rules.maxRetries);
    require(after.context.attempt <= bound, () =>
      `I9 attempt ${after.context.attempt} of at most ${bound}: ${moved}`);
    const ends = change.entries.filter(({ type }) => endings.has(type)).length;
    const isSettledNow = isSettled(after) && !isSettled(before);
    // A request was refused, and the task is over as before.
    const isAgain =
      JSON.stringify(before?.value) === '{"queued":"refused"}' &&
      cause === 'tracker.observed' &&
      after.value !== 'complete';
    require(ends === (isSettledNow && !isAgain ? 1 : 0), () => `I11 ${ends} last frames: ${moved}`);
    const closed = change.entries.filter(({ type }) => type === 'stream_closed').length;
    require(closed === (isSettledNow ? 1 : 0), () => `I11 ${closed} ends of streams: ${moved}`);
    if (ends > 0)
      require((thinking.get(taskId)?.size ?? 0) === 0, () =>
        `I6 it ended while its agent was at work: ${moved}`);
  };

  /** What a transition says to the tracker is there when the transition is. */
  const requireSame = (
    taskId: string,
    before: TaskRow | null,
    after: TaskRow,
    cause: string,
  ): void => {
    const tracked = setting.tracked(taskId);
    const isHeld = tracked?.status === 'in_progress' && tracked.assignee === 'agent-server';
    const state = JSON.stringify(after.value);
    const found = `I14 ${taskId} went by ${cause} to ${state} and is ${tracked?.status} in the tracker`;
    if (cause === 'xstate.done.actor.claim')
      require(isHeld || refusedClaims.has(state), () => found);
    if (cause === 'xstate.done.actor.release' || cause === 'xstate.done.actor.parkAttempt')
      require(!isHeld, () => found);
    if (cause !== 'xstate.done.actor.close' || after.value !== 'complete') return;
    require(tracked?.status === 'closed', () => found);
    if (isLive(before))
      require(results.get(taskId) === after.context.attempt, () =>
        `Spec 2.1 ${taskId} is closed before its results are there`);
  };

  const isAtWork = ([id, row]: [string, TaskRow]): boolean =>
    isLive(row) && lending.get(`${id}#${row.context.attempt}`) !== true;
  const countLive = (): void => {
    const live = [...rows].filter(isAtWork).map(([, row]) => row);
    require(live.length <= rules.cap, () =>
      `I2 ${live.length} hold a slot, the cap is ${rules.cap}`);
    const engineers = live.filter(({ context }) => context.role === 'engineer').length;
    require(engineers <= rules.roleCap, () =>
      `I2 ${engineers} engineers, their cap is ${rules.roleCap}`);
  };

  /** A step that has a result keeps it until its attempt is over. */
  const stepped = ({ step, forgetSteps }: Change): void => {
    if (forgetSteps !== undefined)
      for (const key of finished.keys())
        if (key.startsWith(`${forgetSteps.taskId}#`)) finished.delete(key);
    if (step === undefined) return;
    const key = `${step.taskId}#${step.attempt} ${step.key}`;
    const known = finished.get(key);
    // Its intent may arrive once more, late.
    require(known === undefined || step.result === null || known === step.result, () =>
      `I10 ${key} was finished and is done again`);
    if (step.result !== null) finished.set(key, step.result);
  };

  const agentMoved = (id: string, taskId: string): void => {
    const row = rows.get(taskId) ?? null;
    // The way back to its slot may be stale while the first state of the agent is not.
    const goesOn = far && row?.context.parked?.hasBegun === true;
    require((isLive(row) || goesOn) && id === `${taskId}#${row?.context.attempt}`, () =>
      `I3 agent ${id} moved while the task is ${JSON.stringify(row?.value)} in attempt ${row?.context.attempt}`);
  };

  const framed = ({ seq, taskId, attempt, type }: Entry): void => {
    require(seq === lastSeq + 1, () => `I11 frame ${seq} came after ${lastSeq}`);
    lastSeq = seq;
    if (type === 'stream_closed') closedStreams.set(taskId, attempt);
    if (progress.has(type))
      require(attempt > (closedStreams.get(taskId) ?? 0), () =>
        `I3 ${type} of ${taskId}#${attempt} after its end`);
  };

  return {
    violations,
    merges: createMergeInvariants(setting.project, rules.hasTests, require),
    violated,
    taskIds: () => [...rows.keys()],
    rowOf: (taskId) => rows.get(taskId) ?? null,
    working: () => [...rows].filter(isAtWork).length,
    runsOf: (taskId) => runs.get(taskId) ?? 0,
    committed: (changes, entries) => {
      for (const change of changes) {
        const { actor } = change;
        stepped(change);
        if (actor === undefined || isHosted(actor.id)) continue;
        if (actor.id !== actor.taskId) {
          agentMoved(actor.id, actor.taskId);
          const agent: AgentRow = JSON.parse(actor.snapshot);
          // One that ends while it waits never has its slot again.
          if (agent.value !== 'failed') lending.set(actor.id, isLending(agent));
        } else {
          const before = rows.get(actor.id) ?? null;
          const after = {
            ...(JSON.parse(actor.snapshot) as Omit<TaskRow, 'pending'>),
            pending: actor.pending,
          };
          rows.set(actor.id, after);
          taskMoved(actor.id, before, after, change);
          const isLast = changes.findLast((each) => each.actor?.id === actor.id) === change;
          if (setting.isInTransaction && isLast)
            requireSame(actor.id, before, after, causeOf(change));
        }
      }
      countLive();
      for (const entry of entries) framed(entry);
    },
    asked: (taskId, attempt, step, messages) => {
      const row = rows.get(taskId) ?? null;
      const at = `${taskId}#${attempt} ${step}`;
      for (const { text, isOpen } of row?.context.review?.comments ?? []) {
        const times = messages.split(text).length - 1;
        require(times === (isOpen ? 1 : 0), () =>
          `Review ${at} gets ${text} ${times} times; ${isOpen ? 'open' : 'answered'}`);
      }
      const isWorking = JSON.stringify(row?.value) === '{"started":"working"}';
      require(isWorking || (far && isLive(row)), () =>
        `I1 ${at} while the task is ${JSON.stringify(row?.value)}`);
      require(row?.context.attempt === attempt, () =>
        `I1 ${at} while attempt ${row?.context.attempt} is live`);
      const known = store.steps(taskId, attempt).find(({ key }) => key === step);
      require(known !== undefined, () => `intent first: ${at} was done before it was written down`);
      require(known?.result == null, () => `I10 ${at} was finished and is done again`);
      const others = thinking.get(taskId) ?? new Set();
      require(others.size === 0, () => `I1 ${at} beside attempt ${[...others]}`);
      thinking.set(taskId, others.add(attempt));
      return () => void others.delete(attempt);
    },
    ran: (taskId, attempt, callId) => {
      const row = rows.get(taskId) ?? null;
      const at = `${taskId}#${attempt} ${callId}`;
      require(isLive(row) && row?.context.attempt === attempt, () =>
        `I1 ${at} ran while the task is ${JSON.stringify(row?.value)}`);
      const known = store
        .steps(taskId, attempt)
        .find(({ intent }) => JSON.parse(intent).call?.id === callId);
      require(known !== undefined, () => `intent first: ${at} was done before it was written down`);
      require(known?.result == null, () => `I10 ${at} was finished and is done again`);
      const again = executed.has(at) && rules.onInterrupted !== 'repeat' && !repeatable.has(taskId);
      require(!again, () =>
        `I10 ${at} was at work when the server died and is done again, unasked`);
      executed.add(at);
    },
    mayRepeat: (taskId) => void repeatable.add(taskId),
    told: (taskId, what) => {
      const row = rows.get(taskId) ?? null;
      const text = JSON.stringify(row?.value);
      const fits =
        what === 'claim' ? text === '{"started":"claiming"}' : text.endsWith('"closing"}');
      // A cancel may be committed together with the claim, or before the server has the answer. It
      // opens the task again.
      require(fits || text === '{"started":"cancelling"}', () =>
        `intent first: the tracker is told to ${what} ${taskId} while it is ${text}`);
      if (what === 'close' && isLive(row))
        require(results.get(taskId) === row?.context.attempt, () =>
          `Spec 2.1 ${taskId} is closed before its results are there`);
    },
    wroteResults: (taskId, attempt) => {
      const row = rows.get(taskId) ?? null;
      require(row?.context.attempt === attempt, () =>
        `I3 results of ${taskId}#${attempt} while attempt ${row?.context.attempt} counts`);
      results.set(taskId, attempt);
    },
    died: () => thinking.clear(),
  };
};
