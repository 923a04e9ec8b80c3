import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { requireId } from '../../actors/engine/queries/task-id.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { conflictWords } from '../../machines/conflict-words.ts';
import { describeFailure } from '../../machines/message-of.ts';
import { plural } from '../../machines/plural.ts';
import type { SlotGuard } from '../../machines/supervisor/supervisor-context.ts';
import type { RunGuard } from '../../machines/task/run-guards.ts';
import type { TaskId } from '../../machines/task.ts';
import type { WorkflowGuard } from '../../machines/workflow/workflow-machine.ts';
import type { Client, Frame } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { readTask } from '../client/task-answers.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { attemptText, nextSteps } from '../output/next-steps.ts';
import { renderFrame } from '../output/render/render-frame.ts';
import { tookText } from '../output/render/render-task.ts';
import { oneLine } from '../output/safe-text.ts';
import { terminalText } from '../output/styled.ts';
import { clockText } from '../output/times.ts';
import { wrapAfter } from '../output/wrap.ts';
import {
  goOnWords,
  pullRequestName,
  stateWords,
  waitsForWords,
  workWords,
} from '../words/state-words.ts';
import { goesOnWith } from '../workflows/render-workflow.ts';

const guardSchema = z.object({
  guard: z.string(),
  value: z.boolean(),
  inputs: z.record(z.string(), z.unknown()),
});
const guardsSchema = z.array(guardSchema);

type KnownGuard = z.infer<typeof guardSchema>;
type Inputs = KnownGuard['inputs'];

const countText = (value: unknown): string =>
  typeof value === 'number' ? value.toLocaleString('en') : 'unknown';

const unmet = ({ unmet: ids }: Inputs): string =>
  Array.isArray(ids) && ids.length > 0 ? `waits for ${ids.join(', ')}` : '';

const listText = (value: unknown): string => (Array.isArray(value) ? value.join(', ') : '');

const noModel = ({ problem, missing_credential: missing }: Inputs): string =>
  typeof problem === 'string'
    ? problem
    : typeof missing === 'string'
      ? `${missing} is not set`
      : '';

/** For each guard the need of a run in the words of a person, and the facts that are known. */
const needs: Readonly<
  Record<RunGuard | SlotGuard | WorkflowGuard, readonly [string, (inputs: Inputs) => string]>
> = {
  taskExists: ['the task is in the tracker', () => ''],
  dependenciesComplete: ['its dependencies are complete', unmet],
  heldByNobodyElse: [
    'nobody else holds it',
    ({ holder }) => (typeof holder === 'string' ? `${holder} holds it` : ''),
  ],
  projectCanBeUsed: [
    'agents can work in the project',
    ({ problem, remedy }) => (typeof problem === 'string' ? `it ${problem}; ${remedy}` : ''),
  ],
  modelCanBeCalled: ['a model is set up', noModel],
  withinBudget: [
    'no budget is used up',
    ({ detail, ends }) =>
      typeof detail !== 'string'
        ? ''
        : typeof ends === 'string'
          ? `${detail}, until ${ends}`
          : detail,
  ],
  hasAttemptsLeft: [
    'its failure may be tried again',
    ({ retries_left: left }) => `retries left: ${countText(left)}`,
  ],
  queueHasRoom: [
    'the queue has room',
    ({ waiting, limit }) => `${countText(waiting)} of ${countText(limit)} wait`,
  ],
  hasOpenChoices: ['its optional steps are decided', ({ open }) => listText(open)],
  hasNoSteps: ['the phase has steps to do', ({ steps }) => listText(steps)],
  hasPassed: ['its latest check passed', ({ failed }) => listText(failed)],
  hasRoundsLeft: [
    'another round may follow',
    ({ round, rounds }) => `round ${countText(round)} of ${countText(rounds)}`,
  ],
  slotIsFree: [
    'a slot is free',
    ({ running, cap, paused, role, role_running: ofRole, role_cap: roleCap }) => {
      if (typeof paused === 'string') return paused;
      if (roleCap === 0) return `this server runs no ${role}; another one must have room`;
      const used = `${countText(running)} of ${countText(cap)} are in use`;
      return roleCap === undefined
        ? used
        : `${used}; of the role ${role}: ${countText(ofRole)} of ${countText(roleCap)}`;
    },
  ],
};

const isKnown = (guard: string): guard is keyof typeof needs => Object.hasOwn(needs, guard);

/** These hold a workflow up when they are true; their words in the table say the opposite. */
const obstacles: ReadonlySet<string> = new Set<WorkflowGuard>(['hasOpenChoices', 'hasNoSteps']);

/** Before a failure there is nothing to try again. */
const isAboutNothing = ({ guard, inputs }: KnownGuard): boolean =>
  guard === 'hasAttemptsLeft' && inputs['retryable'] === null;

