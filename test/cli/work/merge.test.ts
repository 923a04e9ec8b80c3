import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { gitIn } from '../../support/git.ts';
import { openGitProject } from '../../support/git-project.ts';

/** A project in git whose engineer writes a file named like the task. */
const open = (options: Parameters<typeof openGitProject>[2] = {}) => {
  const turns = (name: string) => [
    { say: 'I write it.', calls: [{ tool: 'write', arguments: { path: name, content: name } }] },
    {
      say: 'I wrote it. It is good.',
      calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'written' } }],
    },
  ];
  const scripts = ['one', 'two', 'three'].map((title) => ({ title, turns: turns(title) }));
  const many = Array.from({ length: 12 }, (_, n) => ({
    ...{ tool: 'write', arguments: { path: `f${n}`, content: 'x' } },
  }));
  const manyFiles = { title: 'many', turns: [{ say: '', calls: many }] };
  const idle = {
    title: 'idle',
    turns: [{ say: '', calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'ok' } }] }],
  };
  const project = openGitProject([...scripts, manyFiles, idle], { mode: 'worktree' }, options);
  const create = async (title: string, ...deps: readonly string[]): Promise<string> => {
    const flags = deps.flatMap((id) => ['--deps', id]);
    return (await project.agent('create', title, '--role', 'engineer', ...flags)).out.trim();
  };
  return { ...project, create };
};

/** The words of the command that a line shows. */
const commandIn = (text: string, start: string): string[] =>
  (text.split('\n').find((line) => line.trim().startsWith(start)) ?? '').trim().split(' ').slice(1);

test('a run ends with the commands that show its work and merge it, and they work as they are', {
  tags: ['slow'],
}, async () => {
  const { agent, onTerminal, root, create } = open();
  const one = await create('one');
  const two = await create('two', one);

  const ran = await onTerminal('run');
  const before = await agent('list');
  const explained = await agent('explain', two);
  const merged = await agent(...commandIn(ran.out, 'agent merge'));
  const after = await agent('list');
  const again = await agent('merge', one, two);

  expect(ran.out.split('\n').slice(-8)).toEqual([
    expect.stringMatching(/^2 tasks complete in /),
    '',
    'the work of 2 tasks is not merged; to see it:',
    `  agent diff ${one}`,
    `  agent diff ${two}`,
    'to take it:',
    `  agent merge ${one} ${two}`,
    '',
  ]);
  expect(ran.out).toMatch(new RegExp(`${one} +complete .* It is good\\.$`, 'm'));
  expect(before.out.match(/complete \(not merged\)/g)).toHaveLength(2);
  expect(explained.out).toContain('its work is not merged');
  expect(merged.code).toBe(0);
  expect(after.out.match(/complete \(merged\)/g)).toHaveLength(2);
  expect(gitIn(root, 'ls-files')).toBe('a.txt\none\ntwo');
  expect([again.code, again.out]).toEqual([
    0,
    expect.stringMatching(
      `^${one} attempt 1: already merged \\([0-9a-f]{12}\\)\n${two} attempt 1: already merged \\(`,
    ),
  ]);
});

test('the end of a run names the work of an earlier run that must be merged first', {
  tags: ['slow'],
}, async () => {
  const { agent, create } = open();
  const one = await create('one');
  await agent('run');
  const two = await create('two', one);

  const ran = await agent('run', two);
  const merged = await agent(...commandIn(ran.out, 'agent merge'));

  expect(ran.out).toContain(`\n  agent merge ${one} ${two}\n`);
  expect(merged.code).toBe(0);
});

