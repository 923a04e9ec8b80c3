import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { gitIn } from '../support/git.ts';
import { noScript, testUnless } from '../support/needs.ts';

/** `agent run`: many tasks in the order of their dependencies. */

type Project = ReturnType<typeof openProject>;

const create = async ({ agent }: Project, ...words: readonly string[]): Promise<string> =>
  (await agent('create', ...words)).out.trim();
const statusOf = async ({ agent }: Project, id: string): Promise<string> =>
  JSON.parse((await agent('show', id, '--json')).out).status;
const withScript = (turns: readonly object[]): Project => {
  const project = openProject({ api: { backend: 'scripted', script: 'script.json' } });
  const script = { scripts: [{ turns: turns.map((turn) => ({ say: '', calls: [turn] })) }] };
  writeFileSync(join(project.configFile, '..', 'script.json'), JSON.stringify(script));
  return project;
};
const hang = { tool: 'bash', arguments: { command: 'touch began; exec sleep 600' } };
const giveUp = { tool: 'finish', arguments: { status: 'failed', summary: 'no luck' } };
const until = async (what: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await what())) await delay(20);
};
const engineer = ['--role', 'engineer'] as const;

test('run completes a graph in one command, and prints a line for each change when piped', {
  tags: ['slow'],
}, async () => {
  const project = openProject();
  const first = await create(project, 'first', ...engineer);
  const second = await create(project, 'second', '--deps', first);

  const ran = await project.agent('run', second, '--role', 'tester', '--model', 'scripted');

  expect(ran.code).toBe(0);
  const lines = ran.out.trim().split('\n');
  expect(lines).toContain(`${second} queued (blocked)`);
  expect(lines.indexOf(`${first} complete`)).toBeLessThan(lines.indexOf(`${second} complete`));
  expect(lines.at(-1)).toMatch(/^2 tasks complete in [\d.]+ s, [\d,]+ tokens/);
  expect(ran.out).not.toContain('\u001b');
});

test('run --json prints its events one per line, the last one with the outcome', async () => {
  const project = openProject();
  const id = await create(project, 'first', ...engineer);
  const noRole = await create(project, 'second');

  const { code, out } = await project.agent('run', '--json');

  const lines = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(code).toBe(1);
  expect(lines[0]).toMatchObject({
    type: 'run_started',
    accepted: [{ task_id: id, role: 'engineer' }],
    skipped: [{ task_id: noRole }],
  });
  expect(lines.map(({ type }) => type)).toContain('completed');
  expect(lines.at(-1)).toMatchObject({
    type: 'run_ended',
    complete: [id],
    failed: [],
    skipped: [{ task_id: noRole, reason: expect.stringContaining('it has no role') }],
    seconds: expect.any(Number),
  });
});

test('on a terminal a table is kept up to date, and no line is longer than 80 columns', {
  tags: ['slow'],
}, async () => {
  const project = openProject();
  const first = await create(project, `first ${'x'.repeat(200)}`, ...engineer);
  await create(project, 'second', ...engineer, '--deps', first);

  const { code, out, err } = await project.onTerminal('run');

  expect(code).toBe(0);
  expect(err).toMatch(/ID +STATE +TITLE +TIME/);
  expect(err).toContain('\u001b[J');
  expect(out).toMatch(new RegExp(`${first} +complete +first x+… +0:`));
  const lines = `${out}\n${err}`.replaceAll('\u001b[', '\n').split(/[\r\n]/);
  const tooLong = lines.filter((line) => line.length > 80 && !line.startsWith('starting'));
  expect(tooLong).toEqual([]);
});

test('a run says once what the worktrees lack, before a turn is paid for', {
  tags: ['slow'],
}, async () => {
  const project = openProject({
    api: { backend: 'scripted' },
    workspace: { mode: 'worktree' },
  });
  writeFileSync(join(project.root, '.gitignore'), 'node_modules\n');
  writeFileSync(join(project.root, 'package.json'), '{ "devDependencies": { "tape": "5" } }');
  writeFileSync(join(project.root, 'package-lock.json'), '{}');
  mkdirSync(join(project.root, 'node_modules', 'tape'), { recursive: true });
  gitIn(project.root, 'init', '-q');
  gitIn(project.root, 'add', '-A');
  gitIn(project.root, 'commit', '-qm', 'begin');
  await create(project, 'first', ...engineer);
  await create(project, 'second', ...engineer);

  const piped = await project.agent('run');

  expect(piped.err.match(/^note: not in the worktree: node_modules; .*"npm ci"/gm)).toHaveLength(1);
});

