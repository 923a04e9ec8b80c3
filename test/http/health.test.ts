import fastify from 'fastify';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createJournal } from '../../src/actors/journal/journal.ts';
import { createSqliteStore } from '../../src/actors/store/sqlite.ts';
import { addHealthRoutes } from '../../src/http/health.ts';

test('GET /health reports failed writes, and writes nothing itself', async () => {
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const journal = createJournal(store, {
    node: 'n',
    onError: () => {},
    onListenerError: () => {},
  });
  const commit = vi.spyOn(store, 'commit').mockImplementation(() => {
    throw new Error('disk full');
  });
  const notLoaded: string[] = [];
  const well = { ok: true, detail: 'well', state: 'open' };
  const app = fastify();
  onTestFinished(() => app.close());
  addHealthRoutes(
    app,
    {
      ...{ name: 'agent-server', version: '0', draining: () => false, tokenProblem: () => null },
      ...{
        system: {
          journal,
          servers: null,
          check: () => well,
          checkMerges: async () => well,
          withoutServer: () => [],
          notLoaded: () => notLoaded,
        },
        store,
        tracker: { check: async () => well },
      },
      ...{
        modelCheck: () => well,
        webhookCheck: () => null,
        configAccepted: () => true,
        proofToken: () => 'token',
      },
    },
    () => 0,
  );
  journal.gather({
    entries: [{ taskId: 'bd-a', attempt: 1, type: 'log', at: 1, data: '1', cause: null }],
  });
  expect(() => journal.flush()).toThrow('disk full');
  const tried = commit.mock.calls.length;

  const answer = (await app.inject({ url: '/health' })).json();

  expect(answer.checks.store).toEqual({ status: 'failing', detail: 'disk full' });
  expect(commit.mock.calls.length).toBe(tried);
  notLoaded.push('bd-a');
  const degraded = (await app.inject({ url: '/health' })).json();
  expect(degraded.checks.loaded.detail).toContain('could not load bd-a; the server tries again');
  commit.mockRestore();
  await vi.waitUntil(() => store.lastSeq() === 1);
  expect((await app.inject({ url: '/health' })).json().checks.store.status).toBe('ok');
});
