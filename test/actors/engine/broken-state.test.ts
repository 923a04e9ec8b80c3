import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import { bash, finish, startSystem, untilStatus } from '../../support/running.ts';

const alter = (stateDir: string, id: string, change: (snapshot: string) => string): void => {
  const store = createSqliteStore({ file: join(stateDir, 'journal.db'), redact: (text) => text });
  const saved = store.actor(id);
  if (saved === null) throw new Error(`nothing is saved of ${id}`);
  const snapshot = change(saved.snapshot);
  if (snapshot === saved.snapshot) throw new Error('nothing was changed');
  store.commit({ entries: [], actor: { ...saved, snapshot } });
  store.close();
};

const renamed = (from: string, to: string) => (snapshot: string) =>
  snapshot.replace(`"${from}"`, `"${to}"`);

test.each<[string, string, (snapshot: string) => string]>([
  ['of a task in an unknown state', '', renamed('working', 'idling')],
  ['of an agent in an unknown state', '#1', renamed('acting', 'doingMagic')],
  ['that is no JSON', '', () => '{'],
  ['of an agent that is no JSON', '#1', () => '{'],
  ['without what its context needs', '', () => '{"value":{"started":"working"},"context":{}}'],
])('a saved state %s stops only its task', { timeout: 60_000 }, async (_, of, change) => {
  const turns = [bash('until test -e go; do sleep 0.05; done', 60), finish('done')];
  const setting = { turns, options: { onInterrupted: 'repeat' as const }, tampered: true };
  const first = await startSystem(setting);
  const { root, stateDir } = first;
  const ids: string[] = [];
  for (const description of ['broken', 'whole']) {
    const { task_id } = await first.service.create({ description });
    await first.service.execute({ task: task_id, role: 'engineer', options: {} });
    await expect
      .poll(async () => (await first.service.status(task_id)).phase, { timeout: 20_000 })
      .toBe('acting');
    ids.push(task_id);
  }
  const [broken = '', whole = ''] = ids;
  await first.stop();
  alter(stateDir, `${broken}${of}`, change);

  const next = await startSystem({ ...setting, root, stateDir });
  const { service, logged } = next;
  writeFileSync(join(root, 'go'), '');
  await untilStatus(next, whole, 'complete');
  const { tasks } = await service.list({});
  const run = await service.run({ options: {} });
  const retry = await service
    .execute({ task: broken, role: 'engineer', options: {} })
    .catch((error: unknown) => String(error));
  const cancelled = await service.cancel(broken, null);
  await service.retry(broken, null, {}, null);
  await untilStatus(next, broken, 'complete');

  expect(tasks.map(({ task_id, status }) => [task_id, status])).toEqual([
    [broken, 'started'],
    [whole, 'complete'],
  ]);
  expect(run).toMatchObject({ accepted: [], skipped: [{ task_id: broken }] });
  expect(String(retry)).toContain(`agent cancel ${broken}`);
  expect(cancelled).toMatchObject({ task_id: broken, status: 'cancelled' });
  expect(logged).toContainEqual(
    expect.objectContaining({ facts: expect.objectContaining({ task_id: broken }) }),
  );
});
