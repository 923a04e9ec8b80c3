import { z } from 'zod';
import type { AgentContext, Resume } from '../machines/agent-context.ts';
import type { AttemptOutcome } from '../machines/task.ts';
import { persistedSnapshot } from './saved-state.ts';
import type { SavedActor } from './store/port.ts';

const savedSchema = z.looseObject({
  status: z.enum(['active', 'done', 'error', 'stopped']),
  value: z.string(),
  context: z.record(z.string(), z.unknown()),
  output: z.unknown().optional(),
});

type Feedback = { readonly round: number; readonly text: string };

/** In which state of the chart an earlier process left an agent, and where the next one goes on. */
const restart: Readonly<Record<string, (context: AgentContext) => Resume['at']>> = {
  preparing: ({ resumeAt }) => resumeAt,
  considering: () => null,
  thinking: () => 'thinking',
  acting: () => 'acting',
  delegating: () => 'delegating',
  awaitingInput: () => 'awaitingInput',
  awaitingApproval: () => 'awaitingApproval',
  awaitingDecision: ({ resumeAt }) => resumeAt ?? 'acting',
  pausing: () => 'thinking',
};

/** When its time is up, as if it had not waited: for a person, or for the model. */
const deadlineOf = (value: string, { deadlineAt, remainingMs, limitAt }: AgentContext, now: number): number => {
  if (value === 'awaitingDecision') return now + remainingMs;
  return value === 'pausing' ? (limitAt ?? deadlineAt) : deadlineAt;
};

/** An agent that had finished, and whose work is sent back to it. */
const sentBack = (context: AgentContext, { round, text }: Feedback): Resume => ({
  at: null,
  context: { ...context, round, finish: null, repeats: 0, answer: { from: 'check', text, allowed: true } },
});

/**
 * What becomes of an agent that an earlier process began (DESIGN 3.5): it goes on where it was, or, when it had ended
 * already and only nobody was told, its outcome. The clock of an attempt that waited for a decision stood still.
 */
export const resumeFrom = (
  saved: SavedActor,
  feedback: Feedback | null,
  now: number,
): { readonly resume: Resume } | { readonly outcome: AttemptOutcome } => {
  const { status, value, context, output } = savedSchema.parse(persistedSnapshot(saved));
  const known = context as unknown as AgentContext;
  if (status === 'done')
    return feedback !== null && known.round < feedback.round && known.failure === null
      ? { resume: sentBack(known, feedback) }
      : { outcome: output as AttemptOutcome };
  const at = restart[value];
  if (at === undefined) throw new Error(`the state ${value} of ${saved.id} is not known to this server`);
  const deadlineAt = deadlineOf(value, known, now);
  return { resume: { at: at(known), context: { ...known, deadlineAt, limitAt: null } } };
};
