import { z } from 'zod';
import {
  describeRefusal,
  type ErrorCode,
  type ErrorFacts,
  refusal,
} from '../../machines/errors.ts';
import { isJsonObject } from '../../machines/json.ts';
import { remedyFor } from '../../machines/merge-queue/merge-queue-context.ts';
import { asksPerson, isAtRest } from '../streams/at-rest.ts';
import {
  conflictShape,
  createParamsSchema,
  diffParamsSchema,
  listParamsSchema,
  mergeParamsSchema,
  parseParams,
  publishParamsSchema,
  respondParamsSchema,
  runParamsSchema,
  taskParamsSchema,
  waitParamsSchema,
} from '../wire.ts';
import type { AnswerPolicy, McpBackend, McpCall, McpFailure, McpFrame } from './backend.ts';

type ErrorAdvice = { readonly [Code in ErrorCode]?: (facts: ErrorFacts[Code]) => string };

/** An assistant calls tools; the commands of our command line are for people. */
const advice: ErrorAdvice = {
  task_not_found: () => 'list_tasks shows the tasks',
  already_running: () => 'wait_for_task follows it',
  event_not_allowed: () => 'explain says why',
  dependencies_unmet: () => 'run starts them, too',
  stale_attempt: ({ live_attempt }) => `task_status shows what attempt ${live_attempt} asks`,
  credential_missing: () =>
    'only your user can do that (a server that an assistant starts may lack the keys of the shell; agent auth login keeps one for every server)',
};
const adviceByCode = new Map<string, (facts: never) => string>(Object.entries(advice));

/** Commands that are tools here, by their names in our other words. */
const toolOfCommand: ReadonlyMap<string, string> = new Map([
  ['run', 'run'],
  ['execute', 'run'],
  ['respond', 'answer'],
  ['diff', 'diff'],
  ['merge', 'merge'],
  ['publish', 'publish'],
  ['merge --force', 'merge with force: true'],
]);
const namedCommands: ReadonlySet<string> = new Set([
  ...['retry', 'discard', 'review', 'update', 'close', 'reopen', 'cancel'],
]);

const wordFor = (word: string): string =>
  namedCommands.has(word) ? `${word} (your user)` : (toolOfCommand.get(word) ?? word);

const notAllowedSchema = z.looseObject({
  task_id: z.string(),
  event: z.string(),
  state: z.string(),
  allowed: z.array(z.string()),
});

/** A refusal names what is allowed by the methods of the service. */
const withToolNames = (failure: McpFailure): McpFailure => {
  const { data } = notAllowedSchema.safeParse(failure.facts);
  if (failure.code !== 'event_not_allowed' || data === undefined) return failure;
  const allowed = data.allowed.map(wordFor);
  const facts = { ...data, event: toolOfCommand.get(data.event) ?? data.event, allowed };
  const known = facts as unknown as ErrorFacts['event_not_allowed'];
  return { ...failure, message: describeRefusal(refusal('event_not_allowed', known)), facts };
};

/** The failure with the tool that helps, if one does. */
export const withAdvice = (given: McpFailure): McpFailure => {
  const failure = withToolNames(given);
  const help = adviceByCode.get(failure.code)?.(failure.facts as never);
  return help === undefined ? failure : { ...failure, message: `${failure.message}; ${help}` };
};

const skipReasons: ReadonlyMap<string, string> = new Map([
  ['complete', 'it is complete'],
  ['no_role', 'it has no role; give run a role, or create_task the label role:engineer'],
  ['for_person', 'a person does it: tell your user'],
  ['approved', 'its work is approved; to run it again all the same, name it in task_ids'],
  ['already_running', 'it is running already; wait_for_task follows it'],
]);

const ranSchema = z.looseObject({
  skipped: z.array(z.looseObject({ reason: z.string(), code: z.string().optional() })),
});

/** The result of `run`, with reasons that name tools. */
const skippedForAssistant = (given: unknown): unknown => {
  const { data: ran } = ranSchema.safeParse(given);
  if (ran === undefined) return given;
  const skipped = ran.skipped.map((each) => ({
    ...each,
    reason: skipReasons.get(each.code ?? '') ?? each.reason,
  }));
  return { ...ran, skipped };
};

const explainedSchema = z.looseObject({ allowed_events: z.array(z.string()) });

/** The result of `explain`: what is allowed as tools, and the rest apart. */
export const explainedForAssistant = (given: unknown, mayAnswer: boolean): unknown => {
  const { data } = explainedSchema.safeParse(given);
  if (data === undefined) return given;
  const { allowed_events, ...explained } = data;
  const isTool = (name: string): boolean =>
    toolOfCommand.has(name) && (name !== 'respond' || mayAnswer);
  return {
    ...explained,
    allowed_tools: allowed_events.filter(isTool).map((name) => toolOfCommand.get(name)),
    only_your_user: allowed_events.filter((name) => !isTool(name)),
  };
};

const conflictSchema = z.looseObject({
  ...conflictShape,
  status: z.literal('conflict'),
  branch: z.string(),
});

