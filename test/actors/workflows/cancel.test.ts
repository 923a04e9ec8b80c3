import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { processesWith } from '../../support/processes.ts';
import { type Running, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import {
  featureParts,
  type Part,
  researchParts,
  runner,
  startWithParts,
  untilWorkflow,
  wholeWorkflowMs,
} from '../../support/workflows.ts';

/** A system whose child processes can be told from those of other tests. */
const startMarked = async (parts: readonly Part[], stateDir = temporaryFolder()) => {
  const mark = basename(stateDir);
  const running = await startWithParts(parts, {
    stateDir,
    environment: { TEST_MARK: mark },
    role: { tools: ['write', 'bash', 'finish'] },
  });
  return { running, processes: () => processesWith(new RegExp(`\0TEST_MARK=${mark}\0`)) };
};

const tasksOf = async ({ service }: Running, workflowId: string) =>
  (await service.list({ label: `workflow:${workflowId}`, limit: 1_000 })).tasks.map(
    ({ task_id, status }) => `${task_id} ${status}`,
  );

/** Time for what was begun before to show itself: another task goes from its creation to its end. */
const runAnotherTask = async (running: Running): Promise<void> => {
  const { service } = running;
  const { task_id } = await service.create({ title: 'Another', description: 'x' });
  await service.run({ taskIds: [task_id], role: 'engineer', options: {} });
  await untilStatus(running, task_id, 'complete');
};

const feature = { kind: 'feature', name: 'Export', product: 'shop', verify: [runner()] };
const research = { kind: 'research', name: 'Why is it slow?' };
const hang = 'exec sleep 600';

test.each([
  { start: feature, phase: 0, hangs: null, step: '?strategist' },
  {
    start: { ...feature, steps: ['strategist'] },
    phase: 0,
    hangs: 'Strategy of',
    step: 'strategist',
  },
  { start: { ...feature, steps: [] }, phase: 1, hangs: 'Scope of', step: 'scope' },
  { start: { ...feature, steps: [] }, phase: 2, hangs: 'Plan of', step: 'plan' },
  { start: { ...feature, steps: [] }, phase: 3, hangs: 'Review', step: 'review' },
  { start: { ...feature, steps: [] }, phase: 4, hangs: 'Acceptance', step: 'acceptance' },
  { start: { ...feature, steps: [] }, phase: 5, hangs: null, step: 'internal-testing' },
  { start: research, phase: 1, hangs: 'Objectives', step: 'objectives' },
  { start: research, phase: 2, hangs: 'Exploration strategy', step: 'strategy' },
  { start: research, phase: 3, hangs: 'Investigation 2', step: 'investigate' },
  { start: research, phase: 4, hangs: 'Synthesis', step: 'synthesis' },
  { start: research, phase: 5, hangs: 'Report', step: 'report' },
])(
  'a $start.kind that is cancelled in phase $phase ends with the tasks that it started: $step',
  { tags: ['slow'], timeout: wholeWorkflowMs },
  async ({ start, phase, hangs, step }) => {
    const well = start.kind === 'feature' ? featureParts : researchParts;
    const hanging = hangs === null ? [] : [{ title: hangs, bash: hang }];
    const { running, processes } = await startMarked([
      ...well.filter(({ title }) => title === 'Review of the plan'),
      ...hanging,
      ...well,
    ]);
    const { system, service } = running;

    const { workflow_id } = await system.workflows.start(start);
    await untilWorkflow(running, workflow_id, (view) =>
      view.phases.some(
        ({ number, tasks }) =>
          number === phase &&
          tasks.some((task) => task.step === step) &&
          (hangs === null || processes().some((line) => line.includes('sleep 600'))),
      ),
    );
    const view = await system.workflows.cancel(workflow_id, 'no money');
    const tasks = await tasksOf(running, workflow_id);
    await runAnotherTask(running);

    expect(view).toMatchObject({ status: 'cancelled', why: 'no money', waits_for: [], phase });
    expect(tasks.filter((task) => !/ (complete|cancelled)$/.test(task))).toEqual([]);
    expect(tasks.some((task) => task.endsWith(' cancelled'))).toBe(true);
    expect(await tasksOf(running, workflow_id)).toEqual(tasks);
    await vi.waitFor(() => expect(processes()).toEqual([]));
    const shown = await system.workflows.show(workflow_id);
    expect(shown).toEqual(view);
    expect(
      shown.phases.find(({ tasks }) => tasks.some((each) => each.step === step)),
    ).toMatchObject({ number: phase, state: 'not_passed' });
    expect((await service.replay({ taskId: workflow_id, at: null })).difference).toBeNull();
  },
);

test('a workflow that is cancelled while it makes its tasks leaves none that runs', async () => {
  const stateDir = temporaryFolder();
  const level = '{ investigators: 16, max_turns: 9 }';
  mkdirSync(join(stateDir, 'workflows'));
  writeFileSync(
    join(stateDir, 'workflows', 'wide.yml'),
    `name: wide
version: 0.1.0
description: Many at once.
thoroughness: { quick: ${level}, medium: ${level}, deep: ${level} }
phases:
  - number: 1
    name: one
    steps: [{ id: look, by: engineer, title: "Look {{investigator}}", task: Look., investigators: true }]
`,
  );
  const { running, processes } = await startMarked([{ title: 'Look', bash: hang }], stateDir);
  const { system } = running;

  const starting = system.workflows.start({ kind: 'wide', name: 'It' });
  const first = await vi.waitFor(async () => {
    const [workflow] = (await system.workflows.list()).workflows;
    const id = workflow?.workflow_id ?? '';
    expect(await tasksOf(running, id)).not.toEqual([]);
    return id;
  });
  const { state } = await system.workflows.show(first);
  const view = await system.workflows.cancel(first, null);
  const tasks = await tasksOf(running, first);
  await starting;
  await runAnotherTask(running);

  expect(state).toBe('active.creating');
  expect(view.status).toBe('cancelled');
  expect(tasks.length).toBeLessThan(16);
  expect(tasks.filter((task) => !task.endsWith(' cancelled'))).toEqual([]);
  expect(await tasksOf(running, first)).toEqual(tasks);
  await vi.waitFor(() => expect(processes()).toEqual([]));
});
