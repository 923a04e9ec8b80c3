import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { createEmbeddedTracker } from '../../../src/actors/tracker/embedded.ts';
import type { Tracker } from '../../../src/actors/tracker/port.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { aTask, describeTracker, nobody } from '../../contracts/tracker.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** What happens between the replacement of the file and the moment the tracker looks at it again. */
let afterWrite = (): void => {};
vi.mock(import('../../../src/actors/files/atomic-write.ts'), async (original) => {
  const real = await original();
  return {
    ...real,
    writeFileAtomically: async (...given: Parameters<typeof real.writeFileAtomically>) => {
      await real.writeFileAtomically(...given);
      afterWrite();
    },
  };
});

const openAt = (projectRoot: string, now = () => Date.now()) =>
  createEmbeddedTracker({ projectRoot, clock: now, random: (max) => Math.floor(Math.random() * max) });

describeTracker('embedded', async () => {
  const root = await mkdtemp(join(tmpdir(), 'agent-tracker-'));
  let now = Date.parse('2026-11-20T10:00:00.000Z');
  const tick = (): number => {
    now += 1;
    return now;
  };
  return { tracker: openAt(root, tick), close: () => rm(root, { recursive: true }) };
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
  return { root, folder, file, lines, write, tracker: openAt(root) };
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
  const { root, folder, tracker } = setUp();

  expect(await tracker.list()).toEqual([]);
  expect(existsSync(folder)).toBe(false);
  await tracker.create(aTask());

  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(readdirSync(root)).toEqual(['.beads']);
  expect(readdirSync(folder).sort()).toEqual(['.agent.lock', 'issues.jsonl']);
});

