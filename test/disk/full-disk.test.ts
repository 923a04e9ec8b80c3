import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { isLong } from '../support/long.ts';
import { differencesIn, openWork } from './support/scene.ts';
import { mountSmallDisk } from './support/small-disk.ts';

/** How long the disk stays full. */
const fullMs = isLong ? 45_000 : 300;
const needsMount = 'needs the right to mount a small file system';

test('a state folder that fills up while tasks run loses nothing, and recovers with free space', {
  tags: ['slow', 'root'],
  timeout: 60_000 + fullMs,
}, async (context) => {
  const project = openWork();
  const disk = mountSmallDisk(project.stateDir, '16m', project.stopServer);
  if (disk === null) return context.skip(needsMount);
  const { create, run, call, viewOf, health, ended, goOn } = await project.serve();
  const [asks, works, waits, later] = await create('asks', 'works', 'waits', 'later');
  for (const id of [asks, works, waits]) await run(id);
  await project.atWork();

  disk.fill();
  goOn();
  const refused = await run(later);
  const bad = await health();
  await delay(fullMs);
  const meanwhile = await Promise.all([asks, works, waits, later].map(viewOf));
  const late = await call('create', { description: 'late' });
  disk.empty();
  const began = Date.now();
  let mended = await health();
  for (; mended.checks.store.status !== 'ok'; mended = await health()) await delay(20);
  const ends = [await ended(works), await ended(waits)];
  const tookMs = Date.now() - began;
  await project.agent('respond', asks, 'blue');
  await run(later);

  expect(refused.error).toMatchObject({ code: -32603, data: { code: 'internal' } });
  expect(refused.error?.message).toMatch(/the journal .*journal\.db cannot be written: .*full/);
  expect(bad.checks.store).toMatchObject({
    status: 'failing',
    detail: expect.stringContaining('full'),
  });
  expect(late.error).toMatchObject({ code: -32017, message: expect.stringContaining('full') });
  expect(mended.checks.store.status).toBe('ok');
  expect(meanwhile.map(({ status }) => status)).toEqual(['started', 'started', 'queued', 'queued']);
  expect([...ends, await ended(asks), await ended(later)]).toEqual([
    'complete',
    'complete',
    'complete',
    'complete',
  ]);
  for (const id of [asks, works, waits, later]) expect((await viewOf(id)).attempt).toBe(1);
  await project.stopServer();
  const { entries, differences } = await differencesIn(project.stateDir);
  expect(differences).toEqual([]);
  process.stdout.write(
    `full state folder: full for ${fullMs} ms, 4 tasks ended, the first two ${tookMs} ms after there was room, ${entries} entries without a gap\n`,
  );
});

test('a full .beads loses nothing, is named in the error, and is updated when there is space', {
  tags: ['slow', 'root'],
  timeout: 60_000 + fullMs,
}, async (context) => {
  const project = openWork();
  const folder = join(project.root, '.beads');
  const disk = mountSmallDisk(folder, '256k', project.stopServer);
  if (disk === null) return context.skip(needsMount);
  const { create, run, viewOf, call, health, ended, goOn } = await project.serve();
  const [asks, works, waits] = await create('asks', 'works', 'waits');
  for (const id of [asks, works, waits]) await run(id);
  await project.atWork();

  disk.fill();
  const before = readFileSync(join(folder, 'issues.jsonl'), 'utf8');
  goOn();
  const made = await call('create', { description: 'late' });
  let bad = await health();
  for (; bad.checks.tracker.status === 'ok'; bad = await health()) await delay(20);
  const cli = await project.agent('create', 'late');
  while ((await viewOf(works)).phase !== 'waiting_for_tracker') await delay(20);
  await delay(fullMs);
  const left = readdirSync(folder).filter((name) => name.includes('~'));
  const [after, waiting] = [
    readFileSync(join(folder, 'issues.jsonl'), 'utf8'),
    await viewOf(works),
  ];
  disk.empty();
  const began = Date.now();
  const ends = [await ended(works), await ended(waits)];
  const tookMs = Date.now() - began;
  await project.agent('respond', asks, 'blue');
  while ((await health()).checks.tracker.status !== 'ok') await delay(20);

  expect(made.result).toMatchObject({ status: 'queued' });
  expect(cli.code).toBe(0);
  expect(bad.checks).toMatchObject({ store: { status: 'ok' }, tracker: { status: 'failing' } });
  expect(bad.checks.tracker.detail).toContain('ENOSPC');
  expect([after, left]).toEqual([before, []]);
  expect(waiting.error).toMatchObject({
    code: 'tracker_unavailable',
    message: expect.stringContaining('ENOSPC'),
  });
  expect([...ends, await ended(asks)]).toEqual(['complete', 'complete', 'complete']);
  for (const id of [asks, works, waits])
    expect(existsSync(join(folder, 'tasks', `task-${id}`, '30-results.md'))).toBe(true);
  expect(readFileSync(join(project.root, 'log'), 'utf8').trim().split('\n')).toHaveLength(1);
  await project.stopServer();
  expect((await differencesIn(project.stateDir)).differences).toEqual([]);
  process.stdout.write(
    `full .beads: full for ${fullMs} ms, 3 tasks ended, the first two ${tookMs} ms after there was room\n`,
  );
});

test('a server without disk space names the folder, and starts when there is space', {
  tags: ['slow', 'root'],
}, async (context) => {
  const project = openWork();
  const disk = mountSmallDisk(project.stateDir, '4k', project.stopServer);
  if (disk === null) return context.skip(needsMount);

  const refused = [];
  for (const size of isLong ? ['4k', '8k', '24k', '40k', '100k'] : ['4k', '24k']) {
    disk.resize(size);
    refused.push(await project.server('--server'));
  }
  disk.resize('16m');
  const { create, run, ended } = await project.serve();
  const [id] = await create('one');
  await run(id);

  for (const { code, out, err } of refused) {
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(
      /^agent-server: the (state folder|journal) .*\/state[^ ]* cannot be (used|opened) \(.*(ENOSPC|full|I\/O)/,
    );
    expect(err.trim().split('\n')).toHaveLength(1);
  }
  expect(await ended(id)).toBe('complete');
});
