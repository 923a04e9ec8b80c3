import { z } from 'zod';
import { isJsonObject } from '../../machines/json.ts';
import {
  createParamsSchema,
  diffParamsSchema,
  listParamsSchema,
  mergeParamsSchema,
  parseParams,
  respondParamsSchema,
  runParamsSchema,
  taskParamsSchema,
  waitParamsSchema,
} from '../wire.ts';
import {
  explainedForAssistant,
  mergedForAssistant,
  skippedForAssistant,
  withAdvice,
} from './advice.ts';
import type { AnswerPolicy, McpBackend, McpCall, McpFailure } from './backend.ts';
import { waitForTask } from './wait.ts';

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
  ...{ task_id, attempt, input_id },
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
    params: createParamsSchema,
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
    says: "Merges the changes of a complete attempt into the user's branch and files. status conflict: nothing was changed; to_go_on says what to do, often squash: true.",
    params: mergeParamsSchema,
    annotations: destructiveHints,
    run: async ({ call }, _, params) => mergedForAssistant(await call('merge', params)),
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
    return toolResult(await tool.run(backend, call, parseParams(tool.params, params)));
  } catch (error) {
    return toolFailure(backend.describeError(error));
  }
};
