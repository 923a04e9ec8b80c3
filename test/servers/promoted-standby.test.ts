import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { isLong } from '../support/long.ts';
import { describeUnless } from '../support/needs.ts';
import { inPostgres, noPostgres } from '../support/postgres.ts';
import { startPostgresPair } from '../support/postgres-pair.ts';
import { openServer } from '../support/servers.ts';
import { readFrames, type SeenFrame } from '../support/sse.ts';
import { temporaryFolder } from '../support/temporary.ts';

const seconds = 1_000;
const patience = { timeout: 90 * seconds, interval: 200 };
const failures = isLong ? 20 : 2;

describeUnless(noPostgres)('a standby that is promoted', () => {
  test(`${failures} primaries are killed: nothing that was acknowledged or shown is lost, and nothing runs twice`, {
    tags: ['slow'],
    timeout: (60 + 90 * failures) * seconds,
  }, async () => {
    const pair = await startPostgresPair('shared', onTestFinished);
    const notes = join(temporaryFolder(onTestFinished), 'notes');
    const given = {
      config: {
        server: { max_concurrent_agents: 4, worker_pool_size: 2 },
        store: { lease_seconds: 30 },
      },
      command: `echo ran >> ${notes}; sleep 0.5`,
    };
    const servers = [await openServer(pair.address, given), await openServer(pair.address, given)];
    for (const server of servers) expect((await server.agent('server', 'start')).code).toBe(0);
    const shown: SeenFrame[] = [];
    for (const server of servers) {
      const token = readFileSync(join(server.stateDir, 'token'), 'utf8').trim();
      const headers = { authorization: `Bearer ${token}` };
      readFrames(`${server.serverFile().url}/stream`, headers, (frame) => {
        shown.push(frame);
        return false;
      }).catch(() => {});
    }
    const acknowledged: string[] = [];
    let isOver = false;
    // A test that failed would go on for ever.
    onTestFinished(() => {
      isOver = true;
    });
    const addUntilOver = async (server: (typeof servers)[number]): Promise<void> => {
      while (!isOver) {
        const created = await server.agent('create', 'Survivor');
        if (created.code !== 0) continue;
        const id = created.out.trim();
        if ((await server.agent('engineer', id, '--async')).code === 0) acknowledged.push(id);
      }
    };
    const adding = servers.map(addUntilOver);
    const more = async (count: number): Promise<void> => {
      const goal = acknowledged.length + count;
      await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThanOrEqual(goal), patience);
    };

    for (let failure = 0; failure < failures; failure += 1) {
      await more(4);
      await pair.failOver();
      await more(4);
      await pair.follow();
    }
    isOver = true;
    await Promise.all(adding);

    const address = pair.addressOfPrimary();
    await vi.waitFor(
      async () =>
        expect(await inPostgres(address, 'select 1 from actors where pending = 1')).toEqual([]),
      patience,
    );
    const ends = await inPostgres(
      address,
      `select task_id, string_agg(type, ' ') as types, max(attempt) as attempt from journal
       where type in ('completed', 'failed', 'cancelled') group by 1`,
    );
    const once = ends.filter(({ types, attempt }) => types === 'completed' && attempt === 1);
    expect(once).toEqual(ends);
    expect(once.map(({ task_id }) => task_id)).toEqual(expect.arrayContaining(acknowledged));
    expect(existsSync(notes) && readFileSync(notes, 'utf8').trim().split('\n')).toHaveLength(
      ends.length,
    );
    const kept = new Set(
      (await inPostgres(address, 'select seq, task_id, type from journal')).map(
        ({ seq, task_id, type }) => `${seq} ${task_id} ${type}`,
      ),
    );
    const numbered = shown.filter(({ id, event }) => id !== null && event !== 'snapshot');
    expect(numbered.length).toBeGreaterThan(acknowledged.length);
    expect(
      numbered
        .map(({ id, body }) => `${id} ${body.task_id} ${body.type}`)
        .filter((frame) => !kept.has(frame)),
    ).toEqual([]);
    expect(await inPostgres(address, 'select 1 from nodes where ended = 1')).toEqual([]);
  });
});
