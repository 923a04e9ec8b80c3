import type { Role } from '../task.ts';
import { mayWait, roomFor, type SlotCaps, type SupervisorContext } from './supervisor-context.ts';
import type { SlotRequest } from './waiting-queue.ts';

type QueueLimit = Pick<SupervisorContext, 'waiting' | 'queueLimit'>;

/** The guards between a request and a slot. `explain` evaluates them for one request. */
export const slotGuards = {
  queueHasRoom: (
    { context }: { readonly context: QueueLimit },
    { request }: { readonly request: Pick<SlotRequest, 'taskId' | 'admitted'> },
  ): boolean => mayWait(context, request),
  /** For one of the waiting tasks: its role has room too. */
  slotIsFree: (
    { context }: { readonly context: SlotCaps },
    { roles }: { readonly roles: readonly Role[] },
  ): boolean => roles.some(roomFor(context)),
};
export type SlotGuard = keyof typeof slotGuards;
