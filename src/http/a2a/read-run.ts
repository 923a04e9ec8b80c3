import { z } from 'zod';
import type { TaskView } from '../../actors/journal/task-view.ts';
import type { Entry, EntryReads } from '../../actors/store/port.ts';
import { finalStatuses } from '../../machines/task.ts';
import { taskNotFound } from './errors.ts';
import { type A2aState, isTerminal } from './protocol.ts';

/** Something that was said, by the client or by the agent. */
interface Said {
  readonly by: 'user' | 'agent';
  readonly text: string;
  /** Epoch ms. */
  readonly at: number;
}

/**
 * One A2A task: what follows one request to run a task of ours, up to its end. Automatic retries
 * belong to it; a retry or reopen by a person begins another one.
 */
export interface TaskRun {
  /** The attempt that it began with; null: the first of its task. */
  readonly from: number | null;
  /** The run before it; null: there is none, or it was removed. */
  readonly before: Pick<TaskRun, 'from'> | null;
  state: A2aState;
  /** The question, the summary or the reason of the state. */
  says: string | null;
  phase: string;
  progress: number;
  attempt: number;
  /** When it came into its state (epoch ms); 0: before its first entry. */
  at: number;
  /** Number of changes that a client can see. */
  generation: number;
  /** Null: nobody is asked. */
  inputId: string | null;
  readonly said: Said[];
  /** Text that the agent wrote. */
  transcript: string;
  /** The summary, when it is complete. */
  result: string | null;
}

/** A change that readers of a stream see. */
type RunChange = { readonly kind: 'status' } | { readonly kind: 'text'; readonly text: string };

/** In UTF-16 units; what follows is left out. */
const transcriptAtMost = 256 * 1024;
const cutMark = '\n[cut here: agent logs has all of it]\n';

const statusSchema = z.looseObject({
  status: z.string(),
  phase: z.string(),
  progress: z.number().default(0),
  error: z.looseObject({ code: z.string(), message: z.string() }).nullish(),
});
const askedSchema = z.looseObject({
  input_id: z.string(),
  question: z.string(),
  calls: z.array(z.looseObject({ tool: z.string(), arguments: z.string() })).default([]),
});
const endDataSchema = z.looseObject({
  result: z.string().nullish(),
  reason: z.string().nullish(),
  error: z.looseObject({ code: z.string(), message: z.string() }).nullish(),
});
const textDeltaSchema = z.looseObject({ text: z.string() });
const respondSchema = z.looseObject({ text: z.string().nullable() });

const newRun = (from: number | null, before: TaskRun['before'] = null): TaskRun => ({
  from,
  before,
  state: 'SUBMITTED',
  says: null,
  phase: 'waiting_for_run',
  progress: 0,
  attempt: from ?? 0,
  at: 0,
  generation: 0,
  inputId: null,
  said: [],
  transcript: '',
  result: null,
});

const stateOfEnd: Readonly<Record<string, A2aState>> = {
  completed: 'COMPLETED',
  failed: 'FAILED',
  cancelled: 'CANCELED',
};

const change = (run: TaskRun, state: A2aState, says: string | null, at: number): RunChange => {
  Object.assign(run, { state, says, at });
  run.generation += 1;
  return { kind: 'status' };
};

const askedCallText = ({ tool, arguments: given }: { tool: string; arguments: string }): string =>
  `${tool} ${given}`;

const onAsked = (run: TaskRun, { type, data, at }: Entry): RunChange => {
  const { input_id, question, calls } = askedSchema.parse(JSON.parse(data));
  const isQuestion = type === 'input_required';
  const says = [question, ...calls.map(askedCallText)].join('\n');
  run.inputId = input_id;
  if (isQuestion) run.said.push({ by: 'agent', text: question, at });
  return change(run, isQuestion ? 'INPUT_REQUIRED' : 'AUTH_REQUIRED', says, at);
};

