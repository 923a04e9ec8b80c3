import { z } from 'zod';
import type { OwnTool } from './port.ts';

export const askArguments = z.strictObject({
  question: z
    .string()
    .min(1)
    .max(4_000)
    .describe('what you must know, with the choices you see and what each would mean'),
});

/**
 * The executor passes the question on as `CallResult.question`; the attempt then waits for a
 * person.
 */
export const askTool: OwnTool<z.infer<typeof askArguments>> = {
  name: 'ask',
  files: 'ignores',
  isRepeatable: true,
  description:
    'Asks a person and waits for the answer, which may take an hour or never come. Use it only for what you cannot find out and must not decide.',
  schema: askArguments,
  run: async () => ({ ok: true, text: 'The question was sent to a person; the answer follows.' }),
};
