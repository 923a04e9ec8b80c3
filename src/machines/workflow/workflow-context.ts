import type { TaskId } from '../task.ts';
import type { Thoroughness } from '../thoroughness.ts';
import type { WorkflowDefinition, WorkflowPhase, WorkflowStep } from './workflow-definition.ts';

/** Whether an optional step is done, and who said so. */
export interface StepChoice {
  readonly step: string;
  readonly selected: boolean;
  /** `start`, `project`, `person`, or the role that decided. */
  readonly by: string;
  readonly reason: string;
}

export interface WorkflowTask {
  readonly taskId: TaskId;
  readonly phase: number;
  readonly round: number;
  /** `?strategist` is the question whether the step is done; `?` asks a role about all of them. */
  readonly step: string;
  /** From 1, of a step with several investigators. */
  readonly copy: number;
}

export interface CheckFinding {
  /** `implementation`, or `steps` for what each step must leave. */
  readonly gate: string;
  readonly check: string;
  readonly passed: boolean;
  /** One sentence: the search, its place, its result. */
  readonly says: string;
  /** The task whose work was read. */
  readonly taskId?: string;
}

export interface CheckReport {
  readonly findings: readonly CheckFinding[];
  /** A recommendation that ends the workflow. */
  readonly stop: string | null;
}

export interface WorkflowSubject {
  /** The feature's name, or the question. */
  readonly name: string;
  /** The name for folders. */
  readonly slug: string;
  readonly product: string;
  readonly thoroughness: Thoroughness;
}

export interface WorkflowInput {
  readonly workflowId: string;
  readonly definition: WorkflowDefinition;
  readonly subject: WorkflowSubject;
  /** Commands that must pass in the steps with `verify`. */
  readonly verify: readonly string[];
  readonly model: string | null;
  /** Who decides about optional steps without a choice. */
  readonly decides: 'person' | 'role';
  readonly choices: readonly StepChoice[];
  /** The project's file that narrowed the definition, and what it changed. */
  readonly narrowedBy?: { readonly file: string; readonly changes: readonly string[] };
  /** Epoch ms. */
  readonly startedAt: number;
  /** Who asked for it, by the name of the token. */
  readonly by?: string | undefined;
  /** Of a workflow that goes on where another one failed or was cancelled. */
  readonly from?: {
    readonly workflowId: string;
  } & Pick<WorkflowContext, 'phase' | 'round' | 'tasks' | 'reports'>;
}

export interface WorkflowContext extends WorkflowInput {
  /** An index, not the number of the phase. */
  readonly phase: number;
  /** From 1. */
  readonly round: number;
  readonly tasks: readonly WorkflowTask[];
  /** The report of the latest check of each phase. */
  readonly reports: readonly { readonly phase: number; readonly report: CheckReport }[];
  /** Why it ended, or what went wrong. */
  readonly why: string | null;
}

export type WorkflowEvent = { readonly type: 'cancel'; readonly reason: string | null };

/**
 * The workflow that goes on where this one ended: with a further round of the phase that did not
 * pass, which gets its rounds once more; else with that phase from its beginning.
 */
export const inputAfter = (
  { definition, subject, verify, model, decides, choices, narrowedBy, ...ended }: WorkflowContext,
  workflowId: string,
  startedAt: number,
  by?: string,
): WorkflowInput => {
  const { phase } = ended;
  const isChecked = ended.reports.some((each) => each.phase === phase);
  const kept = <Each extends { readonly phase: number }>(all: readonly Each[]): readonly Each[] =>
    all.filter((each) => each.phase < phase || isChecked);
  const from = {
    workflowId: ended.workflowId,
    phase,
    round: isChecked ? ended.round + 1 : 1,
    tasks: kept(ended.tasks),
    reports: ended.reports,
  };
  const phases = definition.phases.map((each, at) =>
    at === phase && isChecked ? { ...each, rounds: ended.round + each.rounds } : each,
  );
  return {
    workflowId,
    startedAt,
    by: by ?? ended.by,
    from,
    definition: { ...definition, phases },
    subject,
    verify,
    model,
    decides,
    choices,
    narrowedBy,
  };
};

export const phaseOf = ({
  definition,
  phase,
}: Pick<WorkflowContext, 'definition' | 'phase'>): WorkflowPhase => {
  const found = definition.phases[phase];
  if (found === undefined) throw new Error(`the workflow has no phase at ${phase}`);
  return found;
};

export const isSelected = (
  { choices }: Pick<WorkflowContext, 'choices'>,
  step: WorkflowStep,
): boolean =>
  step.when === undefined || choices.some((choice) => choice.step === step.id && choice.selected);

/** The steps of a phase that are done: those without a criterion, and those that were chosen. */
export const stepsOf = (
  context: Pick<WorkflowContext, 'choices'>,
  { steps }: WorkflowPhase,
): readonly WorkflowStep[] => steps.filter((step) => isSelected(context, step));

/** Steps of the current phase about which nobody has decided. */
export const openChoices = (context: WorkflowContext): readonly WorkflowStep[] =>
  phaseOf(context).steps.filter(
    ({ id, when }) => when !== undefined && !context.choices.some(({ step }) => step === id),
  );

export const stepsOfRound = (context: WorkflowContext): readonly WorkflowStep[] => {
  const phase = phaseOf(context);
  const selected = stepsOf(context, phase);
  if (context.round === 1 || phase.repeat === undefined) return selected;
  const { repeat } = phase;
  return selected.filter(({ id }) => repeat.includes(id));
};

export const hasPassed = ({ findings, stop }: CheckReport): boolean =>
  stop === null && findings.every(({ passed }) => passed);
