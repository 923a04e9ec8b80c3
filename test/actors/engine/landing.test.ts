import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { parseScript } from '../../../src/actors/model/script.ts';
import { createScriptedModel } from '../../../src/actors/model/scripted.ts';
import { type Change, ChangeRefusedError, StoreError } from '../../../src/actors/store/port.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { isRoot, testUnless } from '../../support/needs.ts';
import {
  complete,
  finish,
  landingDefaults,
  type Running,
  type Setting,
  startSystem,
  type Turn,
} from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** `total` is defined once, and whoever calls it finds it. */
const check = 'for f in calls-*; do [ ! -e "$f" ] || [ -e "$(cat "$f")" ] || exit 1; done';

const start = (setting: Setting): Promise<Running> => {
  const root = setting.root ?? makeRepository();
  if (setting.root === undefined) commitIn(root, 'total', 'defined\n');
  return startSystem({
    root,
    workspace: (project, stateDir) => worktreesOf(project, join(stateDir, 'worktrees')),
    model: createScriptedModel(parseScript({ scripts })),
    ...setting,
  });
};
const landing = (...verify: readonly string[]) => ({ landing: { ...landingDefaults, verify } });

const doing = (title: string, ...calls: Turn['calls']) => ({
  title,
  turns: [
    { say: '', calls },
    { say: '', ...finish() },
  ],
});
/** What the agent of a task with this title does. */
const scripts = [
  doing('Rename', { tool: 'bash', arguments: { command: 'mv total sum' } }),
  doing('Call', { tool: 'write', arguments: { path: 'calls-1', content: 'total\n' } }),
  doing('Other', { tool: 'write', arguments: { path: 'other.txt', content: 'x\n' } }),
  doing('Third', { tool: 'write', arguments: { path: 'third.txt', content: 'x\n' } }),
];

const head = ({ root }: Running): string => gitIn(root, 'rev-parse', 'main');
const logs = ({ store }: Running, taskId: string): readonly string[] =>
  store
    .read({ taskId, after: 0, limit: 1_000 })
    .filter(({ type }) => type === 'log')
    .map(({ data }) => JSON.parse(data).message);

/** How many wait for the work that is tested. */
const ticketsIn = ({ store }: Running): number =>
  store
    .openHosted('mergeQueue')
    .flatMap(({ snapshot }) => JSON.parse(snapshot).context.batch)
    .flatMap(({ tickets }: { tickets: string[] }) => tickets).length;

test('of two tasks that pass alone and fail together the first lands, and the branch stays green', async () => {
  const running = await start({ options: landing(check) });
  const [renamed, called] = [await complete(running, 'Rename'), await complete(running, 'Call')];

  const first = await running.service.merge({ taskId: renamed });
  const before = head(running);
  const second = await running.service.merge({ taskId: called });

  expect(first).toMatchObject({ status: 'merged', tested: [check] });
  expect(second).toMatchObject({
    status: 'conflict',
    files: [],
    why: expect.stringMatching(
      new RegExp(`^it fails together with ${renamed} \\(landed\\): the command .* ended with`),
    ),
    with: [renamed],
    failed: { command: check },
  });
  expect(head(running)).toBe(before);
  expect(gitIn(running.root, 'status', '--porcelain', '--', 'total', 'sum', 'calls-1')).toBe('');
  const message = gitIn(running.root, 'log', '-1', '--format=%B', 'main');
  const tree = gitIn(running.root, 'rev-parse', 'main^{tree}');
  expect(message.split('\n\n').at(-1)).toBe(
    `Task: ${renamed}\nAttempt: 1\nVerified: ${check}\nVerified-Tree: ${tree}`,
  );
});

test('without a test it lands when a person says so, and the log tells it', async () => {
  const running = await start({ options: landing('exit 1') });
  const id = await complete(running, 'Call');

  const refused = await running.service.merge({ taskId: id });
  const merged = await running.service.merge({ taskId: id, verify: false });

  expect(refused).toMatchObject({ status: 'conflict', failed: { command: 'exit 1' } });
  expect(merged).toMatchObject({ status: 'merged' });
  expect(merged).not.toHaveProperty('tested');
  expect(logs(running, id).at(-1)).toMatch(
    /^merged into main \([0-9a-f]{12}\), not tested, as a person said$/,
  );
});

