import { z } from 'zod';

/** How the sources of the configuration stand. */
export const sourceStatesSchema = z.strictObject({
  sources: z.array(
    z.strictObject({
      repository: z.string().optional().describe('absent: that of the forge'),
      labels: z.array(z.string()).describe('what its issues have'),
      state: z
        .string()
        .describe('reading, parked (a limit), refused (a person mends it), away, or not followed'),
      issues: z.int().nonnegative().optional().describe('open issues when it did something last'),
      seen_at: z.iso.datetime().optional().describe('when that was'),
      problem: z.string().optional().describe('why it cannot be read'),
    }),
  ),
});
export type SourceStates = z.infer<typeof sourceStatesSchema>;
