import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { SavedActor } from '../../../src/actors/store/port.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import { makeRepository, worktreesOf } from '../../support/git.ts';
import {
  bash,
  complete,
  finish,
  landingDefaults,
  startSystem,
  untilStatus,
} from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

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

const brokenWorkflows: readonly [string, (snapshot: string) => string][] = [
  [
    'in an unknown state',
    (snapshot) => snapshot.replace('"value":{"active"', '"value":{"doingMagic"'),
  ],
  ['that is no JSON', () => '{'],
  ['without what its context needs', () => '{"value":"complete","context":{}}'],
];

test.each(brokenWorkflows)(
  'a workflow %s stops nothing else: it is listed, and a person gives it up',
  { timeout: 60_000 },
  async (_, change) => {
    const setting = { turns: [finish('done')], tampered: true };
    const first = await startSystem(setting);
    const { root, stateDir } = first;
    const start = { kind: 'feature', product: 'shop', steps: [] } as const;
    const { workflow_id: broken } = await first.system.workflows.start({ ...start, name: 'One' });
    const { workflow_id: whole } = await first.system.workflows.start({ ...start, name: 'Two' });
    await first.stop();
    alter(stateDir, `workflow:${broken}`, change);

    const next = await startSystem({ ...setting, root, stateDir });
    const { service, logged } = next;
    const { workflows, notLoaded } = next.system;
    const before = await workflows.list();
    const shown = await workflows.show(broken);
    const explained = await workflows.explain(broken);
    const other = await workflows.show(whole);
    const given = await workflows.cancel(broken, 'it is broken');
    const after = await workflows.list();
    const { tasks } = await service.list({ label: `workflow:${broken}` });
    const again = await workflows.start({ ...start, name: 'One' });

    const line = { workflow_id: broken, kind: 'feature', name: 'One', phase: 1 };
    const says = expect.stringMatching(
      `cannot be restored: .*; end it: agent workflow cancel ${broken}$`,
    );
    expect(before.workflows).toEqual([
      expect.objectContaining({ workflow_id: whole }),
      { ...line, status: 'started', problem: says },
    ]);
    expect(shown).toMatchObject({ ...line, status: 'started', problem: says, phases: [] });
    expect(explained).toMatchObject({ task_id: broken, reason: says, allowed_events: ['cancel'] });
    expect(other.status).toBe('started');
    expect(logged).toContainEqual(
      expect.objectContaining({ facts: expect.objectContaining({ kind: 'workflow', id: broken }) }),
    );
    expect(given).toMatchObject({
      ...{ ...line, status: 'cancelled', why: 'it is broken', version: '1.0.0' },
      problem: expect.stringMatching(/start the workflow anew$/),
    });
    expect(after.workflows.map(({ workflow_id, status }) => [workflow_id, status])).toEqual([
      [whole, 'started'],
      [broken, 'cancelled'],
    ]);
    expect(notLoaded()).toEqual([]);
    expect(tasks.filter(({ status }) => status !== 'cancelled')).toEqual([]);
    expect(again.status).toBe('started');
    await expect(workflows.cancel(broken, null)).rejects.toThrow(/cancelled/);
    await expect(workflows.retry(broken)).rejects.toThrow(/start the workflow anew/);
  },
);

const brokenQueues: readonly [string, (snapshot: string) => string][] = [
  ['in an unknown state', renamed('testing', 'doingMagic')],
  ['that is no JSON', () => '{'],
  ['without what its context needs', () => '{"value":"testing","context":{}}'],
];

test.each(brokenQueues)(
  'a merge queue %s stops nothing else: it is named, and a person gives it up',
  { timeout: 60_000 },
  async (_, change) => {
    const go = join(temporaryFolder(), 'go');
    const setting = {
      turns: [bash('date +%N > "$(date +%N).txt"'), finish('done')],
      options: {
        landing: { ...landingDefaults, verify: [`until test -e ${go}; do sleep 0.05; done`] },
      },
      workspace: (project: string, stateDir: string) =>
        worktreesOf(project, join(stateDir, 'worktrees')),
      tampered: true,
    };
    const first = await startSystem({ ...setting, root: makeRepository() });
    const { root, stateDir } = first;
    const [one, two] = [await complete(first, 'One'), await complete(first, 'Two')];
    first.service.merge({ taskId: one }).catch(() => {});
    const queue = await vi.waitFor(() => {
      const [row] = first.store.openHosted('mergeQueue') as readonly SavedActor[];
      expect(row?.snapshot).toContain('"value":"testing"');
      return row?.taskId ?? '';
    }, 20_000);
    await first.stop();
    // A server that ends ends its tests; this one is in the process of the next.
    const candidate = join(stateDir, 'worktrees', 'candidate');
    await vi.waitFor(() => expect(existsSync(candidate)).toBe(false), 20_000);
    alter(stateDir, `mergeQueue:${queue}`, change);

    const next = await startSystem({ ...setting, root, stateDir });
    const { service, system, logged, store } = next;
    await vi.waitFor(() => expect(system.notLoaded()).toEqual([queue]), 20_000);
    const { tasks } = await service.list({});
    const shown = await service.status(one);
    writeFileSync(go, '');
    const merged = await service.merge({ taskId: two });
    const lost = await service.merge({ taskId: one });
    const given = await service.cancel(queue, null);

    expect(tasks.map(({ task_id }) => task_id).toSorted()).toEqual([one, two].toSorted());
    expect(shown.work).toMatchObject({ branch: `agent/${one}/1` });
    expect(given.description).toContain(one);
    expect([merged, lost]).toEqual([
      expect.objectContaining({ status: 'merged' }),
      expect.objectContaining({ status: 'merged' }),
    ]);
    expect(logged).toContainEqual(
      expect.objectContaining({
        facts: expect.objectContaining({ kind: 'mergeQueue', id: queue }),
      }),
    );
    expect(given).toMatchObject({ task_id: queue, status: 'cancelled' });
    expect(system.notLoaded()).toEqual([]);
    expect(store.openHosted('mergeQueue')).toEqual([]);
    await expect(service.cancel(queue, null)).rejects.toThrow(/does not exist/);
  },
);
