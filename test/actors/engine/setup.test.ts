import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { SetupSettings } from '../../../src/actors/engine/attempts/setup-worktree.ts';
import type { Model } from '../../../src/actors/model/port.ts';
import { parseScript } from '../../../src/actors/model/script.ts';
import { createScriptedModel } from '../../../src/actors/model/scripted.ts';
import type { Sandbox } from '../../../src/actors/sandbox/port.ts';
import { createNoSandbox } from '../../../src/actors/sandbox/run-sandboxed.ts';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import {
  bash,
  finish,
  type Running,
  type Setting,
  startSystem,
  type Turn,
  untilStatus,
} from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const workspace: NonNullable<Setting['workspace']> = (root, stateDir) =>
  worktreesOf(root, join(stateDir, 'worktrees'));

const setupOf = (over: Partial<SetupSettings> = {}): SetupSettings => ({
  commands: ['mkdir node_modules && date +%N > node_modules/made'],
  network: false,
  timeoutMs: 20_000,
  cache: ['node_modules'],
  ...over,
});

/** Notes for each command whether it had the network. */
const watched = (seen: boolean[]): Sandbox => {
  const real = createNoSandbox();
  return {
    ...real,
    confine: (wanted) => {
      seen.push(wanted.network !== false);
      return real.confine(wanted);
    },
  };
};

/** The agent writes down what the setup made for it, where git sees it. */
const look: Turn = bash('cat node_modules/made > seen.txt');

const start = (
  root: string,
  setup: SetupSettings | null,
  more: Setting = {},
  merge: 'none' | 'ff' = 'none',
): Promise<Running> =>
  startSystem({
    root,
    workspace,
    turns: [look, finish()],
    options: { setup, merge },
    ...more,
  });

const commitAll = (root: string, files: Readonly<Record<string, string>>): void => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, name), text);
  gitIn(root, 'add', '--', ...Object.keys(files));
  gitIn(root, 'commit', '--quiet', '-m', 'change files');
};

const project = (lock = 'one'): string => {
  const root = makeRepository();
  commitAll(root, {
    '.gitignore': 'node_modules\n',
    'package.json': '{"dependencies":{"a":"1"}}',
    'package-lock.json': lock,
  });
  return root;
};

const runOne = async (running: Running, dependencies: readonly string[] = []) => {
  const { task_id: id } = await running.service.create({ description: 'x', dependencies });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  const task = await untilStatus(running, id, 'complete', 'failed');
  return { id, task };
};
const madeFor = ({ root }: Running, id: string) => gitIn(root, 'show', `agent/${id}/1:seen.txt`);
const entriesOf = ({ store }: Running, taskId: string) =>
  store
    .read({ taskId, after: 0, limit: 1_000 })
    .map(({ type, data }) => ({ type, ...JSON.parse(data) }));
const messagesOf = (running: Running, id: string): readonly string[] =>
  entriesOf(running, id).flatMap(({ type, message }) => (type === 'log' ? [message] : []));

test('the setup runs in a new worktree before the model is called', {
  tags: ['slow'],
}, async () => {
  const running = await start(project(), setupOf());

  const { id, task } = await runOne(running);

  expect(task.status).toBe('complete');
  expect(madeFor(running, id)).not.toBe('');
  const kinds = entriesOf(running, id).map(({ type, message }) => message ?? type);
  const done = kinds.findIndex((kind) => String(kind).startsWith('setup done'));
  expect(done).toBeGreaterThan(0);
  expect(kinds.indexOf('api_call_start')).toBeGreaterThan(done);
  expect(kinds.filter((kind) => String(kind).includes('node_modules; to install'))).toEqual([]);
});

test('a setup that fails ends the attempt before a token is spent, and says why', async () => {
  const coloured = "printf '\\033[31mno registry\\033[0m\\n'; exit 3";
  const running = await start(project(), setupOf({ commands: [coloured] }));

  const { id, task } = await runOne(running);

  expect(task).toMatchObject({ status: 'failed', usage: { model_calls: 0 } });
  expect(task.error).toMatchObject({
    code: 'tool_failed',
    message: expect.stringMatching(
      /exit code 3; it ran without the network: workspace\.setup\.net/,
    ),
    facts: { exit_code: 3, output: 'no registry' },
  });
  expect(entriesOf(running, id).map(({ type }) => type)).not.toContain('api_call_start');
});

test('a setup has a time limit', { tags: ['slow'] }, async () => {
  const running = await start(project(), setupOf({ commands: ['sleep 600'], timeoutMs: 300 }));

  expect((await runOne(running)).task.error?.message).toMatch(/did not end within 0\.3 s/);
});

test('the same lockfile takes what an earlier setup made; another one is set up', {
  tags: ['slow'],
}, async () => {
  const root = project();
  const running = await start(root, setupOf());

  const [first, second] = [await runOne(running), await runOne(running)];
  commitAll(root, { 'package-lock.json': 'two' });
  const third = await runOne(running);

  expect(madeFor(running, second.id)).toBe(madeFor(running, first.id));
  expect(messagesOf(running, second.id)).toContainEqual(
    expect.stringContaining('from an earlier setup'),
  );
  expect(madeFor(running, third.id)).not.toBe(madeFor(running, first.id));
});

test('only a few setups are kept', { tags: ['slow'] }, async () => {
  const root = project();
  const running = await start(root, setupOf());

  for (let n = 0; n < 5; n += 1) {
    commitAll(root, { 'package-lock.json': `lock ${n}` });
    await runOne(running);
  }

  expect(readdirSync(join(running.stateDir, 'worktrees', 'setup'))).toHaveLength(3);
});