/** A late refusal, such as by somebody else who took the task in the tracker. */
const isRefused = ({ status, phase, error }: z.infer<typeof statusSchema>): boolean =>
  error != null && status === 'queued' && phase === 'waiting_for_run';

const onStatus = (run: TaskRun, entry: Entry): RunChange | null => {
  const status = statusSchema.parse(JSON.parse(entry.data));
  const { phase, progress, error } = status;
  Object.assign(run, { phase, progress });
  if (error != null && isRefused(status)) {
    // Somebody may set a key or log in, and the task goes on.
    const state = error.code === 'credential_missing' ? 'AUTH_REQUIRED' : 'REJECTED';
    return change(run, state, error.message, entry.at);
  }
  // The question follows in an entry of its own, the end too.
  if (phase.startsWith('awaiting_') || phase === status.status) return null;
  run.inputId = null;
  const isNew = run.state === 'SUBMITTED' && status.status === 'queued';
  return change(run, isNew ? 'SUBMITTED' : 'WORKING', null, entry.at);
};

const onEnd = (run: TaskRun, { type, data, at }: Entry): RunChange => {
  const { result, reason, error } = endDataSchema.parse(JSON.parse(data));
  run.inputId = null;
  run.progress = type === 'completed' ? 1 : run.progress;
  run.result = result ?? null;
  const says = result ?? reason ?? (error == null ? null : `${error.code}: ${error.message}`);
  return change(run, stateOfEnd[type] ?? 'FAILED', says || null, at);
};

const onText = (run: TaskRun, { data }: Entry): RunChange | null => {
  const { text } = textDeltaSchema.parse(JSON.parse(data));
  const room = transcriptAtMost - run.transcript.length;
  if (room <= 0) return null;
  const added = text.length <= room ? text : text.slice(0, room) + cutMark;
  run.transcript += added;
  run.generation += 1;
  return { kind: 'text', text: added };
};

const spoken = ['{"type":"respond"', '{"type":"tell"'];

/** The words of a person are in the event alone. */
const onSnapshot = (run: TaskRun, { cause, at }: Entry): null => {
  if (cause === null || !spoken.some((start) => cause.startsWith(start))) return null;
  const { data } = respondSchema.safeParse(JSON.parse(cause));
  if (data?.text != null) run.said.push({ by: 'user', text: data.text, at });
  return null;
};

const takes: Readonly<Record<string, (run: TaskRun, entry: Entry) => RunChange | null>> = {
  status_update: onStatus,
  input_required: onAsked,
  approval_required: onAsked,
  text_delta: onText,
  snapshot: onSnapshot,
  completed: onEnd,
  failed: onEnd,
  cancelled: onEnd,
};

interface RunFold {
  /** Oldest first; at least one. */
  readonly runs: readonly TaskRun[];
  latest(): TaskRun;
  /** @returns what readers of the latest run see, or null */
  take(entry: Entry): RunChange | null;
}

/**
 * The A2A tasks of one task of ours, from its journal: reading and streaming use the same steps.
 * `isCut`: the journal of earlier runs was removed.
 */
const createRunFold = (isCut = false): RunFold => {
  let run = newRun(null);
  const runs = [run];
  let isFirst = true;
  return {
    runs,
    latest: () => run,
    take: (entry) => {
      const takeEntry = takes[entry.type];
      if (takeEntry === undefined) return null;
      if (isFirst && isCut) {
        run = newRun(entry.attempt + 1);
        runs.splice(0, 1, run);
      }
      isFirst = false;
      if (isTerminal(run.state)) {
        if (entry.type !== 'status_update') return null;
        // The last words of a run may repeat its end.
        const { status, phase } = statusSchema.parse(JSON.parse(entry.data));
        if (status === phase) return null;
        run = newRun(run.attempt + 1, { from: run.from });
        runs.push(run);
      }
      run.attempt = Math.max(run.attempt, entry.attempt);
      return takeEntry(run, entry);
    },
  };
};