const wayOnAfter = (conflict: z.infer<typeof conflictSchema>): string => {
  const { branch, merge_first: first, failed } = conflict;
  switch (remedyFor(conflict)) {
    case 'merge_first': {
      const force = first?.complete ? '' : ', with force: true since it is not complete';
      return `merge attempt ${first?.attempt} of ${first?.task_id} first${force}; then call merge again`;
    }
    case 'run':
      return 'call run, and merge again when it is complete';
    case 'reopen':
      return 'tell your user to run agent reopen with its id; then call run, and merge again';
    case 'update': {
      const why = failed === undefined ? '' : 'the work does not pass with what landed before: ';
      return `${why}tell your user to run agent update with its id: another attempt goes on with both sides; then call merge again`;
    }
    case 'squash':
      return 'call merge again with squash: true';
    case 'switch_branch':
      return 'tell your user to check out the branch that the work goes to (git switch <branch>); then call merge again';
    case 'git_merge':
      return `tell your user to run git merge ${branch}`;
    default:
      return 'tell your user why; when nothing is in the way any more, call merge again';
  }
};

/** The result of `merge`; after a conflict, with what to do. */
export const mergedForAssistant = (given: unknown): unknown => {
  const { data } = conflictSchema.safeParse(given);
  return data === undefined ? given : { ...data, to_go_on: wayOnAfter(data) };
};

/** Below 60 s, after which many clients give up. */
const usualSeconds = 45;

const waitedTaskSchema = z.looseObject({
  status: z.string(),
  phase: z.string(),
  awaiting: z.unknown().optional(),
});

const mayAnswer = (task: unknown): boolean => {
  const { data } = waitedTaskSchema.safeParse(task);
  return data === undefined || isAtRest(data);
};

/** True when the task came to rest before its frames were asked for. */
const isEndOfTask = ({ type, data }: McpFrame): boolean =>
  type === 'snapshot' && data['task'] !== undefined && mayAnswer(data['task']);

const progressText = ({ type, data }: McpFrame): string | null => {
  if (type === 'status_update') return `${data['status']} (${data['phase']})`;
  return type === 'tool_start' ? `runs ${data['tool']}` : null;
};

interface WaitParams {
  readonly task_id: string;
  readonly timeout_seconds?: number | undefined;
}

/** Answers with the task when it is over, waits for an answer, or the time is up. */
const waitForTask = async (
  { call, frames }: McpBackend,
  { signal, report }: McpCall,
  { task_id, timeout_seconds = usualSeconds }: WaitParams,
): Promise<unknown> => {
  const first = await call('status', { task_id });
  if (mayAnswer(first)) return first;
  const ends = new AbortController();
  const until = AbortSignal.any([
    signal,
    ends.signal,
    AbortSignal.timeout(timeout_seconds * 1_000),
  ]);
  try {
    for await (const frame of frames(task_id, until)) {
      const text = progressText(frame);
      if (text !== null) report(text);
      if (asksPerson(frame) || isEndOfTask(frame)) break;
    }
  } finally {
    ends.abort();
  }
  return call('status', { task_id });
};

const stillMerging = {
  status: 'waiting',
  to_go_on:
    'it waits or is tested before it is merged, which goes on by itself; call merge again at once to wait for what comes of it',
};

/** A test may last longer than clients wait; the next call joins it. */
const mergeTask = async ({ call }: McpBackend, params: unknown): Promise<unknown> => {
  const merging = call('merge', params);
  merging.catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<unknown>((resolve) => {
    timer = setTimeout(() => resolve(stillMerging), usualSeconds * 1_000);
  });
  const merged = await Promise.race([merging, late]).finally(() => clearTimeout(timer));
  return mergedForAssistant(merged);
};

interface McpToolDefinition {
  readonly title: string;
  readonly says: string;
  readonly params: z.ZodType;
  readonly annotations: Annotations;
  readonly run: (backend: McpBackend, call: McpCall, params: unknown) => Promise<unknown>;
}

interface Annotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  /** True when it reaches a model or programs, beyond the tasks. */
  readonly openWorldHint: boolean;
}

const reads: Annotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};
const adds: Annotations = { ...reads, readOnlyHint: false, idempotentHint: false };
/** Agents run commands, and may work in the user's own files (`workspace.mode: shared`). */
const startsAgents: Annotations = { ...adds, destructiveHint: true, openWorldHint: true };
const destructiveHints: Annotations = { ...adds, destructiveHint: true, idempotentHint: true };

const calls =
  (method: string): McpToolDefinition['run'] =>
  ({ call }, _, params) =>
    call(method, params);

const { task_id, attempt, input_id, text } = respondParamsSchema.shape;
/** Without a decision the service refuses an answer to calls that need approval. */
const answerParamsSchema = z.strictObject({
  task_id,
  attempt,
  input_id,
  text: text.unwrap().describe('the answer in words'),
});

const answering: McpToolDefinition = {
  title: 'Answer an agent',
  says: 'Answers the open question of a task (awaiting). Ask your user first: the question is meant for a person.',
  params: answerParamsSchema,
  annotations: startsAgents,
  run: calls('respond'),
};