test('several are merged in the order of dependencies; a fast-forward that cannot be names the squash', {
  tags: ['slow'],
}, async () => {
  const { agent, root, create } = open();
  const one = await create('one');
  const two = await create('two', one);
  const three = await create('three', one);
  const ran = await agent('run');

  const stopped = await agent('merge', three, two, one, '--ff');
  const goOn = commandIn(stopped.err, 'agent merge');
  const rest = await agent(...goOn);
  const late = await agent('merge', three);

  expect(commandIn(ran.out, 'agent merge')).toHaveLength(4);
  expect([stopped.code, stopped.out.match(/merged into main/g)?.length]).toEqual([4, 2]);
  expect(stopped.out.indexOf(one)).toBe(0);
  expect(stopped.err).toContain('main has moved on');
  expect(goOn).toContain('--squash');
  expect([rest.code, gitIn(root, 'ls-files')]).toEqual([0, 'a.txt\none\nthree\ntwo']);
  expect(late.out).toContain('already merged');
});

test('after a run of many tasks, --all merges what is complete', { tags: ['slow'] }, async () => {
  const { agent, root, create } = open();
  const titles = Array.from(
    { length: 11 },
    (_, n) => `${['one', 'two', 'three'][n] ?? 'idle'} ${n}`,
  );
  for (const title of titles) await create(title);

  const none = await agent('merge');
  const both = await agent('merge', 'bd-a1', '--all');
  await agent('run');
  const merged = await agent('merge', '--all');
  const again = await agent('merge', '--all');

  expect([none.code, none.err]).toEqual([2, expect.stringContaining('agent merge --all')]);
  expect(both.code).toBe(2);
  expect([merged.code, merged.out.match(/merged into main/g)?.length]).toEqual([0, 3]);
  expect(gitIn(root, 'ls-files')).toBe('a.txt\none\nthree\ntwo');
  expect([again.code, again.out]).toEqual([0, 'all complete work is merged\n']);
});

test('work that builds on other work names the merge to begin with, as commands', {
  tags: ['slow'],
}, async () => {
  const { agent, create } = open();
  const one = await create('one');
  const two = await create('two', one);
  await agent('run');

  const early = await agent('merge', two);

  expect(early.code).toBe(4);
  expect(early.err.trimEnd().split('\n')).toEqual([
    `agent: ${two} is not merged: ${one}'s work is in it and is not merged yet`,
    'to go on:',
    `  agent merge ${one} --attempt 1`,
    `  agent merge ${two}`,
  ]);
});

test('a project on no branch is told to check one out before the same merge', async () => {
  const { agent, root, create } = open();
  const one = await create('one');
  await agent('run', one);
  gitIn(root, 'checkout', '--quiet', '--detach');

  const { code, err } = await agent('merge', one);

  expect(code).toBe(4);
  expect(err).toContain(
    `the project is on no branch (detached HEAD)\nto go on:\n  git switch <the branch that the work goes to>\n  agent merge ${one}\n`,
  );
  gitIn(root, 'switch', '--quiet', 'main');
  expect((await agent('merge', one)).out).toContain('merged into main');
});

test('files in the way are named, ten at most, and the way on is the same merge', {
  tags: ['slow'],
}, async () => {
  const { agent, root, create } = open();
  const id = await create('many');
  await agent('run');
  for (let n = 0; n < 12; n += 1) writeFileSync(join(root, `f${n}`), 'mine');

  const { code, err } = await agent('merge', id);

  expect(code).toBe(4);
  expect(err.match(/^ {2}f\d+$/gm)).toHaveLength(10);
  expect(err).toMatch(new RegExp(`\n {2}and 2 more\nto go on:\n {2}agent merge ${id}\n$`));
});

test('what cannot be merged stops only what depends on it', {
  tags: ['slow'],
}, async () => {
  const { agent, root, create } = open();
  const many = await create('many');
  const idle = await create('idle');
  const one = await create('one');
  const two = await create('two', many);
  await agent('run');
  const never = await create('never run');
  for (let n = 0; n < 12; n += 1) writeFileSync(join(root, `f${n}`), 'mine');

  const { code, out, err } = await agent('merge', many, idle, one, two, never);

  expect(code).toBe(4);
  expect(err).toContain(`to go on:\n  agent merge ${many}\n`);
  expect(err).toContain(
    `agent: ${two} is not merged: ${many}, which it depends on, is not merged\n`,
  );
  expect(err).toContain(`agent: ${never} is not merged: `);
  expect(out).toContain(`${idle} attempt 1: there is nothing to merge\n`);
  expect(out).toMatch(new RegExp(`^${one} attempt 1: merged into main .*, not tested$`, 'm'));
  expect(err).toContain('no verify command is known; set merge.verify: agent doctor names one\n');
});

