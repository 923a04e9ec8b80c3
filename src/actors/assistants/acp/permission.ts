import { z } from 'zod';
import type { ConversationPorts, PermissionCall } from '../port.ts';
import { acpArguments, acpCallSchema, toolOf } from './updates.ts';

const permissionRequestSchema = z.looseObject({
  sessionId: z.string(),
  toolCall: acpCallSchema,
  options: z.array(z.looseObject({ optionId: z.string(), kind: z.string() })).max(100),
});
type PermissionRequest = z.infer<typeof permissionRequestSchema>;

const permissionRequest = (params: unknown): PermissionRequest | null =>
  permissionRequestSchema.safeParse(params).data ?? null;

/** The call as a person sees it; `kind` is that of an earlier update, if the request has none. */
const permissionCall = ({ toolCall }: PermissionRequest, kind: string | null): PermissionCall => ({
  callId: toolCall.toolCallId,
  tool: toolOf(toolCall.kind ?? kind),
  arguments: acpArguments(toolCall),
});

const cancelledOutcome = { outcome: { outcome: 'cancelled' } };

/** Null when the agent offers none. Never allows more than this one call. */
const permissionOption = (
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

interface PermissionPorts {
  readonly askPermission: ConversationPorts['askPermission'];
  /** The kind of a call, from an earlier update; null when none had it. */
  readonly kindOf: (callId: string) => string | null;
  /** Whether the session goes on, and is the one that asks. */
  readonly isOpen: (sessionId: string) => boolean;
  readonly cancelled: AbortSignal;
}

/** Answers `session/request_permission`; remembers which calls were allowed. */
export const createPermissionAnswers = (ports: PermissionPorts) => {
  const { askPermission, kindOf, isOpen, cancelled } = ports;
  const allowedCalls = new Set<string>();
  const stopped = new Promise<false>((resolve) => {
    cancelled.addEventListener('abort', () => resolve(false), { once: true });
  });
  return {
    decide: async (params: unknown): Promise<object> => {
      const request = permissionRequest(params);
      if (request === null || cancelled.aborted || !isOpen(request.sessionId))
        return cancelledOutcome;
      const call = permissionCall(request, kindOf(request.toolCall.toolCallId));
      const allowed = await Promise.race([askPermission(call), stopped]);
      if (cancelled.aborted) return cancelledOutcome;
      const option = permissionOption(request, allowed);
      if (allowed && option !== null) allowedCalls.add(call.callId);
      return option === null
        ? cancelledOutcome
        : { outcome: { outcome: 'selected', optionId: option.optionId } };
    },
    /** @returns true once for a call that was allowed */
    takeAllowed: (callId: string): boolean => allowedCalls.delete(callId),
  };
};
