interface RestingTask {
  readonly status: string;
  readonly phase: string;
  readonly awaiting?: unknown;
}

const restingPhases: ReadonlySet<string> = new Set(['waiting_for_run', 'waiting_for_person']);

/** True when a task does nothing until somebody acts: it is over, was never run, or asks a person. */
export const isAtRest = ({ status, phase, awaiting }: RestingTask): boolean =>
  awaiting !== undefined || restingPhases.has(phase) || phase === status;

const askingTypes: ReadonlySet<string> = new Set(['input_required', 'approval_required']);

/** True when a frame of a task says that it asks a person. */
export const asksPerson = ({ type }: { readonly type: string }): boolean => askingTypes.has(type);
