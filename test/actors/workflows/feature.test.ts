import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { WorkflowView } from '../../../src/actors/workflows/workflow-view.ts';
import { untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import {
  featureParts,
  isOver,
  runner,
  startWithParts,
  untilWorkflow,
  wholeWorkflowMs,
} from '../../support/workflows.ts';

const start = { kind: 'feature', name: 'Export', product: 'shop', verify: [runner()] } as const;
const all = ['strategist', 'archaeologist', 'product-manager', 'designer', 'architect'];

test('a feature goes through its phases and gates, and through the stages of its rollout by a person', {
  tags: ['slow'],
  timeout: wholeWorkflowMs,
}, async () => {
  const stateDir = temporaryFolder();
  const running = await startWithParts(featureParts, { stateDir });
  const { system, service } = running;
  const keptReports = () => readdirSync(join(stateDir, 'reports'));

  const line = await system.workflows.start({ ...start, steps: all });
  const atRollout = await untilWorkflow(
    running,
    line.workflow_id,
    ({ phase, status, state }) =>
      status !== 'started' || (phase === 5 && state === 'active.working'),
  );
  expect(atRollout.why).toBeUndefined();
  const kept = keptReports();
  const rollout = atRollout.phases.at(-1)?.tasks ?? [];
  const closed: string[] = [];
  for (const { task_id } of rollout) {
    const { waits_for } = await system.workflows.show(line.workflow_id);
    closed.push(waits_for.join().replace(/.*\((.*)\).*/, '$1'));
    await service.close(task_id, 'done');
  }
  const end = await untilWorkflow(running, line.workflow_id, isOver);

  expect(line).toEqual({
    ...{ workflow_id: line.workflow_id, kind: 'feature', name: 'Export' },
    ...{ phase: 0, status: 'started' },
  });
  const replayed = await service.replay({ taskId: line.workflow_id, at: null });

  expect(replayed).toMatchObject({ state: { task: 'complete' }, difference: null });
  expect(replayed.steps.map(({ same }) => same)).not.toContain(false);
  expect(replayed.steps.at(-1)).toMatchObject({
    ...{ machine: 'workflow', event: 'xstate.done.actor.checkPhase', state: 'complete' },
  });
  expect(kept).toHaveLength(3);
  await vi.waitFor(() => expect(keptReports()).toEqual([]));
  expect(end.status).toBe('complete');
  expect(end.phases.map(({ number, state }) => `${number} ${state}`)).toEqual([
    ...['0 passed', '0 passed', '1 passed', '2 passed', '3 passed', '4 passed', '5 passed'],
  ]);
  expect(closed).toEqual(
    [
      'internal testing',
      'beta subset',
      '10 %',
      '50 %',
      '100 %',
      'full deployment',
      'flag removal',
    ].map((stage) => `Rollout of Export: ${stage}`),
  );
  const gates = end.phases.flatMap(({ findings }) =>
    findings.flatMap(({ gate, check, passed, says }) =>
      gate === 'steps' ? [] : [`${gate}, ${check}: ${passed} ${says.replace(/bd-\w+/g, 'bd-1')}`],
    ),
  );
  expect(gates).toEqual([
    'design, artifacts: true docs/architecture/export/plan.md, docs/adr/ in the diff of bd-1',
    'design, verdict: true bd-1 ends with APPROVED',
    'implementation, coverage: true 95 % of lines (95 of 100, istanbul); at least 90 % is asked for (coverage/coverage-summary.json of bd-1)',
    'implementation, tests: true 1 passed, 0 failed, 0 skipped (junit) (junit.xml of bd-1)',
    'implementation, verdict: true bd-1 ends with APPROVED',
    'documentation, artifacts: true docs/product/export/guide.md in the diff of bd-1',
    'documentation, verdict: true bd-1 ends with APPROVED',
    'deployment readiness, tests: true 1 passed, 0 failed, 0 skipped (junit) (junit.xml of bd-1)',
    'deployment readiness, verdict: true bd-1 ends with APPROVED',
  ]);
});

const none = { ...start, steps: [] };
const phaseAt = (view: WorkflowView, number: number) =>
  view.phases.find((phase) => phase.number === number && phase.tasks.length > 0);

test('a recommendation to defer stops it before other steps are paid for', async () => {
  const running = await startWithParts([
    { title: 'Strategy of', writes: { 'docs/market/shop/m.md': 'x' }, says: 'Nobody asks.\nDEFER' },
  ]);

  const { workflow_id } = await running.system.workflows.start({ ...start, steps: all });
  const end = await untilWorkflow(running, workflow_id, isOver);

  expect(end).toMatchObject({
    status: 'stopped',
    why: expect.stringMatching(/^strategist \(bd-\w+\) recommends: DEFER$/),
    waits_for: [],
  });
  expect(end.phases.flatMap(({ tasks }) => tasks.map(({ step }) => step))).toEqual(['strategist']);
});

test('a gate that fails sends its list back, and the next round passes', {
  tags: ['slow'],
  timeout: wholeWorkflowMs,
}, async () => {
  const parts = featureParts.map((part) =>
    part.title === 'Review'
      ? { ...part, says: '- No test of the empty case.\nCHANGES REQUIRED' }
      : part,
  );
  const running = await startWithParts([
    { title: '(round 2)', writes: { 'src/second.js': 'x' }, says: 'APPROVED' },
    ...parts,
  ]);

  const { workflow_id } = await running.system.workflows.start(none);
  const view = await untilWorkflow(
    running,
    workflow_id,
    ({ phase, status }) => phase > 3 || status !== 'started',
  );

  expect(view.status).toBe('started');
  const tasks = phaseAt(view, 3)?.tasks ?? [];
  expect(tasks.map(({ step, round }) => `${step} ${round}`)).toEqual([
    ...['build 1', 'test 1', 'review 1', 'build 2', 'test 2', 'review 2'],
  ]);
  const [first, second] = tasks.filter(({ step }) => step === 'build');
  const review = tasks.find(({ step }) => step === 'review')?.task_id;
  const again = await running.service.status(second?.task_id ?? '');
  expect(again.description).toContain('What did not pass before:\n- implementation, verdict:');
  expect(again.description).toContain('No test of the empty case.');
  expect(again.dependencies).toEqual(expect.arrayContaining([first?.task_id, review]));
  expect(again.labels).toEqual(
    expect.arrayContaining([
      `workflow:${workflow_id}`,
      'phase:3',
      'step:build',
      'round:2',
      'role:engineer',
    ]),
  );
});

test.each([
  [
    'too little is covered',
    runner(89),
    'implementation, coverage: 89 % of lines (89 of 100, istanbul); at least 90 % is asked for',
  ],
  [
    'a test fails',
    runner(95, '<testcase name="b"><failure/></testcase>'),
    'implementation, tests: 1 passed, 1 failed, 0 skipped (junit)',
  ],
  ['there is no report', 'true', 'implementation, coverage: found no report of bd-'],
])(
  'a gate that never passes ends it after three rounds: %s',
  { tags: ['slow'], timeout: wholeWorkflowMs },
  async (_, verify, why) => {
    const running = await startWithParts(featureParts);

    const { workflow_id } = await running.system.workflows.start({ ...none, verify: [verify] });
    const end = await untilWorkflow(running, workflow_id, isOver);

    expect(end.status).toBe('failed');
    expect(end.why).toContain('phase 3 did not pass in 3 of 3 rounds: ');
    expect(end.why).toContain(why);
    expect(phaseAt(end, 3)?.tasks).toHaveLength(9);
  },
);

test('a report that the verify command did not write now does not count', {
  tags: ['slow'],
  timeout: wholeWorkflowMs,
}, async () => {
  const stale = {
    title: 'Test',
    bash: `${runner()} && touch -d '+2 days' coverage/*.json junit.xml`,
  };
  const running = await startWithParts([stale, ...featureParts]);

  const { workflow_id } = await running.system.workflows.start({ ...none, verify: ['true'] });
  const view = await untilWorkflow(
    running,
    workflow_id,
    ({ phases }) => (phases[4]?.findings.length ?? 0) > 0,
  );

  expect(view.phases[4]?.findings.map(({ check, passed }) => `${check} ${passed}`)).toContain(
    'coverage false',
  );
});

describe('optional steps', () => {
  const asked = async (decides: 'person' | 'role', says = '') => {
    const running = await startWithParts([{ title: 'Which steps', says }, ...featureParts]);
    const { workflow_id } = await running.system.workflows.start({ ...start, decides });
    return { running, workflow_id };
  };

  test('a person answers a task about each: no by a reason or by cancel, else yes', {
    tags: ['slow'],
    timeout: wholeWorkflowMs,
  }, async () => {
    const { running, workflow_id } = await asked('person');
    const { service, system } = running;
    const questionOf = async (step: string): Promise<string> => {
      const view = await untilWorkflow(running, workflow_id, ({ phases }) =>
        phases.some(({ tasks }) => tasks.some((task) => task.step === `?${step}`)),
      );
      const tasks = view.phases.flatMap((phase) => phase.tasks);
      return tasks.find((task) => task.step === `?${step}`)?.task_id ?? '';
    };
    const [question] = (await system.workflows.show(workflow_id)).phases[0]?.tasks ?? [];

    await service.close(question?.task_id ?? '', 'no, everybody asks for it');
    await service.close(await questionOf('archaeologist'), 'No.');
    await service.close(await questionOf('product-manager'), 'yes, nothing is written');
    await service.cancel(await questionOf('designer'), 'nobody sees it');
    await service.close(await questionOf('architect'), 'Yes');
    const view = await untilWorkflow(running, workflow_id, ({ phase }) => phase > 0);

    expect(question?.step).toBe('?strategist');
    const steps = view.phases.slice(0, 2).flatMap((phase) => phase.steps);
    expect(
      steps.map(({ id, selected, decided_by, reason }) => [id, selected, decided_by, reason]),
    ).toEqual([
      ['strategist', false, 'person', 'no, everybody asks for it'],
      ['archaeologist', false, 'person', 'No.'],
      ['product-manager', true, 'person', 'yes, nothing is written'],
      ['designer', false, 'person', 'nobody sees it'],
      ['architect', true, 'person', 'Yes'],
    ]);
    const done = view.phases.flatMap((phase) => phase.tasks.map(({ step }) => step));
    expect(done.filter((step) => !step.startsWith('?')).slice(0, 2)).toEqual([
      'product-manager',
      'architect',
    ]);
  });

  test('a role decides with its reasons, and a person about what it does not mention', {
    tags: ['slow'],
    timeout: wholeWorkflowMs,
  }, async () => {
    const says =
      'strategist: NO, because all want it\n- **archaeologist**: no, we wrote it\nproduct-manager: YES - nothing is written';
    const { running, workflow_id } = await asked('role', says);

    const open = await untilWorkflow(running, workflow_id, ({ phases }) =>
      phases.some(({ tasks }) => tasks.some(({ step }) => step === '?architect')),
    );
    for (const { task_id, step } of open.phases[1]?.tasks ?? [])
      if (step !== '?') await running.service.close(task_id, 'no, it is small');
    const view = await untilWorkflow(running, workflow_id, ({ phase }) => phase > 1);

    const steps = view.phases.slice(0, 2).flatMap((phase) => phase.steps);
    expect(
      steps.map(({ id, selected, decided_by, reason }) => [id, selected, decided_by, reason]),
    ).toEqual([
      ['strategist', false, 'product-manager', 'because all want it'],
      ['archaeologist', false, 'product-manager', 'we wrote it'],
      ['product-manager', true, 'product-manager', 'nothing is written'],
      ['designer', false, 'person', 'no, it is small'],
      ['architect', false, 'person', 'no, it is small'],
    ]);
  });
});

test('cancel ends the workflow and every task of it that is not over', async () => {
  const running = await startWithParts([{ title: 'Scope of', bash: 'exec sleep 600' }]);
  const { system, service } = running;
  const { workflow_id } = await system.workflows.start(none);
  const scope = (await system.workflows.show(workflow_id)).phases[2]?.tasks[0]?.task_id ?? '';
  await untilStatus(running, scope, 'started');

  const view = await system.workflows.cancel(workflow_id, 'no money');

  expect(view).toMatchObject({ status: 'cancelled', why: 'no money', waits_for: [] });
  expect((await service.status(scope)).status).toBe('cancelled');
  await expect(system.workflows.cancel(workflow_id, null)).rejects.toMatchObject({
    code: 'event_not_allowed',
  });
  await expect(system.workflows.show('wf-none')).rejects.toMatchObject({ code: 'invalid_params' });
});

test('two retries at once make one workflow', async () => {
  const { system } = await startWithParts([]);
  const { workflow_id } = await system.workflows.start({ kind: 'feature', name: 'Basket totals' });
  await system.workflows.cancel(workflow_id, 'no money');

  const both = [system.workflows.retry(workflow_id), system.workflows.retry(workflow_id)];
  const ended = await Promise.allSettled(both);

  expect(ended.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  expect((await system.workflows.list()).workflows).toHaveLength(2);
});

test.each([
  [{ kind: 'no-such', name: 'x' }, 'kind: "no-such" is no workflow; there are feature, research'],
  [{ kind: 'feature', name: ' ' }, 'name: is empty'],
  [
    { kind: 'feature', name: 'x', steps: ['cook'] },
    'steps: has "cook"; the optional steps of feature are strategist, archaeologist',
  ],
])('%j cannot be started', async (request, says) => {
  const { system } = await startWithParts([]);

  await expect(system.workflows.start(request)).rejects.toThrow(says);
  expect(await system.workflows.list()).toEqual({ workflows: [] });
});
