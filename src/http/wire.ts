import { z } from 'zod';
import { itemsAtMost } from '../actors/engine/importing/order-items.ts';
import { imagesAtMost } from '../actors/files/image.ts';
import { phases } from '../actors/journal/task-view.ts';
import { ServiceError } from '../machines/errors.ts';
import { verdicts } from '../machines/review.ts';
import { forgeProblemSchema } from '../machines/source/forge-problem.ts';
import { type RunOptions, roles, statuses } from '../machines/task.ts';
import { thoroughnessLevels } from '../machines/thoroughness.ts';
import { tokenRights } from './people/rights.ts';
import { parseWithProblems } from './schema-problems.ts';

/** Requests as they arrive: snake_case, no unknown key, every value bounded. */

const id = z.string().max(65_536).describe('the id of a task');
const reason = z.string().max(2_000).optional().describe('why; shown with the task');

export const optionsSchema = z.strictObject({
  model: z.string().min(1).max(200).optional().describe('the model to call'),
  timeout_seconds: z.int().min(1).max(86_400).optional().describe('time limit of the attempt'),
  max_turns: z.int().min(1).max(1_000).optional().describe('turns of the attempt'),
  max_tokens_total: z.int().min(1).optional().describe('input and output tokens of the attempt'),
  max_cost_usd: z
    .number()
    .positive()
    .max(1_000_000)
    .optional()
    .describe('cost of the attempt in USD'),
  verify: z
    .array(z.string().min(1).max(4_096))
    .max(20)
    .optional()
    .describe('commands that must pass before completion'),
  when: z
    .enum(['now', 'ready'])
    .optional()
    .describe(
      'now (default): refused while a dependency is not complete; ready: starts when all are complete',
    ),
  network: z
    .boolean()
    .optional()
    .describe('commands may reach the network; needs sandbox.allow_task_network'),
  publish: z
    .boolean()
    .optional()
    .describe('a pull request is opened when it is complete; needs workspace.merge none'),
});

/** Examples say what is known, and leave the rest open. */
const knownRole = z.string().meta({ examples: roles });
const knownStatus = z.string().meta({ examples: statuses });
const knownPhase = z.string().meta({ examples: phases });

export const executeParamsSchema = z
  .strictObject({
    task_id: id.optional().describe('the id of a task, or the text of a new one'),
    task: id.optional().describe('the same as task_id'),
    role: z
      .string()
      .max(100)
      .meta({ examples: roles, description: 'the role that works on the task' }),
    options: optionsSchema.optional().describe('limits and settings of this run'),
    request_id: z
      .string()
      .min(1)
      .max(200)
      .refine((text) => !text.includes('\0'), 'has a NUL character')
      .optional()
      .describe('a repeated request with the same id starts nothing and gets the first answer'),
  })
  .refine(({ task_id, task }) => (task_id === undefined) !== (task === undefined), {
    path: ['task_id'],
    message: 'give either task_id or its alias task',
  });

export const runParamsSchema = z.strictObject({
  task_ids: z
    .array(id)
    .min(1)
    .max(10_000)
    .optional()
    .describe('these tasks and all that they depend on; default: every open task'),
  role: z.string().max(100).optional().meta({
    examples: roles,
    description: 'for tasks without the label role:<role> that no role ran before',
  }),
  options: optionsSchema.optional().describe('limits and settings of each run'),
  max_cost_usd: optionsSchema.shape.max_cost_usd.describe(
    'what all tasks of this run may cost together, in USD; default: budget.run_usd',
  ),
  labels: z
    .array(z.string().min(1).max(200))
    .min(1)
    .max(100)
    .optional()
    .describe('only tasks with all of these labels, and what they depend on'),
  priority: z
    .int()
    .min(0)
    .max(4)
    .optional()
    .describe('only tasks with this priority, and what they depend on'),
  limit: z
    .int()
    .min(1)
    .max(10_000)
    .optional()
    .describe('start at most as many, dependencies included; the first priority first'),
  dry_run: z
    .boolean()
    .optional()
    .describe('start nothing; the answer has the tasks that would start, in their order'),
  request_id: executeParamsSchema.shape.request_id,
});

