import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Tracker } from '../../../src/actors/tracker/port.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { aTask, describeTracker, nobody } from '../../contracts/tracker.ts';
import { anyNumber, embeddedAt, ledgerAt } from '../../support/ledger.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** A tracker whose writes are in the file when they are answered, and its ledger. */
const openAt = (projectRoot: string, clock = () => Date.now(), random = anyNumber) => {
  const ledger = ledgerAt(projectRoot);
  return {
    ledger,
    tracker: embeddedAt(projectRoot, { clock, random }, ledger),
    save: ledger.exchange.flush,
  };
};

describeTracker('embedded', async () => {
  const root = await mkdtemp(join(tmpdir(), 'agent-tracker-'));
  let now = Date.parse('2026-11-20T10:00:00.000Z');
  const tick = (): number => {
    now += 1;
    return now;
  };
  return { tracker: openAt(root, tick).tracker, close: () => rm(root, { recursive: true }) };
});

const setUp = () => {
  const root = temporaryFolder();
  const folder = join(root, '.beads');
  const file = join(folder, 'issues.jsonl');
  const lines = () => readFileSync(file, 'utf8').trimEnd().split('\n');
  const write = (text: string): void => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, text);
  };
  return { root, folder, file, lines, write, ...openAt(root) };
};

const line = (id: string, over: object = {}): string =>
  JSON.stringify({
    id,
    title: id,
    status: 'open',
    priority: 2,
    issue_type: 'task',
    created_at: '2026-01-01T00:00:00Z',
    updated_at: '2026-01-01T00:00:00Z',
    ...over,
  });

test('reading writes nothing, the first create makes a private folder', async () => {
  const { root, folder, tracker, save } = setUp();

  expect(await tracker.list()).toEqual([]);
  await save();
  expect(existsSync(folder)).toBe(false);
  await tracker.create(aTask());
  await save();

  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(readdirSync(root)).toEqual(['.beads']);
  expect(readdirSync(folder).sort()).toEqual(['.exchange', 'issues.jsonl']);
});

