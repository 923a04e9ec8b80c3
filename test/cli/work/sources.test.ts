import { expect, test, vi } from 'vitest';
import { openGitHub } from '../../support/forge/github.ts';
import { gitIn } from '../../support/git.ts';
import { openGitProject } from '../../support/git-project.ts';

interface Listed {
  readonly task_id: string;
  readonly title: string;
  readonly description: string;
  readonly status: string;
  readonly dependencies: readonly string[];
  readonly source?: { readonly number: number };
}

const done = [{ tool: 'finish', arguments: { status: 'done', summary: 'It is there.' } }];
const scripts = [
  {
    title: 'Add a page',
    turns: [
      { calls: [{ tool: 'write', arguments: { path: 'page.txt', content: 'x\n' } }] },
      { calls: done },
    ],
  },
  {
    title: 'Ask',
    turns: [{ calls: [{ tool: 'ask', arguments: { question: 'Which?' } }] }, { calls: done }],
  },
];

/** A project whose server follows the issues with the label `agent`. */
const open = async (source: object = {}) => {
  const project = openGitProject(scripts, { mode: 'worktree' }, { ownServer: true });
  const github = await openGitHub(project.root);
  gitIn(project.root, 'remote', 'add', 'origin', github.remote);
  const set = (key: string, value: unknown) =>
    project.agent('config', 'set', key, JSON.stringify(value));
  await set('forge.api_url', github.apiUrl);
  await set('forge.poll_seconds', 1);
  await set('tracker.sources', [{ type: 'github', labels: ['agent'], ...source }]);
  const start = () => project.agentWith({ GITHUB_TOKEN: github.token }, 'server', 'start');
  const list = async (): Promise<readonly Listed[]> =>
    JSON.parse((await project.agent('list', '--all', '--json')).out);
  const taskOf = async (number: number): Promise<Listed> =>
    (await list()).find(({ source }) => source?.number === number) ??
    expect.unreachable(`issue ${number} is no task`);
  const untilTask = (number: number, expected: object) =>
    vi.waitFor(async () => expect(await taskOf(number)).toMatchObject(expected), {
      timeout: 60_000,
      interval: 300,
    });
  return { ...project, github, set, start, list, taskOf, untilTask };
};

test('issues are kept in step: made, edited, closed, opened again, cancelled, left alone', {
  tags: ['slow'],
}, async () => {
  const { github, start, list, untilTask } = await open();
  const { person } = github;
  const one = person.issue('One', 'text', ['agent']);
  await start();
  await untilTask(one, { title: 'One', status: 'queued' });

  const two = person.issue('Two', `Blocked by #${one}`, ['agent']);
  person.editIssue(one, { title: 'First' });
  await untilTask(two, { status: 'queued' });
  await untilTask(one, { title: 'First' });
  person.closeIssue(one, 'completed');
  await untilTask(one, { status: 'complete' });
  person.editIssue(one, { state: 'open', state_reason: null });
  await untilTask(one, { status: 'queued' });
  person.closeIssue(two, 'not_planned');
  await untilTask(two, { status: 'cancelled' });
  person.editIssue(one, { labels: ['renamed'] });
  await untilTask(one, { description: expect.stringContaining('(without its label there)') });
  person.editIssue(one, { labels: ['agent'] });
  await untilTask(one, { description: expect.stringContaining('(version ') });
  person.editIssue(one, { gone: 'deleted' });
  await untilTask(one, { description: expect.stringContaining('(gone from there)') });

  await untilTask(one, { status: 'queued' });
  expect(await list()).toHaveLength(2);
});

test('faults and a server that is killed make no task twice, and no second comment', {
  tags: ['slow'],
}, async () => {
  const { agent, github, start, stopServer, list, untilTask, taskOf } = await open({
    write_back: 'comment',
  });
  const { person } = github;
  const one = person.issue('Add a page', 'text', ['agent']);
  for (let n = 0; n < 40; n += 1) person.issue(`More ${n}`, 'text', ['agent']);
  github.fault({ match: /issues$/, status: 502, times: 2 });
  await start();
  await vi.waitFor(async () => expect((await list()).length).toBeGreaterThan(0), 60_000);
  await stopServer('SIGKILL');
  await start();
  await untilTask(one, { status: 'queued' });
  github.fault({ match: /^POST .*\/comments$/, connection: 'lost' });

  await agent('engineer', (await taskOf(one)).task_id);
  await stopServer('SIGKILL');
  await start();

  await vi.waitFor(
    () =>
      expect(github.state.said.map(({ number, text }) => [number, text])).toEqual([
        [one, expect.stringContaining('An agent completed this')],
      ]),
    60_000,
  );
  await vi.waitFor(async () => expect(await list()).toHaveLength(41), 60_000);
  await agent('delete', (await list()).find(({ title }) => title === 'More 3')?.task_id ?? '');
  const last = person.issue('Last', 'text', ['agent']);
  await untilTask(last, { status: 'queued' });
  expect((await list()).some(({ title }) => title === 'More 3')).toBe(false);
});

test('an edit during an attempt reaches its agent; a closed issue ends the attempt', {
  tags: ['slow'],
}, async () => {
  const { agent, github, start, untilTask, taskOf } = await open();
  const { person } = github;
  const one = person.issue('Ask', 'text', ['agent']);
  await start();
  await untilTask(one, { status: 'queued' });
  const { task_id: id } = await taskOf(one);
  await agent('engineer', id, '--async');
  await untilTask(one, { status: 'started', phase: 'awaiting_input' });

  person.editIssue(one, { text: 'other words' });
  await vi.waitFor(
    async () => expect((await agent('logs', id)).out).toContain('other words'),
    60_000,
  );
  person.closeIssue(one, 'completed');

  await untilTask(one, { status: 'complete' });
});

test('a limit parks it, a missing repository waits for a person, and doctor says so', {
  tags: ['slow'],
}, async () => {
  const { agent, github, start } = await open();
  github.state.maySee = false;
  await start();

  const untilDoctor = (says: string) =>
    vi.waitFor(async () => expect((await agent('doctor')).out).toContain(says), {
      timeout: 90_000,
      interval: 500,
    });
  await untilDoctor('the token may not see it');
  github.fault({ match: /issues/, status: 429, headers: { 'retry-after': '8' } });
  github.state.maySee = true;

  await untilDoctor('parked; ');
  await untilDoctor('reading; 0 open issues');
});
