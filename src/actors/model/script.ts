import { z } from 'zod';
import { ServiceError } from '../../machines/errors.ts';

const scriptTurnSchema = z.strictObject({
  say: z.string().default(''),
  calls: z
    .array(
      z.strictObject({ tool: z.string().min(1), arguments: z.record(z.string(), z.unknown()) }),
    )
    .default([]),
});

const scriptSchema = z.strictObject({
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

/** @throws invalid_params with the path of each bad field */
export const parseScript = (json: unknown): Script => {
  const parsed = scriptSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  throw new ServiceError('invalid_params', {
    fields: parsed.error.issues.map(({ path, message }) => ({
      path: path.join('.') || 'script',
      problem: message,
    })),
  });
};