test('a task that failed ends the run with 1, with the reason and what waits for it', async () => {
  const project = withScript([giveUp]);
  const first = await create(project, 'first', ...engineer);
  const second = await create(project, 'second', ...engineer, '--deps', first);

  const { code, out } = await project.agent('run');

  expect(code).toBe(1);
  expect(out).toContain(`failed     ${first}  the agent gave up: no luck`);
  expect(out).toContain(`agent retry ${first}`);
  expect(out).toMatch(new RegExp(`waiting    ${second} +for ${first}`));
  expect(out.trim().split('\n').at(-1)).toMatch(/^0 tasks complete, 1 failed, 1 waiting in /);
});

test('a dependency that is added during a run, and that nobody runs, ends it with its name', async () => {
  const project = withScript([
    { tool: 'bash', arguments: { command: 'touch began; while [ ! -e go ]; do sleep 0.05; done' } },
    { tool: 'finish', arguments: { status: 'done', summary: 'done' } },
  ]);
  const first = await create(project, 'first', ...engineer);
  const second = await create(project, 'second', ...engineer, '--deps', first);
  const run = project.agent('run', second);
  await until(() => existsSync(join(project.root, 'began')));
  const added = await create(project, 'added');
  await project.agent('dep', 'add', second, added);

  writeFileSync(join(project.root, 'go'), '');

  const { code, out } = await run;
  expect(code).toBe(1);
  expect(out).toMatch(new RegExp(`waiting    ${second} +for ${added}`));
});

test('nothing to run ends with 0, nothing that could be started with 4', async () => {
  const project = openProject();
  const empty = await project.agent('run');
  const id = await create(project, 'no role');
  const none = await project.agent('run');
  const unknown = await project.agent('run', 'bd-none');
  await create(project, 'with a role', ...engineer);
  const some = await project.agent('run', '--async');

  expect(empty).toMatchObject({ code: 0, out: expect.stringContaining('nothing to run') });
  expect(none).toMatchObject({ code: 4, err: expect.stringContaining(`skipped ${id}: it has no`) });
  expect(unknown.code).toBe(3);
  expect(some).toMatchObject({ code: 1, err: expect.stringContaining(`skipped ${id}: it has no`) });
});

/** Tasks in the file of the project, made by another program. */
const written = ({ root }: Project, count: number, labels: readonly string[]): void => {
  const at = new Date().toISOString();
  const lines = Array.from({ length: count }, (_, n) => ({
    ...{ id: `bd-${n + 1}`, title: `Task ${n + 1}`, status: 'open', priority: 2, labels },
    ...{ issue_type: 'task', created_at: at, updated_at: at },
  }));
  mkdirSync(join(root, '.beads'), { recursive: true });
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  writeFileSync(join(root, '.beads', 'issues.jsonl'), text);
};

test('of many tasks that are skipped the first are named, and the others counted', async () => {
  const project = openProject();
  written(project, 1_500, []);

  const { code, err } = await project.agent('run', '--async');

  const lines = err.split('\n').filter((line) => line.startsWith('skipped'));
  expect(code).toBe(4);
  expect(lines).toHaveLength(11);
  expect(lines.at(-1)).toBe('skipped 1,490 more: agent run --dry-run --json says why');
});

test('server stop counts all tasks that wait, also more than a page', {
  tags: ['slow'],
}, async () => {
  const project = openProject({
    api: { backend: 'scripted', script: 'script.json' },
    server: { max_concurrent_agents: 1, queue_limit: 1_200 },
  });
  const script = { scripts: [{ turns: [{ say: '', calls: [hang] }] }] };
  writeFileSync(join(project.configFile, '..', 'script.json'), JSON.stringify(script));
  written(project, 1_300, ['role:engineer']);

  const run = await project.agent('run', '--async');
  const stopped = await project.agent('server', 'stop');

  expect(run.code).toBe(1);
  expect(
    run.err
      .split('\n')
      .filter((line) => line.startsWith('skipped'))
      .at(-1),
  ).toMatch(/^skipped \d+ more: the queue is full \(1200 tasks\)/);
  expect(stopped.out).toContain('1 running task is parked and 1199 wait');
});

test('run --async returns at once, and a second one says what is running', async () => {
  const project = withScript([hang]);
  const first = await create(project, 'first', ...engineer);
  const second = await create(project, 'second', ...engineer, '--deps', first);

  const started = await project.agent('run', '--async');
  const again = await project.agent('run', '--async');

  expect(started.code).toBe(0);
  expect(started.out).toContain(`${second} engineer blocked`);
  expect(again).toMatchObject({ code: 4, err: expect.stringContaining('already running') });
  await project.agent('cancel', second);
  await project.agent('cancel', first);
});

