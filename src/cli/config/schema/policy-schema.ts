import { z } from 'zod';
import { hostList } from './config-values.ts';

const names = z.array(z.string().min(1).max(200)).max(500).optional();

const bounds = {
  only: z
    .strictObject({
      providers: names.describe(
        'providers of models, and assistants (codex, claude, acp, command), that may work',
      ),
      models: names.describe(
        'models that may be named: <provider>/<model>, with * at the end for all that begin so; of an assistant codex/<model>',
      ),
      hosts: hostList
        .optional()
        .describe(
          'hosts that may be reached, as sandbox.network: by commands, assistants, MCP servers and the server itself',
        ),
    })
    .prefault({}),
  at_most: z
    .record(z.string(), z.number().min(0))
    .default({})
    .describe('the highest value of a key, such as agent.max_turns, also for roles and runs'),
};

/** Of the policy of a machine. */
export const policyBounds = z.strictObject(bounds);

/** What no run, role or person of this project may pass. A policy of the machine narrows it. */
export const policySection = z.strictObject({
  merge: z
    .enum(['anyone', 'not_author'])
    .default('anyone')
    .describe(
      'who may merge the work of a task: not_author refuses whoever asked for one of its attempts, by the name of the token; it needs workspace.merge none',
    ),
  ...bounds,
});
