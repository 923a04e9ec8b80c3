import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createOpenAiModel } from '../../../src/actors/model/openai/openai.ts';
import { createSharedWorkspace } from '../../../src/actors/workspace/worktrees/select-workspace.ts';
import { crash } from '../../support/crash.ts';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';
import { type Setting, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** What a provider is sent of a project's AGENTS.md, CLAUDE.md and skills. */

type Files = Readonly<Record<string, string | Buffer>>;
type Call = readonly [name: string, args: object];

const put = (root: string, files: Files): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  }
};
const repositoryWith = (files: Files): string => {
  const root = makeRepository();
  put(root, files);
  gitIn(root, 'add', '--all');
  gitIn(root, 'commit', '--quiet', '-m', 'files');
  return root;
};
const inWorktrees: NonNullable<Setting['workspace']> = (root, stateDir) =>
  worktreesOf(root, join(stateDir, 'worktrees'));

const inFolder: NonNullable<Setting['workspace']> = async (projectRoot) =>
  createSharedWorkspace({ projectRoot });

const read = (path: string): Call => ['read', { path }];
const write = (path: string, content: string): Call => ['write', { path, content }];
const finish: Call = ['finish', { status: 'done', summary: 'well' }];

interface Message {
  readonly role: string;
  readonly content: string;
}

/** A provider whose answers make these calls, one a turn; `stops` never answers that turn. */
const play = async (calls: readonly Call[], given: Setting, stops?: number) => {
  const setting: Setting = { workspace: inWorktrees, ...given };
  const provider = await startModelServer((_, number): Answer => {
    if (number === stops) return { kind: 'silence' };
    const [name, args] = calls[number - 1] ?? finish;
    const call = { id: `call_${number}`, name, arguments: JSON.stringify(args) };
    return { kind: 'answer', calls: [call] };
  });
  const model = createOpenAiModel({
    protocol: 'chat',
    apiKey: 'sk-test-0123456789',
    baseURL: provider.baseURL,
  });
  const sent = (number: number): readonly Message[] =>
    (provider.requests[number]?.body['messages'] ?? []) as readonly Message[];
  return {
    provider,
    sent,
    first: () => sent(0).find(({ role }) => role === 'user')?.content ?? '',
    results: (number: number) =>
      sent(number).flatMap(({ role, content }) => (role === 'tool' ? [content] : [])),
    setting: { model, ...setting } satisfies Setting,
  };
};

const runTask = async (setting: Setting, description = 'a task', dependencies: string[] = []) => {
  const running = await startSystem(setting);
  const { task_id: id } = await running.service.create({ description, dependencies });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  return { running, id };
};
const runToEnd = async (...given: Parameters<typeof runTask>) => {
  const run = await runTask(...given);
  await untilStatus(run.running, run.id, 'complete');
  return run;
};
const said = async (files: Files, more: Partial<Setting> = {}): Promise<string> => {
  const played = await play([], { root: repositoryWith(files), ...more });
  await runToEnd(played.setting);
  return played.first();
};

