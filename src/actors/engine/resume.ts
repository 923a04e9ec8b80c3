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

/** Where the chart's own table says that it goes on. @throws when the state is not of this server's chart */
const resumeState = (value: string, context: AgentContext, id: string): Resume['at'] => {
  const row = Object.entries(agentRestart).find(([state]) => state === value)?.[1];
  if (row === undefined || row === 'over') throw new Error(`the state ${value} of ${id} is not known to this server`);
  return typeof row === 'function' ? row(context) : row;
};

/** When its time is up, as if it had not waited for the model. */
const deadlineOf = (value: string, { deadlineAt, limitAt }: AgentContext): number | null =>
  value === 'pausing' ? (limitAt ?? deadlineAt) : deadlineAt;

/** An agent that had finished, and whose work is sent back to it. */
const resumeWithFeedback = (context: AgentContext, { round, text }: Feedback): Resume => ({
  at: null,
  context: { ...context, round, finish: null, repeats: 0, answer: { from: 'check', text, allowed: true } },
});

/**
 * What becomes of an agent that an earlier process began (DESIGN 3.5): it goes on where it was, or, when it had ended
 * already and only nobody was told, its outcome.
 */
export const resumeFrom = (
  saved: SavedActor,
  feedback: Feedback | null,
): { readonly resume: Resume } | { readonly outcome: AttemptOutcome } => {
  const { status, value, context, output } = savedSchema.parse(persistedSnapshot(saved));
  const known = context as unknown as AgentContext;
  if (status === 'done')
    return feedback !== null && known.round < feedback.round && known.failure === null
      ? { resume: resumeWithFeedback(known, feedback) }
      : { outcome: output as AttemptOutcome };
  const at = resumeState(value, known, saved.id);
  const deadlineAt = deadlineOf(value, known);
  return { resume: { at, context: { ...known, deadlineAt, limitAt: null } } };
};
