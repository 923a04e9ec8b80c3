import { readdirSync, readFileSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { differencesIn, openWork } from './support/scene.ts';
import { mountSmallDisk } from './support/small-disk.ts';

const needsMount = 'needs the right to mount a small file system';

test('a .beads that becomes read-only is named in the error, and waiting tasks continue when it is writable', {
  tags: ['slow', 'root'],
}, async (context) => {
  const project = openWork();
  const folder = join(project.root, '.beads');
  const disk = mountSmallDisk(folder, '1m', project.stopServer);
  if (disk === null) return context.skip(needsMount);
  const { create, run, viewOf, call, health, ended, goOn } = await project.serve();
  const [works, waits] = await create('works', 'waits');
  await run(works);
  await project.atWork();
  while (!disk.setReadOnly(true)) await delay(20);
  const before = readFileSync(join(folder, 'issues.jsonl'), 'utf8');

  goOn();
  const made = await call('create', { description: 'late' });
  const cli = await project.agent('create', 'late');
  const accepted = await run(waits);
  const listed = await project.agent('list');
  let bad = await health();
  for (; bad.checks.tracker.status === 'ok'; bad = await health()) await delay(20);
  while ((await viewOf(works)).phase !== 'waiting_for_tracker') await delay(20);
  const after = [readFileSync(join(folder, 'issues.jsonl'), 'utf8'), readdirSync(folder).sort()];
  disk.setReadOnly(false);

  expect(made.result).toMatchObject({ status: 'queued' });
  expect(cli.code).toBe(0);
  expect(listed).toMatchObject({ code: 0, out: expect.stringContaining(waits) });
  expect(accepted.result).toMatchObject({ task_id: waits, attempt: 1 });
  expect(bad.checks).toMatchObject({ store: { status: 'ok' }, tracker: { status: 'failing' } });
  expect(bad.checks.tracker.detail).toContain('EROFS');
  expect(after).toEqual([before, expect.not.arrayContaining([expect.stringMatching(/~/)])]);
  expect([await ended(works), await ended(waits)]).toEqual(['complete', 'complete']);
  while ((await health()).checks.tracker.status !== 'ok') await delay(20);
  await project.stopServer();
  const { entries, differences } = await differencesIn(project.stateDir);
  expect(differences).toEqual([]);
  process.stdout.write(
    `read-only .beads: 2 tasks ended after it, ${entries} entries without a gap\n`,
  );
});

test('a read-only state folder can be read, prevents the start of a server, and is used again when writable', {
  tags: ['slow', 'root'],
}, async (context) => {
  const project = openWork();
  const disk = mountSmallDisk(project.stateDir, '16m', project.stopServer);
  if (disk === null) return context.skip(needsMount);
  const first = await project.serve();
  const [works] = await first.create('works');
  await first.run(works);
  await project.atWork();
  await project.stopServer('SIGKILL');
  disk.setReadOnly(true);

  // Each in a process of its own: an index of SQLite that is open in this one would be used again.
  const read = [];
  for (const words of [['show', works], ['list'], ['logs', works], ['replay', works]])
    read.push(await project.program(...words));
  const made = await project.program('create', 'late');
  const refused = [
    await project.program('server', 'start'),
    await project.program('engineer', works),
  ];
  const served = await project.server('--server');
  disk.setReadOnly(false);
  unlinkSync(join(project.stateDir, 'journal.db-shm'));
  disk.setReadOnly(true);
  const unread = await project.program('list');
  disk.setReadOnly(false);
  const { ended, goOn } = await project.serve();
  goOn();

  for (const { code, out, err } of read)
    expect({ code, out, err }).toMatchObject({
      code: 0,
      out: expect.stringContaining('started'),
    });
  expect(made).toMatchObject({ code: 6, out: '' });
  const why = expect.stringContaining(`the state folder ${project.stateDir} cannot be used (EROFS`);
  for (const { code, err } of refused) expect([code, err]).toEqual([6, why]);
  expect(served).toMatchObject({ code: 1, out: '', err: why });
  // SQLite reads a journal that was not closed only with its index, which it may not make here.
  expect(unread.code).toBe(6);
  expect(unread.err).toContain(`the journal ${project.stateDir}/journal.db cannot be opened`);
  expect(await ended(works)).toBe('complete');
  await project.stopServer();
  const { entries, differences } = await differencesIn(project.stateDir);
  expect(differences).toEqual([]);
  process.stdout.write(
    `read-only state folder: 1 task ended after it, ${entries} entries without a gap\n`,
  );
});