test('unmerged work of an agent gets no network and fills no cache', {
  tags: ['slow'],
}, async () => {
  const seen: boolean[] = [];
  const turns = [bash('echo evil > package-lock.json; cat node_modules/made > seen.txt'), finish()];
  const running = await start(project(), setupOf({ network: true }), {
    turns,
    sandbox: watched(seen),
  });
  const cache = join(running.stateDir, 'worktrees', 'setup');

  const first = await runOne(running);
  const kept = readdirSync(cache);
  seen.length = 0;
  const second = await runOne(running, [first.id]);

  expect(second.task.status).toBe('complete');
  expect(seen).not.toContain(true);
  expect(readdirSync(cache)).toEqual(kept);
});

test('unmerged work with the lockfile of the project takes what a setup of its own commit makes', {
  tags: ['slow'],
}, async () => {
  const seen: { readonly cwd: string; readonly network: boolean }[] = [];
  const real = createNoSandbox();
  const sandbox: Sandbox = {
    ...real,
    confine: (wanted) => {
      seen.push({ cwd: wanted.root, network: wanted.network !== false });
      return real.confine(wanted);
    },
  };
  const setup = setupOf({
    network: true,
    commands: ['mkdir node_modules && ls > node_modules/made'],
  });
  const running = await start(project(), setup, {
    sandbox,
    turns: [bash('touch evil; cat node_modules/made > seen.txt'), finish()],
  });
  const worktrees = join(running.stateDir, 'worktrees');
  const first = await runOne(running);
  // As when the cache was removed, or the setup was configured after the first task.
  rmSync(join(worktrees, 'setup'), { recursive: true });
  seen.length = 0;

  const second = await runOne(running, [first.id]);

  expect(second.task.status).toBe('complete');
  expect(messagesOf(running, second.id)).toEqual(
    expect.arrayContaining([
      'setup: in a folder of your own commit, which has the same lockfile',
      'setup: copies node_modules from an earlier setup with the same lockfile',
    ]),
  );
  expect(seen.filter(({ network }) => network).map(({ cwd }) => cwd)).toEqual([
    expect.stringMatching(/users-commit$/),
  ]);
  expect(existsSync(join(worktrees, 'users-commit'))).toBe(false);
});

test('a setup of the own commit that fails ends the attempt with its reason', {
  tags: ['slow'],
}, async () => {
  const root = project();
  const running = await start(root, setupOf({ network: true }));
  const first = await runOne(running);
  running.system.reconfigure({
    ...running.system.settings(),
    setup: setupOf({ network: true, commands: ['echo no such package; exit 3'] }),
  });

  const { task } = await runOne(running, [first.id]);

  expect(task.error?.message).toMatch(/"echo no such package; exit 3", ended with exit code 3$/);
});

test('work that is merged without a look is no work of a person', { tags: ['slow'] }, async () => {
  const seen: boolean[] = [];
  const running = await start(
    project(),
    setupOf({ network: true }),
    { sandbox: watched(seen) },
    'ff',
  );

  await runOne(running);

  expect(seen).not.toContain(true);
  expect(existsSync(join(running.stateDir, 'worktrees', 'setup'))).toBe(false);
});

test('a person may allow the network for a commit of theirs', async () => {
  const seen: boolean[] = [];
  const running = await start(project(), setupOf({ network: true }), { sandbox: watched(seen) });

  await runOne(running);

  expect(seen[0]).toBe(true);
  expect(seen.slice(1)).not.toContain(true);
});

test('a link in the place of the folder is not followed', { tags: ['slow'] }, async () => {
  const outside = temporaryFolder();
  const root = project();
  const running = await start(root, setupOf());
  await runOne(running);
  symlinkSync(outside, join(root, 'node_modules'));
  gitIn(root, 'add', '--force', 'node_modules');
  gitIn(root, 'commit', '--quiet', '--message', 'a link');

  await runOne(running);

  expect(readdirSync(outside)).toEqual([]);
});

test('the start of a run says what is not in the worktree and what to do', async () => {
  const root = project();
  writeFileSync(join(root, 'draft.js'), '1');
  writeFileSync(join(root, 'package.json'), '{"dependencies":{"a":"2"}}');
  writeFileSync(join(root, '.git', 'info', 'exclude'), '.env\n');
  writeFileSync(join(root, '.env'), 'x');
  mkdirSync(join(root, 'node_modules'));
  writeFileSync(join(root, 'node_modules', 'a.js'), '1');
  const prompts: string[] = [];
  const scripts = [{ turns: [{ say: '', ...finish() }] }];
  const scripted = createScriptedModel(parseScript({ scripts }));
  const model: Model = {
    ...scripted,
    ask: (request, signal) => {
      prompts.push(JSON.stringify(request.messages));
      return scripted.ask(request, signal);
    },
  };
  const running = await start(root, null, { model });

  const { id } = await runOne(running);

  const [uncommitted, ignored, packages] = messagesOf(running, id);
  expect(uncommitted).toMatch(/2 uncommitted files \(package\.json, draft\.js\); commit/);
  expect(ignored).toMatch(/\.env, which git ignores; name .* workspace\.copy/);
  expect(packages).toMatch(
    /node_modules; to install it .*: agent config set .*"commands":\["npm ci"\]/,
  );
  expect(prompts[0]).toContain('are not installed in your folder');
});

test('a shared folder needs no setup', async () => {
  const root = project();
  const running = await startSystem({
    root,
    turns: [finish()],
    options: { setup: setupOf({ commands: ['touch set-up'] }) },
  });

  await runOne(running);

  expect(existsSync(join(root, 'set-up'))).toBe(false);
});
