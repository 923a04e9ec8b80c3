import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { makeRepository } from '../support/git.ts';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../support/postgres.ts';
import { openServer, runsIn } from '../support/servers.ts';

const seconds = 1_000;

describeUnless(noPostgres)('servers that share a store', () => {
  test('run the tasks of one of them, never more at once than the cap of all', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const given = {
      config: { server: { max_concurrent_agents: 3, worker_pool_size: 2 } },
      command: 'sleep 0.3',
    };
    const [one, two] = [await openServer(address, given), await openServer(address, given)];
    for (const server of [one, two])
      expect(await server.agent('server', 'start')).toMatchObject({ code: 0 });
    for (let n = 0; n < 9; n += 1)
      await one.agent('create', `Task ${n}`, '--label', 'role:engineer');

    const run = await one.agent('run');
    expect([run.code, run.out, run.err]).toEqual([0, expect.anything(), '']);

    const { most, owners } = await runsIn(address);
    expect(most).toBe(3);
    expect(owners).toHaveLength(2);
    expect(owners.reduce((sum, [, count]) => sum + count, 0)).toBe(9);
    const logged: string[] = [];
    for (const server of [one, two]) logged.push((await server.agent('server', 'logs')).out);
    expect(logged.map((log) => log.match(/attempt complete/g)?.length).toSorted()).toEqual(
      owners.map(([, count]) => count).toSorted(),
    );
    const file = join(one.root, '.beads', 'issues.jsonl');
    await vi.waitFor(() =>
      expect(readFileSync(file, 'utf8').match(/"status":"closed"/g)).toHaveLength(9),
    );
    expect(existsSync(join(two.root, '.beads', 'issues.jsonl'))).toBe(false);
  });

  test('take what waits at another one whenever they have room', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const given = {
      config: { server: { max_concurrent_agents: 4, worker_pool_size: 2 } },
      command: 'sleep 0.5',
    };
    const [one, two] = [await openServer(address, given), await openServer(address, given)];
    for (const server of [one, two]) await server.agent('server', 'start');
    for (let n = 0; n < 24; n += 1)
      await one.call('execute', { task: `Task ${n}`, role: 'engineer', options: {} });
    await vi.waitFor(
      async () => {
        const { owners } = await runsIn(address);
        expect(owners.reduce((sum, [, count]) => sum + count, 0)).toBe(24);
      },
      { timeout: 60 * seconds, interval: 500 },
    );

    const { most, owners } = await runsIn(address);
    expect(most).toBe(4);
    expect(Math.min(...owners.map(([, count]) => count))).toBeGreaterThanOrEqual(8);
  });

  test('go on with the tasks of one that was killed, after its lease', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const given = {
      config: { server: { max_concurrent_agents: 2, worker_pool_size: 1 } },
      command: 'sleep 1',
    };
    const [one, two] = [await openServer(address, given), await openServer(address, given)];
    for (const server of [one, two]) await server.agent('server', 'start');
    const ids: string[] = [];
    for (let n = 0; n < 6; n += 1) ids.push((await one.agent('create', `Task ${n}`)).out.trim());
    for (const id of ids) await one.agent('engineer', id, '--async');
    await vi.waitFor(async () =>
      expect(
        (await inPostgres(address, 'select distinct owner from actors where live_attempt > 0'))
          .length,
      ).toBe(2),
    );
    await one.stopServer('SIGKILL');

    await vi.waitFor(
      async () => {
        for (const id of ids) expect(await two.viewOf(id)).toMatchObject({ status: 'complete' });
      },
      { timeout: 40 * seconds, interval: 500 },
    );
    const { most } = await runsIn(address);
    expect(most).toBeLessThanOrEqual(2);
  });

  test('get the slots of one that was killed without a task, when its lease is over', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const given = { config: { server: { max_concurrent_agents: 2 } } };
    const [one, two] = [await openServer(address, given), await openServer(address, given)];
    await one.agent('server', 'start');
    await two.agent('server', 'start');
    await one.stopServer('SIGKILL');
    const id = (await two.agent('create', 'Waits for a slot')).out.trim();
    await two.agent('engineer', id, '--async');

    await vi.waitFor(async () => expect((await two.viewOf(id)).status).toBe('complete'), {
      timeout: 30 * seconds,
      interval: 500,
    });
  });

  test('show one that drains as such', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const [one, two] = [
      await openServer(address, { command: 'sleep 60' }),
      await openServer(address),
    ];
    const env = { DATABASE_URL: address };
    const server = one.start('agent-server', ['--server', '--drain-timeout', '60'], env);
    const ended = one.collect(server);
    await vi.waitFor(() => expect(one.serverFile()).not.toBeNull(), { timeout: 30 * seconds });
    await two.agent('server', 'start');
    const id = (await one.agent('create', 'Long')).out.trim();
    await one.agent('engineer', id, '--async');
    await vi.waitFor(async () => expect((await one.viewOf(id)).phase).toBe('acting'));

    server.kill('SIGTERM');

    await vi.waitFor(async () =>
      expect((await two.agent('nodes')).out).toMatch(/ draining +1 .*\n.* \(this\) +live /),
    );
    expect((await two.agent('cancel', id)).code).toBe(0);
    await ended;
    expect((await two.agent('nodes')).out).not.toContain('draining');
  });

  test('each answers requests about a task that another one has', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const given = { config: { server: { max_concurrent_agents: 2 } }, command: 'sleep 60' };
    const [one, two] = [await openServer(address, given), await openServer(address, given)];
    for (const server of [one, two]) await server.agent('server', 'start');
    const id = (await one.agent('create', 'Long')).out.trim();
    await one.agent('engineer', id, '--async');
    await vi.waitFor(async () => expect((await one.viewOf(id)).phase).toBe('acting'));

    const shown = (await two.agent('nodes')).out.split('\n');
    expect(shown).toEqual([
      expect.stringMatching(/^NAME +STATE +RUNNING +SLOTS +WAITING +VERSION +ROLES$/),
      expect.stringMatching(/ live +1 +\d +0 +[\d.]+ +all$/),
      expect.stringMatching(/ \(this\) +live +0 +\d +0 +[\d.]+ +all$/),
      '',
    ]);
    expect(await two.viewOf(id)).toMatchObject({ status: 'started', attempt: 1 });
    const again = await two.agent('engineer', id, '--async');
    expect([again.code, again.err]).toEqual([4, expect.stringContaining('already')]);
    expect((await two.agent('explain', id)).out).toContain('started');
    const other = two.agent('wait', id);
    expect(await two.agent('cancel', id, '--reason', 'not now')).toMatchObject({ code: 0 });
    expect((await other).code).toBe(5);
    expect(await one.viewOf(id)).toMatchObject({ status: 'cancelled' });

    expect(await two.agent('retry', id, '--async')).toMatchObject({ code: 0 });
    await vi.waitFor(async () => expect((await one.viewOf(id)).phase).toBe('acting'));
    const [attempt] = await inPostgres(address, `select owner from actors where id = '${id}'`);
    const nodes = await inPostgres(address, 'select id from nodes order by joined');
    expect(attempt?.owner, 'where its folder is').toBe(nodes[0]?.id);
    expect((await one.agent('cancel', id)).code).toBe(0);
  });

  test('go on in a worktree of their own with what a dead one had begun, and say what is lost', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const given = {
      origin: makeRepository(),
      config: {
        server: { max_concurrent_agents: 1 },
        workspace: { mode: 'worktree', merge: 'none' },
      },
      command: 'echo new > new.txt; sleep 2',
    };
    const [one, two] = [await openServer(address, given), await openServer(address, given)];
    for (const server of [one, two]) await server.agent('server', 'start');
    const id = (await one.agent('create', 'Long')).out.trim();
    await one.agent('engineer', id, '--async');
    await vi.waitFor(async () => expect((await one.viewOf(id)).phase).toBe('acting'));
    await one.stopServer('SIGKILL');

    await vi.waitFor(
      async () => expect(await two.viewOf(id)).toMatchObject({ status: 'complete' }),
      { timeout: 40 * seconds, interval: 500 },
    );
    expect((await two.agent('diff', id)).out).toContain('new.txt');
    expect((await two.agent('logs', id)).out).toContain('in a new folder');
  });

  test('go on at once with the tasks of one that is stopped', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const given = {
      config: { server: { max_concurrent_agents: 1 }, store: { lease_seconds: 600 } },
      command: 'sleep 3',
    };
    const [one, two] = [await openServer(address, given), await openServer(address, given)];
    for (const server of [one, two]) await server.agent('server', 'start');
    const ids: string[] = [];
    for (const title of ['Running', 'Waiting']) {
      const id = (await one.agent('create', title)).out.trim();
      await one.agent('engineer', id, '--async');
      ids.push(id);
    }
    await vi.waitFor(async () => expect((await one.viewOf(ids[0] ?? '')).phase).toBe('acting'));

    expect((await one.agent('server', 'stop')).code).toBe(0);

    await vi.waitFor(
      async () => {
        for (const id of ids) expect(await two.viewOf(id)).toMatchObject({ status: 'complete' });
      },
      { timeout: 30 * seconds, interval: 500 },
    );
    expect((await runsIn(address)).most).toBe(1);
  });
});
