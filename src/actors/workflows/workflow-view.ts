import { z } from 'zod';
import { asksForStep, isForPerson } from '../../machines/for-person.ts';
import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';
import {
  hasPassed,
  isSelected,
  type WorkflowContext,
} from '../../machines/workflow/workflow-context.ts';
import type { WorkflowSnapshot } from '../../machines/workflow/workflow-machine.ts';
import type { Entry } from '../store/port.ts';
import { fillIn } from './planned-tasks.ts';

export const workflowStatuses = ['started', 'complete', 'stopped', 'failed', 'cancelled'] as const;

export const workflowLineSchema = z.strictObject({
  workflow_id: z.string().describe('its id; its tasks have the label workflow:<id>'),
  kind: z.string().describe('the name of its definition'),
  name: z.string().describe('the feature, or the question'),
  phase: z.int().describe('the number of its phase'),
  status: z.enum(workflowStatuses).describe('stopped: by a recommendation'),
  problem: z
    .string()
    .optional()
    .describe('why its saved state cannot be restored, and what to do; else absent'),
});
export type WorkflowLine = z.infer<typeof workflowLineSchema>;

const workflowTaskSchema = z.strictObject({
  task_id: z.string(),
  step: z.string().describe('the step; ? and a step for the question about it'),
  round: z.int().positive(),
  status: z.string(),
});
const findingSchema = z.strictObject({
  gate: z.string(),
  check: z.string(),
  passed: z.boolean(),
  says: z.string().describe('what was looked for, where, and what was found'),
});
const phaseViewSchema = z.strictObject({
  number: z.int(),
  name: z.string(),
  state: z.enum(['to_come', 'active', 'passed', 'not_passed', 'passed_over']),
  steps: z.array(
    z.strictObject({
      id: z.string(),
      by: z.string(),
      when: z.string().optional().describe('its selection criterion'),
      selected: z.boolean().optional().describe('absent: nobody has decided'),
      decided_by: z.string().optional(),
      reason: z.string().optional(),
    }),
  ),
  tasks: z.array(workflowTaskSchema),
  findings: z.array(findingSchema).describe('of its latest check'),
});

export const workflowViewSchema = workflowLineSchema.extend({
  version: z.string().describe('of its definition'),
  state: z.string().describe('of its chart'),
  round: z.int().positive().describe('of its phase'),
  why: z.string().optional().describe('why it ended'),
  continued_as: z.string().optional().describe('the workflow that goes on with it, after a retry'),
  narrowed_by: z
    .strictObject({ file: z.string(), changes: z.array(z.string()) })
    .optional()
    .describe("the project's file that narrowed it, and what it changed"),
  waits_for: z.array(z.string()).describe('what it waits for now, for people'),
  verify: z.array(z.string()).describe('commands that run in the steps with verify'),
  reports: z
    .array(
      z.strictObject({
        phase: z.int(),
        check: z.string(),
        paths: z.array(z.string()).describe('the first that is there is read'),
      }),
    )
    .describe('the reports that its gates look for'),
  started_at: z.iso.datetime(),
  phases: z.array(phaseViewSchema),
});
export type WorkflowView = z.infer<typeof workflowViewSchema>;

const statusOfWorkflow = ({ value }: WorkflowSnapshot): WorkflowLine['status'] =>
  workflowStatuses.find((status) => status === value) ?? 'started';

export const workflowLine = (snapshot: WorkflowSnapshot): WorkflowLine => {
  const { workflowId, definition, subject, phase } = snapshot.context;
  return {
    workflow_id: workflowId,
    kind: definition.name,
    name: subject.name,
    phase: definition.phases[phase]?.number ?? 0,
    status: statusOfWorkflow(snapshot),
  };
};

export const lineIn = (view: WorkflowLine): WorkflowLine => {
  const { workflow_id, kind, name, phase, status, problem } = view;
  return { workflow_id, kind, name, phase, status, problem };
};

type PhaseView = WorkflowView['phases'][number];

const phaseState = (snapshot: WorkflowSnapshot, at: number): PhaseView['state'] => {
  const { context } = snapshot;
  const report = context.reports.find(({ phase }) => phase === at)?.report;
  if (at > context.phase) return 'to_come';
  if (at === context.phase && statusOfWorkflow(snapshot) === 'started') return 'active';
  if (report !== undefined) return hasPassed(report) ? 'passed' : 'not_passed';
  if (at === context.phase) return 'not_passed';
  return context.tasks.some(({ phase, step }) => phase === at && !step.startsWith('?'))
    ? 'not_passed'
    : 'passed_over';
};

const stepView = (
  context: WorkflowContext,
  step: WorkflowContext['definition']['phases'][number]['steps'][number],
): PhaseView['steps'][number] => {
  const { id, by, when } = step;
  const choice = context.choices.find((each) => each.step === id);
  if (when === undefined) return { id, by };
  if (choice === undefined) return { id, by, when };
  return {
    id,
    by,
    when,
    selected: isSelected(context, step),
    decided_by: choice.by,
    reason: choice.reason,
  };
};