const plannedTasks = z.array(
  z.strictObject({
    task_id: z.string(),
    role: knownRole,
    model: z.string().describe('the model, or the assistant'),
    after: z
      .array(z.string())
      .describe('tasks that must be complete first, also those that the run skips'),
  }),
);
const skippedTasks = z.array(
  z.strictObject({
    task_id: z.string(),
    reason: z.string(),
    code: z.string().optional().describe('the name of the reason'),
  }),
);

export const plannedRunSchema = z.object({ tasks: plannedTasks, skipped: skippedTasks });

export const runResultSchema = z.strictObject({
  accepted: z
    .array(z.strictObject({ task_id: z.string(), role: knownRole, phase: knownPhase }))
    .describe('the tasks that start when their dependencies are complete; none with dry_run'),
  tasks: plannedTasks
    .optional()
    .describe('with dry_run: the tasks that would start, in their order'),
  skipped: skippedTasks.describe('the tasks that were not started, and why'),
});

export const createParamsSchema = z.strictObject({
  description: z.string().max(65_536).describe('what to do'),
  title: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe('one line; default: the first line of the description'),
  dependencies: z.array(id).max(1_000).optional().describe('tasks that must be complete first'),
  priority: z.int().min(0).max(4).optional().describe('0 (first) to 4 (last)'),
  labels: z.array(z.string().min(1).max(200)).max(100).optional().describe('labels of the task'),
  attachments: z
    .array(
      z.strictObject({
        digest: z
          .string()
          .regex(/^[0-9a-f]{64}$/, 'is no digest of POST /images')
          .describe('from the answer to POST /images'),
        name: z
          .string()
          .max(200)
          .regex(/^\P{C}*$/u, 'has characters that cannot be shown')
          .default('')
          .describe('its file as people call it'),
      }),
    )
    .max(imagesAtMost)
    .optional()
    .describe('images for the agent, uploaded in the last hour'),
});

const dryRun = z.boolean().optional().describe('make nothing; the answer says what would be made');
export const importParamsSchema = z.strictObject({
  items: z
    .array(
      z.strictObject({
        ref: z
          .string()
          .regex(/^plan:\S{1,200}$/, 'expected plan: and a key')
          .describe('identifies it: one that was imported before is not made again'),
        name: z.string().min(1).max(500).describe('for people'),
        title: z.string().min(1).max(500).describe('one line'),
        description: z.string().min(1).max(65_536).describe('what to do'),
        priority: z.int().min(0).max(4).optional().describe('0 (first) to 4 (last)'),
        labels: z.array(z.string().min(1).max(200)).max(100).optional().describe('its labels'),
        depends_on: z
          .array(z.string().min(1).max(300))
          .max(1_000)
          .optional()
          .describe('refs of other items, or ids of tasks'),
      }),
    )
    .max(itemsAtMost)
    .describe('what becomes tasks'),
  dry_run: dryRun,
});
export const importIssuesParamsSchema = z.strictObject({
  labels: z
    .array(z.string().min(1).max(100))
    .max(20)
    .optional()
    .describe('only issues with all of these labels'),
  milestone: z.string().min(1).max(300).optional().describe('only issues of the milestone'),
  dry_run: dryRun,
});
export const importedSchema = z.strictObject({
  forge: z.string().optional().describe('where issues were read'),
  items: z
    .array(
      z.strictObject({
        title: z.string(),
        name: z.string().describe('the number of the issue, or the title'),
        action: z
          .enum(['make', 'change', 'same', 'deleted'])
          .describe('what is done, or would be; deleted: a person deleted its task'),
        task_id: z.string().optional(),
        depends_on: z.array(z.string()).describe('names of items, and ids of tasks'),
        cycles: z
          .array(z.string())
          .describe('cycles that its dependencies would close, which are left out: #3 -> #5 -> #3'),
        unknown: z.array(z.string()).describe('what it depends on and is no task here'),
      }),
    )
    .describe('each after those that it depends on'),
  problem: forgeProblemSchema.optional().describe('why no issue could be read'),
});

export const editParamsSchema = z
  .strictObject({
    task_id: id,
    title: z.string().min(1).max(500).optional().describe('one line'),
    description: z.string().min(1).max(65_536).optional().describe('what to do'),
    priority: createParamsSchema.shape.priority,
    labels: z
      .array(z.string().min(1).max(200))
      .max(100)
      .optional()
      .describe('replace the labels, but those that say how an attempt ended'),
  })
  .refine((fields) => Object.keys(fields).length > 1, {
    path: ['title'],
    message: 'give title, description, priority or labels',
  });

