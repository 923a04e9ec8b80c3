import { existsSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createCommandAssistant } from '../../../src/actors/assistants/command.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import { fakeAssistants } from '../../support/assistants.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { noSandbox, testUnless } from '../../support/needs.ts';
import {
  finish,
  type Running,
  type Setting,
  startSystem,
  type Turn,
  untilStatus,
} from '../../support/running.ts';

const write = (path: string, content: string): Turn => ({
  calls: [{ tool: 'write', arguments: { path, content } }],
});
const bash = (command: string): Turn => ({ calls: [{ tool: 'bash', arguments: { command } }] });

const workspace: NonNullable<Setting['workspace']> = (root, stateDir) =>
  worktreesOf(root, join(stateDir, 'worktrees'));
const start = (setting: Setting): Promise<Running> =>
  startSystem({ root: makeRepository(), workspace, ...setting });

const create = async (
  { service }: Running,
  description = 'Add a file',
  dependencies: readonly string[] = [],
) => (await service.create({ description, dependencies })).task_id;
const run = ({ service }: Running, task: string) =>
  service.execute({ task, role: 'engineer', options: {} });

const messages = ({ store }: Running, taskId: string): readonly string[] =>
  store
    .read({ taskId, after: 0, limit: 1_000 })
    .filter(({ type }) => type === 'log')
    .map(({ data }) => JSON.parse(data).message);

/** Whether later tasks may begin with the work of the first attempt. */
const isKeptAsComplete = ({ stateDir }: Running, taskId: string): boolean =>
  JSON.parse(readFileSync(join(stateDir, 'worktrees', `${taskId}@1.json`), 'utf8')).complete;

test('finished work is on its branch, and the results say where', async () => {
  const running = await start({ turns: [write('b.txt', 'new\n'), finish()] });
  const id = await create(running);

  await run(running, id);
  await untilStatus(running, id, 'complete');

  const results = readFileSync(
    join(running.root, '.beads', 'tasks', `task-${id}`, '30-results.md'),
    'utf8',
  );
  expect(gitIn(running.root, 'show', `agent/${id}/1:b.txt`)).toBe('new');
  expect(existsSync(join(running.root, 'b.txt'))).toBe(false);
  expect(results).toContain(
    `1 file changed, 1 insertion, 0 deletions, on the branch agent/${id}/1`,
  );
  expect(results).toContain(`agent merge ${id}`);
  expect(isKeptAsComplete(running, id)).toBe(true);
  expect(messages(running, id)).toEqual([
    `1 file changed, 1 insertion, 0 deletions, on the branch agent/${id}/1`,
  ]);
});

test('files left by verify commands are no part of the work, over all rounds', {
  tags: ['slow'],
}, async () => {
  const turns = [write('b.txt', 'one\n'), finish(), write('b.txt', 'two\n'), finish()];
  const verify = ['echo $$ >> coverage.json; grep -q two b.txt'];
  const running = await start({ turns, role: { verify } });
  const id = await create(running);

  await run(running, id);
  await untilStatus(running, id, 'complete');

  expect(gitIn(running.root, 'diff', '--name-only', `main...agent/${id}/1`)).toBe('b.txt');
  expect(gitIn(running.root, 'show', `agent/${id}/1:b.txt`)).toBe('two');
});

test.each([
  ['cancelled', bash('sleep 600')],
  ['failed', finish('no', 'failed')],
] as const)(
  'changes of a %s attempt are kept on its branch, and its folder is gone',
  async (end, last) => {
    const running = await start({ turns: [write('b.txt', 'half\n'), last] });
    const id = await create(running);
    await run(running, id);

    if (end === 'cancelled') {
      while (!readFile(running, id).includes('sleep 600')) await new Promise(setImmediate);
      await running.service.cancel(id, null);
    }
    await untilStatus(running, id, end);

    expect(gitIn(running.root, 'show', `agent/${id}/1:b.txt`)).toBe('half');
    expect(existsSync(join(running.stateDir, 'worktrees', `${id}@1`))).toBe(false);
    expect(gitIn(running.root, 'worktree', 'list').split('\n')).toHaveLength(1);
    expect(isKeptAsComplete(running, id)).toBe(false);
  },
);

