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

/** In which state of the chart an earlier process left an agent, and where the next one goes on. */
const restart: Readonly<Record<string, (context: AgentContext) => Resume['at']>> = {
  preparing: ({ resumeAt }) => resumeAt,
  considering: () => null,
  thinking: () => 'thinking',
  acting: () => 'acting',
  awaitingInput: () => 'awaitingInput',
  awaitingApproval: () => 'awaitingApproval',
  awaitingDecision: () => 'acting',
};

/**
 * What becomes of an agent that an earlier process began (DESIGN 3.5): it goes on where it was, or, when it had ended
 * already and only nobody was told, its outcome. The clock of an attempt that waited for a decision stood still.
 */
export const resumeFrom = (
  saved: SavedActor,
  now: number,
): { readonly resume: Resume } | { readonly outcome: AttemptOutcome } => {
  const { status, value, context, output } = savedSchema.parse(persistedSnapshot(saved));
  if (status === 'done') return { outcome: output as AttemptOutcome };
  const known = context as unknown as AgentContext;
  const at = restart[value];
  if (at === undefined) throw new Error(`the state ${value} of ${saved.id} is not known to this server`);
  const deadlineAt = value === 'awaitingDecision' ? now + known.remainingMs : known.deadlineAt;
  return { resume: { at: at(known), context: { ...known, deadlineAt } } };
};
