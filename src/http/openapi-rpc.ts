import { z } from 'zod';
import { sourceStatesSchema } from '../actors/engine/importing/source-states.ts';
import { decidedSchema } from '../actors/journal/event-types.ts';
import { conflictsSchema, pullRequestSchema, taskViewSchema } from '../actors/journal/task-view.ts';
import { workflowLineSchema, workflowViewSchema } from '../actors/workflows/workflow-view.ts';
import { roles } from '../machines/task.ts';
import { envelopeErrors, errorStatuses, requestErrors } from './error-table.ts';
import { methodRights } from './people/rights.ts';
import {
  auditParamsSchema,
  auditSchema,
  changeParamsSchema,
  conflictShape,
  createParamsSchema,
  decisionsParamsSchema,
  dependencyParamsSchema,
  diffPartParamsSchema,
  discardParamsSchema,
  editParamsSchema,
  executeParamsSchema,
  executeResultSchema,
  historyParamsSchema,
  importedSchema,
  importIssuesParamsSchema,
  importParamsSchema,
  listParamsSchema,
  mergeManyParamsSchema,
  mergeParamsSchema,
  noParamsSchema,
  publishParamsSchema,
  replayParamsSchema,
  respondParamsSchema,
  retryParamsSchema,
  reviewParamsSchema,
  runParamsSchema,
  runResultSchema,
  taskParamsSchema,
  tokenCreateParamsSchema,
  tokenParamsSchema,
  tokenViewSchema,
  undoParamsSchema,
  updateParamsSchema,
  usageParamsSchema,
  workflowCancelParamsSchema,
  workflowListParamsSchema,
  workflowParamsSchema,
  workflowStartParamsSchema,
} from './wire.ts';

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
export const jsonContent = (schema: object) => ({ content: { 'application/json': { schema } } });

/** The body of an error outside JSON-RPC; further keys are the facts of its code. */
export const errorSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: {
          enum: [...Object.keys(errorStatuses), ...Object.keys(requestErrors), 'too_many_streams'],
        },
        message: { type: 'string' },
      },
    },
  },
};

export const errorAnswer = (description: string) => ({ description, ...jsonContent(ref('Error')) });
const retryLaterAnswer = (description: string) => ({
  ...errorAnswer(description),
  headers: { 'Retry-After': { description: 'seconds', schema: { type: 'integer' } } },
});

const tooManyFailures = 'too many requests with a wrong token';

export const openRefusals = {
  400: errorAnswer('not an HTTP request, or a path that cannot be decoded'),
  403: errorAnswer(
    'refused by the check of Host, Origin, Sec-Fetch-Site, target or method; the error says which',
  ),
  408: errorAnswer('the request did not arrive in time'),
  414: errorAnswer('path and query hold more than 2 KiB'),
  431: errorAnswer('the headers hold more than 16 KiB'),
  500: errorAnswer('an internal error; the server log has the details'),
};

export const commonRefusals = {
  ...openRefusals,
  401: errorAnswer('no token, or a wrong one; the error says where the token is'),
  429: retryLaterAnswer(tooManyFailures),
};

export const rpcRefusals = {
  ...commonRefusals,
  400: {
    description: 'not JSON, or not a JSON-RPC request',
    ...jsonContent({ anyOf: [ref('RpcAnswer'), ref('Error')] }),
  },
  413: errorAnswer('the body holds more than 1 MiB'),
  415: errorAnswer('the body is not application/json'),
  429: retryLaterAnswer(`${tooManyFailures}, or too many requests at once`),
};

export const everyStreamRefusals = {
  ...commonRefusals,
  400: errorAnswer('Last-Event-ID or after is not the id of a frame of this server'),
  503: retryLaterAnswer('as many streams are open as this server allows'),
};

export const taskStreamRefusals = {
  ...everyStreamRefusals,
  404: errorAnswer('the task does not exist'),
  429: retryLaterAnswer(
    `${tooManyFailures}, or as many streams of this task are open as the server allows`,
  ),
  503: retryLaterAnswer(
    'as many streams are open as this server allows, or the tracker cannot be used',
  ),
};

export const inspectRefusals = {
  ...commonRefusals,
  404: errorAnswer('this server was not started with --inspect'),
  503: retryLaterAnswer('as many streams are open as this server allows'),
};

