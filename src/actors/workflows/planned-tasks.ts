import { roleLabel } from '../../machines/role-label.ts';
import type { Role, TaskId } from '../../machines/task.ts';
import {
  openChoices,
  phaseOf,
  stepsOfRound,
  type WorkflowContext,
  type WorkflowTask,
} from '../../machines/workflow/workflow-context.ts';
import type { WorkflowStep } from '../../machines/workflow/workflow-definition.ts';
import { workflowKey } from '../journal/replay/replay.ts';

/** A task that a workflow needs; it may exist. */
export interface PlannedTask {
  readonly step: string;
  readonly copy: number;
  readonly role: Role | null;
  readonly title: string;
  readonly description: string;
  /** An existing task is found by them. */
  readonly labels: readonly string[];
  /** Steps of this round that come before. */
  readonly needs: readonly string[];
  /** Earlier tasks that must be over. */
  readonly after: readonly TaskId[];
  readonly verifies: boolean;
}

/** The source of the words in double braces. */
export type WorkflowWords = Pick<WorkflowContext, 'definition' | 'subject'>;

const levelOf = ({ definition, subject }: WorkflowWords) =>
  definition.thoroughness?.[subject.thoroughness];

/** A step has several tasks when investigators share it. */
export const copiesOf = (context: WorkflowContext, step: WorkflowStep): number =>
  step.investigators ? (levelOf(context)?.investigators ?? 1) : 1;

export const maxTurnsOf = (context: WorkflowContext): number | undefined =>
  levelOf(context)?.max_turns;

/** Fills in the words in double braces; an unknown one stays. */
export const fillIn = (context: WorkflowWords, text: string, investigator = 1): string => {
  const { name, slug, product, thoroughness } = context.subject;
  const words: Readonly<Record<string, string>> = {
    name,
    slug,
    product,
    thoroughness,
    investigator: String(investigator),
    investigators: String(levelOf(context)?.investigators ?? 1),
  };
  return text.replace(/\{\{(\w+)\}\}/g, (whole, word: string) => words[word] ?? whole);
};

export const latestTasks = (
  { tasks }: Pick<WorkflowContext, 'tasks'>,
  step: string,
): readonly WorkflowTask[] => {
  const own = tasks.filter((task) => task.step === step);
  const last = Math.max(...own.map(({ round }) => round));
  return own.filter(({ round }) => round === last);
};

const isPersons = ({ definition }: WorkflowContext, step: string): boolean =>
  definition.phases.some(({ steps }) => steps.some(({ id, by }) => id === step && by === 'person'));

/** The latest tasks of the phases before, back to one in which agents worked. */
const tasksBefore = (context: WorkflowContext): readonly TaskId[] => {
  const found: WorkflowTask[] = [];
  for (let at = context.phase - 1; at >= 0; at -= 1) {
    const steps = context.definition.phases[at]?.steps ?? [];
    const own = steps
      .filter(({ id }) => context.tasks.some(({ step }) => step === id))
      .flatMap(({ id }) => latestTasks(context, id));
    found.push(...own);
    if (own.some(({ step }) => !isPersons(context, step))) break;
  }
  return found.map(({ taskId }) => taskId);
};

/** The latest tasks of this phase, for a further round. */
const tasksOfRoundBefore = (context: WorkflowContext): readonly TaskId[] =>
  context.round === 1
    ? []
    : phaseOf(context)
        .steps.filter(({ id }) =>
          context.tasks.some(({ step, round }) => step === id && round < context.round),
        )
        .flatMap(({ id }) =>
          latestTasks(
            { tasks: context.tasks.filter(({ round }) => round < context.round) },
            id,
          ).map(({ taskId }) => taskId),
        );

const lastLineRules: Readonly<Record<NonNullable<WorkflowStep['ends_with']>, string>> = {
  verdict:
    'End your summary with a line that is APPROVED, or CHANGES REQUIRED after the list of what must change. That line decides.',
  recommendation:
    'End your summary with a line that is PURSUE, DEFER or DO NOT PURSUE, after the reasons. That line decides.',
};

/** Problems for one task, without those in the work of other investigators. */
const problemsOfRound = (
  context: WorkflowContext,
  step: WorkflowStep,
  copy: number,
): readonly string[] => {
  const report = context.reports.find(({ phase }) => phase === context.phase)?.report;
  if (context.round === 1 || report === undefined) return [];
  const others = context.tasks.filter((task) => task.step === step.id && task.copy !== copy);
  return report.findings
    .filter(({ passed, taskId }) => !passed && !others.some((task) => task.taskId === taskId))
    .map(({ gate, check, says }) => `- ${gate}, ${check}: ${says}`);
};

const roundText = ({ round }: WorkflowContext, problems: readonly string[]): readonly string[] => {
  if (round === 1) return [];
  return problems.length === 0
    ? [`This is round ${round}. Your part passed before: change it only where it must fit others.`]
    : [`This is round ${round}. What did not pass before:\n${problems.join('\n')}`];
};