/**
 * @returns for each guard that says something about this task: `  no   ` and `its dependencies are
 * complete: waits for bd-a1`. The names and inputs of the guards are in `agent explain --json`.
 */
export const guardLines = (guards: readonly KnownGuard[]): readonly (readonly [string, string])[] =>
  guards
    .filter((guard) => !isAboutNothing(guard))
    .map(({ guard, value, inputs }) => {
      const [need, detail] = isKnown(guard) ? needs[guard] : [guard, JSON.stringify];
      const known = detail(inputs);
      const isMet = value !== obstacles.has(guard);
      return [`  ${isMet ? 'yes' : 'no '}  `, known === '' ? need : `${need}: ${known}`] as const;
    });

const exitByStatus: Readonly<Record<string, number>> = {
  complete: exitCodes.done,
  failed: exitCodes.failed,
  cancelled: exitCodes.cancelled,
};

/** The stream of a task that has just ended begins at its start: its questions are answered. */
const isNews = async (client: Client, taskId: TaskId, { type, data }: Frame): Promise<boolean> => {
  if (type !== 'input_required' && type !== 'approval_required')
    return data['parked_until'] !== undefined;
  const { awaiting } = await readTask(client, taskId);
  return awaiting !== undefined && awaiting.input_id === data['input_id'];
};

const isOver = ({ status }: TaskView): boolean => status in exitByStatus;

/** A task that went to another server may end without a word on this stream. */
const lookMs = 10_000;
const againMs = 200;

/** Follows a task until its stream ends, or a look says that it is over. */
const followOne = async (
  client: Client,
  taskId: TaskId,
  io: Io,
  signal: AbortSignal,
): Promise<void> => {
  const over = new AbortController();
  const look = setInterval(() => {
    readTask(client, taskId).then(
      (task) => isOver(task) && over.abort(),
      () => {},
    );
  }, lookMs);
  const ended = AbortSignal.any([signal, over.signal]);
  try {
    for await (const frame of client.frames(taskId, null, ended)) {
      if (ended.aborted) break;
      const line = (await isNews(client, taskId, frame)) ? renderFrame(frame) : null;
      if (line !== null) io.err(terminalText(line, false));
    }
  } finally {
    clearInterval(look);
  }
};

const waitForOne = async (
  client: Client,
  taskId: TaskId,
  io: Io,
  signal: AbortSignal,
): Promise<TaskView> => {
  for (;;) {
    await followOne(client, taskId, io, signal);
    const task = await readTask(client, taskId);
    if (isOver(task) || signal.aborted) return task;
    await delay(againMs);
  }
};

const waitForAll = async (
  client: Client,
  ids: readonly TaskId[],
  timeoutSeconds: number | undefined,
  io: Io,
) => {
  const abort = new AbortController();
  const timer =
    timeoutSeconds === undefined
      ? undefined
      : setTimeout(() => abort.abort(), timeoutSeconds * 1_000);
  const tasks = await Promise.all(ids.map((id) => waitForOne(client, id, io, abort.signal)));
  clearTimeout(timer);
  return tasks;
};

/** `bd-a1: started (thinking), engineer, attempt 1` */
const waitedFor = (task: TaskView): string => {
  const { task_id: id, role, attempt, phase, unmet_dependencies: unmet, awaiting } = task;
  const parts = [
    stateWords(task, Date.now()),
    ...(role === undefined ? [] : [role]),
    ...(attempt === 0 ? [] : [`attempt ${attemptText(task)}`]),
    ...(task.parked_reason === undefined ? [] : [oneLine(task.parked_reason, 300)]),
    ...(unmet.length === 0 ? [] : [`which waits for ${unmet.join(', ')}`]),
  ];
  const hint =
    phase === 'waiting_for_run' ? `; nobody runs it yet: agent ${role ?? 'engineer'} ${id}` : '';
  const question = awaiting === undefined ? '' : `; it asks you: agent respond ${id}`;
  const yours =
    phase === 'waiting_for_person' ? `; close it when it is done: agent close ${id}` : '';
  const retry = task.parked_until === undefined ? '' : `; ${goOnWords(id, task.parked_reason)}`;
  return `${id}: ${parts.join(', ')}${hint}${question}${yours}${retry}`;
};

/**
 * Waits until every task has ended; needs a server only until then. @returns 0 when all are
 * complete, else the worst of them; 124 after the time limit
 */
