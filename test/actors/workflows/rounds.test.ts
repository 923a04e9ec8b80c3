import { expect, test } from 'vitest';
import type { StepEvidence } from '../../../src/actors/gates/evidence.ts';
import { checkPhase } from '../../../src/actors/workflows/check-phase.ts';
import { plannedTasks } from '../../../src/actors/workflows/planned-tasks.ts';
import { workflowView } from '../../../src/actors/workflows/workflow-view.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import type { WorkflowContext } from '../../../src/machines/workflow/workflow-context.ts';
import { workflowDefinitionSchema } from '../../../src/machines/workflow/workflow-definition.ts';
import { workflowMachine } from '../../../src/machines/workflow/workflow-machine.ts';

const step = (id: string, more: object = {}) => ({
  ...{ id, by: 'architect', title: id, task: id },
  ...more,
});
const level = { investigators: 2, max_turns: 5 };
const definition = workflowDefinitionSchema.parse({
  ...{ name: 'own', version: '1.0.0', description: 'x' },
  thoroughness: { quick: level, medium: level, deep: level },
  phases: [
    {
      ...{ number: 1, name: 'one' },
      steps: [
        step('look', { investigators: true, leaves: ['docs/{{investigator}}.md'] }),
        step('join', { needs: ['look'], leaves: ['docs/all.md'] }),
        step('read', { by: 'person', needs: ['join'] }),
      ],
      gates: [{ name: 'no code', checks: [{ check: 'only_changes', allowed: ['docs/'] }] }],
    },
  ],
});
const task = (taskId: string, name: string, copy = 1) => ({
  ...{ taskId: taskId as TaskId, phase: 0, round: 1, step: name, copy },
});
const tasks = [task('bd-1', 'look'), task('bd-2', 'look', 2), task('bd-3', 'join')];
const context: WorkflowContext = {
  ...{ workflowId: 'wf-a1', definition, verify: [], model: null, decides: 'person' },
  subject: { name: 'It', slug: 'it', product: 'shop', thoroughness: 'medium' },
  ...{ choices: [], startedAt: 1, phase: 0, round: 1, tasks, reports: [], why: null },
};

const evidenceWith =
  (paths: Readonly<Record<string, readonly string[]>>) =>
  async (name: string): Promise<readonly StepEvidence[]> =>
    tasks
      .filter((each) => each.step === name)
      .map(({ taskId, copy }) => ({
        ...{ step: name, taskId, results: '', isVerified: false, report: async () => null },
        leaves: name === 'look' ? [`docs/${copy}.md`] : ['docs/all.md'],
        files: {
          changed: paths[taskId] ?? [],
          list: async (path: string) => (paths[taskId] ?? []).filter((each) => each === path),
          read: async () => 'text',
        },
      }));

test('in a further round an investigator is told what was found in its own work and that of later steps, and no more', async () => {
  const report = await checkPhase(
    context,
    evidenceWith({ 'bd-1': ['docs/1.md'], 'bd-2': ['docs/2.md', 'src/a.js'], 'bd-3': [] }),
  );

  const [first, second, join] = plannedTasks({
    ...context,
    ...{ round: 2, reports: [{ phase: 0, report }] },
  }).map(({ description }) => description);

  expect(first).not.toContain('src/a.js');
  expect(second).toContain('no code, only_changes: the diff of bd-2 changes src/a.js');
  for (const told of [first, second, join])
    expect(told).toContain('steps, artifacts: docs/all.md is missing');
  expect(join).toContain('the diff of bd-2 changes src/a.js');
});

test('an investigator whose part passed is told so', async () => {
  const report = await checkPhase(
    context,
    evidenceWith({ 'bd-1': ['docs/1.md'], 'bd-2': ['docs/2.md', 'a.js'], 'bd-3': ['docs/all.md'] }),
  );

  const [first] = plannedTasks({ ...context, round: 2, reports: [{ phase: 0, report }] });

  expect(first?.description).toContain('This is round 2. Your part passed before');
});

test('that only some paths change is asked of agents, not of the person among the steps', async () => {
  const { findings } = await checkPhase(
    context,
    evidenceWith({ 'bd-1': ['docs/1.md'], 'bd-2': ['docs/2.md'], 'bd-3': ['docs/all.md'] }),
  );

  expect(findings.filter(({ passed }) => !passed)).toEqual([]);
});

test('a workflow that is being cancelled waits for the tasks that have not ended', () => {
  const tracked = (id: string, status: string) => ({
    ...{ id: id as TaskId, title: 'look', description: '', status, labels: [], priority: 2 },
    ...{ assignee: null, dependencies: [], unmet: [], ready: false },
    ...{ createdAt: '', updatedAt: '', closedAt: null },
  });
  const snapshot = workflowMachine.resolveState({ value: 'cancelling', context });

  const view = workflowView(snapshot, [tracked('bd-1', 'in_progress'), tracked('bd-2', 'closed')]);

  expect(view.waits_for).toEqual(['the end of bd-1 (look), which is cancelled']);
});
