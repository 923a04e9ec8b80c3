import { z } from 'zod';

/** Why issues could not be read. */
export const forgeProblemSchema = z.strictObject({
  needs: z
    .enum(['person', 'limit', 'forge'])
    .describe('who mends it; limit and forge: it goes on by itself'),
  fault: z.string().describe('limit, right, token, gone, moved, refused or away'),
  message: z.string().describe('what is wrong and what to do'),
});
export interface ForgeProblem extends z.infer<typeof forgeProblemSchema> {
  /** Until then nothing is answered (epoch ms). */
  readonly retryAt: number | null;
}