export const listParamsSchema = z.strictObject({
  id: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe('only tasks whose id begins or ends with this, on one page'),
  status: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .meta({
      examples: [...statuses, 'active'],
      description:
        'only tasks with this status; queued means ready to run, active means started or waiting',
    }),
  role: z
    .string()
    .max(100)
    .optional()
    .meta({ examples: roles, description: 'only tasks with this role' }),
  label: z.string().min(1).max(200).optional().describe('only tasks with this label'),
  order: z
    .enum(['oldest', 'newest'])
    .optional()
    .describe('by the time of creation; default: oldest first'),
  limit: z.int().min(1).max(1_000).optional().describe('how many tasks to return'),
  cursor: id.optional().describe('next_cursor of the page before'),
});

export const historyParamsSchema = z.strictObject({
  task_id: id,
  after_seq: z.int().nonnegative().optional().describe('only entries after this seq'),
  limit: z.int().min(1).max(1_000).optional().describe('how many entries to return'),
  kept: z
    .boolean()
    .optional()
    .describe('entries as they are kept, with their hashes, in place of frames'),
});

export const replayParamsSchema = z.strictObject({
  task_id: id,
  at_seq: z.int().nonnegative().optional().describe('only up to this seq'),
});

const attempt = z.int().min(1).optional().describe('number of the attempt; default: the latest');
export const diffParamsSchema = z.strictObject({ task_id: id, attempt });
export const diffPartParamsSchema = diffParamsSchema.extend({
  part: z
    .union([
      z.strictObject({ names: z.literal(true) }),
      z.strictObject({ paths: z.array(z.string().min(1).max(4_096)).min(1).max(200) }),
    ])
    .optional()
    .describe('the names of all changed files without a patch, or the patch of these paths'),
});
export const mergeParamsSchema = z.strictObject({
  task_id: id,
  attempt,
  squash: z
    .boolean()
    .optional()
    .describe('merge as one commit; false: by fast-forward; default: as merge.style says'),
  force: z.boolean().optional().describe('also an attempt that is not complete'),
  verify: z
    .boolean()
    .optional()
    .describe('false: it lands without a test; default: the commands that are known must pass'),
});

const waitSeconds = z
  .number()
  .min(0)
  .max(600)
  .optional()
  .describe(
    'answers after so long, with what is still tested as waiting; it goes on, also when who asked goes away; default: until all have ended',
  );
export const mergeManyParamsSchema = z.strictObject({
  ...mergeParamsSchema.omit({ task_id: true, attempt: true }).shape,
  task_ids: z.array(id).max(1_000).optional().describe('the tasks'),
  all: z.boolean().optional().describe('all complete work that is not merged, beside task_ids'),
  attempt: attempt.describe('of the only one of task_ids; default: the latest'),
  dry_run: z
    .boolean()
    .optional()
    .describe('merge nothing: planned says in which order what would be tested'),
  wait_seconds: waitSeconds,
});

export const usageParamsSchema = z.strictObject({
  since: z.iso.date().optional().describe('the first day, such as 2026-11-22; default: all'),
});
export const decisionsParamsSchema = z.strictObject({
  limit: z.int().min(1).max(200).optional().describe('at most as many; default: 50'),
});
export const noParamsSchema = z.strictObject({});
export const taskParamsSchema = z.strictObject({ task_id: id });
export const waitParamsSchema = taskParamsSchema.extend({
  timeout_seconds: z
    .int()
    .min(1)
    .max(86_400)
    .optional()
    .describe('how long to wait at most; default: 45, below the limit of most clients'),
});
export const dependencyParamsSchema = z.strictObject({
  task_id: id,
  depends_on: id.describe('the task that must be complete first'),
});
export const changeParamsSchema = z.strictObject({ task_id: id, reason });
export const publishParamsSchema = taskParamsSchema.extend({
  draft: z.boolean().optional().describe('unset: as forge.draft says'),
  base: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[^-]/, 'must not begin with -')
    .optional()
    .describe('the branch that it goes to; unset: that of the pull request, or the default branch'),
  fix: z
    .boolean()
    .optional()
    .describe('another attempt gets what checks and comments say, whatever the configuration says'),
});
export const updateParamsSchema = taskParamsSchema.extend({ wait_seconds: waitSeconds });
export const undoParamsSchema = taskParamsSchema.extend({
  with_dependents: z
    .boolean()
    .optional()
    .describe('landed work of tasks that depend on it is undone before it'),
  wait_seconds: waitSeconds,
});
export const discardParamsSchema = changeParamsSchema.extend({ attempt });
export const retryParamsSchema = z.strictObject({
  task_id: id,
  reason,
  role: z
    .string()
    .max(100)
    .optional()
    .meta({ examples: roles, description: 'another role; default: the role of the last attempt' }),
  options: optionsSchema.optional().describe('other limits and settings'),
});