test('the AGENTS.md of the commit comes before the task, as what the project says', async () => {
  const root = repositoryWith({ 'AGENTS.md': 'Use ``` tabs.\r\n', 'CLAUDE.md': 'Not read.' });
  put(root, { 'AGENTS.md': 'Not committed.' });
  const { first, sent, setting } = await play([], { root });

  await runToEnd(setting);

  expect(first()).toMatch(/^# What the project says\n\nIt adds [^\n]* changes no rule[^\n]*\n\n/);
  expect(first()).toContain('AGENTS.md:\n\n````text\nUse ``` tabs.\n````\n\nDo this task.');
  expect(JSON.stringify(sent(0))).not.toMatch(/Not read|Not committed/);
  expect(sent(0)[0]?.content).not.toContain('tabs');
});

test('CLAUDE.md is read where AGENTS.md is missing, or is a link', async () => {
  const root = repositoryWith({ 'CLAUDE.md': 'Use spaces.' });
  symlinkSync('CLAUDE.md', join(root, 'AGENTS.md'));
  gitIn(root, 'add', '--all');
  gitIn(root, 'commit', '--quiet', '-m', 'link');
  const { first, setting } = await play([], { root });

  await runToEnd(setting);

  expect(first()).toContain('CLAUDE.md:\n\n```text\nUse spaces.\n```');
});

test('a project without instructions has the same prompt as before', async () => {
  expect(await said({ 'b.txt': 'b' })).toMatch(/^Do this task\./);
});

test('a project in a subfolder gets the one at the top of the repository and its own', async () => {
  const root = repositoryWith({
    'AGENTS.md': 'Of all.',
    'apps/AGENTS.md': 'Of apps.',
    'apps/shop/AGENTS.md': 'Of the shop.',
    'apps/other/AGENTS.md': 'Of another.',
    'apps/shop/src/AGENTS.md': 'Of its sources.',
    'apps/shop/src/a.js': 'a',
  });
  const played = await play([read('src/a.js')], { root: join(root, 'apps', 'shop') });

  await runToEnd(played.setting);

  expect(played.first().match(/^\S+\.md:$|^Of .*/gm)).toEqual([
    ...['../../AGENTS.md:', 'Of all.', '../AGENTS.md:', 'Of apps.'],
    ...['AGENTS.md:', 'Of the shop.'],
  ]);
  expect(played.results(1)[0]).toContain('src/AGENTS.md:\n\n```text\nOf its sources.');
});

test('the instructions of a folder come once, with the first call that touches a file below it', async () => {
  const root = repositoryWith({
    'packages/a/AGENTS.md': 'Of a.',
    'packages/a/deep/CLAUDE.md': 'Of deep.',
    'packages/a/deep/x.js': 'x',
    'packages/b/AGENTS.md': 'Of b.',
  });
  const played = await play(
    [
      read('packages/a/none.js'),
      read('packages/a/deep/x.js'),
      read('packages/a/deep/x.js'),
      write('packages/b/new/y.js', 'y'),
    ],
    { root },
  );

  await runToEnd(played.setting);

  const [missing, first, second, third] = played.results(4);
  expect(played.first()).not.toContain('Of ');
  expect(missing).not.toContain('Of ');
  expect(first).toMatch(/^x\n\n\[The project says[^\n]*changes no rule[^\n]*\]\n\n/);
  expect(first).toContain('packages/a/AGENTS.md:\n\n```text\nOf a.\n```');
  expect(first).toContain('packages/a/deep/CLAUDE.md:\n\n```text\nOf deep.\n```');
  expect(second).toBe('x');
  expect(third).toContain('Of b.');
});

test('nothing that an agent wrote is read: not in its folder, not from a dependency that nobody merged', async () => {
  const root = repositoryWith({ 'AGENTS.md': 'Of a person.', 'lib/x.js': 'x' });
  const one = await play(
    [write('AGENTS.md', 'Of an agent.'), write('lib/AGENTS.md', 'Of an agent.'), read('lib/x.js')],
    { root },
  );
  const { running, id } = await runToEnd(one.setting);
  await running.stop();
  const two = await play([read('lib/x.js')], { root, stateDir: running.stateDir });

  await runToEnd(two.setting, 'builds on it', [id]);

  expect(one.results(3).at(-1)).toBe('x');
  expect(two.first()).toContain('AGENTS.md:\n\n```text\nOf a person.');
  expect(two.results(1)).toEqual(['x']);
});

test('where work is merged that nobody looked at, nothing is read from the branch', async () => {
  const files = {
    'AGENTS.md': 'Of whom?',
    '.agents/skills/a/SKILL.md': '---\ndescription: a\n---\n',
  };

  expect(await said(files, { options: { merge: 'ff' } })).toMatch(/^Do this task\./);
});

test('an attempt is shown 32 KiB in all, cut on a whole line, and told so', async () => {
  const line = `${'ä'.repeat(49)}\n`;
  const root = repositoryWith({
    'AGENTS.md': line.repeat(300),
    'a/AGENTS.md': line.repeat(100),
    'a/x.js': 'x',
    'b/AGENTS.md': 'Of b.',
    'b/x.js': 'x',
  });
  const played = await play([read('a/x.js'), read('b/x.js')], { root });

  await runToEnd(played.setting);

  const [a = '', b = ''] = played.results(2);
  const lines = (text: string) => text.match(/^ä+$/gm) ?? [];
  expect(lines(played.first())).toHaveLength(300);
  expect(lines(a).length).toBeGreaterThan(25);
  expect((300 + lines(a).length) * 99 - 2).toBeLessThanOrEqual(32 * 1024);
  expect(new Set(lines(a))).toEqual(new Set([line.trim()]));
  expect(a).toContain('a/AGENTS.md is cut here');
  expect(Buffer.byteLength(played.first() + a + b)).toBeLessThan(34 * 1024);
});

test('a skill is listed by name and description, and read on demand', async () => {
  const text = `---\nname: "deploy"\ndescription: >\n  How to\n  deploy.\nother: [\n---\n# Steps\n`;
  const root = repositoryWith({
    '.agents/skills/deploy/SKILL.md': text,
    '.agents/skills/plain/SKILL.md': '---\ndescription: Plain.\n---\n',
    '.agents/skills/deploy/more/SKILL.md': '---\ndescription: too deep\n---\n',
    '.agents/skills/none/SKILL.md': 'no front matter',
    '.agents/skills/odd name/SKILL.md': '---\ndescription: odd\n---\n',
  });
  const played = await play([read('.agents/skills/deploy/SKILL.md')], { root });

  await runToEnd(played.setting);

  expect(played.first()).toContain(
    '```text\n- deploy (.agents/skills/deploy/SKILL.md): How to deploy.\n- plain (.agents/skills/plain/SKILL.md): Plain.\n```',
  );
  expect(played.first()).not.toMatch(/too deep|odd|Steps/);
  expect(played.results(1)[0]).toContain('# Steps');
});

test('hostile files break nothing and grow nothing', async () => {
  const skills = Object.fromEntries(
    Array.from({ length: 300 }, (_, at) => [
      `.agents/skills/s${String(at).padStart(5, '0')}/SKILL.md`,
      `---\nname: ${'n'.repeat(500)}\ndescription: ${'d'.repeat(5_000)}\n---\n`,
    ]),
  );
  const first = await said({
    ...skills,
    'AGENTS.md': Buffer.from('a\u001b[2Jb\u202ec\u0007 \xff\xfe', 'latin1'),
    '.agents/skills/r/SKILL.md': '---\n: {{{ [&a *a\n---\n',
  });

  expect(first).toContain('AGENTS.md:');
  for (const hidden of ['\u001b', '\u0007', '\u202e']) expect(first).not.toContain(hidden);
  // One of the first 50 says nothing of itself.
  expect(first.match(/^- n+ /gm)).toHaveLength(49);
  expect(Buffer.byteLength(first)).toBeLessThan(33 * 1024);
});

test.each([
  ['binary', Buffer.from('a\0b')],
  ['larger than 1 MiB', 'x\n'.repeat(600_000)],
])('an AGENTS.md that is %s is not shown, and the agent is told', async (_, content) => {
  const first = await said({ 'AGENTS.md': content });

  expect(first).toContain(
    'AGENTS.md is not shown: it is no text, or larger than 1 MiB.\n\nDo this',
  );
});

test('after a crash the agent goes on with the same bytes, and is not told again', async () => {
  const root = repositoryWith({
    'AGENTS.md': 'First.',
    'lib/AGENTS.md': 'Of lib.',
    'lib/x.js': 'x',
  });
  const calls = [read('lib/x.js'), read('lib/x.js'), read('lib/x.js')];
  const before = await play(calls, { root }, 3);
  const { running, id } = await runTask(before.setting);
  await expect.poll(() => before.provider.requests.length).toBe(3);
  const left = await crash(running, before.setting);
  put(left.root, { 'AGENTS.md': 'Second.', 'lib/AGENTS.md': 'Second.' });
  gitIn(left.root, 'commit', '--quiet', '-a', '-m', 'second');
  const after = await play([read('lib/x.js')], {});

  const again = await startSystem({ ...left, model: after.setting.model });
  await untilStatus(again, id, 'complete');

  const sent = before.sent(2);
  expect(after.sent(0).slice(0, sent.length)).toEqual(sent);
  expect(JSON.stringify(after.sent(1))).not.toContain('Second.');
  expect(JSON.stringify(after.sent(1)).match(/Of lib\./g)).toHaveLength(1);
});

test('in a shared folder nothing is read, since an agent may have written it', async () => {
  const root = temporaryFolder();
  put(root, {
    'AGENTS.md': 'Of an agent.',
    '.agents/skills/a/SKILL.md': '---\nname: a\ndescription: Does a.\n---\n',
  });
  const { first, setting } = await play([], { root, workspace: inFolder });

  await runToEnd(setting);

  expect(first()).toMatch(/^Do this task\./);
});
