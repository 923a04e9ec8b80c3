interface Tagged {
  readonly tags: ReadonlySet<string>;
  readonly context: { readonly attempt: number };
}

/** Words of the command line and the page for phases that are not told by their names. */
const phaseWords: Readonly<Record<string, string>> = {
  waiting_for_run: 'ready',
  waiting_for_person: 'waits for you',
  waiting_for_dependencies: 'blocked',
  waiting_for_slot: 'needs a slot',
  waiting_for_tracker: 'tracker is away',
  acting: 'working',
  backing_off: 'pausing',
  awaiting_input: 'asks you',
  awaiting_approval: 'asks permission',
};

/** `needs a slot`, `thinking` */
export const phaseInWords = (phase: string): string =>
  phaseWords[phase] ?? phase.replaceAll('_', ' ');

const phaseIn = (tags: ReadonlySet<string>): string | undefined =>
  [...tags].find((tag) => tag.startsWith('phase:'))?.slice('phase:'.length);

/** The phase of a task that was asked to run: that of its agent while it works. */
export const pendingPhase = (task: Tagged, agent: Tagged | null): string => {
  const isAtWork =
    task.tags.has('started') &&
    task.tags.has('phase:preparing') &&
    agent?.context.attempt === task.context.attempt;
  return (isAtWork ? phaseIn(agent.tags) : undefined) ?? phaseIn(task.tags) ?? 'preparing';
};

const statusTags = ['complete', 'failed', 'cancelled', 'started', 'queued'] as const;

/** `started (working)` */
export const statusAndPhase = (status: string, phase: string): string =>
  `${status} (${phaseInWords(phase)})`;

/** `started (working)`, `queued (needs a slot)`, `complete` */
export const stateInWords = (task: Tagged, agent: Tagged | null): string => {
  const status = statusTags.find((tag) => task.tags.has(tag)) ?? 'queued';
  if (!task.tags.has('pending')) return status;
  return statusAndPhase(status, pendingPhase(task, agent));
};

/** The budget that a task is parked by, from its reason; null: another limit parks it, or none. */
export const budgetInReason = (reason: string | undefined): 'run' | 'day' | 'month' | null =>
  (['run', 'day', 'month'] as const).find(
    (name) => reason?.startsWith(`budget.${name}_usd: `) === true,
  ) ?? null;
