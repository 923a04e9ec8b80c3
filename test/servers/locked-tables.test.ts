import { expect, test, vi } from 'vitest';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, holdInPostgres, noPostgres } from '../support/postgres.ts';
import { openServer } from '../support/servers.ts';

const seconds = 1_000;
const patience = { timeout: 20 * seconds, interval: 200 };

describeUnless(noPostgres)('tables that another session locks', () => {
  test('are named by the health of the server, until they are free', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const { agent, serverFile } = await openServer(address, {
      config: { store: { lease_seconds: 60 } },
    });
    expect(await agent('server', 'start')).toMatchObject({ code: 0 });
    const health = async () => (await fetch(`${serverFile().url}/health`)).json();
    const locks = [
      'lock table journal in access exclusive mode',
      'lock table nodes in share mode',
      'select 1 from journal_end for update',
    ];

    for (const lock of locks) {
      expect(await health()).toMatchObject({ status: 'healthy' });
      const release = await holdInPostgres(address, lock);
      const failing = {
        status: 'failing',
        detail: expect.stringMatching(/does not answer: .*another session has locked its tables/),
      };
      // A write of the server may wait for the same lock.
      await vi.waitFor(
        async () =>
          expect(await health(), lock).toMatchObject({
            status: 'degraded',
            checks: { store: failing },
          }),
        patience,
      );
      expect((await agent('server', 'status')).out).toContain('is degraded');
      await release();
      await vi.waitFor(
        async () => expect(await health()).toMatchObject({ status: 'healthy' }),
        patience,
      );
    }
  });

  test('are named when a server cannot start', { tags: ['slow'] }, async () => {
    const address = await freshAddress();
    const server = await openServer(address, {});
    await server.agent('server', 'start');
    await server.agent('server', 'stop');
    const release = await holdInPostgres(address, 'select 1 from journal_end for update');

    const { code, err } = await server.agent('server', 'start');
    await release();

    expect(code).not.toBe(0);
    expect(err).toMatch(/first commit \(held up by a session that locks the tables.* did not end/);
    expect(await server.agent('server', 'start')).toMatchObject({ code: 0 });
  });
});