const readFile = ({ store }: Running, taskId: string): string =>
  store.latest(taskId, 'tool_start')?.data ?? '';

test('an attempt begins with the work before a task that a person closed', {
  tags: ['slow'],
}, async () => {
  const running = await start({ turns: [bash('cat b.txt || echo new > b.txt'), finish()] });
  const first = await create(running);
  await run(running, first);
  await untilStatus(running, first, 'complete');
  const approval = await create(running, 'Approve it', [first]);
  await running.service.close(approval, null);
  const last = await create(running, 'Go on', [approval]);

  await run(running, last);
  const { work } = await untilStatus(running, last, 'complete');

  expect(work).toBeUndefined();
});

test('an attempt whose folder somebody removed fails, since its work is lost', async () => {
  const running = await start({ turns: [bash('rm -rf "$PWD"'), finish()] });
  const id = await create(running);

  await run(running, id);
  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('is gone') },
  });
  expect(readFileSync(join(running.root, view.results_path ?? ''), 'utf8')).toContain('is gone');
});

test.each([
  ['our own loop', {}],
  ['an assistant', { backend: 'command' as const }],
])(
  'work of a dependency that conflicts with the branch of the project is reported: %s',
  { tags: ['slow'] },
  async (_, options) => {
    const turns = [write('a.txt', 'theirs\n'), finish()];
    const command = createCommandAssistant(['/bin/sh', '-c', 'echo theirs > a.txt; echo done']);
    const assistants = fakeAssistants({ command, sandboxed: false });
    const running = await start({ turns, options, assistants });
    const first = await create(running);
    await run(running, first);
    await untilStatus(running, first, 'complete');
    commitIn(running.root, 'a.txt', 'ours\n');
    const second = await create(running, 'Go on', [first]);

    await run(running, second);
    const view = await untilStatus(running, second, 'complete', 'failed');
    const { conflicts } = await running.service.explain(second);

    const branch = `agent/${first}/1`;
    expect(view.status).toBe('complete');
    expect(messages(running, second)).toContain(
      `works without the work of ${first} (${branch}), which conflicts in a.txt`,
    );
    expect(readFileSync(join(running.root, view.results_path ?? ''), 'utf8')).toContain(
      `## Conflicts\n\nThe attempt began without work that it builds on, since it conflicts with the project's branch.\n\n- ${first}, on the branch ${branch}: a.txt\n`,
    );
    expect(conflicts).toEqual([{ task_id: first, branch, files: ['a.txt'] }]);
    expect((await running.service.explain(first)).conflicts).toEqual([]);
  },
);

test('work sent back by a check goes on in the same folder', { tags: ['slow'] }, async () => {
  const turns = [finish('too early'), write('b.txt', 'new\n'), finish()];
  const running = await start({ turns, role: { verify: ['test -f b.txt'] } });
  const id = await create(running);

  await run(running, id);
  const view = await untilStatus(running, id, 'complete', 'failed');

  expect([view.status, view.attempt]).toEqual(['complete', 1]);
  expect(gitIn(running.root, 'show', `agent/${id}/1:b.txt`)).toBe('new');
});

test('an attempt that a crash cut short goes on in its folder', { tags: ['slow'] }, async () => {
  const hang = { ...finish(), calls: [{ tool: 'ask', arguments: { question: 'Which?' } }] };
  const first = await start({ turns: [write('b.txt', 'before\n'), hang, finish()] });
  const id = await create(first);
  await run(first, id);
  while ((await first.service.status(id)).awaiting === undefined) await new Promise(setImmediate);
  const seq = first.store.lastSeq();
  await first.stop();

  const next = await startSystem({
    root: first.root,
    stateDir: first.stateDir,
    workspace,
    turns: [finish(), hang, finish()],
  });
  while (next.store.lastSeq() === seq || (await next.service.status(id)).phase !== 'awaiting_input')
    await new Promise(setImmediate);
  const { awaiting, attempt } = await next.service.status(id);
  const response = {
    type: 'respond',
    inputId: awaiting?.input_id ?? '',
    text: 'b',
    decision: null,
  } as const;
  await next.service.respond(id, attempt, response);
  await untilStatus(next, id, 'complete');

  expect(gitIn(first.root, 'show', `agent/${id}/1:b.txt`)).toBe('before');
});