/** `bd-a1` is the first run of a task, `bd-a1~3` the one that began with its third attempt. */
export interface RunId {
  readonly taskId: string;
  readonly from: number | null;
}

/** @throws TASK_NOT_FOUND */
export const parseRunId = (id: string): RunId => {
  const match = /^([^~]{1,128})(?:~([1-9]\d{0,8}))?$/.exec(id);
  if (match?.[1] === undefined) throw taskNotFound(id);
  return { taskId: match[1], from: match[2] === undefined ? null : Number(match[2]) };
};

export const runIdOf = (taskId: string, { from }: Pick<TaskRun, 'from'>): string =>
  from === null ? taskId : `${taskId}~${from}`;

export interface RunReads {
  readonly store: Pick<EntryReads, 'read' | 'removed'>;
  readonly status: (taskId: string) => Promise<TaskView>;
}

export interface ReadRun {
  readonly view: TaskView;
  readonly fold: RunFold;
  readonly run: TaskRun;
  /** The last entry that it has. */
  readonly asOf: number;
}

const perRead = 1_000;

const ended: Readonly<Record<string, A2aState>> = {
  complete: 'COMPLETED',
  failed: 'FAILED',
  cancelled: 'CANCELED',
};

/**
 * Takes the state that the tracker alone knows: of a task that never ran here, or that somebody
 * closed there.
 */
const takeView = (run: TaskRun, view: TaskView): void => {
  const changedAt = Date.parse(view.updated_at);
  if (run.at === 0) run.phase = view.phase;
  const state = ended[view.status];
  if (state !== undefined && !isTerminal(run.state) && run.at <= changedAt)
    Object.assign(run, { state, result: view.result ?? null });
  // As it is listed.
  run.at = Math.max(run.at, changedAt);
  const isRefused = view.error?.code === 'credential_missing' && !finalStatuses.has(view.status);
  if (isRefused && run.state === 'SUBMITTED')
    Object.assign(run, { state: 'AUTH_REQUIRED', says: view.error?.message ?? null });
};

const foldUpTo = async (
  { store }: Pick<RunReads, 'store'>,
  taskId: string,
  through: number,
): Promise<Pick<ReadRun, 'fold' | 'asOf'>> => {
  const fold = createRunFold((await store.removed(taskId)) !== null);
  let asOf = 0;
  for (;;) {
    const entries = await store.read({ taskId, after: asOf, limit: perRead });
    const some = entries.filter(({ seq }) => seq <= through);
    for (const entry of some) fold.take(entry);
    asOf = some.at(-1)?.seq ?? asOf;
    if (some.length < perRead) return { fold, asOf };
  }
};

/** The latest run of a task. @throws task_not_found */
export const readLatestRun = async (reads: RunReads, taskId: string): Promise<ReadRun> => {
  const view = await reads.status(taskId);
  const { fold, asOf } = await foldUpTo(reads, taskId, Number.POSITIVE_INFINITY);
  takeView(fold.latest(), view);
  return { view, fold, run: fold.latest(), asOf };
};

/** A run as the journal had it at an entry; null when it had not begun. @throws task_not_found */
export const readRunAt = async (
  reads: RunReads,
  id: string,
  through: number,
): Promise<ReadRun | null> => {
  const { taskId, from } = parseRunId(id);
  const view = await reads.status(taskId);
  const { fold, asOf } = await foldUpTo(reads, taskId, through);
  const run = fold.runs.find((each) => each.from === from);
  return run === undefined ? null : { view, fold, run, asOf };
};

/** @throws TASK_NOT_FOUND, task_not_found */
export const readRun = async (reads: RunReads, id: string): Promise<ReadRun> => {
  const { taskId, from } = parseRunId(id);
  const found = await readLatestRun(reads, taskId);
  const run = found.fold.runs.find((each) => each.from === from);
  if (run === undefined || found.view.task_id !== taskId) throw taskNotFound(id);
  return { ...found, run };
};