const linePath = z
  .string()
  .min(1)
  .max(4_096)
  .refine((path) => !path.startsWith('/') && !path.split('/').includes('..'), {
    message: 'give a path inside the project, such as src/a.js',
  });

export const reviewParamsSchema = z
  .strictObject({
    task_id: id,
    attempt: z
      .int()
      .min(1)
      .optional()
      .describe('the attempt whose work it is; default: the latest'),
    verdict: z
      .enum(verdicts)
      .describe('request_changes starts the next attempt on the same branch'),
    comments: z
      .array(
        z
          .strictObject({
            path: linePath.describe('a file of the project; `.` is about all changes'),
            line: z.int().min(1).optional().describe('the line in the changed file, from 1'),
            end_line: z.int().min(1).optional().describe('the last line of a range'),
            text: z.string().min(1).max(2_000).describe('the comment'),
          })
          .refine(
            ({ line, end_line }) => end_line === undefined || end_line >= (line ?? Infinity),
            {
              path: ['end_line'],
              message: 'give line too, and an end_line that is not before it',
            },
          ),
      )
      .max(50)
      .default([])
      .describe('each is given to the next attempt once and answered in its results'),
  })
  .refine(({ verdict, comments }) => verdict !== 'comment' || comments.length > 0, {
    path: ['comments'],
    message: 'give at least one comment',
  });

export const respondParamsSchema = z
  .strictObject({
    task_id: id,
    attempt: z.int().min(1).describe('the attempt that asks'),
    input_id: z.string().min(1).max(100).describe('awaiting.input_id of the task'),
    text: z
      .string()
      .max(65_536)
      .regex(/\S/, 'an answer has a word; to answer with nothing, say so')
      .optional()
      .describe('the answer in words'),
    decision: z.enum(['allow', 'deny']).optional().describe('whether the calls may be made'),
  })
  .refine(({ text, decision }) => text !== undefined || decision !== undefined, {
    path: ['text'],
    message: 'give text, or decision (allow or deny), or both',
  });

export const executeResultSchema = z.strictObject({
  task_id: z.string(),
  role: knownRole,
  status: knownStatus,
  phase: knownPhase,
  attempt: z.int(),
  message: z.string(),
  stream_url: z.string(),
  created_at: z.iso.datetime(),
});

const tokenName = z.string().min(1).max(64).describe('the name of a token');
export const tokenParamsSchema = z.strictObject({ name: tokenName });
export const tokenCreateParamsSchema = z.strictObject({
  name: tokenName.describe('who has it: 1 to 64 of a-z, 0-9 and . _ @ -'),
  rights: z
    .enum(tokenRights)
    .describe('read, run, review or admin; each has those before it; runner is for runners'),
  expires_seconds: z
    .int()
    .min(1)
    .max(315_360_000)
    .optional()
    .describe('how long it works; default: until it is revoked'),
});
export const auditParamsSchema = z.strictObject({
  since: z.iso
    .datetime()
    .optional()
    .describe('only lines from this time on, such as 2026-11-22T00:00:00Z'),
  task_id: z.string().max(200).optional().describe('only lines about a task'),
  after_seq: z.int().nonnegative().optional().describe('only lines after this seq'),
  limit: z.int().min(1).max(1_000).optional().describe('how many lines to return; default: 200'),
});
export const tokenViewSchema = z.strictObject({
  name: z.string(),
  rights: z.enum(tokenRights),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().optional().describe('absent: it works until it is revoked'),
});
export const auditSchema = z.strictObject({
  lines: z.array(
    z.strictObject({
      seq: z.int().describe('1, 2, 3, without a gap'),
      at: z.iso.datetime(),
      name: z.string().describe('the name of the token; owner: the token of the server'),
      via: z.enum(['cli', 'page', 'a2a', 'mcp', 'rpc']),
      address: z.string().describe('where the request came from; local: without a server'),
      action: z.string().describe('a method, an operation or a route'),
      task_id: z.string().optional(),
      about: z.string().optional().describe('the token, the workflow, or the right that lacks'),
      outcome: z
        .string()
        .describe(
          'allowed: written no later than what came of it; done: names a task that came of it; forbidden, or the code of the error',
        ),
      id: z.string(),
      previous: z.string().describe('the hash of the line before'),
      hash: z.string().describe('SHA-256 of the line and of previous'),
    }),
  ),
  next_after: z.int().optional().describe('after_seq of the next page'),
  end: z
    .strictObject({ seq: z.int(), hash: z.string() })
    .optional()
    .describe('the last line, kept apart from the lines'),
});