test("a line has bd's form, with bd's statuses only", async () => {
  const { tracker, lines } = setUp();
  const first = await tracker.create(aTask({ title: 'a' }));
  const second = await tracker.create(aTask({ title: 'b', labels: ['role:engineer'], dependencies: [first.id] }));
  await tracker.close(first.id, 'Completed by agent-server (role: engineer)');
  await tracker.claim(second.id);

  const issues = lines().map((text) => JSON.parse(text));
  const one = issues.find(({ id }) => id === first.id);
  const two = issues.find(({ id }) => id === second.id);

  expect(first.id).toMatch(/^bd-[a-z0-9]{4}$/);
  expect(one).toMatchObject({ status: 'closed', close_reason: 'Completed by agent-server (role: engineer)' });
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

test('what we do not know comes through a change untouched', async () => {
  const { write, lines, tracker } = setUp();
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

  const after = lines();
  expect(after).toEqual(expect.arrayContaining([header, memory, grave]));
  expect(after.map((text) => JSON.parse(text)).find((issue) => issue.id === 'bd-rich')).toMatchObject({
    _type: 'issue',
    comments: [{ id: 1, text: 'hi' }],
    metadata: { a: [1] },
    dependencies: [{ type: 'related', x: 1 }],
  });
  expect((await tracker.list()).map((task) => task.id).sort()).toEqual(['bd-rich', id].sort());
});

test('only blocking types gate; pinned and deleted tasks do not, missing ones do', async () => {
  const { write, tracker } = setUp();
  const on = (depends_on_id: string, type?: string) => ({ depends_on_id, ...(type === undefined ? {} : { type }) });
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

test('a status that we do not know is shown as it is', async () => {
  const { write, tracker } = setUp();
  write(`${line('bd-a', { status: 'hooked' })}\n`);

  expect((await tracker.list())[0]?.status).toBe('hooked');
});

test('an edit by another program is seen', async () => {
  const { file, tracker } = setUp();
  await tracker.create(aTask());
  await tracker.list();

  appendFileSync(file, `${line('bd-new')}\n`);

  expect(await tracker.find('bd-new' as TaskId)).not.toBeNull();
  await tracker.claim('bd-new' as TaskId);
  expect(await tracker.list()).toHaveLength(2);
});

test('an edit by another program right behind our own is seen, and kept by the next write', async () => {
  const { file, tracker } = setUp();
  afterWrite = () => {
    afterWrite = () => {};
    appendFileSync(file, `${line('bd-new')}\n`);
  };

  await tracker.create(aTask());

  expect(await tracker.find('bd-new' as TaskId)).not.toBeNull();
  await tracker.create(aTask());
  expect(await tracker.list()).toHaveLength(3);
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
  const tracker = openAt(root, () => Date.parse('2026-02-01T00:00:00Z'));
  const updatedAt = async () => (await tracker.find('bd-a' as TaskId))?.updatedAt;

  await tracker.claim('bd-a' as TaskId);
  expect(await updatedAt()).toBe('2026-03-01T10:00:00.124Z');
  await tracker.release('bd-a' as TaskId, 'agent-failed');
  expect(await updatedAt()).toBe('2026-03-01T10:00:00.125Z');
});

test('removing a dependency leaves links of other types alone', async () => {
  const { write, lines, tracker } = setUp();
  const link = { depends_on_id: 'bd-a', type: 'parent-child' };
  write(`${line('bd-a')}\n${line('bd-b', { dependencies: [link, { ...link, type: 'blocks' }] })}\n`);

  await tracker.removeDependency('bd-b' as TaskId, 'bd-a' as TaskId);

  expect(await tracker.find('bd-b' as TaskId)).toMatchObject({ dependencies: [] });
  expect(JSON.parse(lines()[1] ?? '')).toMatchObject({ dependencies: [link] });
});

test('a last line that was cut off costs only itself', async () => {
  const { file, lines, tracker, root } = setUp();
  await tracker.create(aTask({ title: 'one' }));
  await tracker.create(aTask({ title: 'two' }));
  const before = `${lines()[0]}\n`;
  for (let size = statSync(file).size - 2; size > before.length; size -= 1) {
    truncateSync(file, size);
    const late = openAt(root);

    expect((await late.list()).map(({ title }) => title)).toContain('one');
    expect((await late.check()).detail).toContain('cut off');
  }
});

test('zeros that a power cut left in place of lines cost only what was being written', async () => {
  const { file, tracker, root } = setUp();
  await tracker.create(aTask({ title: 'one' }));
  appendFileSync(file, `${'\0'.repeat(512)}ee"}\n${line('bd-late')}\n`);
  const late = openAt(root);

  await late.create(aTask({ title: 'two' }));

  expect(await titlesOf(openAt(root))).toEqual(['bd-late', 'one', 'two']);
  expect(readFileSync(file, 'utf8')).not.toContain('\0');
});

const titlesOf = async (tracker: Tracker) => (await tracker.list()).map(({ title }) => title).sort();

test('half a line that another program left behind undoes nothing that was acknowledged', async () => {
  const { file, tracker, root } = setUp();
  await tracker.create(aTask({ title: 'one' }));
  await tracker.create(aTask({ title: 'two' }));
  appendFileSync(file, '{"id":"bd-half","titl');
  const late = openAt(root);

  expect(await titlesOf(late)).toEqual(['one', 'two']);
  await late.create(aTask({ title: 'three' }));
  expect(await titlesOf(openAt(root))).toEqual(['one', 'three', 'two']);
});

test('a last line without its end, as editors leave it, is not run into by the next task', async () => {
  const { write, file, tracker } = setUp();
  write(line('bd-a'));

  const { id } = await tracker.create(aTask());

  expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(3);
  expect((await tracker.list()).map((task) => task.id).sort()).toEqual(['bd-a', id].sort());
});

test('a file that another program puts in place while we append costs neither its tasks nor ours', async () => {
  const { file, folder, tracker, root } = setUp();
  await tracker.create(aTask({ title: 'one' }));
  const theirs = join(folder, 'theirs');
  for (let n = 0; n < 20; n += 1) {
    const before = readFileSync(file, 'utf8');
    const creating = tracker.create(aTask({ title: `ours ${n}` }));
    // Each time a little later: before the file is opened, while it is being synced, and between.
    for (let turn = 0; turn < n; turn += 1) await Promise.resolve();
    writeFileSync(theirs, `${before}${line(`bd-their${n}`, { title: `theirs ${n}` })}\n`);
    renameSync(theirs, file);
    await creating;
    const titles = (await tracker.list()).map(({ title }) => title);
    expect(titles).toEqual((await openAt(root).list()).map(({ title }) => title));
    expect(titles).toContain(`ours ${n}`);
    expect(titles).toContain(`theirs ${n}`);
  }
});

test('a broken line in the middle names itself, the others stay readable, and nothing is written', async () => {
  const { write, file, tracker } = setUp();
  const text = `${line('bd-a')}\n{"id":\n${line('bd-b')}\n`;
  write(text);

  expect((await tracker.list()).map(({ id }) => id)).toEqual(['bd-a', 'bd-b']);
  await expect(tracker.create(aTask())).rejects.toMatchObject({
    code: 'tracker_unavailable',
    facts: { detail: expect.stringContaining(`${file} line 2`) },
  });
  expect(readFileSync(file, 'utf8')).toBe(text);
  expect(await tracker.check()).toMatchObject({ ok: false, detail: expect.stringContaining('line 2') });
  expect(await tracker.unreadable()).toContain('line 2 cannot be read');
});

test.each(['metadata.json', 'config.yaml', 'beads.db', 'dolt', 'embeddeddolt'])(
  "a project with %s is bd's: nothing is written",
  async (sign) => {
    const { folder, tracker } = setUp();
    await tracker.create(aTask());
    writeFileSync(join(folder, sign), '');

    await expect(tracker.create(aTask())).rejects.toMatchObject({
      code: 'tracker_unavailable',
      facts: { detail: expect.stringContaining(sign) },
    });
    expect(await tracker.list()).toHaveLength(1);
    expect(await tracker.check()).toMatchObject({ ok: false, detail: expect.stringContaining(sign) });
  },
);

test('a backup of a database does not make the project bd-owned', async () => {
  const { folder, tracker } = setUp();
  mkdirSync(folder);
  writeFileSync(join(folder, 'beads.backup-2026.db'), '');

  await tracker.create(aTask());

  expect((await tracker.check()).ok).toBe(true);
});

test('a write that fails leaves the old file and no other, and says why to each caller', async () => {
  const { file, folder, tracker } = setUp();
  const { id } = await tracker.create(aTask());
  const before = readFileSync(file, 'utf8');
  mkdirSync(join(folder, 'issues.jsonl.bak'));

  const answers = await Promise.allSettled([tracker.create(aTask()), tracker.close(id, 'done')]);

  for (const answer of answers) {
    expect(answer).toMatchObject({
      status: 'rejected',
      reason: { code: 'tracker_unavailable', cause: { code: 'EISDIR' } },
    });
  }
  expect(readFileSync(file, 'utf8')).toBe(before);
  expect(readdirSync(folder).sort()).toEqual(['.agent.lock', 'issues.jsonl', 'issues.jsonl.bak']);
  rmdirSync(join(folder, 'issues.jsonl.bak'));
  await tracker.create(aTask());
  expect(await tracker.list()).toHaveLength(2);
});

test('a folder in place of the file is said by name', async () => {
  const { file, tracker } = setUp();
  mkdirSync(file, { recursive: true });

  const reason = { code: 'tracker_unavailable', message: expect.stringContaining(`${file} is not a regular file`) };
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

test('two trackers on one project lose nothing of each other', async () => {
  const { root } = setUp();
  const [one, other] = [openAt(root), openAt(root)];

  await Promise.all(
    Array.from({ length: 60 }, (_, n) => (n % 2 === 0 ? one : other).create(aTask({ title: `t${n}` }))),
  );

  expect(new Set((await openAt(root).list()).map(({ title }) => title)).size).toBe(60);
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
  const tracker = createEmbeddedTracker({
    projectRoot: root,
    clock: () => Date.now(),
    random: () => digits.shift() ?? 0,
  });

  expect((await tracker.create(aTask())).id).toBe('bd-0001');
});

test('10,000 tasks are listed in order and found', async () => {
  const { write, tracker } = setUp();
  const at = (n: number) => new Date(Date.parse('2026-01-01T00:00:00Z') + n).toISOString();
  write(Array.from({ length: 10_000 }, (_, n) => line(`bd-x${9_999 - n}`, { created_at: at(9_999 - n) })).join('\n'));

  const ids = (await tracker.list()).map(({ id }) => id);

  expect(ids).toHaveLength(10_000);
  expect([ids[0], ids[9_999]]).toEqual(['bd-x0', 'bd-x9999']);
  expect((await tracker.find('bd-x777' as TaskId))?.title).toBe('bd-x777');
});