test('a merge commit keeps the commits of the attempt, and a squash names the people who added some', async () => {
  const running = await start({ options: landing() });
  const [one, two] = [await complete(running, 'Call'), await complete(running, 'Other')];
  const { root } = running;
  gitIn(root, 'checkout', '-q', `agent/${one}/1`);
  commitIn(root, 'more.txt', 'a person\n');
  gitIn(root, 'checkout', '-q', 'main');
  await running.service.merge({ taskId: one });
  const squashed = gitIn(root, 'log', '-1', '--format=%B', 'main');
  const person = gitIn(root, 'log', '-1', '--format=%an <%ae>', `agent/${one}/1`);

  const style = { landing: { ...landing().landing, style: 'merge' as const } };
  running.system.reconfigure({ ...running.system.settings(), ...style });
  await running.service.merge({ taskId: two });

  expect(squashed).toBe(`Call\n\nTask: ${one}\nAttempt: 1\nCo-authored-by: ${person}`);
  const [first, tip, ...others] = gitIn(root, 'log', '-1', '--format=%P', 'main').split(' ');
  expect(others).toEqual([]);
  expect(tip).toBe(gitIn(root, 'rev-parse', `agent/${two}/1`));
  expect(gitIn(root, 'log', '-1', '--format=%s', first ?? '')).toBe('Call');
  expect(await running.service.undo({ taskId: two, withDependents: false })).toMatchObject({
    landed: [{ task_id: two }],
  });
});

test('a tree that passed is not tested again; when the branch moved meanwhile, another one is', async () => {
  const running = await start({
    options: landing('echo run; test -e total'),
  });
  const [one, two] = [await complete(running, 'Call'), await complete(running, 'Other')];
  await running.service.merge({ taskId: one });
  gitIn(running.root, 'reset', '-q', '--hard', 'HEAD~1');
  await running.service.merge({ taskId: one });
  commitIn(running.root, 'by-hand.txt', 'a person\n');
  await running.service.merge({ taskId: two });

  const tests = (id: string) => logs(running, id).filter((line) => line.startsWith('tests tree'));
  expect(tests(one)).toHaveLength(1);
  expect(tests(two)).toHaveLength(1);
  expect(readFileSync(join(running.root, 'by-hand.txt'), 'utf8')).toBe('a person\n');
});

testUnless(isRoot)('results that cannot be written keep nothing else of a merge', async () => {
  const running = await start({ options: landing() });
  const id = await complete(running, 'Other');
  const folder = join(running.root, '.beads', 'tasks', `task-${id}`);
  chmodSync(folder, 0o500);

  const merged = await running.service.merge({ taskId: id });

  chmodSync(folder, 0o700);
  expect(merged).toMatchObject({ status: 'merged' });
  expect(logs(running, id).at(-1)).toMatch(/^merged into main /);
});

test('a command that fails once and then passes on the same tree refuses nothing', async () => {
  const flaky = '[ -e out ] || { touch out; exit 1; }';
  const running = await start({ options: landing(flaky) });
  const id = await complete(running, 'Call');

  const merged = await running.service.merge({ taskId: id });

  expect(merged).toMatchObject({ status: 'merged' });
  expect(logs(running, id)).toContainEqual(expect.stringMatching(/^flaky: .* on the same tree$/));
  expect(gitIn(running.root, 'ls-tree', '--name-only', 'main', 'out')).toBe('');
});

