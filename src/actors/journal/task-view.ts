import { z } from 'zod';
import type { AgentContext } from '../../machines/agent/agent-context.ts';
import { sumOfUsage, waitedUntil } from '../../machines/agent/agent-rules.ts';
import { callInWords } from '../../machines/agent/call-in-words.ts';
import { describeRefusal } from '../../machines/errors.ts';
import { isForPerson } from '../../machines/for-person.ts';
import { pendingPhase } from '../../machines/phase.ts';
import { type Review, verdicts } from '../../machines/review.ts';
import { roleInLabels } from '../../machines/role-label.ts';
import type { TaskContext } from '../../machines/task/task-context.ts';
import { hasParkedAttempt, ownOutcome } from '../../machines/task/task-selectors.ts';
import { finalStatuses, noUsage, roles, statuses, type Usage } from '../../machines/task.ts';
import { sourceOf, statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';
import { imageTypes } from '../files/image.ts';
import type { RemovedHistory } from '../store/port.ts';
import { defaultCloseReason } from '../tracker/port.ts';
import { leftOutSchema } from '../workspace/git/work-records.ts';

export const phases = [
  'waiting_for_run',
  'waiting_for_person',
  'waiting_for_dependencies',
  'waiting_for_slot',
  'waiting_for_tracker',
  'preparing',
  'thinking',
  'acting',
  'awaiting_input',
  'awaiting_approval',
  'backing_off',
  'verifying',
  'closing',
  'cancelling',
] as const;

const roleSchema = z.enum(roles);

const cacheWriteSchema = z
  .int()
  .positive()
  .optional()
  .describe('input tokens that the provider wrote to its cache; absent where none');
const usageSchema = z.strictObject({
  input_tokens: z.int().nonnegative().describe('tokens that the model read'),
  output_tokens: z.int().nonnegative().describe('tokens that the model wrote'),
  cached_tokens: z.int().nonnegative().describe('input tokens that the provider had cached'),
  cache_write_tokens: cacheWriteSchema,
  model_calls: z.int().nonnegative().describe('calls of the model'),
  tool_calls: z.int().nonnegative().describe('calls of tools'),
  turns: z.int().nonnegative().describe('turns'),
  tokens_unknown: z
    .literal(true)
    .optional()
    .describe('that the agent does not tell its tokens, so the counts are too low'),
  cost_usd: z
    .number()
    .nonnegative()
    .optional()
    .describe('cost in USD; absent where the price is unknown'),
});

/** The open question of a live attempt; `respond` answers it with the attempt and `input_id`. */
const awaitingSchema = z.strictObject({
  input_id: z.string().describe('send it with respond'),
  kind: z.enum(['input', 'approval']).describe('a question, or calls that need approval'),
  question: z.string().describe('the question'),
  calls: z
    .array(z.strictObject({ call_id: z.string(), tool: z.string(), arguments: z.string() }))
    .describe('the calls that need approval'),
  deadline: z.iso
    .datetime()
    .optional()
    .describe('when it is too late to answer; absent: there is no limit'),
  default_answer: z
    .string()
    .optional()
    .describe('the answer that counts at the deadline; absent: the attempt fails'),
});

const reviewViewSchema = z.strictObject({
  verdict: z.enum(verdicts).describe('of the latest review'),
  comments: z
    .array(
      z.strictObject({
        id: z.int().positive(),
        attempt: z.int().positive().describe('the attempt whose changes it is about'),
        path: z.string(),
        line: z.int().positive().optional(),
        end_line: z.int().positive().optional(),
        text: z.string(),
        source: z.string().optional().describe('the comment or check of its pull request'),
        open: z.boolean().describe('whether an attempt has yet to answer it'),
        answer: z.string().optional().describe("the agent's answer"),
        answered_by: z.int().positive().optional().describe('the attempt that answered'),
      }),
    )
    .describe('in the order in which they were given'),
});

export const conflictsSchema = z
  .array(z.strictObject({ task_id: z.string(), paths: z.array(z.string()) }))
  .optional()
  .describe('unmerged work of other tasks that it will conflict with, and the files');

/** The changes of the latest attempt: saved on a branch, or of an attempt at work so far. */
const workSchema = z.strictObject({
  branch: z
    .string()
    .optional()
    .describe('the branch of the attempt; absent: none has changes of it'),
  commit: z.string().optional().describe('its tip'),
  files: z.int().nonnegative().describe('files that it changed'),
  insertions: z.int().nonnegative().describe('lines that it added'),
  deletions: z.int().nonnegative().describe('lines that it removed'),
  merged_at: z.iso.datetime().optional().describe('when it was merged; absent: it was not'),
  merge_commit: z.string().optional().describe('the commit of your branch that has it'),
  notes: z.array(z.string()).optional().describe('what to know before it is merged'),
  discarded_at: z.iso
    .datetime()
    .optional()
    .describe('when a person discarded it: it is not merged or built on'),
  undone: z
    .literal(true)
    .optional()
    .describe('that it had landed and was taken back: the task is open again'),
  left: z.array(leftOutSchema).optional().describe('what is not on the branch'),
  incomplete: z
    .literal(true)
    .optional()
    .describe('that the attempt did not complete it: it is merged only with force'),
  conflicts: z
    .array(z.strictObject({ task_id: z.string(), branch: z.string(), files: z.array(z.string()) }))
    .optional()
    .describe('work of other tasks that it began without, since it conflicted'),
  tested: z
    .strictObject({
      commands: z.array(z.string()).describe('all of them passed'),
      tested_at: z.iso.datetime().describe('when that tree passed'),
      tested_seconds: z.number().nonnegative().describe('how long that took, with its setup'),
    })
    .optional()
    .describe('what passed on the tree that your branch got with it'),
  conflicts_with: conflictsSchema,
  merge: z
    .strictObject({
      state: z
        .enum(['waiting', 'testing', 'landed', 'refused'])
        .describe('in the queue of merges (waiting, testing), or what came of it'),
      with: z
        .array(z.string())
        .optional()
        .describe('tasks with whose work, which landed, it does not pass'),
      message: z.string().optional().describe('why it was refused'),
      command: z.string().optional().describe('the command that did not pass with it'),
      output: z.string().optional().describe('the end of what that command printed'),
      paths: z.array(z.string()).optional().describe('the files that conflict, at most 100'),
      updatable: z
        .literal(true)
        .optional()
        .describe('that an update goes on with it; absent: what is in the way is not its work'),
    })
    .optional()
    .describe('its merge; absent: nobody asked for one'),
});

export const pullRequestSchema = z.strictObject({
  number: z.int().positive().optional().describe('its number at the forge'),
  url: z.string().optional().describe('its page'),
  state: z
    .enum(['publishing', 'open', 'merging', 'merged', 'closed', 'abandoned'])
    .describe('closed: a person closed it; abandoned: its task is over without it'),
  checks: z.enum(['pending', 'red', 'green', 'none']).optional().describe('of its head'),
  review: z
    .enum(['none', 'changes', 'approved'])
    .optional()
    .describe('what people with a say decided'),
  mergeable: z
    .enum(['yes', 'behind', 'conflicting', 'unknown'])
    .optional()
    .describe('whether it fits its base; unknown: the forge has not worked it out'),
  round: z.int().nonnegative().describe('how many attempts the forge asked for'),
  head_sha: z.string().optional().describe('its newest commit'),
  waits_for: z
    .enum(['checks', 'review', 'person', 'forge', 'limit'])
    .optional()
    .describe('who or what is next'),
  fault: z
    .string()
    .optional()
    .describe('what the forge refused: limit, right, token, gone, moved, refused or away'),
  reason: z.string().optional().describe('why it is not merged yet'),
});

const sourceSchema = z.strictObject({
  type: z.enum(['github']).describe('the kind of forge'),
  url: z.string().describe('the page of the issue'),
  number: z.int().positive().describe('its number'),
});

const endedAttemptSchema = z.strictObject({
  attempt: z.int().positive().describe('its number'),
  role: z.string().meta({ examples: roles, description: 'the role that worked' }),
  status: z
    .string()
    .meta({ examples: [...finalStatuses], description: 'complete, failed or cancelled' }),
  ended_at: z.iso.datetime().describe('when it ended'),
  seconds: z.number().nonnegative().describe('how long it took'),
  model_calls: z.int().nonnegative().describe('calls of the model'),
  tool_calls: z.int().nonnegative().describe('calls of tools'),
  input_tokens: z.int().nonnegative().describe('tokens that the model read'),
  output_tokens: z.int().nonnegative().describe('tokens that the model wrote'),
  cached_tokens: z.int().nonnegative().describe('input tokens that the provider had cached'),
  cache_write_tokens: cacheWriteSchema,
  cost_usd: z.number().nonnegative().optional().describe('cost in USD; absent where unknown'),
  merged_at: z.iso.datetime().optional().describe('when its work was merged; absent: it was not'),
});

/** A task as people and programs see it. Times are RFC 3339 UTC with milliseconds. */
export const taskViewSchema = z.strictObject({
  task_id: z.string().describe('the id of the task'),
  title: z.string().describe('one line'),
  description: z.string().describe('what to do'),
  status: z.string().meta({
    examples: statuses,
    description: 'queued, started, complete, failed, cancelled, or a status of the tracker',
  }),
  tracker_status: z
    .string()
    .optional()
    .describe('status in the tracker of a task that was asked to run and is not open there'),
  held_by: z
    .string()
    .optional()
    .describe('who holds it in the tracker, where that is somebody else; reopen releases it'),
  phase: z
    .union([z.enum(phases), z.string()])
    .describe('what it does or waits for; the status when it is over'),
  ready: z.boolean().describe('whether it can be run now'),
  role: roleSchema.optional().describe('the role of the latest run'),
  attempt: z.int().nonnegative().describe('number of the latest attempt; 0 before the first'),
  max_attempts: z
    .int()
    .positive()
    .optional()
    .describe('the number of the last attempt that may follow by itself; absent without a run'),
  max_turns: z.int().positive().optional().describe('the limit of turns of a live attempt'),
  activity: z
    .string()
    .optional()
    .describe(
      'the tool calls that a live attempt makes now: a tool and its first argument; in a pause, why the model call or the last attempt failed',
    ),
  dependencies: z.array(z.string()).describe('the tasks that it depends on'),
  unmet_dependencies: z.array(z.string()).describe('those of them that are not complete'),
  priority: z.int().describe('0 (first) to 4 (last)'),
  labels: z.array(z.string()).describe('its labels'),
  source: sourceSchema.optional().describe('the issue that it came from'),
  created_at: z.iso.datetime().describe('when it was created'),
  updated_at: z.iso.datetime().describe('when it changed last'),
  started_at: z.iso.datetime().optional().describe('when the latest attempt started'),
  completed_at: z.iso.datetime().optional().describe('when it ended'),
  waits_since: z.iso
    .datetime()
    .optional()
    .describe('since when the attempt waits for a person, or after that for its slot'),
  waited_seconds: z
    .number()
    .nonnegative()
    .optional()
    .describe(
      'how long the latest attempt waited for persons or for the end of a limit, up to waits_since or its end; no part of its time',
    ),
  progress: z.number().min(0).max(1).describe('from 0 to 1; never falls within an attempt'),
  parked_until: z.iso
    .datetime()
    .optional()
    .describe(
      'when a task that waits for the end of a limit of the provider, or of a budget, goes on by itself; of the budget of a run, when it is looked at again',
    ),
  parked_reason: z
    .string()
    .optional()
    .describe('why it waits for that; for a budget, its key first: budget.day_usd'),
  result: z.string().optional().describe('the summary of the agent'),
  results_path: z.string().optional().describe('the results file, inside the project'),
  error: z
    .strictObject({
      code: z.string().describe('the name of the error'),
      message: z.string().describe('what is wrong and what to do'),
      facts: z.record(z.string(), z.unknown()).describe('the facts, by name'),
    })
    .optional()
    .describe('why the last attempt failed or the last request was refused'),
  request_reason: z.string().optional().describe('why a person reopened or retried it'),
  close_reason: z.string().optional().describe('why it was closed, if no attempt completed it'),
  review: reviewViewSchema.optional().describe('what people said about its work'),
  awaiting: awaitingSchema.optional().describe('what the attempt waits for a person for'),
  usage: usageSchema.describe('what the latest attempt used'),
  work: workSchema
    .optional()
    .describe('what the latest attempt changed, in the answers to status and, if complete, list'),
  pull_request: pullRequestSchema
    .optional()
    .describe('its pull request at the forge, in the answers to status and list'),
  attempts: z
    .array(endedAttemptSchema)
    .optional()
    .describe('the attempts that are over, in the answer to status'),
  attachments: z
    .array(
      z.strictObject({
        digest: z.string().describe('SHA-256 of its bytes, hexadecimal'),
        name: z.string().describe('its file as the person called it; may be empty'),
        media_type: z.enum(imageTypes).describe('by its first bytes'),
        bytes: z.int().positive().describe('its size'),
      }),
    )
    .optional()
    .describe('images that a person attached, in the answers to status and create'),
  history_removed: z
    .strictObject({
      through_seq: z.int().nonnegative().describe('the last entry that was removed'),
      at: z.iso.datetime().describe('when'),
      after_days: z.int().nonnegative().describe('store.retention_days at that time'),
    })
    .optional()
    .describe('that its journal was removed because it was old; absent: it was not'),
  stream_url: z.string().describe('path of its stream'),
});
export type TaskView = z.infer<typeof taskViewSchema>;
export type PullRequestView = z.infer<typeof pullRequestSchema>;

export interface TaskState {
  readonly tags: ReadonlySet<string>;
  readonly context: TaskContext;
}
export interface AgentState {
  readonly tags: ReadonlySet<string>;
  readonly context: AgentContext;
}

interface ViewParts {
  readonly tracked: TrackedTask;
  /** Null before the first run. */
  readonly task: TaskState | null;
  readonly agent: AgentState | null;
  /** Time of the latest transition (epoch ms), or 0. */
  readonly changedAt: number;
  /** The part of the journal that was removed, for a task at rest. */
  readonly removed?: RemovedHistory | null;
}

const iso = (at: number): string => new Date(at).toISOString();

const statusOfTask = ({ tracked, task }: ViewParts): string => {
  if (task?.tags.has('pending')) return task.tags.has('started') ? 'started' : 'queued';
  return statusInTracker(tracked);
};

/** A request hides what the tracker says; a server that starts in an outage needs it. */
const trackerStatusOf = ({ tracked, task }: ViewParts): Pick<TaskView, 'tracker_status'> => {
  const isAsked = task?.tags.has('pending') === true && !task.tags.has('started');
  return isAsked && tracked.status !== 'open' ? { tracker_status: tracked.status } : {};
};

const phaseOfTask = ({ tracked, task, agent }: ViewParts, status: string): string => {
  if (task?.tags.has('pending')) return pendingPhase(task, agent);
  if (status !== 'queued') return status;
  if (!tracked.ready) return 'waiting_for_dependencies';
  return isForPerson(tracked.labels) ? 'waiting_for_person' : 'waiting_for_run';
};

const byPhase: Readonly<Record<string, number>> = {
  verifying: 0.9,
  closing: 0.95,
  cancelling: 0.95,
};

/** From 0 to 1, never falling within an attempt. The number of turns is not known in advance. */
const progressOf = (status: string, phase: string, turns: number): number => {
  if (status === 'complete') return 1;
  if (status === 'queued') return 0;
  return byPhase[phase] ?? Math.round((0.05 + (0.8 * turns) / (turns + 5)) * 100) / 100;
};

/** The last failure or refusal; for a task at work, the outage of the tracker that holds it up. */
const errorOf = (status: string, { context, tags }: TaskState): TaskView['error'] => {
  if (status === 'failed' && context.failure !== null) {
    const { code, message, facts } = context.failure;
    return { code, message, facts: { ...facts } };
  }
  const isCurrent = !tags.has('pending') || tags.has('phase:waiting_for_tracker');
  if (!finalStatuses.has(status) && isCurrent && context.refusal !== null)
    return {
      code: context.refusal.code,
      message: describeRefusal(context.refusal),
      facts: { ...context.refusal.facts },
    };
  return undefined;
};

const reviewOf = ({ verdict, comments }: Review): TaskView['review'] => ({
  verdict,
  comments: comments.map(({ line, endLine, isOpen, answer, answeredBy, ...comment }) => ({
    ...comment,
    ...(line === null ? {} : { line }),
    ...(endLine === null ? {} : { end_line: endLine }),
    open: isOpen,
    ...(answer === null ? {} : { answer }),
    ...(answeredBy === null ? {} : { answered_by: answeredBy }),
  })),
});

/** Null also for a failed task that somebody closed in the tracker. */
const outcomeThatCompleted = ({ tags, context }: TaskState) =>
  tags.has('complete') ? ownOutcome(context) : null;

const runFields = (parts: ViewParts, status: string): Partial<TaskView> => {
  if (parts.task === null) return {};
  const { context, tags } = parts.task;
  const error = errorOf(status, parts.task);
  const over = tags.has('settled') && context.attempt > 0;
  const own = outcomeThatCompleted(parts.task);
  return {
    started_at: context.startedAt === null ? undefined : iso(context.startedAt),
    ...(status === 'complete' && own !== null ? { result: own.summary } : {}),
    ...(over ? { results_path: `.beads/tasks/task-${parts.tracked.id}/30-results.md` } : {}),
    ...(tags.has('parked') && context.parked !== undefined
      ? { parked_until: iso(context.parked.until), parked_reason: context.parked.reason }
      : {}),
    error,
    review: context.review === undefined ? undefined : reviewOf(context.review),
    request_reason: context.requestReason,
  };
};

/** Only for a task that was closed by hand, here or in the tracker. */
const shownCloseReason = (
  { tracked: { closeReason = '' }, task }: ViewParts,
  status: string,
): Pick<TaskView, 'close_reason'> =>
  status !== 'complete' ||
  (task !== null && outcomeThatCompleted(task) !== null) ||
  closeReason === '' ||
  closeReason === defaultCloseReason
    ? {}
    : { close_reason: closeReason };

const awaitingOf = (agent: AgentState | null): TaskView['awaiting'] => {
  const question = agent?.tags.has('awaiting') === true ? agent.context.question : null;
  if (agent == null || question === null) return undefined;
  const { inputId, kind, text, calls, fallback } = question;
  const { deadlineAt } = agent.context;
  return {
    input_id: inputId,
    kind,
    question: text,
    calls: calls.map(({ call_id, tool, arguments: text }) => ({ call_id, tool, arguments: text })),
    deadline: deadlineAt === null ? undefined : iso(deadlineAt),
    default_answer: fallback ?? undefined,
  };
};

/** An assistant tells its calls only in its frames. */
const liveFields = (
  agent: AgentState | null,
  phase: string,
): Pick<TaskView, 'max_turns' | 'activity'> => {
  if (agent === null || agent.context.backend !== 'builtin') return {};
  const { calls, limits, modelFault } = agent.context;
  if (phase === 'backing_off' && modelFault !== undefined)
    return { max_turns: limits.maxTurns, activity: modelFault };
  const [first] = phase === 'acting' ? calls : [];
  const more = calls.length > 1 ? ` and ${calls.length - 1} more` : '';
  return {
    max_turns: limits.maxTurns,
    activity: first === undefined ? undefined : `${callInWords(first)}${more}`,
  };
};

/** A pause between two attempts. */
const pauseFields = ({ tags, context }: TaskState, phase: string): Pick<TaskView, 'activity'> =>
  phase === 'backing_off' && !tags.has('parked') && context.failure !== null
    ? { activity: context.failure.message }
    : {};

/** The clocks of the latest attempt that stand still, or stood. */
const waitedTimes = (
  { task, agent }: ViewParts,
  status: string,
): Pick<TaskView, 'waits_since' | 'waited_seconds'> => {
  const { completedAt = null, parkedMs = 0, outcome = null } = task?.context ?? {};
  const isOver = finalStatuses.has(status);
  const since = isOver || agent === null ? undefined : agent.context.askedAt;
  const own =
    agent === null
      ? (outcome?.waitedMs ?? 0)
      : waitedUntil(agent.context, (isOver ? completedAt : null) ?? agent.context.askedAt ?? 0);
  const waitedMs = own + parkedMs;
  return {
    waits_since: since === undefined ? undefined : iso(since),
    ...(waitedMs === 0 ? {} : { waited_seconds: waitedMs / 1_000 }),
  };
};

const roleOf = ({ task, tracked }: ViewParts): TaskView['role'] => {
  const label = roleInLabels(tracked.labels);
  return task?.context.role ?? roleSchema.safeParse(label).data;
};

/** Before an attempt begins, its number is not counted yet. */
const maxAttemptsOf = (task: TaskState | null): number | undefined => {
  if (task === null || task.tags.has('resting')) return undefined;
  const { attempt, retriesLeft } = task.context;
  const isToBegin = task.tags.has('queued') && !hasParkedAttempt(task.context);
  const most = attempt + retriesLeft + (isToBegin ? 1 : 0);
  return most === 0 ? undefined : most;
};

const completedAtOf = ({ task, tracked }: ViewParts, status: string): string | undefined => {
  if (!finalStatuses.has(status)) return undefined;
  const at = task?.context.completedAt ?? null;
  return at === null ? (tracked.closedAt ?? undefined) : iso(at);
};

export const removedView = ({
  seq,
  at,
  days,
}: RemovedHistory): NonNullable<TaskView['history_removed']> => ({
  through_seq: seq,
  at: iso(at),
  after_days: days,
});

const usageOfAttempt = ({ task, agent }: ViewParts): Usage => {
  const counted = agent?.context.usage ?? task?.context.outcome?.usage ?? noUsage;
  const cut = task?.context.cut;
  return cut === undefined ? counted : sumOfUsage(counted, cut);
};

/**
 * Computes the view from the tracker's facts and the states of the machines; no other code does.
 */
export const toView = (parts: ViewParts): TaskView => {
  const { tracked, task, agent } = parts;
  const status = statusOfTask(parts);
  const phase = phaseOfTask(parts, status);
  const role = roleOf(parts);
  const end = completedAtOf(parts, status);
  const isLive =
    task?.tags.has('started') === true && agent?.context.attempt === task.context.attempt;
  const awaiting = isLive ? awaitingOf(agent) : undefined;
  const maxAttempts = maxAttemptsOf(task);
  const usage = usageOfAttempt(parts);
  const source = sourceOf(tracked.externalRef);
  return {
    task_id: tracked.id,
    title: tracked.title,
    description: tracked.description,
    status,
    ...trackerStatusOf(parts),
    phase,
    ready: status === 'queued' && tracked.ready,
    role,
    attempt: task?.context.attempt ?? 0,
    max_attempts: maxAttempts,
    ...(isLive ? liveFields(agent, phase) : {}),
    ...(isLive || task === null ? {} : pauseFields(task, phase)),
    dependencies: [...tracked.dependencies],
    unmet_dependencies: [...tracked.unmet],
    priority: tracked.priority,
    labels: [...tracked.labels],
    source: source ?? undefined,
    created_at: tracked.createdAt,
    updated_at: iso(Math.max(Date.parse(tracked.updatedAt), parts.changedAt)),
    completed_at: end,
    ...waitedTimes(parts, status),
    progress: progressOf(status, phase, usage.turns),
    ...runFields(parts, status),
    ...shownCloseReason(parts, status),
    awaiting,
    usage,
    history_removed: parts.removed == null ? undefined : removedView(parts.removed),
    stream_url: `/stream/${encodeURIComponent(tracked.id)}`,
  };
};