const workflowId = z.string().min(1).max(100).describe('the id of a workflow');
export const workflowStartParamsSchema = z.strictObject({
  kind: z.string().min(1).max(100).describe('the name of a workflow, such as feature'),
  name: z.string().min(1).max(300).describe('the feature, or the question'),
  product: z.string().min(1).max(100).optional().describe('the product; default: the project'),
  thoroughness: z.enum(thoroughnessLevels).optional().describe('default: medium'),
  steps: z
    .array(z.string().min(1).max(100))
    .max(100)
    .optional()
    .describe('the optional steps that are done; absent: they are asked for'),
  decides: z
    .enum(['person', 'role'])
    .optional()
    .describe('who decides about optional steps; default: a person'),
  verify: optionsSchema.shape.verify.describe('commands that write the reports which gates read'),
  model: optionsSchema.shape.model,
});
export const workflowListParamsSchema = z.strictObject({
  limit: z
    .int()
    .min(1)
    .max(1_000)
    .optional()
    .describe('how many of those that are over; default: 100'),
  cursor: workflowId.optional().describe('next_cursor of the page before'),
});
export const workflowParamsSchema = z.strictObject({ workflow_id: workflowId });
export const workflowCancelParamsSchema = z.strictObject({ workflow_id: workflowId, reason });

/** @throws invalid_params with the path of each problem */
export const parseParams = <Output>(schema: z.ZodType<Output>, params: unknown): Output => {
  const parsed = parseWithProblems(schema, params ?? {});
  if (parsed.ok) return parsed.value;
  const fields = parsed.problems.map(({ path, problem }) => ({
    path: path.map(String).join('.') || 'params',
    problem,
  }));
  throw new ServiceError('invalid_params', { fields });
};

export const runOptions = (options: z.infer<typeof optionsSchema> = {}): RunOptions => ({
  ...(options.model === undefined ? {} : { model: options.model }),
  ...(options.timeout_seconds === undefined ? {} : { timeoutMs: options.timeout_seconds * 1_000 }),
  ...(options.max_turns === undefined ? {} : { maxTurns: options.max_turns }),
  ...(options.max_tokens_total === undefined ? {} : { maxTokensTotal: options.max_tokens_total }),
  ...(options.max_cost_usd === undefined ? {} : { maxCostUsd: options.max_cost_usd }),
  ...(options.verify === undefined ? {} : { verify: options.verify }),
  ...(options.when === undefined ? {} : { when: options.when }),
  ...(options.network === undefined ? {} : { network: options.network }),
  ...(options.publish === undefined ? {} : { publish: options.publish }),
});

/** Facts of a conflict beside its reason. */
export const conflictShape = {
  failed: z
    .object({ command: z.string(), output: z.string() })
    .optional()
    .describe('the command that did not pass'),
  merge_first: z
    .object({ task_id: z.string(), attempt: z.int(), complete: z.boolean() })
    .optional(),
  moved_on: z.literal(true).optional(),
  same_lines: z.literal(true).optional(),
  rewritten: z.literal(true).optional(),
  detached: z.literal(true).optional(),
  run_again: z
    .literal(true)
    .optional()
    .describe('it was discarded, or has work that was: reopen it and run it again'),
  reopened: z
    .literal(true)
    .optional()
    .describe('its task was opened again after this was asked for'),
  unblamed: z
    .literal(true)
    .optional()
    .describe('the branch fails by itself, or a command did not end'),
  with: z
    .array(z.string())
    .optional()
    .describe('tasks whose work is on the branch and was not when the attempt began'),
};