const taskPageSchema = z.strictObject({
  tasks: z.array(taskViewSchema),
  next_cursor: z.string().optional(),
  total: z.int().nonnegative().optional(),
  note: z.string().optional(),
});
const entriesSchema = z.strictObject({
  entries: z.array(z.looseObject({})),
  next_after: z.int().optional(),
  history_removed: taskViewSchema.shape.history_removed,
});
const changesSchema = z.strictObject({
  task_id: z.string(),
  attempt: z.int(),
  patch: z.string(),
  guarded: z.array(z.string()),
  files: z
    .array(z.strictObject({ path: z.string(), renamed_from: z.string().optional() }))
    .optional(),
});
const mergedSchema = z.looseObject({
  task_id: z.string(),
  attempt: z.int(),
  status: z.enum(['merged', 'nothing', 'conflict']),
  commit: z.string().optional(),
  tested: z.array(z.string()).optional().describe('the commands that passed on its tree'),
  ...conflictShape,
});
const publishedSchema = z.strictObject({
  task_id: z.string(),
  attempt: z.int(),
  pull_request: pullRequestSchema,
});
const mergedManySchema = z.strictObject({
  landed: z.array(
    z.strictObject({
      task_id: z.string(),
      attempt: z.int(),
      status: z
        .enum(['merged', 'nothing'])
        .describe('nothing: the branch had it, or there is none'),
      commit: z.string().optional().describe('the commit of the branch that has it'),
      into: z.string().optional(),
      tested: z.array(z.string()).describe('the commands that passed on the tree of the branch'),
    }),
  ),
  refused: z.array(
    z.strictObject({
      task_id: z.string(),
      attempt: z.int().optional(),
      code: z.string().describe('verify_failed, merge_conflict, or that of an error'),
      message: z.string(),
      with: z.array(z.string()),
      command: z.string().optional(),
      output: z.string().optional(),
      paths: z.array(z.string()).optional(),
      sent_back: z
        .literal(true)
        .optional()
        .describe('another attempt goes on with it, which is merged then'),
      conflict: z
        .strictObject({
          status: z.literal('conflict'),
          branch: z.string(),
          why: z.string(),
          files: z.array(z.string()),
          ...conflictShape,
        })
        .optional()
        .describe('as merge answers'),
    }),
  ),
  waiting: z
    .array(z.string())
    .optional()
    .describe('after wait_seconds: tasks whose merges go on; work.merge says what came of them'),
  planned: z
    .array(
      z.strictObject({
        task_id: z.string(),
        attempt: z.int(),
        commands: z.array(z.string()).describe('they must pass; none: it would land untested'),
        conflicts_with: conflictsSchema,
      }),
    )
    .optional()
    .describe('of a dry run, in the order in which they would land'),
});
const updatedSchema = z.strictObject({
  task_id: z.string(),
  attempt: z.int().describe('whose work it is; after sent_back the one that goes on with it'),
  status: z
    .enum(['current', 'updated', 'sent_back', 'refused', 'testing'])
    .describe(
      'current: it has all that the branch has; updated: it got what is new there; sent_back: another attempt goes on with it; refused: nothing was done; testing: it goes on after wait_seconds, and the log of the task says what came of it',
    ),
  commit: z.string().optional(),
  tested: z.array(z.string()).optional().describe('the commands that passed'),
  message: z.string().optional().describe('why it was sent back or refused'),
  paths: z.array(z.string()).optional().describe('files that both sides changed'),
});
const usageSumsSchema = z.strictObject({
  attempts: z.int(),
  complete: z.int(),
  failed: z.int(),
  cancelled: z.int(),
  seconds: z.number(),
  model_calls: z.int(),
  tool_calls: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_tokens: z.int(),
  cache_write_tokens: z.int().optional(),
  cost_usd: z.number().optional(),
});
const usageResultSchema = z.strictObject({
  days: z.array(
    usageSumsSchema.extend({ day: z.string(), role: z.string().meta({ examples: roles }) }),
  ),
  total: usageSumsSchema,
  spent: z
    .strictObject({ day_usd: z.number(), month_usd: z.number() })
    .describe('by every call of a model today and this month (UTC), also of attempts not yet over'),
});
const workflowListSchema = z.strictObject({
  workflows: z.array(workflowLineSchema),
  next_cursor: z.string().optional(),
});
const decisionsSchema = z.strictObject({ decisions: z.array(decidedSchema) });
const anyObjectSchema = z.looseObject({});

