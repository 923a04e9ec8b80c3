import { z } from 'zod';
import type { AgentContext, Resume } from '../../machines/agent-context.ts';
import { agentRestart } from '../../machines/restart.ts';
import type { AttemptOutcome } from '../../machines/task.ts';
import { persistedSnapshot } from '../journal/snapshots.ts';
import type { SavedActor } from '../store/port.ts';

const savedSchema = z.looseObject({
  status: z.enum(['active', 'done', 'error', 'stopped']),
  value: z.string(),
  context: z.record(z.string(), z.unknown()),
  output: z.unknown().optional(),
});

type Feedback = { readonly round: number; readonly text: string };

/** @throws for a state that the machine of this server lacks, or that no agent leaves */
const resumeState = (value: string, context: AgentContext, id: string): Resume['at'] => {
  const row = Object.entries(agentRestart).find(([state]) => state === value)?.[1];
  if (row === undefined) throw new Error(`this server does not know the state ${value} of ${id}`);
  if (row === 'over') throw new Error(`the agent ${id} had ended in the state ${value}`);
  return typeof row === 'function' ? row(context) : row;
};

/** While `pausing`, `deadlineAt` ends the pause; the attempt's own deadline is `limitAt`. */
const deadlineOf = (value: string, { deadlineAt, limitAt }: AgentContext): number | null =>
  value === 'pausing' ? (limitAt ?? deadlineAt) : deadlineAt;

/** A finished agent whose work failed a check continues. The task has what it left unread. */
const resumeWithFeedback = (context: AgentContext, { round, text }: Feedback): Resume => ({
  at: null,
  context: {
    ...context,
    round,
    finish: null,
    repeats: 0,
    answer: { from: 'check', text, allowed: true },
    ...{ unread: undefined, heard: undefined },
  },
});

/** The clock of a parked attempt goes on where it stopped. */
const resumeParked = (context: AgentContext, now: number): Resume => ({
  at: context.resumeAt,
  context: { ...context, deadlineAt: now + context.remainingMs, limitAt: null },
});

/**
 * Continues an agent of an earlier process (ADR 0010) or a parked one: from its saved state, or, when it
 * had ended, with its outcome.
 */
export const resumeFrom = (
  saved: SavedActor,
  feedback: Feedback | null,
  now: number,
): { readonly resume: Resume } | { readonly outcome: AttemptOutcome } => {
  const { status, value, context, output } = savedSchema.parse(persistedSnapshot(saved));
  const known = context as unknown as AgentContext;
  if (value === 'parked') return { resume: resumeParked(known, now) };
  if (status === 'done')
    return feedback !== null && known.round < feedback.round && known.failure === null
      ? { resume: resumeWithFeedback(known, feedback) }
      : { outcome: output as AttemptOutcome };
  const at = resumeState(value, known, saved.id);
  const deadlineAt = deadlineOf(value, known);
  return { resume: { at, context: { ...known, deadlineAt, limitAt: null } } };
};