test('unattended merges are tested too: what is red is left for a person', async () => {
  const running = await start({
    options: { ...landing(check), merge: 'squash' },
  });
  const renamed = await complete(running, 'Rename');
  const before = head(running);
  const called = await complete(running, 'Call');

  expect(gitIn(running.root, 'log', '-1', '--format=%B', before)).toContain(`Task: ${renamed}`);
  expect(head(running)).toBe(before);
  expect(logs(running, called)).toContainEqual(
    expect.stringMatching(/^not merged: it fails on the project.s branch as it is now: /),
  );
});

test('a setup that fails on the merged tree is no red test, and refuses by its name', async () => {
  const setup = { commands: ['test ! -e calls-1'], network: false, timeoutMs: 60_000, cache: [] };
  const running = await start({
    options: { ...landing('true'), setup },
  });
  const id = await complete(running, 'Call');

  expect(await running.service.merge({ taskId: id })).toMatchObject({
    status: 'conflict',
    why: expect.stringContaining('the setup of the worktree, "test ! -e calls-1", ended with exit'),
  });
});

test('a test is stopped when who asked goes away, and then nothing lands', async () => {
  const running = await start({ options: landing('sleep 600') });
  const id = await complete(running, 'Call');
  const before = head(running);
  const asking = new AbortController();

  const merging = running.service.merge({ taskId: id }, asking.signal);
  await vi.waitFor(() => expect(logs(running, id)).toContain('verify: sleep 600'));
  asking.abort();

  expect(await merging).toMatchObject({ status: 'conflict', why: 'who asked for it went away' });
  expect(head(running)).toBe(before);
});

test('a command that does not end is not run again', async () => {
  const running = await start({
    options: { landing: { ...landing('sleep 600').landing, timeoutMs: 500 } },
  });
  const id = await complete(running, 'Call');

  expect(await running.service.merge({ taskId: id })).toMatchObject({
    status: 'conflict',
    why: expect.stringContaining('did not end within 0.5 s'),
  });
  expect(logs(running, id).filter((line) => line === 'verify: sleep 600')).toHaveLength(1);
});

test('of merges at once each tests the tree that it lands, and one whose asker goes away in the queue is none', async () => {
  const running = await start({ options: landing('sleep 1; echo run') });
  const ids = [await complete(running, 'Call'), await complete(running, 'Other')];
  const [call = '', other = ''] = ids;
  const gone = new AbortController();
  const first = running.service.merge({ taskId: call });
  await vi.waitFor(() => expect(logs(running, call)).toContain('verify: sleep 1; echo run'));

  const many = Array.from({ length: 100 }, () =>
    running.service.merge({ taskId: other }, gone.signal),
  );
  gone.abort();
  const second = running.service.merge({ taskId: other });

  expect(new Set((await Promise.all(many)).map(({ status }) => status))).toEqual(
    new Set(['conflict']),
  );
  expect([await first, await second]).toMatchObject([{ status: 'merged' }, { status: 'merged' }]);
  const tested = ids.map((id) => logs(running, id).filter((line) => line.startsWith('tests tree')));
  expect(tested.map(({ length }) => length)).toEqual([1, 1]);
});

const mergeState = async (running: Running, taskId: string) =>
  (await running.service.status(taskId)).work?.merge;

test('what fits is tested once, together, and the culprit is refused with what it fails with', async () => {
  const running = await start({ options: landing(check) });
  const ids: string[] = [];
  for (const title of ['Other', 'Rename', 'Call', 'Third'])
    ids.push(await complete(running, title));
  const [other, renamed, called, third] = ids;

  const { landed, refused } = await running.service.mergeMany({ taskIds: [], all: true });

  expect(landed.map(({ task_id, tested }) => [task_id, tested])).toEqual(
    [other, renamed, third].map((id) => [id, [check]]),
  );
  expect(refused).toMatchObject([
    { task_id: called, code: 'verify_failed', command: check, with: [renamed, other] },
  ]);
  expect(await mergeState(running, called ?? '')).toEqual({
    state: 'refused',
    message: refused[0]?.message,
    with: [renamed, other],
    command: check,
    updatable: true,
  });
  expect(await mergeState(running, third ?? '')).toEqual({ state: 'landed' });
  const { work } = await running.service.status(third ?? '');
  expect(work?.tested).toEqual({
    commands: [check],
    tested_at: expect.stringMatching(/^\d{4}-.*Z$/),
    tested_seconds: expect.any(Number),
  });
  expect(logs(running, third ?? '').at(-1)).toMatch(
    /^merged into main .* tested with .*, [\d.]+ s$/,
  );
  const trees = gitIn(
    running.root,
    'log',
    '--format=%(trailers:key=Verified-Tree,valueonly)',
    '-3',
  );
  const [newest, ...inner] = trees.split('\n').filter(Boolean);
  expect(newest).toBe(gitIn(running.root, 'rev-parse', 'main^{tree}'));
  expect(inner).toEqual([inner[0], inner[0]]);
  expect(gitIn(running.root, 'rev-parse', 'main~1^{tree}')).toBe(inner[0]);
});

