import { z } from 'zod';
import type { Entry } from '../store/port.ts';

export const decisionKinds = [
  'answered',
  'allowed',
  'denied',
  'unanswered',
  'commented',
  'sent_back',
  'approved',
  'merged',
  'undone',
  'discarded',
  'retried',
  'reopened',
  'closed',
] as const;

const decisionSchema = z.looseObject({
  kind: z.enum(decisionKinds),
  about: z.string().optional(),
  said: z.string().optional(),
});
const decidedDataSchema = z.looseObject({ decision: decisionSchema });
type Decision = z.infer<typeof decisionSchema>;

/** The data of a log entry. The decision is first: by that the store finds it. */
export const decisionData = (decision: Decision, message: string) => ({
  decision,
  level: 'info',
  message,
});

const textAtMost = 300;
/** Cut after secrets were removed: a part of one would not be found. */
const short = (text: string): string =>
  text.length <= textAtMost ? text : `${text.slice(0, textAtMost - 1)}…`;

export const decidedSchema = z.strictObject({
  seq: z.int(),
  task_id: z.string(),
  attempt: z.int(),
  at: z.iso.datetime(),
  kind: z.enum(decisionKinds),
  about: z.string().optional().describe('the calls that were allowed or denied'),
  said: z
    .string()
    .optional()
    .describe('the answer, the reason, the branch of a merge, or the number of comments'),
});
export type Decided = z.infer<typeof decidedSchema>;

/** None for a decision that a later version wrote. */
export const decidedIn = ({ seq, taskId, attempt, at, data }: Entry): readonly Decided[] => {
  const found = decidedDataSchema.safeParse(JSON.parse(data));
  if (!found.success) return [];
  const { kind, about, said } = found.data.decision;
  return [
    {
      ...{ seq, task_id: taskId, attempt, at: new Date(at).toISOString(), kind },
      ...(about === undefined ? {} : { about: short(about) }),
      ...(said === undefined ? {} : { said: short(said) }),
    },
  ];
};