interface DescribedMethod {
  readonly says: string;
  readonly params: z.ZodType;
  readonly result: z.ZodType;
}
const method = (says: string, params: z.ZodType, result: z.ZodType): DescribedMethod => ({
  says,
  params,
  result,
});

const methods: Readonly<Record<string, DescribedMethod>> = {
  execute: method(
    'runs a role on a task; answers when the run is accepted',
    executeParamsSchema,
    executeResultSchema,
  ),
  run: method(
    'starts tasks with all that they depend on, each when its dependencies are complete',
    runParamsSchema,
    runResultSchema,
  ),
  status: method('the task as it is now', taskParamsSchema, taskViewSchema),
  discovery: method('the roles, tools and limits of this server', noParamsSchema, anyObjectSchema),
  create: method('creates a task', createParamsSchema, taskViewSchema),
  import: method(
    'makes tasks of the items of a plan; those that were made before stay as they are',
    importParamsSchema,
    importedSchema,
  ),
  import_issues: method(
    'makes tasks of the open issues of the forge, and changes those that were edited there',
    importIssuesParamsSchema,
    importedSchema,
  ),
  list: method('the tasks, by pages', listParamsSchema, taskPageSchema),
  history: method(
    'the journal of a task, oldest first, by pages',
    historyParamsSchema,
    entriesSchema,
  ),
  explain: method(
    'why a task is in its state, with the value of every guard',
    taskParamsSchema,
    anyObjectSchema,
  ),
  diff: method('the changes of an attempt as a patch', diffPartParamsSchema, changesSchema),
  merge: method(
    "merges the changes of an attempt into the project's branch; conflict: nothing was changed",
    mergeParamsSchema,
    mergedSchema,
  ),
  merge_many: method(
    'merges what can be merged, tested together, in the order of dependencies; names the rest',
    mergeManyParamsSchema,
    mergedManySchema,
  ),
  update: method(
    "brings the project's branch into the work of a task; another attempt goes on with what conflicts or fails",
    updateParamsSchema,
    updatedSchema,
  ),
  undo: method(
    'takes back what landed for a task, tested as what lands; the task is open again',
    undoParamsSchema,
    mergedManySchema,
  ),
  publish: method(
    'pushes the work of a task, and opens its pull request or brings it up to date',
    publishParamsSchema,
    publishedSchema,
  ),
  pull_request: method(
    'how the pull request of a task stands, and why it is not merged yet',
    taskParamsSchema,
    publishedSchema,
  ),
  sources: method(
    'how the sources of the configuration stand, whose issues become tasks',
    noParamsSchema,
    sourceStatesSchema,
  ),
  discard: method(
    'the work of an attempt is not offered, merged or built on any more; its branch stays',
    discardParamsSchema,
    taskViewSchema,
  ),
  decisions: method(
    'what people answered, allowed, denied, sent back or merged, the last one first',
    decisionsParamsSchema,
    decisionsSchema,
  ),
  usage: method(
    'what the attempts that are over used, per day (UTC) and role, in sum, and what was spent',
    usageParamsSchema,
    usageResultSchema,
  ),
  replay: method(
    'replays the journal through the statecharts and returns the states they reach',
    replayParamsSchema,
    anyObjectSchema,
  ),
  add_dependency: method('makes a task wait for another', dependencyParamsSchema, taskViewSchema),
  remove_dependency: method('removes a dependency', dependencyParamsSchema, taskViewSchema),
  edit: method('changes title, description, priority or labels', editParamsSchema, taskViewSchema),
  delete: method('deletes a task; answers with it as it was', taskParamsSchema, taskViewSchema),
  close: method('marks a task complete', changeParamsSchema, taskViewSchema),
  reopen: method('puts a complete task back into the queue', changeParamsSchema, taskViewSchema),
  cancel: method('cancels a task and stops its agent', changeParamsSchema, taskViewSchema),
  review: method(
    'comments on the work of an attempt, sends it back or approves it',
    reviewParamsSchema,
    taskViewSchema,
  ),
  retry: method('runs a failed or cancelled task again', retryParamsSchema, taskViewSchema),
  'workflow.start': method(
    'starts a workflow; answers when the tasks of its first phase are made',
    workflowStartParamsSchema,
    workflowLineSchema,
  ),
  'workflow.list': method(
    'the workflows that are not over, then a page of the others, the last to end first',
    workflowListParamsSchema,
    workflowListSchema,
  ),
  'workflow.show': method(
    'a workflow with its phases, tasks and checks',
    workflowParamsSchema,
    workflowViewSchema,
  ),
  'workflow.retry': method(
    'goes on with the phase in which a workflow failed or was cancelled, as a new workflow',
    workflowParamsSchema,
    workflowLineSchema,
  ),
  'workflow.cancel': method(
    'cancels a workflow and its tasks that are not over',
    workflowCancelParamsSchema,
    workflowViewSchema,
  ),
  audit: method(
    'what people and clients asked for, oldest first, by pages; each line has the hash of the one before',
    auditParamsSchema,
    auditSchema,
  ),
  'token.create': method(
    'makes a token for a person or a client; the only answer with it',
    tokenCreateParamsSchema,
    tokenViewSchema.extend({ token: z.string() }),
  ),
  'token.list': method(
    'the tokens, without what they are',
    noParamsSchema,
    z.strictObject({ tokens: z.array(tokenViewSchema) }),
  ),
  'token.revoke': method(
    'ends a token, and the streams and logins that were made with it',
    tokenParamsSchema,
    z.strictObject({ name: z.string() }),
  ),
  respond: method(
    'answers the question of an agent, or decides on calls that need approval',
    respondParamsSchema,
    taskViewSchema,
  ),
};