test('a branch that is red by itself is told, and nobody is blamed for it', async () => {
  const running = await start({ options: landing('test -e never') });
  const id = await complete(running, 'Call');

  expect(await running.service.merge({ taskId: id })).toMatchObject({
    status: 'conflict',
    why: expect.stringMatching(/^the project's branch itself does not pass, without this work: /),
    failed: { command: 'test -e never' },
  });
});

test('the view of a refused merge has the command and the end of its output, without secrets', async () => {
  const red = 'seq 3000; echo the key is s3cret; exit 1';
  const running = await start({
    options: landing(red),
    workspace: (project, stateDir) =>
      worktreesOf(project, join(stateDir, 'worktrees'), [], {
        redact: (text) => text.replaceAll('s3cret', '[redacted]'),
      }),
  });
  const id = await complete(running, 'Call');

  await running.service.merge({ taskId: id });

  const merge = await mergeState(running, id);
  expect(merge).toMatchObject({ state: 'refused', command: red.replace('s3cret', '[redacted]') });
  expect(merge?.message).not.toContain('s3cret');
  expect(merge?.output?.split('\n').length).toBeLessThanOrEqual(40);
  expect(merge?.output?.split('\n').slice(-2)).toEqual(['3000', 'the key is [redacted]']);
});

test('a queue goes on after a restart, and lands what was asked for', async () => {
  const release = join(temporaryFolder(), 'go');
  const verify = `until [ -e ${release} ]; do sleep 0.1; done`;
  const first = await start({ options: landing(verify) });
  const id = await complete(first, 'Call');
  void first.service.merge({ taskId: id }).catch(() => {});
  await vi.waitFor(() => expect(logs(first, id)).toContain(`verify: ${verify}`));
  expect(await mergeState(first, id)).toEqual({ state: 'testing' });
  await first.stop();
  // The process of a server ends with its test; this one goes on.
  const candidate = join(first.stateDir, 'worktrees', 'candidate');
  await vi.waitFor(() => expect(existsSync(candidate)).toBe(false));
  writeFileSync(release, '');

  const { root, stateDir } = first;
  const second = await start({ root, stateDir, options: landing(verify) });

  await vi.waitFor(async () => expect(await mergeState(second, id)).toEqual({ state: 'landed' }));
  expect(gitIn(root, 'ls-tree', '--name-only', 'main', 'calls-1')).toBe('calls-1');
});

test('who does not wait for a test goes away, and the merge goes on', async () => {
  const release = join(temporaryFolder(), 'go');
  const verify = `until [ -e ${release} ]; do sleep 0.1; done`;
  const running = await start({ options: landing(verify) });
  const id = await complete(running, 'Call');
  expect(await running.system.checkMerges()).toMatchObject({ ok: true, state: 'empty' });
  const asking = new AbortController();
  const request = { taskIds: [id], all: false, waitSeconds: 0.2 };

  const answer = await running.service.mergeMany(request, asking.signal);
  asking.abort();
  await vi.waitFor(() => expect(logs(running, id)).toContain(`verify: ${verify}`));
  const check = await running.system.checkMerges();
  writeFileSync(release, '');

  expect(answer).toEqual({ landed: [], refused: [], waiting: [id] });
  expect(check).toEqual({ ok: true, detail: 'testing: 1 merge', state: 'testing' });
  await vi.waitFor(async () => expect(await mergeState(running, id)).toEqual({ state: 'landed' }));
  const undo = { taskId: id, withDependents: false, waitSeconds: 60 };
  expect(await running.service.undo(undo)).toMatchObject({
    landed: [{ task_id: id }],
    refused: [],
  });
});

test('who asks again and again without waiting makes the queue no larger', async () => {
  const release = join(temporaryFolder(), 'go');
  const verify = `until [ -e ${release} ]; do sleep 0.1; done`;
  const running = await start({ options: landing(verify) });
  const ids = [await complete(running, 'Call'), await complete(running, 'Other')];
  const ask = () => running.service.mergeMany({ taskIds: ids, all: false, waitSeconds: 0 });
  const size = async (): Promise<number> =>
    JSON.stringify(await running.store.openHosted('mergeQueue')).length;
  await ask();
  for (const id of ids)
    await vi.waitFor(async () =>
      expect(await mergeState(running, id)).toEqual({ state: 'testing' }),
    );
  const before = await size();

  for (let n = 0; n < 50; n += 1) expect((await ask()).waiting).toEqual(ids);

  expect(await size()).toBe(before);
  writeFileSync(release, '');
  for (const id of ids)
    await vi.waitFor(async () =>
      expect(await mergeState(running, id)).toEqual({ state: 'landed' }),
    );
});

test('a cancel takes a merge out of the queue, whoever waits is told, and the rest lands', async () => {
  const release = join(temporaryFolder(), 'go');
  const verify = `until [ -e ${release} ]; do sleep 0.1; done`;
  const running = await start({
    options: { landing: { ...landing(verify).landing, maxBatch: 2 } },
  });
  const [one, two] = [await complete(running, 'Call'), await complete(running, 'Other')];
  const waits = await complete(running, 'Third');
  const merging = running.service.mergeMany({ taskIds: [one, two, waits], all: false });
  await vi.waitFor(() => expect(logs(running, two)).toContain(`verify: ${verify}`));

  const cancelled = await running.service.cancel(one, 'not yet');
  await running.service.cancel(waits, null);
  const again = running.service.merge({ taskId: one });
  writeFileSync(release, '');
  const { landed, refused } = await merging;

  expect(cancelled).toMatchObject({ status: 'complete', attempt: 1 });
  expect(cancelled.work).not.toHaveProperty('merge');
  expect(landed.map(({ task_id }) => task_id)).toEqual([two]);
  const message = 'a person took it out of the merge queue';
  expect(refused).toMatchObject([one, waits].map((task_id) => ({ task_id, message })));
  expect(logs(running, one)).toContain(`${message}: not yet`);
  expect(await again).toMatchObject({ status: 'merged' });
  await expect(running.service.cancel(two, null)).rejects.toMatchObject({
    code: 'event_not_allowed',
  });
  expect(gitIn(running.root, 'ls-tree', '--name-only', 'main')).not.toContain('third.txt');
});

test('a test goes on when one of two who wait for the same work goes away', async () => {
  const folder = temporaryFolder();
  const [begun, release] = [join(folder, 'begun'), join(folder, 'go')];
  const verify = `echo >> ${begun}; until [ -e ${release} ]; do sleep 0.1; done`;
  const running = await start({ options: landing(verify) });
  const id = await complete(running, 'Call');
  const first = running.service.merge({ taskId: id });
  await vi.waitFor(() => expect(existsSync(begun)).toBe(true), { timeout: 10_000 });
  const goes = new AbortController();
  const second = running.service.merge({ taskId: id }, goes.signal);
  await vi.waitFor(() => expect(ticketsIn(running)).toBe(2));

  goes.abort();
  await second;
  writeFileSync(release, '');

  expect(await first).toMatchObject({ status: 'merged' });
  expect(readFileSync(begun, 'utf8')).toBe('\n');
});

test('who joins while the queue cannot be saved begins no second one', async () => {
  const release = join(temporaryFolder(), 'go');
  const verify = `until [ -e ${release} ]; do sleep 0.1; done`;
  const running = await start({ options: landing(verify) });
  const ids = [await complete(running, 'Call'), await complete(running, 'Other')];
  const first = running.service.merge({ taskId: ids[0] ?? '' });
  await vi.waitFor(() => expect(logs(running, ids[0] ?? '')).toContain(`verify: ${verify}`));
  const { store } = running;
  const commit = store.commit.bind(store);
  let failures = 0;
  vi.spyOn(store, 'commit').mockImplementation((...given: Change[]) => {
    if (failures === 0 && JSON.stringify(given).includes('mergeQueue')) {
      failures += 1;
      throw new ChangeRefusedError('it is refused');
    }
    return commit(...given);
  });

  const second = running.service.merge({ taskId: ids[1] ?? '' });
  await vi.waitFor(() => expect(failures).toBe(1));
  writeFileSync(release, '');
  const merged = await Promise.all([first, second]);

  expect(merged.map(({ status }) => status)).toEqual(['merged', 'merged']);
  const entries = running.store.read({ after: 0, limit: 10_000 });
  expect(
    new Set(entries.flatMap(({ type, taskId }) => (type === 'mergeQueue' ? taskId : []))).size,
  ).toBe(1);
});

test('a queue that was saved without an answer goes on', async () => {
  const running = await start({ options: landing('true') });
  const id = await complete(running, 'Call');
  const { store } = running;
  const commit = store.commit.bind(store);
  const spy = vi.spyOn(store, 'commit').mockImplementation((...given: Change[]) => {
    const answer = commit(...given);
    if (!JSON.stringify(given).includes('mergeQueue')) return answer;
    spy.mockRestore();
    throw new ChangeRefusedError('the answer is lost');
  });

  await expect(running.service.merge({ taskId: id })).rejects.toThrow('the answer is lost');

  await vi.waitFor(async () => expect(await mergeState(running, id)).toEqual({ state: 'landed' }), {
    timeout: 30_000,
  });
});

test('a merge whose queue cannot be saved says why', async () => {
  const running = await start({ options: landing(check) });
  const id = await complete(running, 'Call');
  const commit = vi.spyOn(running.store, 'commit').mockImplementation(() => {
    throw new StoreError('the disk is full');
  });
  onTestFinished(() => commit.mockRestore());

  await expect(running.service.merge({ taskId: id })).rejects.toMatchObject({
    code: 'internal',
    message: expect.stringContaining('the mergeQueue was not saved: the disk is full'),
  });
});

test('what is told of a merge is so at once: nobody is told again when the queue goes on', async () => {
  const running = await start({ options: landing(check) });
  const [renamed, called] = [await complete(running, 'Rename'), await complete(running, 'Call')];
  const seen: Promise<unknown>[] = [];
  running.system.journal.onOwnCommit((entries) => {
    for (const { type, taskId, data } of entries)
      if (type === 'log' && / merged|^merged/.test(JSON.parse(data).message))
        seen.push(mergeState(running, taskId));
  });

  await running.service.mergeMany({ taskIds: [renamed, called], all: false });

  expect(await Promise.all(seen)).toMatchObject([{ state: 'landed' }, { state: 'refused' }]);
});

test.each([
  ['before the test', 'true', 1],
  // The folder of the test lies beside the project.
  ['while it is tested', 'echo mine > "$PROJECT/calls-1"', 2],
])(
  'files of the user in the way of one, %s, do not hold up the others',
  async (when, and, runs) => {
    const counted = join(temporaryFolder(), 'runs');
    const running = await start({ options: landing(`echo x >> ${counted}; . ${counted}.sh`) });
    writeFileSync(`${counted}.sh`, and.replace('$PROJECT', running.root));
    const [one, two] = [await complete(running, 'Call'), await complete(running, 'Other')];
    if (when === 'before the test') writeFileSync(join(running.root, 'calls-1'), 'mine\n');

    const { landed, refused } = await running.service.mergeMany({
      taskIds: [one, two],
      all: false,
    });

    expect(landed.map(({ task_id }) => task_id)).toEqual([two]);
    expect(refused).toMatchObject([{ task_id: one, code: 'merge_conflict', paths: ['calls-1'] }]);
    expect(readFileSync(join(running.root, 'calls-1'), 'utf8')).toBe('mine\n');
    expect(readFileSync(counted, 'utf8')).toBe('x\n'.repeat(runs));
    // An update would not help.
    expect(await mergeState(running, one)).toEqual({
      state: 'refused',
      message: refused[0]?.message,
      paths: ['calls-1'],
    });
  },
);

test('who cannot be merged is told so before the others are tested', async () => {
  const release = join(temporaryFolder(), 'go');
  const verify = `until [ -e ${release} ]; do sleep 0.1; done`;
  const running = await start({ options: landing(verify) });
  const [one, two] = [await complete(running, 'Call'), await complete(running, 'Other')];
  writeFileSync(join(running.root, 'calls-1'), 'mine\n');
  const merging = running.service.mergeMany({ taskIds: [one, two], all: false });
  await vi.waitFor(() => expect(logs(running, two)).toContain(`verify: ${verify}`));

  expect(await mergeState(running, one)).toMatchObject({ state: 'refused', paths: ['calls-1'] });

  writeFileSync(release, '');
  expect((await merging).landed).toMatchObject([{ task_id: two }]);
});

test('work that is discarded or reopened while it is tested does not land, and the rest does', async () => {
  const release = join(temporaryFolder(), 'go');
  const verify = `until [ -e ${release} ]; do sleep 0.1; done`;
  const running = await start({ options: landing(verify) });
  const ids: string[] = [];
  for (const title of ['Call', 'Other', 'Third']) ids.push(await complete(running, title));
  const [one = '', two = '', three = ''] = ids;

  const merging = running.service.mergeMany({ taskIds: ids, all: false });
  await vi.waitFor(() => expect(logs(running, three)).toContain(`verify: ${verify}`));
  await running.service.discard(one, null, 'no');
  await running.service.reopen(two, 'not yet');
  writeFileSync(release, '');
  const { landed, refused } = await merging;

  expect(landed.map(({ task_id }) => task_id)).toEqual([three]);
  expect(refused.map(({ task_id, message }) => [task_id, message]).toSorted()).toEqual(
    [
      [one, 'it was discarded'],
      [two, 'its task is not complete any more'],
    ].toSorted(),
  );
  expect((await running.service.decisions(null)).decisions).toContainEqual(
    expect.objectContaining({ task_id: one, kind: 'discarded', said: 'no' }),
  );
  expect(gitIn(running.root, 'ls-tree', '--name-only', 'main')).toBe('a.txt\nthird.txt\ntotal');
});

test('work that is sent back while it is tested does not land, also when another attempt is complete', async () => {
  const release = join(temporaryFolder(), 'go');
  const verify = `until [ -e ${release} ]; do sleep 0.1; done`;
  const running = await start({ options: landing(verify) });
  const id = await complete(running, 'Call');

  const merging = running.service.mergeMany({ taskIds: [id], all: false });
  await vi.waitFor(() => expect(logs(running, id)).toContain(`verify: ${verify}`));
  const comments = [{ path: 'calls-1', line: 1, endLine: null, text: 'wrong' }];
  await running.service.review(id, { verdict: 'request_changes', attempt: 1, comments });
  await vi.waitFor(async () =>
    expect(await running.service.status(id)).toMatchObject({ status: 'complete', attempt: 2 }),
  );
  writeFileSync(release, '');
  const { landed, refused } = await merging;

  expect(landed).toEqual([]);
  expect(refused).toMatchObject([
    { task_id: id, attempt: 1, message: 'its task is not complete any more' },
  ]);
});