test('work that could not be saved when an attempt ended is saved by the next server', async () => {
  const first = await start({ turns: [write('b.txt', 'half\n'), bash('sleep 600')] });
  const id = await create(first);
  await run(first, id);
  while (!readFile(first, id).includes('sleep 600')) await new Promise(setImmediate);
  const planted = join(first.root, '.git', 'objects', 'zz');
  symlinkSync('/etc', planted);
  await first.service.cancel(id, null);
  const folder = join(first.stateDir, 'worktrees', `${id}@1`);
  const left = readFileSync(join(folder, 'b.txt'), 'utf8');
  const said = messages(first, id)[0];
  await first.stop();
  rmSync(planted);

  await startSystem({ root: first.root, stateDir: first.stateDir, workspace });
  while (existsSync(folder)) await new Promise(setImmediate);

  expect(left).toBe('half\n');
  expect(said).toMatch(/^what was changed stays in its folder: .* is not a plain file or folder/);
  expect(gitIn(first.root, 'show', `agent/${id}/1:b.txt`)).toBe('half');
});

test('the folder of an attempt that cannot be restored yet is left as it is', async () => {
  const first = await start({
    turns: [write('b.txt', 'half\n'), bash('sleep 600')],
    tampered: true,
  });
  const id = await create(first);
  await run(first, id);
  while (!readFile(first, id).includes('sleep 600')) await new Promise(setImmediate);
  await first.stop();
  const store = createSqliteStore({
    file: join(first.stateDir, 'journal.db'),
    redact: (text) => text,
  });
  const saved = store.actor(id);
  if (saved === null) throw new Error('nothing was saved');
  await store.commit({ entries: [], actor: { ...saved, version: 99 } });
  store.close();

  let isSwept = false;
  const sweeping: typeof workspace = async (...where) => {
    const opened = await workspace(...where);
    const sweep = (...how: Parameters<typeof opened.sweep>) =>
      opened.sweep(...how).finally(() => (isSwept = true));
    return { ...opened, sweep };
  };
  const next = await startSystem({
    root: first.root,
    stateDir: first.stateDir,
    workspace: sweeping,
    tampered: true,
  });
  while (!isSwept) await new Promise(setImmediate);

  expect(readFileSync(join(first.stateDir, 'worktrees', `${id}@1`, 'b.txt'), 'utf8')).toBe(
    'half\n',
  );
  expect(next.logged.map(({ message }) => message)).toContain(
    'no server knows the charts that saved these tasks; they wait for one',
  );
});

test('with workspace.merge the work is in the project folder before the task is complete', {
  tags: ['slow'],
}, async () => {
  const running = await start({
    turns: [write('b.txt', 'new\n'), finish()],
    options: { merge: 'squash' },
  });
  const id = await create(running, 'Add b');
  await run(running, id);

  await untilStatus(running, id, 'complete');

  expect(readFileSync(join(running.root, 'b.txt'), 'utf8')).toBe('new\n');
  expect(gitIn(running.root, 'log', '-1', '--format=%s')).toBe('Add b');
  expect(messages(running, id)[1]).toMatch(/^merged into main \([0-9a-f]{12}\), not tested$/);
});

