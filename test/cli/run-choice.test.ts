import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exitCodeFor } from '../../src/cli/graph/outcome.ts';
import { openProject } from '../support/cli.ts';

/** Which tasks `agent run` starts, what it says before, and how everything is stopped. */

type Project = ReturnType<typeof openProject>;

const create = async ({ agent }: Project, ...more: string[]): Promise<string> =>
  (await agent('create', 'some work', '--role', 'engineer', ...more)).out.trim();
const plan = async ({ agent }: Project, ...more: string[]) => {
  const { code, out } = await agent('run', '--dry-run', '--json', ...more);
  return { code, ...JSON.parse(out) };
};
const ids = ({ tasks }: { tasks: readonly { task_id: string }[] }) =>
  tasks.map(({ task_id }) => task_id);

test('a dry run shows the order and starts nothing; label, priority and limit choose', async () => {
  const project = openProject();
  const first = await create(project, '--priority', '3');
  const second = await create(project, '--priority', '0', '--deps', first, '--label', 'bug');
  const third = await create(project, '--priority', '1');

  expect(await plan(project)).toEqual({
    code: 0,
    tasks: expect.arrayContaining([
      { task_id: first, role: 'engineer', model: 'scripted', after: [] },
      { task_id: second, role: 'engineer', model: 'scripted', after: [first] },
      { task_id: third, role: 'engineer', model: 'scripted', after: [] },
    ]),
    skipped: [],
  });
  expect(ids(await plan(project, '--label', 'bug'))).toEqual([first, second]);
  expect(ids(await plan(project, '--priority', '1'))).toEqual([third]);
  expect(
    ids(await plan(project, '--limit', '1')),
    'what the urgent one depends on does not fit',
  ).toEqual([third]);
  expect(ids(await plan(project, '--limit', '2'))).toHaveLength(2);
  const text = await project.agent('run', '--dry-run');
  expect(text.out).toContain('3 tasks would run; nothing was started');
  const { out } = await project.agent('list', '--json');
  expect(out).not.toContain('"status":"started"');
  expect(out).not.toContain('"attempt":1');
});

test('on a terminal a run of more than 10 tasks that were not named is asked about', async () => {
  const project = openProject();
  const all: string[] = [];
  for (let n = 0; n < 11; n += 1) all.push(await create(project));

  const no = await project.typing(['n'], 'run', '--async');
  const named = await plan(project, ...all);
  const ten = await project.typing([], 'run', '--async', '--limit', '10');

  expect(no).toMatchObject({ code: 5, err: expect.stringContaining('nothing was started') });
  expect(no.out).toContain('This starts 11 tasks');
  expect(ids(named)).toHaveLength(11);
  expect(ten.out).not.toContain('Go on?');
  expect((await project.typing(['y'], 'run', '--async')).code).toBe(0);
});

test('a run that skips a cycle exits 4, one at a budget 6', () => {
  const nothing = { complete: [], failed: [], cancelled: [], over_budget: [], waiting: [] };
  const numbers = { seconds: 0, input_tokens: 0, output_tokens: 0 };
  const cycle = [{ task_id: 'bd-a', reason: 'a cycle', code: 'dependency_cycle' }];
  const parked = [{ task_id: 'bd-b', reason: 'budget.run_usd: 2 of 2 USD are spent' }];

  expect(exitCodeFor({ ...nothing, ...numbers, skipped: cycle })).toBe(4);
  expect(exitCodeFor({ ...nothing, ...numbers, skipped: cycle, over_budget: parked })).toBe(6);
});

test('a cycle that comes with the file is named by list, explain and run, which ends', async () => {
  const project = openProject();
  const line = (id: string, on: string) =>
    JSON.stringify({
      ...{ id, title: id, status: 'open', priority: 2, issue_type: 'task' },
      labels: ['role:engineer'],
      dependencies: [{ issue_id: id, depends_on_id: on, type: 'blocks' }],
    });
  mkdirSync(join(project.root, '.beads'), { recursive: true });
  writeFileSync(
    join(project.root, '.beads/issues.jsonl'),
    `${[line('t-a', 't-b'), line('t-b', 't-a'), line('t-c', 't-b')].join('\n')}\n`,
  );
  const cycle =
    /form a cycle: (t-a -> t-b -> t-a|t-b -> t-a -> t-b); remove one of them with: agent dep remove t-\w t-\w/;

  expect((await project.agent('list')).err).toMatch(cycle);
  expect((await project.agent('explain', 't-a')).out).toMatch(cycle);
  expect((await project.agent('explain', 't-c')).out).toContain(
    'it waits for a cycle of dependencies',
  );
  const chosen = await plan(project, '--label', 'role:engineer', '--limit', '1');
  expect([ids(chosen), chosen.skipped.length]).toEqual([[], 3]);
  expect(await project.agent('run')).toMatchObject({ code: 4, err: expect.stringMatching(cycle) });
  expect((await project.agent('dep', 'remove', 't-a', 't-b')).code).toBe(0);
  expect(await project.agent('run')).toMatchObject({ code: 0 });
});

test('a dry run names what a task waits for, also a task that it skips', async () => {
  const project = openProject();
  const noRole = (await project.agent('create', 'no role')).out.trim();
  const second = await create(project, '--deps', noRole);

  const { tasks, skipped } = await plan(project);

  expect(tasks).toEqual([
    { task_id: second, role: 'engineer', model: 'scripted', after: [noRole] },
  ]);
  expect(skipped).toMatchObject([{ task_id: noRole, code: 'no_role' }]);
});

test('cancel --all stops what waits and runs', async () => {
  const project = openProject();
  const alone = await create(project);

  expect(await project.agent('cancel')).toMatchObject({ code: 2 });
  expect(await project.agent('cancel', '--all')).toMatchObject({
    code: 0,
    out: 'nothing runs or waits to run\n',
  });
  await project.agent('run', alone, '--async');
  expect((await project.agent('cancel', '--all')).code).toBe(0);
});