export const wait = async (
  { connection, io, json }: CommandContext,
  ids: readonly string[],
  timeoutSeconds: number | undefined,
): Promise<number> => {
  const taskIds = ids.map(requireId);
  const files = await connection.files();
  const seen = await Promise.all(taskIds.map((id) => readTask(files, id)));
  const areOver = seen.every(isOver);
  if (!areOver)
    for (const task of seen) if (!isOver(task)) io.err(`waiting for ${waitedFor(task)}`);
  const tasks = areOver
    ? seen
    : await waitForAll(await connection.server(), taskIds, timeoutSeconds, io);
  for (const task of tasks)
    if (json) io.json(task);
    else io.out(`${task.task_id} ${task.status}`);
  const codes = tasks.map(({ status }) => exitByStatus[status]);
  if (codes.includes(undefined)) {
    io.err(`agent: timed out after ${timeoutSeconds} s`);
    return exitCodes.timedOut;
  }
  return codes.includes(exitCodes.failed)
    ? exitCodes.failed
    : (codes.find((code) => code !== 0) ?? exitCodes.done);
};

const explanationSchema = z.looseObject({
  workflow: z
    .object({
      kind: z.string(),
      name: z.string(),
      status: z.string(),
      continued_as: z.string().optional(),
      problem: z.string().optional(),
    })
    .optional(),
  task_id: z.string(),
  guards: guardsSchema,
  allowed_events: z.array(z.string()),
  reason: z.string().nullable(),
  deadline: z.string().nullable(),
  pull_request: z.object({ guards: guardsSchema }).optional(),
  request_reason: z.string().nullable(),
  conflicts: z.array(
    z.object({ task_id: z.string(), branch: z.string(), files: z.array(z.string()) }),
  ),
});

/** The first that is so. */
const firstOf = (...all: readonly (readonly [boolean, string])[]): string =>
  all.find(([isSo]) => isSo)?.[1] ?? '';
const busyWith = ({ task }: Inputs): readonly [boolean, string] => [
  task !== 'same',
  task === 'failed' ? 'the last attempt failed' : 'another attempt is at work',
];
const commentsOf = ({ said }: Inputs): string =>
  `${plural(Number(said), 'comment')} without an answer`;
const triedBefore = ({ tried }: Inputs): readonly [boolean, string] => [
  tried === true,
  'it was tried, and nothing changed since',
];

const noAttempt = (inputs: Inputs): string => {
  const { checks, said, on_checks: onChecks, on_comments: onComments } = inputs;
  const { round, max_rounds: most, fails_again: failsAgain, are_over: areOver } = inputs;
  return firstOf(
    busyWith(inputs),
    [checks !== 'red' && said === 0, 'there is nothing to mend'],
    [Number(round) >= Number(most), `the limit is ${plural(Number(most), 'attempt')}`],
    [said !== 0, `forge.on_comments is ${onComments}`],
    [onChecks !== 'fix', `forge.on_checks is ${onChecks}`],
    [failsAgain === true, 'the same check failed on the same files before'],
    [areOver === false, 'other checks are not over'],
  );
};

const noMerge = (inputs: Inputs): string => {
  const { merge, draft, base, review, said, checks, mergeable, own_head: isOwn } = inputs;
  return firstOf(
    [merge === 'never', 'forge.merge is never'],
    busyWith(inputs),
    [draft === true, 'it is a draft'],
    [base !== 'own', 'what it depends on lands first'],
    [review === 'changes', 'a review asks for changes'],
    [said !== 0, commentsOf(inputs)],
    [isOwn === false, 'somebody else pushed to it'],
    [checks === 'red' || (checks === 'pending' && merge !== 'queue'), `checks are ${checks}`],
    [mergeable !== 'yes', `mergeable: ${mergeable}`],
    triedBefore(inputs),
  );
};

/** What its merge needs and what follows, in the words of a person; null: only said when it is so. */
const mergeNeeds: Readonly<Record<string, readonly [string, ((inputs: Inputs) => string) | null]>> =
  {
    hasChecks: ['its checks passed', ({ checks, red }) => listText(red) || `${checks}`],
    hasReview: [
      'a review approved it',
      ({ review }) => (review === 'changes' ? 'one asks for changes' : ''),
    ],
    isMergeable: ['it can be merged into its branch', ({ mergeable }) => `${mergeable}`],
    hasOthersCommits: ['commits of others come into the work', null],
    hasOtherBase: ['it gets another base', null],
    isFlaky: ['its failed checks run again', null],
    wantsAttempt: ['the next attempt mends it', noAttempt],
    isOutdated: ['its base comes into the work', null],
    mayMerge: ['the server merges it', noMerge],
  };

/** Why it is not merged or mended yet: `  no   its checks passed: ci/test`. */
const explainPullRequest = (
  { pull_request: guards }: Explained,
  { pull_request: found }: TaskView,
  line: WriteLine,
): void => {
  if (found === undefined) return;
  const { state, waits_for: waits, reason, url } = found;
  const why = [waits && `it waits for ${waitsForWords(waits)}`, reason].filter(Boolean).join(': ');
  line('  pull request ', `${pullRequestName(found)} is ${state}${why && `; ${why}`}`);
  if (url !== undefined) line('  at ', url);
  for (const { guard, value, inputs } of guards?.guards ?? []) {
    const [need, detail] = mergeNeeds[guard] ?? [guard, JSON.stringify];
    if (!value && detail === null) continue;
    const known = value ? '' : (detail?.(inputs) ?? '');
    line(`  ${value ? 'yes' : 'no '}  `, known === '' ? need : `${need}: ${known}`);
  }
};