test('work that cannot be merged stays on its branch, its task is complete, and the log says what is in the way', {
  tags: ['slow'],
}, async () => {
  const root = makeRepository();
  const meanwhile = bash(
    `cd ${root} && echo ours > a.txt && git commit --quiet --all -m meanwhile`,
  );
  const turns = [write('a.txt', 'theirs\n'), meanwhile, finish()];
  const running = await start({ root, turns, options: { merge: 'squash' } });
  const id = await create(running, 'Change a');
  await run(running, id);
  await untilStatus(running, id, 'complete');

  const { tasks } = await running.service.list({});
  expect(tasks).toMatchObject([{ title: 'Change a', status: 'complete' }]);
  expect(messages(running, id)[1]).toBe(
    `not merged: both main and agent/${id}/1 changed the same lines`,
  );
  expect(readFileSync(join(root, 'a.txt'), 'utf8')).toBe('ours\n');
  expect(gitIn(root, 'show', `agent/${id}/1:a.txt`)).toBe('theirs');
});

test('three agents on one repository change the same file side by side', {
  tags: ['slow'],
}, async () => {
  const running = await start({
    turns: [bash('echo $$ > a.txt; sleep 0.2; cat a.txt > copy.txt'), finish()],
  });
  const ids = await Promise.all([1, 2, 3].map(() => create(running)));

  await Promise.all(ids.map((id) => run(running, id)));
  await Promise.all(ids.map((id) => untilStatus(running, id, 'complete')));

  const contents = ids.map((id) =>
    ['a.txt', 'copy.txt'].map((file) => gitIn(running.root, 'show', `agent/${id}/1:${file}`)),
  );
  for (const [own, copy] of contents) expect(copy).toBe(own);
  expect(new Set(contents.map(([own]) => own)).size).toBe(3);
  expect(gitIn(running.root, 'status', '--porcelain', '--', 'a.txt')).toBe('');
});

const held: typeof workspace = (root, stateDir) =>
  worktreesOf(root, join(stateDir, 'worktrees'), [], { sandboxed: true });
const sandbox = createBubblewrap({ readPaths: [], network: false });
testUnless(noSandbox)(
  'long output of a command is kept, named in the results, and read by a later command',
  async () => {
    const root = makeRepository();
    const turns = [
      bash('seq 1 9000'),
      bash(`cat ${root}/.beads/tasks/*/logs/1-1.1.log | grep -n '^4567$'`),
      finish(),
    ];
    const running = await start({ root, turns, sandbox, workspace: held });
    const id = await create(running);
    await run(running, id);
    await untilStatus(running, id, 'complete');

    const folder = join(root, '.beads', 'tasks', `task-${id}`);
    const ends = running.store
      .read({ taskId: id, after: 0, limit: 1_000 })
      .filter(({ type }) => type === 'tool_end');
    expect(JSON.parse(ends[1]?.data ?? '{}').output).toBe('4567:4567\n[exit code 0]');
    expect(readFileSync(join(folder, 'logs', '1-1.1.log'), 'utf8').split('\n')).toHaveLength(9_001);
    expect(readFileSync(join(folder, '30-results.md'), 'utf8')).toContain('- logs/1-1.1.log\n');
  },
);

testUnless(noSandbox)(
  'in the sandbox git works, and changes nothing of the repository',
  { tags: ['slow'] },
  async () => {
    const look =
      'git log --format=%s -1; git status --porcelain; git diff --stat; git -c user.name=x -c user.email=x commit -qam mine; git log --format=%s -1; git config core.pager x; rm -rf .git; echo end';
    const running = await start({
      turns: [write('a.txt', 'changed\n'), bash(look), finish()],
      sandbox,
      workspace: held,
    });
    const id = await create(running);
    await run(running, id);
    await untilStatus(running, id, 'complete');

    const output = JSON.parse(
      running.store
        .read({ taskId: id, after: 0, limit: 1_000 })
        .findLast(({ type, data }) => type === 'tool_end' && data.includes('bash'))?.data ?? '{}',
    ).output;
    expect(output).toContain('change a.txt\n M a.txt\n');
    for (const line of [/^mine$/m, /busy$/m, /^end$/m]) expect(output).toMatch(line);
    expect(gitIn(running.root, 'log', '--format=%s', `agent/${id}/1`)).toBe(
      'Add a file\nchange a.txt',
    );
    expect(gitIn(running.root, 'config', '--list', '--local')).not.toContain('pager');
  },
);
