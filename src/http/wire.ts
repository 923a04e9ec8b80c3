import { z } from 'zod';
import { ServiceError } from '../machines/errors.ts';
import type { RunOptions } from '../machines/task.ts';

/** The requests of CONTRACT 3 as they arrive: snake_case, every key known, every value bounded. */

const id = z.string().max(65_536);
const reason = z.string().max(2_000).optional();

export const optionsSchema = z.strictObject({
  model: z.string().min(1).max(200).optional(),
  timeout_seconds: z.int().min(1).max(86_400).optional(),
  max_turns: z.int().min(1).max(1_000).optional(),
  max_tokens_total: z.int().min(1).optional(),
  max_cost_usd: z.number().positive().max(1_000_000).optional(),
  verify: z.array(z.string().min(1).max(4_096)).max(20).optional(),
  network: z.boolean().optional(),
});

export const executeSchema = z
  .strictObject({
    task_id: id.optional(),
    task: id.optional(),
    role: z.string().max(100),
    options: optionsSchema.optional(),
    request_id: z.string().min(1).max(200).optional(),
  })
  .refine(({ task_id, task }) => (task_id === undefined) !== (task === undefined), {
    path: ['task_id'],
    message: 'give either task_id or its alias task',
  });

export const createSchema = z.strictObject({
  description: z.string().max(65_536),
  title: z.string().min(1).max(500).optional(),
  dependencies: z.array(id).max(1_000).optional(),
  priority: z.int().min(0).max(4).optional(),
  labels: z.array(z.string().min(1).max(200)).max(100).optional(),
});

export const listSchema = z.strictObject({
  status: z.string().min(1).max(100).optional(),
  limit: z.int().min(1).max(1_000).optional(),
  cursor: id.optional(),
});

export const historySchema = z.strictObject({
  task_id: id,
  after_seq: z.int().nonnegative().optional(),
  limit: z.int().min(1).max(1_000).optional(),
});

export const replaySchema = z.strictObject({ task_id: id, at_seq: z.int().nonnegative().optional() });

export const taskSchema = z.strictObject({ task_id: id });
export const dependencySchema = z.strictObject({ task_id: id, depends_on: id });
export const changeSchema = z.strictObject({ task_id: id, reason });
export const retrySchema = z.strictObject({
  task_id: id,
  reason,
  role: z.string().max(100).optional(),
  options: optionsSchema.optional(),
});

export const respondSchema = z
  .strictObject({
    task_id: id,
    attempt: z.int().min(1),
    input_id: z.string().min(1).max(100),
    text: z.string().min(1).max(65_536).optional(),
    decision: z.enum(['allow', 'deny']).optional(),
  })
  .refine(({ text, decision }) => text !== undefined || decision !== undefined, {
    path: ['text'],
    message: 'give text, or decision (allow or deny), or both',
  });

/** The answer to `execute`. */
export const executionSchema = z.strictObject({
  task_id: z.string(),
  role: z.string(),
  status: z.string(),
  phase: z.string(),
  attempt: z.int(),
  message: z.string(),
  stream_url: z.string(),
  created_at: z.iso.datetime(),
});

const pathOf = (path: readonly PropertyKey[]): string => path.map(String).join('.') || 'params';

const fieldsOf = (issue: z.core.$ZodIssue) => {
  const { path, message } = issue;
  if (issue.code !== 'unrecognized_keys') return [{ path: pathOf(path), problem: message }];
  return issue.keys.map((key) => ({ path: pathOf([...path, key]), problem: 'is not known here' }));
};

/** @throws invalid_params with the path of each bad field */
export const parseParams = <Output>(schema: z.ZodType<Output>, params: unknown): Output => {
  const parsed = schema.safeParse(params ?? {});
  if (parsed.success) return parsed.data;
  throw new ServiceError('invalid_params', { fields: parsed.error.issues.flatMap(fieldsOf) });
};

/** The wire's option names in ours. */
export const runOptions = (options: z.infer<typeof optionsSchema> = {}): RunOptions => ({
  ...(options.model === undefined ? {} : { model: options.model }),
  ...(options.timeout_seconds === undefined ? {} : { timeoutMs: options.timeout_seconds * 1_000 }),
  ...(options.max_turns === undefined ? {} : { maxTurns: options.max_turns }),
  ...(options.max_tokens_total === undefined ? {} : { maxTokensTotal: options.max_tokens_total }),
  ...(options.max_cost_usd === undefined ? {} : { maxCostUsd: options.max_cost_usd }),
  ...(options.verify === undefined ? {} : { verify: options.verify }),
  ...(options.network === undefined ? {} : { network: options.network }),
});