type Explained = z.infer<typeof explanationSchema>;
type WriteLine = (start: string, text: string) => void;

const explainConflicts = ({ work }: TaskView, line: WriteLine): void => {
  if (work?.conflicts_with !== undefined) line('  ', conflictWords(work.conflicts_with));
};

/** A task that is over is held up by nothing: its guards say nothing about it. */
const explainEnd = (explained: Explained, task: TaskView, line: WriteLine): void => {
  const { reason, request_reason } = explained;
  const { task_id: id, status, role, attempt, completed_at: to } = task;
  const by =
    attempt === 0 ? '' : `, attempt ${attemptText(task)}${role === undefined ? '' : ` (${role})`}`;
  line(`${id} is `, `${status}${by}`);
  const why =
    task.error === undefined ? (task.close_reason ?? reason) : describeFailure(task.error);
  if (why !== null) line('  because ', why);
  if (request_reason !== null) line('  requested because ', request_reason);
  if (to !== undefined) line('  ended ', `${clockText(to, Date.now())}${tookText(task)}`);
  const merge = status === 'complete' ? workWords(task.work) : null;
  explainPullRequest(explained, task, line);
  if (merge !== null && task.pull_request === undefined) line('  ', merge);
  explainConflicts(task, line);
  for (const step of nextSteps(task)) line('', step);
};

const explainState = (explained: Explained, task: TaskView, line: WriteLine): void => {
  const { guards, allowed_events, reason, deadline, request_reason, conflicts } = explained;
  line(`${task.task_id} is `, stateWords(task, Date.now()));
  const { parked_reason: parked, phase, activity } = task;
  const hint = allowed_events.includes('respond') ? ' (agent respond)' : '';
  if (parked !== undefined)
    line('  because ', `${oneLine(parked, 400)}; ${goOnWords(task.task_id, parked)}`);
  else if (reason !== null) line('  because ', `${reason}${hint}`);
  else if (phase === 'backing_off' && activity !== undefined)
    line('  because ', `${activity}; the model is asked again by itself`);
  if (request_reason !== null) line('  requested because ', request_reason);
  for (const { task_id, branch, files } of conflicts)
    line(
      '  works without ',
      `${task_id} (${branch}), which conflicts in ${files.join(', ') || 'no file'}`,
    );
  explainConflicts(task, line);
  explainPullRequest(explained, task, line);
  if (deadline !== null && parked === undefined)
    line('  until ', `${clockText(deadline, Date.now())} at the latest`);
  // No guard of a run holds up what a person does.
  if (phase === 'waiting_for_person') for (const step of nextSteps(task)) line('', step);
  else for (const [answer, need] of guardLines(guards)) line(answer, need);
};

/** Before its optional steps are decided, nobody knows the steps of a phase. */
const guardsOfWorkflow = (guards: Explained['guards']): Explained['guards'] => {
  const isOpen = guards.some(({ guard, value }) => guard === 'hasOpenChoices' && value);
  return guards.filter(({ guard }) => guard !== (isOpen ? 'hasNoSteps' : 'hasOpenChoices'));
};

export const explainTask = async (
  { connection, io, json }: CommandContext,
  id: string,
): Promise<number> => {
  const taskId = requireId(id);
  const client = await connection.server();
  const explained = explanationSchema.parse(await client.call('explain', { task_id: taskId }));
  if (json) {
    io.json(explained);
    return exitCodes.done;
  }
  const line: WriteLine = (start, text) => io.out(wrapAfter(start, text, io.width));
  if (explained.workflow !== undefined) {
    const { kind, name, status } = explained.workflow;
    const next = goesOnWith({ workflow_id: taskId, ...explained.workflow });
    line(`${taskId} is `, `${status}: ${kind}, ${name}`);
    if (explained.reason !== null) line('  because ', oneLine(explained.reason, 2_000));
    const open = status === 'started' ? guardsOfWorkflow(explained.guards) : [];
    for (const [answer, need] of guardLines(open)) line(answer, need);
    if (next !== null) line(...next);
    else line('  may now: ', explained.allowed_events.join(', ') || 'nothing; it is over');
    return exitCodes.done;
  }
  const task = await readTask(client, taskId);
  if (task.status in exitByStatus) explainEnd(explained, task, line);
  else explainState(explained, task, line);
  line('  may now: ', explained.allowed_events.join(', ') || 'nothing; it must wait');
  return exitCodes.done;
};
