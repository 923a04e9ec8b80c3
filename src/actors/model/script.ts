import { z } from 'zod';

const scriptTurnSchema = z.strictObject({
  say: z.string().default(''),
  calls: z
    .array(
      z.strictObject({ tool: z.string().min(1), arguments: z.record(z.string(), z.unknown()) }),
    )
    .default([]),
});

export const scriptSchema = z.strictObject({
  turn_ms: z.int().min(0).max(600_000).default(0),
  scripts: z.array(
    z.strictObject({
      role: z.string().optional(),
      title: z.string().optional(),
      /** `otherwise` is played when a tool call of the turn before failed. */
      turns: z.array(scriptTurnSchema.extend({ otherwise: scriptTurnSchema.optional() })),
    }),
  ),
});

export type Script = z.infer<typeof scriptSchema>;
export type ScriptTurn = z.infer<typeof scriptTurnSchema>;

/** @throws ZodError */
export const parseScript = (json: unknown): Script => scriptSchema.parse(json);
