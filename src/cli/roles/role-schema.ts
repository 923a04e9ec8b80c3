import { z } from 'zod';
import { toolNames } from '../../actors/agent/tools/names.ts';

const positive = z.int().min(1);
const command = z.string().min(1).max(4_000);
const usd = z.number().positive().max(1_000_000);

export const tool = z.enum(toolNames);
export const backend = z.enum(['auto', 'builtin', 'scripted', 'codex', 'claude', 'command']);

/** What bounds an attempt; for every role, or for one. */
export const limits = {
  timeout_seconds: positive.max(86_400).optional(),
  max_cost_usd: usd.optional(),
};

const roleLimits = {
  ...limits,
  max_turns: positive.max(1_000).optional(),
  max_tokens_total: positive.optional(),
};

const tools = z
  .array(tool)
  .refine((names) => names.includes('finish'), 'must hold finish, or the role could never end')
  .optional();
/** What must be true before the role ends its work. */
const successCriteria = z.array(z.string().min(1).max(500)).max(20);

const parts = {
  /** Who does the work of the role; as for every role when it is absent. */
  backend: backend.optional(),
  tools,
  require_approval: z.array(tool).optional(),
  /** Commands that must pass before a task of the role may complete. */
  verify: z.array(command).max(20).optional(),
  success_criteria: successCriteria.optional(),
  model: z.string().min(1).max(200).optional(),
  /** Whether commands of the role may reach the network; as sandbox.network when it is absent. */
  network: z.boolean().optional(),
  concurrency: positive.max(1_000).optional(),
};

const path = z.string().min(1).optional();

/** `roles.<name>` of the configuration. */
export const roleSection = z.strictObject({
  ...parts,
  ...roleLimits,
  /** Relative to the configuration file. */
  prompt_file: path,
  /** A role file of one's own, relative to the configuration file; what stands beside this key counts more. */
  file: path,
});

export type RoleKeys = Omit<z.infer<typeof roleSection>, 'prompt_file' | 'file'>;

const name = z.string();
const description = z.string().min(1).max(500);
const prompt = z.string().min(1).max(100_000);

/** A file of configs/roles: whole, and with nothing in it that is the user's to say. */
export const shippedRole = z.strictObject({
  name,
  description,
  tools: tools.unwrap(),
  limits: z.strictObject({ timeout_seconds: limits.timeout_seconds.unwrap() }),
  success_criteria: successCriteria.min(1),
  prompt,
});

/** The user's own file of a role: what is absent is as shipped, or as it is configured for every role. */
export const userRole = z
  .strictObject({
    name: name.optional(),
    description: description.optional(),
    ...parts,
    limits: z.strictObject(roleLimits).default({}),
    prompt: prompt.optional(),
    /** Relative to the role file. */
    prompt_file: path,
  })
  .refine((role) => role.prompt === undefined || role.prompt_file === undefined, {
    path: ['prompt_file'],
    message: 'cannot stand beside prompt',
  });

/** What a project may say of a role in `.agent/roles`: it takes away or adds work, and never gives (ADR 0018). */
export const projectRole = z.strictObject({
  name: name.optional(),
  tools,
  limits: z.strictObject(roleLimits).default({}),
  require_approval: z.array(tool).default([]),
  verify: z.array(command).max(10).default([]),
  network: z.literal(false, 'a project can only take it away').optional(),
  success_criteria: successCriteria.default([]),
  /** For the role, as material of the project. */
  notes: z.string().min(1).max(4_000).optional(),
});
export type ProjectRole = z.infer<typeof projectRole>;
