import { z } from 'zod';
import type { PermissionCall } from '../port.ts';
import { acpArguments, acpCallSchema, toolOf } from './updates.ts';

const permissionRequestSchema = z.looseObject({
  sessionId: z.string(),
  toolCall: acpCallSchema,
  options: z.array(z.looseObject({ optionId: z.string(), kind: z.string() })).max(100),
});
type PermissionRequest = z.infer<typeof permissionRequestSchema>;

export const permissionRequest = (params: unknown): PermissionRequest | null =>
  permissionRequestSchema.safeParse(params).data ?? null;

/** The call as a person sees it; `kind` is that of an earlier update, if the request has none. */
export const permissionCall = (
  { toolCall }: PermissionRequest,
  kind: string | null,
): PermissionCall => ({
  callId: toolCall.toolCallId,
  tool: toolOf(toolCall.kind ?? kind),
  arguments: acpArguments(toolCall),
});

export const cancelledOutcome = { outcome: { outcome: 'cancelled' } };

/** Null when the agent offers none. Never allows more than this one call. */
export const permissionOption = (
  { options }: PermissionRequest,
  allowed: boolean,
): PermissionRequest['options'][number] | null => {
  const kinds = allowed ? ['allow_once'] : ['reject_once', 'reject_always'];
  return (
    kinds
      .map((kind) => options.find((each) => each.kind === kind))
      .find((each) => each !== undefined) ?? null
  );
};
