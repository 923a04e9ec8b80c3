import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createResults } from '../../../src/actors/results/results.ts';
import { createTracker } from '../../../src/actors/tracker/select-tracker.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { aTask } from '../../contracts/tracker.ts';
import { ledgerAt } from '../../support/ledger.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const line = '{"id":"bd-out","title":"outside","status":"open","priority":2}\n';

/** A project, and a folder beside it that nothing may read or write. */
const setUp = () => {
  const [root, outside] = [temporaryFolder(), temporaryFolder()];
  const beads = join(root, '.beads');
  mkdirSync(join(outside, 'logs'));
  writeFileSync(join(outside, 'issues.jsonl'), line);
  writeFileSync(join(outside, '30-results.md'), 'a secret of somebody else');
  writeFileSync(join(outside, 'logs', '1-1.log'), 'a log of somebody else');
  const ledger = ledgerAt(root);
  const tracker = createTracker({
    projectRoot: root,
    ledger: () => ledger,
    mode: 'auto',
    bdPath: null,
    processEnv: { PATH: '' },
    clock: () => Date.now(),
    random: (max) => Math.floor(Math.random() * max),
    redact: (text) => text,
    log: () => {},
  });
  const untouched = () => ({
    names: readdirSync(outside, { recursive: true }).sort(),
    issues: readFileSync(join(outside, 'issues.jsonl'), 'utf8'),
  });
  return {
    root,
    outside,
    beads,
    tracker,
    ledger,
    untouched,
    results: createResults(root, (text) => text),
  };
};

const plants: readonly (readonly [string, string, (beads: string, outside: string) => void])[] = [
  ['.beads is a link', 'is a symbolic link', (beads, outside) => symlinkSync(outside, beads)],
  [
    '.beads is a link to nothing',
    'is a symbolic link',
    (beads, outside) => symlinkSync(join(outside, 'new'), beads),
  ],
  [
    'issues.jsonl is a link',
    'is a symbolic link',
    (beads, outside) => {
      mkdirSync(beads);
      symlinkSync(join(outside, 'issues.jsonl'), join(beads, 'issues.jsonl'));
    },
  ],
  [
    'issues.jsonl is a link to a device',
    'is a symbolic link',
    (beads) => {
      mkdirSync(beads);
      symlinkSync('/dev/zero', join(beads, 'issues.jsonl'));
    },
  ],
  [
    'issues.jsonl is a pipe',
    'is not a regular file',
    (beads) => {
      mkdirSync(beads);
      execFileSync('mkfifo', [join(beads, 'issues.jsonl')]);
    },
  ],
];

test.each(plants)(
  '%s: tasks are neither read nor written, and the message says why',
  async (_, words, plant) => {
    const { beads, outside, tracker, untouched } = setUp();
    plant(beads, outside);
    const before = untouched();

    const refused = { code: 'tracker_unavailable', message: expect.stringContaining(words) };
    await expect(tracker.list()).rejects.toMatchObject(refused);
    await expect(tracker.create(aTask())).rejects.toMatchObject(refused);
    expect(await tracker.check()).toMatchObject({
      ok: false,
      detail: expect.stringContaining(words),
    });
    expect(untouched()).toEqual(before);
  },
);

test.each([
  ['the lock', '.agent.lock'],
  ['the backup', 'issues.jsonl.bak'],
])('%s as a link or a pipe writes nothing outside and does not hang', async (_, name) => {
  const { beads, outside, tracker, untouched } = setUp();
  mkdirSync(beads);
  const before = untouched();

  symlinkSync(join(outside, 'new'), join(beads, name));
  const linked = await tracker.create(aTask()).then(
    ({ id }) => tracker.claim(id),
    (error: unknown) => String(error),
  );
  execFileSync('rm', ['-f', join(beads, name)]);
  execFileSync('mkfifo', [join(beads, name)]);
  const piped = await tracker.create(aTask()).catch((error: unknown) => String(error));

  expect(untouched()).toEqual(before);
  for (const each of [linked, piped])
    if (typeof each === 'string')
      expect(each).toContain(`${join(beads, name)} is not a regular file`);
});

const report = {
  task: { id: 'bd-a', title: 'a', description: 'a', dependencies: [] } as never,
  attempt: 2,
  role: 'engineer',
  model: 'scripted',
  disclaimer: null,
  startedAt: 0,
  endedAt: 0,
  outcome: null,
  end: { status: 'complete' },
  workLog: [],
  work: null,
  notSaved: [],
  conflicts: [],
  unread: [],
  comments: [],
} as const;

test.each([
  ['.beads', ''],
  ['.beads/tasks', 'tasks'],
  ['a task folder', 'tasks/task-bd-a'],
  ['the folder of logs', 'tasks/task-bd-a/logs'],
  ['the folder of earlier attempts', 'tasks/task-bd-a/attempts'],
])('results are not written, read or removed through %s that is a link', async (_, place) => {
  const { beads, outside, results, untouched } = setUp();
  const link = join(beads, place);
  mkdirSync(join(link, '..'), { recursive: true });
  symlinkSync(outside, link);
  if (place.endsWith('attempts'))
    writeFileSync(join(link, '..', '00-metadata.json'), '{"attempt":1}');
  const before = untouched();

  await expect(results.write(report)).rejects.toThrow(`${link} is a symbolic link`);
  const log = results.openLog('bd-a' as TaskId, 3, 'x', 1);
  log.push('more than a byte');
  const file = log.close();

  if (place.endsWith('logs') || !place.endsWith('attempts')) expect(file).toBeNull();
  expect(await results.read('bd-a' as TaskId)).toBeNull();
  expect(untouched()).toEqual(before);
});

test('a results file that is a link is not read, and is replaced', async () => {
  const { beads, outside, results, untouched } = setUp();
  const folder = join(beads, 'tasks', 'task-bd-a');
  mkdirSync(folder, { recursive: true });
  symlinkSync(join(outside, '30-results.md'), join(folder, '30-results.md'));
  const before = untouched();

  const read = await results.read('bd-a' as TaskId);
  await results.write(report);

  expect(read).toBeNull();
  expect(await results.read('bd-a' as TaskId)).toContain('Task: bd-a');
  expect(untouched()).toEqual(before);
});

test('the next writer removes what killed writers left', async () => {
  const { beads, tracker, results, ledger } = setUp();
  const folder = join(beads, 'tasks', 'task-bd-a');
  mkdirSync(folder, { recursive: true });
  const left = [
    join(beads, '.~issues.jsonl.0123456789ab'),
    join(folder, '.~30-results.md.0123456789ab'),
  ];
  for (const file of left) writeFileSync(file, 'half');

  await tracker.create(aTask());
  await ledger.exchange.flush();
  await results.write(report);

  expect(left.filter((file) => existsSync(file))).toEqual([]);
});