/** In the order in which they are used. */
const tools: Readonly<Record<string, McpToolDefinition>> = {
  create_task: {
    title: 'Create a task',
    says: 'Creates a task for an agent. Give dependencies to order tasks. Starts nothing; see run.',
    params: createParamsSchema.omit({ attachments: true }),
    annotations: adds,
    run: calls('create'),
  },
  run: {
    title: 'Run tasks',
    says: 'Starts agents on tasks and on all that they depend on. Answers at once; see wait_for_task. Costs money when a model is called.',
    params: runParamsSchema,
    annotations: startsAgents,
    run: async ({ call }, _, params) => skippedForAssistant(await call('run', params)),
  },
  task_status: {
    title: 'Show a task',
    says: 'The task as it is now: status, phase, result, error, open question, changed files, cost.',
    params: taskParamsSchema,
    annotations: reads,
    run: calls('status'),
  },
  list_tasks: {
    title: 'List tasks',
    says: 'The tasks of the project, by pages.',
    params: listParamsSchema,
    annotations: reads,
    run: calls('list'),
  },
  wait_for_task: {
    title: 'Wait for a task',
    says: 'Waits until a task is over, asks a question (awaiting), or the time is up, and answers with the task. Call it again while the status is started or queued.',
    params: waitParamsSchema,
    annotations: reads,
    run: (backend, call, params) =>
      waitForTask(backend, call, parseParams(waitParamsSchema, params)),
  },
  answer: answering,
  diff: {
    title: 'Show the changes of a task',
    says: 'The changes of an attempt as a patch. guarded lists files that other programs run or trust.',
    params: diffParamsSchema,
    annotations: reads,
    run: calls('diff'),
  },
  merge: {
    title: 'Merge the changes of a task',
    says: "Merges the changes of a complete attempt into the user's branch and files. With merge.verify, or verify commands of the task, the merged tree is tested first. status conflict: nothing was changed; status waiting: it is tested; to_go_on says what to do.",
    // Only a person says that work lands without a test.
    params: mergeParamsSchema.omit({ verify: true }),
    annotations: destructiveHints,
    run: (backend, _, params) => mergeTask(backend, params),
  },
  publish: {
    title: 'Publish the work of a task',
    says: 'Pushes the work of a complete task to the forge and opens its pull request, or brings it up to date: other people see it. pull_request.waits_for and reason say what is next.',
    params: publishParamsSchema,
    annotations: { ...destructiveHints, openWorldHint: true },
    run: calls('publish'),
  },
  pull_request: {
    title: 'Show the pull request of a task',
    says: 'How the pull request of a task stands: its checks, its review, and why it is not merged yet.',
    params: taskParamsSchema,
    annotations: reads,
    run: calls('pull_request'),
  },
  explain: {
    title: 'Explain a task',
    says: 'Why a task is in its state, the value of every guard, and what may happen next: which tools, and what only your user can do.',
    params: taskParamsSchema,
    annotations: reads,
    run: async ({ call, answerPolicy }, _, params) =>
      explainedForAssistant(await call('explain', params), answerPolicy() !== 'off'),
  },
};

const deciding: McpToolDefinition = {
  ...answering,
  says: 'Answers the open question of a task (awaiting), or decides on calls that need approval. Ask your user first: the question is meant for a person.',
  params: respondParamsSchema,
};

const toolsFor = (policy: AnswerPolicy): Readonly<Record<string, McpToolDefinition>> => {
  if (policy === 'questions') return tools;
  if (policy === 'all') return { ...tools, answer: deciding };
  const { answer: _, ...others } = tools;
  return others;
};

export const mcpToolNames = (policy: AnswerPolicy): readonly string[] =>
  Object.keys(toolsFor(policy));

const inputSchema = (params: z.ZodType) => {
  const { $schema: _, ...schema } = z.toJSONSchema(params, { io: 'input' });
  return schema;
};

export const listTools = (policy: AnswerPolicy) => ({
  tools: Object.entries(toolsFor(policy)).map(([name, { title, says, params, annotations }]) => ({
    name,
    title,
    description: says,
    inputSchema: inputSchema(params),
    annotations: { title, ...annotations },
  })),
});

const toolResult = (value: unknown) => ({
  content: [{ type: 'text', text: JSON.stringify(value) }],
  ...(isJsonObject(value) ? { structuredContent: value } : {}),
});

const toolFailure = (failure: McpFailure) => {
  const { code, message, facts } = withAdvice(failure);
  return {
    content: [{ type: 'text', text: `${code}: ${message}` }],
    structuredContent: { error: { ...facts, code, message } },
    isError: true,
  };
};

/** Null for an unknown tool. A tool that fails answers with a result that says so. */
export const callTool = async (
  backend: McpBackend,
  call: McpCall,
  name: string,
  params: unknown,
): Promise<object | null> => {
  try {
    const tools = toolsFor(backend.answerPolicy());
    const tool = Object.hasOwn(tools, name) ? tools[name] : undefined;
    if (tool === undefined) return null;
    await backend.requireTool?.(name);
    return toolResult(await tool.run(backend, call, parseParams(tool.params, params)));
  } catch (error) {
    return toolFailure(backend.describeError(error));
  }
};
