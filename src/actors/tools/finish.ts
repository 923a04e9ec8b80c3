import { z } from 'zod';
import type { Finish, Tool } from './port.ts';

export const finishArguments = z.strictObject({
  status: z
    .enum(['done', 'failed'])
    .describe('done when the task is complete, failed when it cannot be completed'),
  summary: z
    .string()
    .min(1)
    .describe('what was done, or why it could not be done; others will build on this text'),
  artifacts: z
    .array(z.string().min(1))
    .default([])
    .describe('paths of the files that were made or changed'),
});

/** Ends the attempt; the executor passes the arguments on as `CallResult.finish`. */
export const finishTool: Tool<Finish> = {
  name: 'finish',
  description:
    'Ends your work on the task. Call it once, as the last call, when the task is complete or cannot be.',
  schema: finishArguments,
  run: async ({ status }) => ({ ok: true, text: `finished: ${status}` }),
};
