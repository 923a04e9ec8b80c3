import {
  chooseNext,
  mayWait,
  type SlotCaps,
  type SlotRequest,
  type SupervisorContext,
} from './supervisor-context.ts';

type QueueLimit = Pick<SupervisorContext, 'waiting' | 'queueLimit'>;
type Waiting = SlotCaps & { readonly waiting: readonly Pick<SlotRequest, 'role'>[] };

/** The guards between a request and a slot. `explain` evaluates them for one request. */
export const slotGuards = {
  queueHasRoom: (
    { context }: { readonly context: QueueLimit },
    { request }: { readonly request: Pick<SlotRequest, 'taskId' | 'admitted'> },
  ): boolean => mayWait(context, request),
  /** For one of the waiting tasks: its role has room too. */
  slotIsFree: ({ context }: { readonly context: Waiting }): boolean =>
    chooseNext(context.waiting, context) !== undefined,
};
export type SlotGuard = keyof typeof slotGuards;