test('a second run follows what already runs, to its end', { tags: ['slow'] }, async () => {
  const wait = { tool: 'bash', arguments: { command: 'until test -e go; do sleep 0.05; done' } };
  const done = { tool: 'finish', arguments: { summary: 'done' } };
  const project = withScript([wait, done]);
  const first = await create(project, 'first', ...engineer);
  const second = await create(project, 'second', ...engineer, '--deps', first);
  await project.agent('run', '--async');
  const third = await create(project, 'third', ...engineer, '--deps', second);

  const child = project.start('agent', ['run', '--json']);
  const ended = project.collect(child);
  child.stdout?.once('data', () => writeFileSync(join(project.root, 'go'), ''));
  const { code, out } = await ended;

  const lines = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(code).toBe(0);
  expect(lines[0]).toMatchObject({ accepted: [{ task_id: third }], skipped: [] });
  expect(lines[0].attached.toSorted()).toEqual([first, second].toSorted());
  expect(lines.at(-1).complete.toSorted()).toEqual([first, second, third].toSorted());
});

test('Ctrl-C leaves what an earlier run started, and ends', async () => {
  const project = withScript([hang]);
  const id = await create(project, 'first', ...engineer);
  await project.agent('run', '--async');
  const child = project.start('agent', ['run']);
  const ended = project.collect(child);
  let said = '';
  child.stderr?.on('data', (text) => {
    said += text;
  });
  await until(() => said.includes(`${id} already runs`));

  child.kill('SIGINT');

  const { code, err, out } = await ended;
  expect(code).toBe(130);
  expect(out).toContain('the tasks go on in the background');
  expect(err + out).not.toMatch(/cancelling|0 tasks complete/);
  expect(await statusOf(project, id)).toBe('started');
  await project.agent('cancel', id);
});

test('a run of everything skips a failed task whose work was approved; a run of it does not', async () => {
  const project = withScript([giveUp]);
  const id = await create(project, 'first', ...engineer);
  await project.agent('run');
  await project.agent('review', id, '--approve');

  const all = await project.agent('run');
  const named = await project.agent('run', id);

  expect(all).toMatchObject({ code: 4, err: expect.stringContaining('its work is approved') });
  expect(named.out).toContain(`failed     ${id}`);
});

test('away from a terminal Ctrl-C cancels what the run started, and nothing else', {
  tags: ['slow'],
}, async () => {
  const project = withScript([hang]);
  const other = await create(project, 'of somebody else', ...engineer);
  await project.agent('engineer', other, '--async');
  const first = await create(project, 'first', ...engineer);
  const second = await create(project, 'second', ...engineer, '--deps', first);
  const child = project.start('agent', ['run', second]);
  const ended = project.collect(child);
  await until(async () => (await statusOf(project, first)) === 'started');
  await until(() => existsSync(join(project.root, 'began')));

  child.kill('SIGINT');

  expect((await ended).code).toBe(130);
  expect([await statusOf(project, first), await statusOf(project, second)]).toEqual([
    'cancelled',
    'cancelled',
  ]);
  expect(await statusOf(project, other)).toBe('started');
  await project.agent('cancel', other);
});

/** `script` of util-linux gives the program a terminal. */
testUnless(noScript).each([
  ['run', 'Enter leaves it running', '\r', 'started'],
  ['run', 'a second Ctrl-C cancels it', '\u0003', 'cancelled'],
  ['engineer', 'Enter leaves it running', '\r', 'started'],
  ['engineer', 'a second Ctrl-C cancels it', '\u0003', 'cancelled'],
])('on a terminal Ctrl-C asks first: agent %s, %s', async (command, _, answer, status) => {
  const project = withScript([hang]);
  const id = await create(project, 'first', ...engineer);
  const child = project.startOnTerminal(command, id);
  let shown = '';
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    shown += text;
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  await until(() => existsSync(join(project.root, 'began')));

  child.stdin?.write('\u0003');
  await until(() => shown.includes('Enter leaves it running in the background'));
  const between = await statusOf(project, id);
  child.stdin?.write(answer);

  expect(await ended).toBe(130);
  expect(between).toBe('started');
  expect(await statusOf(project, id)).toBe(status);
  await project.agent('cancel', id);
});
