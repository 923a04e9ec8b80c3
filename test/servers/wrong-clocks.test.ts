import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { describeUnless, faketimeFolder, noFaketime } from '../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../support/postgres.ts';
import { openServer } from '../support/servers.ts';

const seconds = 1_000;
const patience = { timeout: 60 * seconds, interval: 200 };
/** Of Debian's `faketime`. It changes the time of day and leaves the steady clock. */
const fakeTime = join(faketimeFolder ?? '', 'libfaketime.so.1');

describeUnless(noPostgres ?? noFaketime)('a server whose clock is wrong', () => {
  test.for(['+1h', '-1h'])(
    'by %s keeps its lease, and the time limits of its tasks hold where they go on',
    {
      tags: ['slow'],
      timeout: 180 * seconds,
    },
    async (offset) => {
      const address = await freshAddress();
      const given = { config: { server: { max_concurrent_agents: 2 } }, command: 'sleep 8' };
      const [wrong, right] = [await openServer(address, given), await openServer(address, given)];
      const clock = { LD_PRELOAD: fakeTime, FAKETIME: offset, FAKETIME_DONT_FAKE_MONOTONIC: '1' };
      await wrong.agentWith({ DATABASE_URL: address, ...clock }, 'server', 'start');
      const [long, short] = [
        (await wrong.agent('create', 'Has time')).out.trim(),
        (await wrong.agent('create', 'Has no time')).out.trim(),
      ];
      const isActing = (id: string) =>
        vi.waitFor(async () => expect((await wrong.viewOf(id)).phase).toBe('acting'), patience);
      await wrong.agent('engineer', long, '--async', '--timeout', '600');
      await isActing(long);
      await right.agent('server', 'start');
      await wrong.agent('engineer', short, '--async', '--timeout', '6');
      await isActing(short);
      const { started_at } = await wrong.viewOf(short);
      expect(Math.abs(Date.now() - Date.parse(started_at))).toBeLessThan(60 * seconds);
      // Longer than a lease.
      await delay(3.5 * seconds);
      expect(await inPostgres(address, 'select 1 from nodes where ended = 1')).toEqual([]);

      await wrong.stopServer('SIGKILL');

      await vi.waitFor(
        async () => expect(await right.viewOf(long)).toMatchObject({ status: 'complete' }),
        patience,
      );
      expect(await right.viewOf(short)).toMatchObject({
        status: 'failed',
        error: { code: 'timed_out' },
      });
    },
  );
});
