import { z } from 'zod';
import { toolNames } from '../../actors/tools/toolbox.ts';
import { assistantNames } from '../../machines/agent/agent-context.ts';
import { networkAccess, positive } from '../config/schema/config-values.ts';

const commandText = z.string().min(1).max(4_000);
export const usd = z.number().positive().max(1_000_000);

const tool = z.enum(toolNames);
/** `mcp__github` is a server with all its tools. */
const mcpTool = z.string().regex(/^mcp__[\w-]+$/);
export const approvedTool = z.union(
  [tool, mcpTool],
  `must be one of ${toolNames.join(', ')}, or mcp__<server>, or mcp__<server>__<tool>`,
);
export const backend = z.enum(['auto', 'builtin', 'scripted', ...assistantNames]);

/** Limits of an attempt, for all roles or for one. */
export const limitKeys = {
  timeout_seconds: positive
    .max(86_400)
    .optional()
    .describe('time limit of one attempt; unset: the limit of the role'),
  max_cost_usd: usd.optional().describe('cost of one attempt in USD; the price must be known'),
};

const roleLimits = {
  ...limitKeys,
  max_turns: positive.max(1_000).optional().describe('turns of one attempt'),
  max_tokens_total: positive.optional().describe('input and output tokens of one attempt'),
};

const mustFinish = 'must include finish; without it the role could never end';
const toolList = z
  .array(tool)
  .refine((names) => names.includes('finish'), mustFinish)
  .optional()
  .describe('the tools that the role may call; finish must be one of them');
const successCriteria = z
  .array(z.string().min(1).max(500))
  .max(20)
  .describe('what must be true before the role finishes');

const roleParts = {
  backend: backend.optional().describe('who does the work of the role; unset: api.backend'),
  tools: toolList,
  require_approval: z
    .array(approvedTool)
    .optional()
    .describe("tools that need a person's approval"),
  verify: z
    .array(commandText)
    .max(20)
    .optional()
    .describe('commands that must pass before a task of the role completes'),
  success_criteria: successCriteria.optional(),
  model: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('the model of the role; unset: api.provider_model'),
  network: networkAccess
    .optional()
    .describe('what commands of the role may reach; unset: sandbox.network'),
  concurrency: positive
    .max(1_000)
    .optional()
    .describe('how many agents of the role may run at once'),
};

const filePath = z.string().min(1).optional();

export const roleSection = z.strictObject({
  ...roleParts,
  ...roleLimits,
  prompt_file: filePath.describe('file with the system prompt, relative to this file'),
  file: filePath.describe('role file, relative to this file; the keys beside this one override it'),
});

export type RoleKeys = Omit<z.infer<typeof roleSection>, 'prompt_file' | 'file'>;

const name = z.string();
const description = z.string().min(1).max(500);
const prompt = z.string().min(1).max(100_000);

/** A file of configs/roles: complete, and without keys that only the user sets. */
export const shippedRole = z.strictObject({
  name,
  description,
  tools: toolList.unwrap(),
  limits: z.strictObject({ timeout_seconds: limitKeys.timeout_seconds.unwrap() }),
  success_criteria: successCriteria.min(1),
  prompt,
});

/** The user's own role file; a missing key has the shipped or the general value. */
export const userRole = z
  .strictObject({
    name: name.optional(),
    description: description.optional(),
    ...roleParts,
    limits: z.strictObject(roleLimits).default({}),
    prompt: prompt.optional(),
    /** Relative to the role file. */
    prompt_file: filePath,
  })
  .refine((role) => role.prompt === undefined || role.prompt_file === undefined, {
    path: ['prompt_file'],
    message: 'cannot be combined with prompt',
  });

/** A role file of a project, in `.agent/roles`. It restricts a role or adds checks (ADR 0018). */
export const projectRole = z.strictObject({
  name: name.optional(),
  tools: z
    .array(approvedTool)
    .refine((names) => names.includes('finish'), mustFinish)
    .optional(),
  limits: z.strictObject(roleLimits).default({}),
  require_approval: z.array(approvedTool).default([]),
  verify: z.array(commandText).max(10).default([]),
  network: z.literal(false, 'a project can only revoke it').optional(),
  success_criteria: successCriteria.default([]),
  notes: z.string().min(1).max(4_000).optional(),
});
export type ProjectRole = z.infer<typeof projectRole>;