test('work that is red with what landed before stays out, with the end of the output', async () => {
  const { agent, root, create } = open();
  const verify = 'test ! -e one || test ! -e two || { echo they do not fit; exit 1; }';
  await agent('config', 'set', 'merge.verify', JSON.stringify([verify]));
  const [one, two, three] = [await create('one'), await create('two'), await create('three')];
  await agent('run');

  const planned = await agent('merge', '--all', '--dry-run');
  const merged = await agent('merge', '--all');
  const forced = await agent('merge', two, '--no-verify', '--json');

  expect(planned.out.trimEnd().split('\n')).toEqual(
    [one, two, three].map((id) => `${id} attempt 1: would be merged, tested with ${verify}`),
  );
  expect(merged.code).toBe(1);
  expect(merged.out.match(/merged into main \(\w+\), tested with test/g)).toHaveLength(2);
  expect(merged.out).toContain(`${three} attempt 1: merged`);
  expect(merged.err).toContain(
    `agent: ${two} is not merged: it fails together with ${one} (landed): the command that must pass`,
  );
  expect(merged.err).toContain(
    `\n  they do not fit\nto go on:\n  agent update ${two}\n  agent merge ${two}\n`,
  );
  expect(merged.out).toContain(one);
  expect(merged.err).toContain('2 of 3 tasks: merged, or nothing to merge');
  expect([forced.code, JSON.parse(forced.out)]).toEqual([
    0,
    {
      ...{ task_id: two, attempt: 1, status: 'merged', tested: [] },
      commit: expect.stringMatching(/^[0-9a-f]{40}$/),
    },
  ]);
  expect(gitIn(root, 'ls-files')).toBe('a.txt\none\nthree\ntwo');
});

test('Ctrl-C takes a merge out of the queue, and says so', async () => {
  const { agent, start, collect, create, root } = open();
  await agent('config', 'set', 'merge.verify', '["sleep 60"]');
  const one = await create('one');
  await agent('run', one);

  const child = start('agent', ['merge', one]);
  const ended = collect(child);
  await vi.waitFor(
    async () => expect((await agent('list')).out).toContain('merge is tested'),
    20_000,
  );
  child.kill('SIGINT');

  expect(await ended).toMatchObject({
    code: null,
    err: expect.stringContaining('leaves the queue'),
  });
  await vi.waitFor(
    async () => expect((await agent('list')).out).not.toContain('merge is tested'),
    20_000,
  );
  expect(gitIn(root, 'ls-files')).toBe('a.txt');
});

test('who merges is told that it goes on when the server is lost, and it does', {
  tags: ['slow'],
}, async () => {
  const { agent, stopServer, root, create } = open({ ownServer: true });
  const go = join(root, '..', `go-${process.pid}`);
  await agent(
    'config',
    'set',
    'merge.verify',
    JSON.stringify([`until [ -e ${go} ]; do sleep 0.1; done`]),
  );
  const one = await create('one');
  await agent('run', one);

  const merging = agent('merge', '--all');
  await vi.waitFor(
    async () => expect((await agent('list')).out).toContain('merge is tested'),
    20_000,
  );
  await stopServer('SIGKILL');
  const { code, err } = await merging;
  writeFileSync(go, '');
  await agent('server', 'start');

  expect(code).not.toBe(0);
  expect(err).toContain(
    'what is in the queue goes on when the server runs; what came of it: agent list',
  );
  await vi.waitFor(async () => expect((await agent('list')).out).toContain('(merged)'), 20_000);
});
