import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../../support/cli.ts';
import { featureParts, type Part, scriptOf } from '../../support/workflows.ts';

type Project = ReturnType<typeof openProject>;

const open = (parts: readonly Part[] = []): Project => {
  const api = { backend: 'scripted', script: 'script.json' };
  const project = openProject({ workspace: { mode: 'worktree' }, api });
  const script = join(project.configFile, '..', 'script.json');
  writeFileSync(script, JSON.stringify(scriptOf(parts)));
  return project;
};
const json = async ({ agent }: Project, ...words: string[]) => {
  const { code, out, err } = await agent(...words, '--json');
  expect([code, code === 0 ? '' : err]).toEqual([0, '']);
  return JSON.parse(out);
};

test('start prints one line of JSON when the tasks of the first phase are there, with their labels', async () => {
  const project = open();

  const line = await json(project, 'workflow', 'start', 'feature', 'CSV export');
  const tasks = await json(project, 'list', '--all');

  expect(line).toEqual({
    ...{ workflow_id: expect.stringMatching(/^wf-[a-z0-9]{5}$/), kind: 'feature' },
    ...{ name: 'CSV export', phase: 0, status: 'started' },
  });
  expect(tasks).toMatchObject([
    {
      title: 'Is the step strategist needed for CSV export?',
      labels: [`workflow:${line.workflow_id}`, 'phase:0', 'question:strategist'],
    },
  ]);
  expect(await json(project, 'workflow', 'list')).toEqual({ workflows: [line] });
});

test('people get the phases, what was decided, and what it waits for', async () => {
  const project = open(featureParts);

  const started = await project.agent('workflow', 'start', 'feature', 'Export');
  const [id = ''] = started.out.split(' ');
  const { out } = await project.agent('workflow', 'show', id);
  const list = await project.agent('workflow', 'list');
  const explained = await project.agent('explain', id);
  const cancelled = await project.agent('workflow', 'cancel', id, '--reason', 'no money');
  const after = await project.agent('workflow', 'show', id);
  const over = await project.agent('explain', id);
  const again = await project.agent('workflow', 'cancel', id);

  expect(started.err).toContain('note: without --verify');
  expect(out.replace(/bd-\w+/g, 'bd-1').split('\n')).toEqual([
    `${id} feature 1.0.0: Export`,
    'started',
    '  0  at work      product definition and architecture design, part 1: strategy',
    '  0  -            product definition and architecture design, part 2: definition and design',
    '  1  -            discovery and scoping',
    '  2  -            design and planning',
    '  3  -            implementation',
    '  4  -            validation and documentation',
    '  5  -            rollout',
    'will look for coverage: coverage/coverage-summary.json, coverage/coverage-final.json, coverage/lcov.info, coverage/cobertura-coverage.xml, lcov.info, coverage.xml, coverage.json, coverage.out, cover.out (phase 3)',
    'will look for tests: junit.xml, test-results.xml, test-results/junit.xml, reports/junit.xml, report.xml, test-results.json, test-results.tap (phases 3, 4)',
    '  in what agents commit, since there is no --verify',
    'waits for a person: bd-1 (Is the step strategist needed for Export?); answer with: agent close bd-1 --reason "yes, …" or "no, …"',
    '',
  ]);
  expect(list.out).toMatch(
    new RegExp(`^WORKFLOW +KIND +PHASE +STATUS +NAME\n${id} +feature +0 +started +Export`),
  );
  expect(explained.out.replace(/bd-\w+/g, 'bd-1').split('\n')).toEqual([
    `${id} is started: feature, Export`,
    '  because it waits for a person: bd-1 (Is the step strategist needed for Export?); answer with: agent close bd-1 --reason "yes, …" or "no, …"',
    '  no   its optional steps are decided: strategist',
    '  yes  another round may follow: round 1 of 3',
    '  may now: cancel',
    '',
  ]);
  expect([cancelled.code, cancelled.out]).toEqual([0, `${id} cancelled\n`]);
  expect(over.out.split('\n')).toEqual([
    `${id} is cancelled: feature, Export`,
    '  because no money',
    `to go on: agent workflow retry ${id}`,
    '',
  ]);
  expect(after.out).toContain('cancelled: no money');
  expect([again.code, again.err]).toEqual([
    4,
    `agent: ${id} is cancelled; there is nothing to cancel\n`,
  ]);
});

test.each([
  [['start'], 2, 'workflow start needs a workflow, such as feature or research'],
  [['start', 'feature'], 2, 'workflow start feature needs a name'],
  [['start', 'no-such', 'x'], 2, 'is no workflow; there are feature, research'],
  [
    ['start', 'feature', 'x', '--phase0', 'cook'],
    2,
    '--phase0: has "cook"; the optional steps of feature are strategist',
  ],
  [['start', 'research', 'x', '--thoroughness', 'huge'], 2, 'quick, medium'],
  [
    ['start', 'feature', 'x', '--thoroughness', 'deep'],
    2,
    '--thoroughness: is not for feature, which has no levels of it',
  ],
  [['start', 'feature', 'x', '--model', ''], 2, '--model: expected text of 1 to 200 characters'],
  [
    ['start', 'research', 'x', '--phase0', 'none'],
    2,
    '--phase0: is not for research, which has no optional steps',
  ],
  [['explain', 'wf-none'], 3, 'for a workflow: agent workflow show wf-none'],
  [
    ['start', 'research', 'x', '--verify', 'true'],
    2,
    '--verify: is not for research: none of its steps runs commands',
  ],
  [[], 2, 'workflow needs <action> (start, list, show, retry, cancel, check): agent workflow'],
  [
    ['show', 'wf-none'],
    2,
    'agent: wf-none: names no workflow of this project; see: agent workflow list',
  ],
  [['cancel', 'wf-12345'], 2, 'agent: wf-12345: names no workflow of this project'],
  [['show'], 2, 'workflow show needs an id'],
  [['cancel', 'wf-a', 'wf-b'], 2, 'one workflow at a time'],
  [['list', 'x'], 2, 'workflow list does not take "x"'],
  [['check'], 2, 'workflow check needs a file'],
] as const)('workflow %j ends with %s and says why', async (words, code, says) => {
  const command = words[0] === 'explain' ? words : ['workflow', ...words];
  const ended = await open().agent(...command);

  expect([ended.code, ended.err]).toEqual([code, expect.stringContaining(says)]);
});

test('two starts at once for one name, without a server: one gets the workflow, and the other says why not', async () => {
  const project = openProject({ api: { backend: 'scripted' } }, { ownServer: true });
  const start = () => project.agent('workflow', 'start', 'feature', 'Export', '--json');

  const ended = await Promise.all([start(), start()]);
  const [line, ...others] = ended
    .filter(({ code }) => code === 0)
    .map(({ out }) => JSON.parse(out));
  const refused = ended.find(({ code }) => code !== 0);

  expect([line.name, others]).toEqual(['Export', []]);
  expect([refused?.code, refused?.err]).toEqual([
    2,
    expect.stringContaining(`is too much like that of ${line.workflow_id} (feature: Export)`),
  ]);
  expect((await json(project, 'workflow', 'list')).workflows).toEqual([line]);
  expect(await json(project, 'list', '--all')).toHaveLength(1);
});
