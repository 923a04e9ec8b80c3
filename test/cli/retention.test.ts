import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

const dayMs = 86_400_000;

/** As if all that is in the journal had happened so many days earlier. */
const age = (stateDir: string, days: number): void => {
  const db = new Database(join(stateDir, 'journal.db'));
  db.prepare('update journal set at = at - ?').run(days * dayMs);
  db.prepare('update actors set changed_at = changed_at - ?').run(days * dayMs);
  db.close();
};

const scripted = (days: number) => ({
  api: { backend: 'scripted' },
  store: { retention_days: days },
});

test('the server removes the history of a task that ended long ago; the task is shown, and says so', {
  tags: ['slow'],
}, async () => {
  const { agent, stateDir, stopServer } = openProject(scripted(30));
  const id = (await agent('create', 'Do it')).out.trim();
  await agent('engineer', id);
  const before = JSON.parse((await agent('show', id, '--json')).out);
  const metrics = await agent('doctor', '--journal');
  await stopServer();
  age(stateDir, 31);
  const young = (await agent('create', 'Another')).out.trim();

  await agent('engineer', young);
  let shown = JSON.parse((await agent('show', id, '--json')).out);
  while (shown.history_removed === undefined)
    shown = JSON.parse((await agent('show', id, '--json')).out);

  expect(metrics.code).toBe(0);
  const { history_removed, updated_at: _, ...rest } = shown;
  expect(rest).toEqual((({ updated_at: __, ...same }) => same)(before));
  expect(history_removed).toMatchObject({ after_days: 30 });
  expect((await agent('show', id)).out).toMatch(
    / {2}history {4}removed on \S+, 30 days after its end/,
  );
  expect(await agent('logs', id)).toMatchObject({
    code: 0,
    out: '',
    err: expect.stringContaining('was removed on'),
  });
  expect(await agent('replay', id)).toMatchObject({
    code: 0,
    out: expect.stringContaining('cannot be replayed'),
  });
  expect((await agent('logs', young)).out).toContain('complete');
  const follow = await agent('logs', id, '-f');
  expect([follow.code, (await agent('wait', id)).code]).toEqual([0, 0]);
  await stopServer();
  expect((await agent('show', id)).out).toContain('removed on');
  expect((await agent('doctor', '--journal', '--json')).out).not.toContain(
    'later ones were removed',
  );
});

test('0 days keep the history for ever', { tags: ['slow'] }, async () => {
  const { agent, stateDir, stopServer } = openProject(scripted(0));
  const id = (await agent('create', 'Do it')).out.trim();
  await agent('engineer', id);
  await stopServer();
  age(stateDir, 10_000);

  const other = (await agent('create', 'Another')).out.trim();
  await agent('engineer', other);
  await stopServer();

  expect((await agent('logs', id)).out).toContain('complete');
  expect(existsSync(stateDir)).toBe(true);
});

test('a retention that is no number of days is refused', async () => {
  const { agent } = openProject(scripted(-1));

  expect(await agent('doctor')).toMatchObject({
    code: 78,
    err: expect.stringContaining('store.retention_days'),
  });
});

test('a task whose history was removed is exported with what came later, and what is not proven is said', async () => {
  const { agent, stateDir, stopServer } = openProject(scripted(30));
  const id = (await agent('create', 'Do it')).out.trim();
  await agent('engineer', id);
  await stopServer();
  age(stateDir, 31);
  await agent('prune');

  const nothing = await agent('export', id, '-o', 'nothing.html');
  const proofOfNothing = await agent('replay', '--verify', 'nothing.html');
  await agent('reopen', id);
  await agent('engineer', id);
  await agent('export', id);
  const { out, code } = await agent('replay', '--verify', `${id}.html`);

  expect([nothing.code, proofOfNothing.code, code]).toEqual([0, 0, 9]);
  expect(nothing.out).toContain('0 entries');
  expect(out).toContain(
    'machines  not run, so no state is proven: the file does not hold every transition',
  );
  expect(out).toMatch(/left out {2}\d+ entries are in the file by hash only/);
  expect(out).toContain('has the same entry');
});