test("a line has bd's form, with bd's statuses only", async () => {
  const { tracker, lines, save } = setUp();
  const first = await tracker.create(aTask({ title: 'a' }));
  const second = await tracker.create(
    aTask({ title: 'b', labels: ['role:engineer'], dependencies: [first.id] }),
  );
  await tracker.close(first.id, 'Completed by agent-server (role: engineer)');
  await tracker.claim(second.id);
  await save();

  const issues = lines().map((text) => JSON.parse(text));
  const one = issues.find(({ id }) => id === first.id);
  const two = issues.find(({ id }) => id === second.id);

  expect(first.id).toMatch(/^bd-[a-z0-9]{4}$/);
  expect(one).toMatchObject({
    status: 'closed',
    close_reason: 'Completed by agent-server (role: engineer)',
  });
  expect(one.closed_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(two).toEqual({
    id: second.id,
    title: 'b',
    description: 'What it is about.',
    status: 'in_progress',
    priority: 2,
    issue_type: 'task',
    assignee: 'agent-server',
    created_at: expect.stringMatching(/Z$/),
    created_by: 'agent-server',
    updated_at: expect.stringMatching(/Z$/),
    labels: ['role:engineer'],
    dependencies: [
      {
        issue_id: second.id,
        depends_on_id: first.id,
        type: 'blocks',
        created_at: expect.any(String),
        created_by: 'agent-server',
      },
    ],
  });
  expect(issues.map(({ id }) => id)).toEqual([first.id, second.id].sort());
});

test('unknown fields come through a change untouched', async () => {
  const { write, lines, tracker, save } = setUp();
  const header = '{"_schema":"beads/1"}';
  const memory = '{"_type":"memory","key":"k","value":"v"}';
  const grave = line('bd-dead', { status: 'tombstone', deleted_by: 'x' });
  const rich = line('bd-rich', {
    _type: 'issue',
    comments: [{ id: 1, text: 'hi' }],
    metadata: { a: [1] },
    dependencies: [{ issue_id: 'bd-rich', depends_on_id: 'bd-dead', type: 'related', x: 1 }],
  });
  write(`${header}\n\n${rich}\n${memory}\n${grave}\n`);

  const { id } = await tracker.create(aTask());
  await tracker.claim('bd-rich' as TaskId);
  await save();

  const after = lines();
  expect(after).toEqual(expect.arrayContaining([header, memory, grave]));
  expect(JSON.parse(after.find((text) => text.includes('"id":"bd-rich"')) ?? '')).toMatchObject({
    _type: 'issue',
    comments: [{ id: 1, text: 'hi' }],
    metadata: { a: [1] },
    dependencies: [{ type: 'related', x: 1 }],
  });
  expect((await tracker.list()).map((task) => task.id).sort()).toEqual(['bd-rich', id].sort());
});

test('only blocking types gate; pinned and deleted tasks do not, missing ones do', async () => {
  const { write, tracker } = setUp();
  const on = (depends_on_id: string, type?: string) => ({
    depends_on_id,
    ...(type === undefined ? {} : { type }),
  });
  write(
    [
      line('bd-a'),
      line('bd-pin', { status: 'pinned' }),
      line('bd-dead', { status: 'tombstone' }),
      line('bd-x', {
        dependencies: [
          on('bd-a', 'related'),
          on('bd-a', 'parent-child'),
          on('bd-pin'),
          on('bd-dead', 'blocks'),
          on('bd-gone', 'waits-for'),
        ],
      }),
    ].join('\n'),
  );

  expect(await tracker.find('bd-x' as TaskId)).toMatchObject({
    dependencies: ['bd-pin', 'bd-dead', 'bd-gone'],
    unmet: ['bd-gone'],
  });
});

test('the child of a blocked parent is blocked; a parent that waits for its own children does not lock', async () => {
  const { write, tracker } = setUp();
  const on = (depends_on_id: string, type = 'blocks') => ({ depends_on_id, type });
  const child = (id: string, parent: string) =>
    line(id, { dependencies: [on(parent, 'parent-child')] });
  write(
    [
      line('bd-x'),
      line('bd-e', { issue_type: 'epic', dependencies: [on('bd-x')] }),
      child('bd-e.1', 'bd-e'),
      child('bd-e.1.1', 'bd-e.1'),
      line('bd-p', { dependencies: [on('bd-p.1'), on('bd-p.2')] }),
      child('bd-p.1', 'bd-p'),
      child('bd-p.2', 'bd-p'),
      // Whoever wrote these made no sense, and holds up nobody.
      child('bd-l.1', 'bd-l.2'),
      child('bd-l.2', 'bd-l.1'),
    ].join('\n'),
  );
  const unmetBy = async () =>
    Object.fromEntries((await tracker.list()).map(({ id, unmet }) => [id, unmet]));

  expect(await unmetBy()).toEqual({
    ...{ 'bd-x': [], 'bd-e': ['bd-x'], 'bd-e.1': ['bd-x'], 'bd-e.1.1': ['bd-x'] },
    ...{ 'bd-p': ['bd-p.1', 'bd-p.2'], 'bd-p.1': [], 'bd-p.2': [], 'bd-l.1': [], 'bd-l.2': [] },
  });
  const id = 'bd-e.1.1' as TaskId;
  expect(await tracker.find(id)).toMatchObject({ ready: false, unmet: ['bd-x'] });
  expect((await tracker.claim(id)).refusal).toMatchObject({
    code: 'dependencies_unmet',
    facts: { unmet: ['bd-x'] },
  });
  await tracker.close('bd-x' as TaskId, 'done');
  expect((await tracker.claim(id)).refusal).toBeNull();
});

test('what is no work, or not yet, is not ready and cannot be claimed', async () => {
  const { write, tracker } = setUp();
  const types = ['convoy', 'agent', 'role', 'event', 'memory', 'gate', 'molecule', 'message'];
  const later = new Date(Date.now() + 3_600_000).toISOString();
  write(
    [
      ...types.map((type) => line(`bd-${type}`, { issue_type: type })),
      line('bd-pinned', { pinned: true }),
      line('bd-ephemeral', { ephemeral: true }),
      line('bd-deferred', { defer_until: later }),
      line('bd-due', { defer_until: '2026-01-01T00:00:00Z' }),
      line('bd-work', { issue_type: 'bug', pinned: false }),
    ].join('\n'),
  );

  const list = await tracker.list();

  expect(list.filter(({ ready }) => ready).map(({ id }) => id)).toEqual(['bd-due', 'bd-work']);
  for (const { id, status } of list.filter(({ ready }) => !ready)) {
    expect(`bd-${status}`).toBe(id);
    expect((await tracker.claim(id)).refusal).toMatchObject({
      code: 'tracker_conflict',
      facts: { holder: `its ${status} state` },
    });
  }
});

test('a status that we do not know is shown as it is', async () => {
  const { write, tracker } = setUp();
  write(`${line('bd-a', { status: 'hooked' })}\n`);

  expect((await tracker.list())[0]?.status).toBe('hooked');
});

test('an edit by another program is seen', async () => {
  const { file, tracker, save } = setUp();
  await tracker.create(aTask());
  await save();

  appendFileSync(file, `${line('bd-new')}\n`);

  expect(await tracker.find('bd-new' as TaskId)).not.toBeNull();
  await tracker.claim('bd-new' as TaskId);
  expect(await tracker.list()).toHaveLength(2);
});

test('an edit by another program while our file is written costs neither its tasks nor ours', async () => {
  const { file, folder, tracker, save, root } = setUp();
  await tracker.create(aTask({ title: 'one' }));
  await save();
  const theirs = join(folder, 'theirs');
  for (let n = 0; n < 20; n += 1) {
    await tracker.create(aTask({ title: `ours ${n}` }));
    const saving = save();
    // Each time a little later: before the file is read, while it is synced, and between.
    for (let turn = 0; turn < n; turn += 1) await Promise.resolve();
    if (n % 3 === 0) await new Promise(setImmediate);
    writeFileSync(
      theirs,
      `${readFileSync(file, 'utf8')}${line(`bd-their${n}`, { title: `theirs ${n}` })}\n`,
    );
    renameSync(theirs, file);
    await saving;
    await save();
    const titles = await titlesOf(tracker);
    expect(titles).toEqual(await titlesOf(openAt(root).tracker));
    expect(titles).toContain(`ours ${n}`);
    expect(titles).toContain(`theirs ${n}`);
  }
});

test('a refused write makes no folder', async () => {
  const { root, tracker } = setUp();

  expect((await tracker.claim(nobody)).refusal?.code).toBe('task_not_found');
  expect(readdirSync(root)).toEqual([]);
});

test.each([
  ['deferred', { status: 'deferred', assignee: 'agent-server' }, 'its deferred state'],
  ['started by hand', { status: 'in_progress' }, 'somebody (status in_progress)'],
  ['open and assigned to another', { assignee: 'bob' }, 'bob'],
  ['started by another', { status: 'in_progress', assignee: 'bob' }, 'bob'],
])('a task that is %s is not claimed', async (_, over, holder) => {
  const { write, file, tracker } = setUp();
  const text = `${line('bd-a', over)}\n`;
  write(text);

  expect((await tracker.claim('bd-a' as TaskId)).refusal).toEqual({
    code: 'tracker_conflict',
    facts: { task_id: 'bd-a', holder },
  });
  expect(readFileSync(file, 'utf8')).toBe(text);
});

test('updated_at rises also when the clock stands still or another program is ahead of it', async () => {
  const { root, write } = setUp();
  write(`${line('bd-a', { updated_at: '2026-03-01T10:00:00.123456789Z' })}\n`);
  const { tracker } = openAt(root, () => Date.parse('2026-02-01T00:00:00Z'));
  const updatedAt = async () => (await tracker.find('bd-a' as TaskId))?.updatedAt;

  await tracker.claim('bd-a' as TaskId);
  expect(await updatedAt()).toBe('2026-03-01T10:00:00.124Z');
  await tracker.release('bd-a' as TaskId, 'agent-failed');
  expect(await updatedAt()).toBe('2026-03-01T10:00:00.125Z');
});

test('removing a dependency leaves links of other types alone', async () => {
  const { write, lines, tracker, save } = setUp();
  const link = { depends_on_id: 'bd-a', type: 'parent-child' };
  write(
    `${line('bd-a')}\n${line('bd-b', { dependencies: [link, { ...link, type: 'blocks' }] })}\n`,
  );

  await tracker.removeDependency('bd-b' as TaskId, 'bd-a' as TaskId);
  await save();

  expect(await tracker.find('bd-b' as TaskId)).toMatchObject({ dependencies: [] });
  expect(JSON.parse(lines()[1] ?? '')).toMatchObject({ dependencies: [link] });
});

const titlesOf = async (tracker: Tracker) =>
  (await tracker.list()).map(({ title }) => title).sort();

test('a last line without its end, as editors leave it, is not run into by the next task', async () => {
  const { write, lines, tracker, save } = setUp();
  write(line('bd-a'));

  const { id } = await tracker.create(aTask());
  await save();

  const ids = ['bd-a', id].sort();
  expect(lines().map((text) => JSON.parse(text).id)).toEqual(ids);
  expect((await tracker.list()).map((task) => task.id).sort()).toEqual(ids);
});

test.each([
  ['a broken line', 'the others are taken', '{"id":'],
  ['half a line that another program left', 'the others are taken', '{"id":"bd-half","titl'],
  ['zeros that a power cut left', 'the others are taken', '\0'.repeat(512)],
  ['a conflict marker', 'the import waits', '<<<<<<< HEAD'],
  ['a task that is there twice', 'the import waits', line('bd-a')],
])('with %s %s, the line is named, all else works, and the file stays', async (_, then, bad) => {
  const { write, file, tracker, save, folder } = setUp();
  write(`${line('bd-a')}\n`);
  await tracker.list();
  const text = `${line('bd-a', { title: 'theirs' })}\n${bad}\n${line('bd-b')}\n`;
  write(text);

  const { id } = await tracker.create(aTask({ title: 'ours' }));
  await tracker.claim('bd-a' as TaskId);
  await save();

  expect(await titlesOf(tracker)).toEqual(
    then === 'the import waits' ? ['bd-a', 'ours'] : ['bd-b', 'ours', 'theirs'],
  );
  expect(readFileSync(file, 'utf8')).toBe(text);
  expect(await tracker.unreadable()).toContain('.beads/issues.jsonl line 2 cannot be read');
  expect(await tracker.check()).toMatchObject({
    ok: false,
    detail: expect.stringContaining('line 2'),
  });

  write(`${line('bd-a', { title: 'theirs' })}\n${line('bd-b')}\n`);
  expect(await titlesOf(tracker)).toEqual(['bd-b', 'ours', 'theirs']);
  await save();
  expect(
    readFileSync(file, 'utf8')
      .match(/"id":"[^"]+"/g)
      ?.sort(),
  ).toEqual(['bd-a', 'bd-b', id].map((each) => `"id":"${each}"`).sort());
  expect(await tracker.unreadable()).toBeNull();
  expect(readdirSync(folder)).toEqual(['.exchange', 'issues.jsonl']);
});

test('everything is shown that can be read of the first file of a project', async () => {
  const { write, file, tracker, save } = setUp();
  const text = `${line('bd-a')}\n{"id":\n${line('bd-b')}\n`;
  write(text);

  expect((await tracker.list()).map(({ id }) => id)).toEqual(['bd-a', 'bd-b']);
  await tracker.create(aTask());
  await save();
  expect(readFileSync(file, 'utf8')).toBe(text);
});

test.each(['metadata.json', 'config.yaml', 'beads.db', 'dolt', 'embeddeddolt'])(
  "a project with %s is bd's: nothing is written",
  async (sign) => {
    const { folder, tracker, save } = setUp();
    await tracker.create(aTask());
    await save();
    writeFileSync(join(folder, sign), '');

    await expect(tracker.create(aTask())).rejects.toMatchObject({
      code: 'tracker_unavailable',
      facts: { detail: expect.stringContaining(sign) },
    });
    expect(await tracker.list()).toHaveLength(1);
    expect(await tracker.check()).toMatchObject({
      ok: false,
      detail: expect.stringContaining(sign),
    });
  },
);

test('a backup of a database does not make the project bd-owned', async () => {
  const { folder, tracker } = setUp();
  mkdirSync(folder);
  writeFileSync(join(folder, 'beads.backup-2026.db'), '');

  await tracker.create(aTask());

  expect((await tracker.check()).ok).toBe(true);
});

test('a folder in place of the file is said by name', async () => {
  const { file, tracker } = setUp();
  mkdirSync(file, { recursive: true });

  const reason = {
    code: 'tracker_unavailable',
    message: expect.stringContaining(`${file} is not a regular file`),
  };
  await expect(tracker.list()).rejects.toMatchObject(reason);
  await expect(tracker.create(aTask())).rejects.toMatchObject(reason);
});

test('a folder that cannot be used is said by name', async () => {
  const { root, tracker } = setUp();
  writeFileSync(join(root, '.beads'), 'not a folder');

  await expect(tracker.create(aTask())).rejects.toMatchObject({ code: 'tracker_unavailable' });
  await expect(tracker.list()).rejects.toMatchObject({ code: 'tracker_unavailable' });
  expect((await tracker.check()).ok).toBe(false);
});

test('two clones of a project lose nothing of each other', async () => {
  const { root } = setUp();
  const [one, other] = [openAt(root), openAt(root)];

  for (let n = 0; n < 20; n += 1) {
    const { tracker, save } = n % 2 === 0 ? one : other;
    await tracker.create(aTask({ title: `t${n}` }));
    await save();
  }

  expect(await titlesOf(one.tracker)).toEqual(await titlesOf(openAt(root).tracker));
  expect(await one.tracker.list()).toHaveLength(20);
});

test.each([
  [499, 4],
  [500, 5],
  [1_500, 6],
])('with %i tasks a new id has %i characters', async (count, length) => {
  const { write, tracker } = setUp();
  write(Array.from({ length: count }, (_, n) => line(`bd-x${n}`)).join('\n'));

  expect((await tracker.create(aTask())).id).toMatch(new RegExp(`^bd-[a-z0-9]{${length}}$`));
});

test('an id that exists, also of a deleted task, is not given again', async () => {
  const { root, write } = setUp();
  write(`${line('bd-0000', { status: 'tombstone' })}\n`);
  const digits = [0, 0, 0, 0, 0, 0, 0, 1];
  const { tracker } = openAt(root, Date.now, () => digits.shift() ?? 0);

  expect((await tracker.create(aTask())).id).toBe('bd-0001');
});

test('10,000 tasks are listed in order and found', async () => {
  const { write, tracker } = setUp();
  const at = (n: number) => new Date(Date.parse('2026-01-01T00:00:00Z') + n).toISOString();
  write(
    Array.from({ length: 10_000 }, (_, n) =>
      line(`bd-x${9_999 - n}`, { created_at: at(9_999 - n) }),
    ).join('\n'),
  );

  const ids = (await tracker.list()).map(({ id }) => id);

  expect(ids).toHaveLength(10_000);
  expect([ids[0], ids[9_999]]).toEqual(['bd-x0', 'bd-x9999']);
  expect((await tracker.find('bd-x777' as TaskId))?.title).toBe('bd-x777');
});