const descriptionOf = (context: WorkflowContext, step: WorkflowStep, copy: number): string => {
  const leaves = step.leaves.map((path) => fillIn(context, path, copy));
  const parts = [
    fillIn(context, step.task, copy).trim(),
    ...(leaves.length === 0
      ? []
      : [`It must leave: ${leaves.join(', ')}. That is checked in your changes.`]),
    ...(step.ends_with === undefined ? [] : [lastLineRules[step.ends_with]]),
    ...(step.by === 'person' ? ['This step is for a person: close the task when it is done.'] : []),
    ...roundText(context, problemsOfRound(context, step, copy)),
  ];
  return parts.join('\n\n').slice(0, 60_000);
};

const labelsOf = (
  context: WorkflowContext,
  role: Role | null,
  more: readonly string[],
): readonly string[] => [
  workflowKey(context.workflowId),
  `phase:${phaseOf(context).number}`,
  ...more,
  ...(role === null ? [] : [roleLabel(role)]),
];

const titleOf = (text: string): string => [...text.replace(/\s+/g, ' ')].slice(0, 200).join('');

const stepTasks = (
  context: WorkflowContext,
  step: WorkflowStep,
  ofRound: readonly WorkflowStep[],
): readonly PlannedTask[] => {
  const role = step.by === 'person' ? null : step.by;
  const needs = step.needs.filter((need) => ofRound.some(({ id }) => id === need));
  const before = needs.length > 0 ? [] : tasksOfRoundBefore(context);
  const after = [...(before.length > 0 ? before : tasksBefore(context))];
  const { round } = context;
  const copies = copiesOf(context, step);
  return Array.from({ length: copies }, (_, at) => ({
    step: step.id,
    copy: at + 1,
    role,
    needs,
    after,
    title: `${titleOf(fillIn(context, step.title, at + 1))}${round === 1 ? '' : ` (round ${round})`}`,
    description: descriptionOf(context, step, at + 1),
    labels: labelsOf(context, role, [
      `step:${step.id}`,
      ...(round === 1 ? [] : [`round:${round}`]),
      ...(copies === 1 ? [] : [`investigator:${at + 1}`]),
    ]),
    verifies: step.verify,
  }));
};

const byNeeds = (steps: readonly WorkflowStep[]): readonly WorkflowStep[] => {
  const sorted: WorkflowStep[] = [];
  for (let left = steps; left.length > 0; ) {
    const free = left.filter(({ needs }) => !left.some(({ id }) => needs.includes(id)));
    if (free.length === 0) return [...sorted, ...left];
    sorted.push(...free);
    left = left.filter((step) => !free.includes(step));
  }
  return sorted;
};

/** The tasks of a round, each after those that it needs. */
export const plannedTasks = (context: WorkflowContext): readonly PlannedTask[] => {
  const steps = stepsOfRound(context);
  return byNeeds(steps).flatMap((step) => stepTasks(context, step, steps));
};

const questionTask = (context: WorkflowContext, step: WorkflowStep): PlannedTask => ({
  step: `?${step.id}`,
  copy: 1,
  role: null,
  needs: [],
  after: [],
  verifies: false,
  title: titleOf(`Is the step ${step.id} needed for ${context.subject.name}?`),
  description: `Do the step ${step.id} (${step.by}) only if ${fillIn(context, step.when ?? '')}.

Yes: agent close <this task> --reason "yes, because …"
No: agent close <this task> --reason "no, because …", or agent cancel <this task>`,
  labels: labelsOf(context, null, [`question:${step.id}`]),
});

const questionForRole = (context: WorkflowContext, open: readonly WorkflowStep[]): PlannedTask => {
  const list = open
    .map(({ id, when }) => `- ${id}: only if ${fillIn(context, when ?? '')}`)
    .join('\n');
  const answers = open.map(({ id }) => `${id}: YES or NO, because …`).join('\n');
  return {
    step: '?',
    copy: 1,
    role: 'product-manager',
    needs: [],
    verifies: false,
    after: tasksBefore(context),
    title: titleOf(`Which steps are needed for ${context.subject.name}?`),
    description: `Decide which steps of phase ${phaseOf(context).number} are done:\n\n${list}\n\nYour summary has one line for each:\n\n${answers}`,
    labels: labelsOf(context, 'product-manager', [`question:all-from-${open[0]?.id ?? ''}`]),
  };
};

/**
 * A person is asked about each optional step, or a role about all of them, and then a person about
 * those of which the role said nothing.
 */
export const plannedQuestions = (context: WorkflowContext): readonly PlannedTask[] => {
  const open = openChoices(context);
  const hasAsked = context.tasks.some(({ phase, step }) => phase === context.phase && step === '?');
  return context.decides === 'role' && !hasAsked
    ? [questionForRole(context, open)]
    : open.map((step) => questionTask(context, step));
};