export const describedMethods: readonly string[] = Object.keys(methods);

/** The view of a task is in most results, and described once. */
const schemaOf = (schema: z.ZodType, io: 'input' | 'output') => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema !== taskViewSchema || schema === taskViewSchema) return;
      for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key);
      Object.assign(jsonSchema, ref('Task'));
    },
  });
  return rest;
};
const resultSchemaOf = ({ result }: DescribedMethod) =>
  result === taskViewSchema ? ref('Task') : schemaOf(result, 'output');

const pascal = (name: string): string =>
  name.replace(/(^|[_.])([a-z])/g, (_, __, letter: string) => letter.toUpperCase());
const refs = (suffix: 'Request' | 'Result') =>
  describedMethods.map((name) => ref(`${pascal(name)}${suffix}`));

const requestOf = (name: string, { says }: DescribedMethod) => ({
  type: 'object',
  description: says,
  'x-needs': methodRights[name],
  required: ['jsonrpc', 'method'],
  properties: {
    jsonrpc: { const: '2.0' },
    id: { type: ['string', 'number', 'null'] },
    method: { enum: [name, `a2a.${name}`] },
    params: ref(`${pascal(name)}Params`),
  },
});

/** Several methods share a result, so a result may match more than one of its schemas. */
export const rpcSchemas = () => ({
  Task: schemaOf(taskViewSchema, 'output'),
  ...Object.fromEntries(
    Object.entries(methods).flatMap(([name, described]) => [
      [`${pascal(name)}Params`, schemaOf(described.params, 'input')],
      [`${pascal(name)}Result`, resultSchemaOf(described)],
      [`${pascal(name)}Request`, requestOf(name, described)],
    ]),
  ),
  RpcRequest: { anyOf: refs('Request') },
  RpcAnswer: {
    type: 'object',
    required: ['jsonrpc', 'id'],
    properties: {
      jsonrpc: { const: '2.0' },
      id: { type: ['string', 'number', 'null'] },
      result: { anyOf: refs('Result') },
      error: ref('RpcError'),
    },
    oneOf: ['result', 'error'].map((name) => ({ required: [name], properties: { [name]: {} } })),
  },
  RpcError: {
    type: 'object',
    required: ['code', 'message'],
    properties: {
      code: {
        enum: [...Object.values(envelopeErrors), ...Object.values(errorStatuses)].map(
          ({ rpc }) => rpc,
        ),
      },
      message: { type: 'string' },
      data: { type: 'object', properties: { code: { type: 'string' } } },
    },
  },
});

const oneOrBatch = (name: string) => ({
  anyOf: [ref(name), { type: 'array', items: ref(name), minItems: 1, maxItems: 20 }],
});

export const rpcRoute = (summary: string) => ({
  post: {
    summary,
    requestBody: { required: true, ...jsonContent(oneOrBatch('RpcRequest')) },
    responses: {
      200: {
        description: 'a JSON-RPC answer, also for an error of the method',
        ...jsonContent(oneOrBatch('RpcAnswer')),
      },
      204: { description: 'the answer to a notification' },
      ...rpcRefusals,
    },
  },
});