const waitOf = ({ id, title, labels }: TrackedTask, status: string): string => {
  const isPersons = isForPerson(labels);
  if (status === 'failed' || status === 'cancelled') {
    const ended = `${id} (${title}), which ${status === 'failed' ? 'failed' : 'was cancelled'}`;
    return isPersons
      ? `${ended}; put it back with: agent retry ${id}, or close it with: agent close ${id}`
      : `${ended}; run it again with: agent retry ${id}`;
  }
  if (asksForStep(labels))
    return `a person: ${id} (${title}); answer with: agent close ${id} --reason "yes, …" or "no, …"`;
  return isPersons
    ? `a person: ${id} (${title}); close it when it is done: agent close ${id}`
    : `${id} (${title}), which is ${status}`;
};

const waitsFor = (
  { context, value }: WorkflowSnapshot,
  tracked: readonly TrackedTask[],
): readonly string[] => {
  if (value === 'cancelling')
    return tracked
      .filter((task) => statusInTracker(task) === 'started')
      .map(({ id, title }) => `the end of ${id} (${title}), which is cancelled`);
  if (typeof value === 'string') return [];
  const own = context.tasks.filter(
    ({ phase, round }) => phase === context.phase && round === context.round,
  );
  const open = own.flatMap(({ taskId }) => {
    const task = tracked.find(({ id }) => id === taskId);
    if (task === undefined) return [];
    const status = statusInTracker(task);
    const isPersons = isForPerson(task.labels);
    const isOver =
      status === 'complete' || (isPersons && status === 'cancelled' && value.active === 'choosing');
    return isOver ? [] : [{ task, status }];
  });
  // Those that wait for others of them follow by themselves.
  const first = open.filter(({ task, status }) => status !== 'queued' || task.ready);
  return (first.length > 0 ? first : open).map(({ task, status }) => waitOf(task, status));
};

const reportsOf = (context: WorkflowContext): WorkflowView['reports'] =>
  context.definition.phases.flatMap(({ number, gates }) =>
    gates
      .flatMap(({ checks }) => checks)
      .flatMap((check) =>
        'reports' in check
          ? [
              {
                phase: number,
                check: check.check,
                paths: check.reports.map((path) => fillIn(context, path)),
              },
            ]
          : [],
      ),
  );

/** A workflow as people and programs see it, with its tasks as they are in the tracker. */
export const workflowView = (
  snapshot: WorkflowSnapshot,
  tracked: readonly TrackedTask[],
  continuedAs?: string,
): WorkflowView => {
  const { context, value } = snapshot;
  const statusOfTask = (taskId: string): string => {
    const task = tracked.find(({ id }) => id === taskId);
    return task === undefined ? 'deleted' : statusInTracker(task);
  };
  return {
    ...workflowLine(snapshot),
    version: context.definition.version,
    state: typeof value === 'string' ? value : `active.${String(value.active)}`,
    round: context.round,
    ...(context.why === null ? {} : { why: context.why }),
    continued_as: continuedAs,
    ...(context.narrowedBy === undefined
      ? {}
      : {
          narrowed_by: {
            file: context.narrowedBy.file,
            changes: [...context.narrowedBy.changes],
          },
        }),
    waits_for: [...waitsFor(snapshot, tracked)],
    verify: [...context.verify],
    reports: reportsOf(context),
    started_at: new Date(context.startedAt).toISOString(),
    phases: context.definition.phases.map(({ number, name, steps }, at) => ({
      number,
      name,
      state: phaseState(snapshot, at),
      steps: steps.map((step) => stepView(context, step)),
      tasks: context.tasks
        .filter(({ phase }) => phase === at)
        .map(({ taskId, step, round }) => ({
          task_id: taskId,
          step,
          round,
          status: statusOfTask(taskId),
        })),
      findings: (context.reports.find(({ phase }) => phase === at)?.report.findings ?? []).map(
        ({ gate, check, passed, says }) => ({ gate, check, passed, says }),
      ),
    })),
  };
};

const lastShownSchema = workflowLineSchema.extend({
  round: z.int(),
  value: z.unknown(),
  why: z.string().optional(),
});

const startSchema = z.object({
  input: z.object({ definition: z.object({ version: z.string() }) }),
});

/** As its first and its last entry show a workflow whose saved state cannot be restored. */
export const lostWorkflowView = (
  { cause, at }: Pick<Entry, 'cause' | 'at'>,
  data: string,
  problem: string,
): WorkflowView => {
  const start = startSchema.safeParse(JSON.parse(cause ?? 'null'));
  const { value, ...last } = lastShownSchema.strip().parse(JSON.parse(data));
  return {
    ...last,
    problem,
    version: start.data?.input.definition.version ?? '?',
    state: typeof value === 'string' ? value : JSON.stringify(value),
    waits_for: [],
    verify: [],
    reports: [],
    phases: [],
    started_at: new Date(at).toISOString(),
  };
};
