import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openProject } from '../../support/cli.ts';

type Project = ReturnType<typeof openProject>;

const open = async () => {
  const project = openProject({ api: { backend: 'scripted' } });
  const { out } = await project.agent('workflow', 'start', 'feature', 'Export', '--json');
  const { workflow_id: workflow } = JSON.parse(out);
  const [{ task_id: question }] = await tasks(project);
  return { project, workflow, question };
};
const tasks = async ({ agent }: Project, ...words: string[]) =>
  JSON.parse((await agent('list', '--all', ...words, '--json')).out);

test('a question of a workflow waits for you: in list, ps, show and explain', async () => {
  const { project, question } = await open();

  const told = await Promise.all(
    [['list'], ['ps'], ['show', question], ['explain', question]].map((words) =>
      project.agent(...words).then(({ out }) => out),
    ),
  );

  const [list = '', ps = '', shown = '', explained = ''] = told;
  for (const out of [list, ps, shown, explained]) expect(out).toContain('queued (waits for you)');
  for (const out of [shown, explained]) {
    expect(out).toContain(`agent close ${question} --reason "yes, …"`);
    expect(out).toContain(`agent close ${question} --reason "no, …"`);
  }
  expect(explained).toContain(`because it waits for a person, who closes it`);
  expect(explained).not.toContain('a model is set up');
});

test('no run takes the task of a person, and says who does it', { tags: ['slow'] }, async () => {
  const { project, question } = await open();

  const ran = await project.agent('run', '--role', 'engineer');

  expect(ran.err + ran.out).toContain(`a person does it; when it is done: agent close ${question}`);
  expect(await tasks(project)).toMatchObject([{ status: 'queued', phase: 'waiting_for_person' }]);
});

test('an agent is refused for the task of a person, whatever asks for it', async () => {
  const { project, question } = await open();

  const ran = await project.agent('engineer', question);
  await project.agent('cancel', question);
  const retried = await project.agent('engineer', question);
  const explained = await project.agent('explain', question);

  const refused = `task ${question} is a question to a person: run is not allowed now; allowed: close`;
  expect(ran).toMatchObject({ code: 4, err: expect.stringContaining(refused) });
  expect(retried).toMatchObject({ code: 4, err: expect.stringContaining(refused) });
  expect(explained.out).not.toMatch(/may now: .*run/);
  expect(JSON.parse((await project.agent('show', question, '--json')).out).attempt).toBe(0);
});

test('a question is closed with yes or no, with and without a server', {
  tags: ['slow'],
}, async () => {
  const { project, question, workflow } = await open();

  const empty = await project.agent('close', question);
  const vague = await project.agent('close', question, '--reason', 'perhaps');
  await project.agent('server', 'stop');
  const offline = await project.agent('close', question);
  const answered = await project.agent('close', question, '--reason', 'no, all want it');

  for (const { code, err } of [empty, vague, offline]) {
    expect(code).not.toBe(0);
    expect(err).toContain(`must begin with yes or no, since ${question} is a question`);
  }
  expect(answered.out).toBe(`${question} complete\n`);
  for (let out = ''; !out.includes('strategist: no (person: no, all want it)'); await delay(50))
    ({ out } = await project.agent('workflow', 'show', workflow));
});

test('a stage that a person refuses does not count as done', { tags: ['slow'] }, async () => {
  const project = openProject({ api: { backend: 'scripted' } });
  const folder = join(dirname(project.configFile), 'workflows');
  mkdirSync(folder);
  const stage = (id: string, needs = '') =>
    `      - { id: ${id}, by: person, title: ${id}, task: Turn it on.${needs} }\n`;
  const head =
    'name: out\nversion: 1.0.0\ndescription: d\nphases:\n  - number: 1\n    name: rollout\n';
  writeFileSync(
    join(folder, 'out.yml'),
    `${head}    steps:\n${stage('beta')}${stage('all', ', needs: [beta]')}`,
  );
  const { out } = await project.agent('workflow', 'start', 'out', 'Export', '--json');
  const { workflow_id: workflow } = JSON.parse(out);
  const [beta = '', all = ''] = (await tasks(project))
    .sort((a: { title: string }, b: { title: string }) => b.title.localeCompare(a.title))
    .map(({ task_id }: { task_id: string }) => task_id);

  const early = await project.agent('close', all);
  const refused = await project.agent('close', beta, '--reason', 'no, it crashed');
  await project.agent('cancel', beta, '--reason', 'it crashed');
  const held = await project.agent('workflow', 'show', workflow);
  await project.agent('retry', beta);
  const closed = await project.agent('close', beta, '--reason', 'no problems found');

  expect(early.code).not.toBe(0);
  expect(refused.code).toBe(2);
  expect(refused.err).toContain(
    `says no, but to close ${beta} means that it is done, and the next step begins; leave it open until it is done, or end the workflow: agent workflow cancel ${workflow}`,
  );
  expect(held.out).toContain(
    `waits for ${beta} (beta), which was cancelled; put it back with: agent retry ${beta}, or close it with: agent close ${beta}`,
  );
  expect(closed.out).toBe(`${beta} complete\n`);
});

test('a workflow that was cancelled offers its steps to nobody, and goes on as a new one', async () => {
  const { project, workflow, question } = await open();
  const early = await project.agent('workflow', 'retry', workflow);
  await project.agent('workflow', 'cancel', workflow);

  const shown = await project.agent('show', question);
  const offered = [
    await project.agent('workflow', 'show', workflow),
    await project.agent('explain', workflow),
  ];
  const next = await project.agent('workflow', 'retry', workflow);
  const continued = [
    await project.agent('workflow', 'show', workflow),
    await project.agent('explain', workflow),
  ];

  for (const { out } of offered) expect(out).toContain(`: agent workflow retry ${workflow}\n`);
  const nextId = next.out.slice(0, 8);
  for (const { out } of continued)
    expect(out).toContain(`it goes on as ${nextId}; see: agent workflow show ${nextId}\n`);
  expect(early.code).toBe(4);
  expect(early.err).toContain(
    `${workflow} is started; only one that failed or was cancelled can be retried, and once\n`,
  );
  expect(shown.out).toContain('status     cancelled');
  expect(shown.out).not.toMatch(/^ {2}agent /m);
  expect(next.out).toMatch(new RegExp(`^wf-\\w{5} goes on with phase 0 of ${workflow}; `));
  const again = await project.agent('workflow', 'retry', workflow);
  expect(again).toMatchObject({
    code: 4,
    err: expect.stringContaining(`${workflow} is continued as ${next.out.slice(0, 8)}; only one`),
  });
  const [asked, ...others] = await tasks(project, '--status', 'queued');
  expect(asked).toMatchObject({ phase: 'waiting_for_person' });
  expect(asked.labels[0]).toBe(`workflow:${next.out.slice(0, 8)}`);
  expect(others).toEqual([]);
});
