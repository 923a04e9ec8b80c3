import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { isLong } from '../support/long.ts';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, noPostgres } from '../support/postgres.ts';
import { randomFrom, seed } from '../support/random.ts';
import { openServer } from '../support/servers.ts';
import { readFrames, type SeenFrame } from '../support/sse.ts';

const kills = isLong ? 60 : 3;
const readers = 64;
const seconds = 1_000;

type Server = Awaited<ReturnType<typeof openServer>>;

const openStream = async (server: Server, after: number, enough: (frame: SeenFrame) => boolean) => {
  const token = readFileSync(join(server.stateDir, 'token'), 'utf8').trim();
  const headers = { authorization: `Bearer ${token}`, 'last-event-id': String(after) };
  return readFrames(`${server.serverFile().url}/stream`, headers, enough);
};

describeUnless(noPostgres)('many readers', () => {
  test(`${readers} readers of three servers, which are killed ${kills} times (seed ${seed}), miss no frame and see none twice`, {
    tags: ['slow'],
    timeout: (120 + 20 * kills) * seconds,
  }, async () => {
    const random = randomFrom(seed);
    const below = (count: number): number => Math.floor(random() * count);
    const address = await freshAddress();
    const config = { server: { max_concurrent_agents: 4, max_streams: readers } };
    const servers: Server[] = [];
    for (let n = 0; n < 3; n += 1) servers.push(await openServer(address, { config }));
    await Promise.all(servers.map((server) => server.agent('server', 'start')));
    const up = new Set(servers);
    const anyUp = () => [...up][below(up.size)] as Server;
    let lastTask: string | null = null;
    const isLast = ({ body }: SeenFrame): boolean =>
      body.task_id === lastTask && body.type === 'completed';
    let reconnects = -readers;
    const read = async (): Promise<readonly number[]> => {
      const ids: number[] = [];
      for (let isOver = false; !isOver; ) {
        reconnects += 1;
        const take = (frame: SeenFrame): boolean => {
          if (frame.id !== null) ids.push(frame.id);
          isOver = isLast(frame);
          return isOver;
        };
        await openStream(anyUp(), ids.at(-1) ?? 0, take).catch(() => delay(50));
      }
      return ids;
    };
    const run = async (): Promise<string> => {
      const id = (await anyUp().agent('create', 'Read')).out.trim();
      expect((await anyUp().agent('engineer', id, '--async')).code).toBe(0);
      return id;
    };

    const reading = Promise.all(Array.from({ length: readers }, read));
    for (let kill = 0; kill < kills; kill += 1) {
      await Promise.all([run(), run()]);
      await delay(below(500));
      const victim = anyUp();
      up.delete(victim);
      await victim.stopServer('SIGKILL');
      await run();
      expect((await victim.agent('server', 'start')).code).toBe(0);
      up.add(victim);
    }
    lastTask = (await anyUp().agent('create', 'Last')).out.trim();
    expect((await anyUp().agent('engineer', lastTask, '--async')).code).toBe(0);
    const seen = await reading;

    const all: number[] = [];
    await openStream(anyUp(), 0, (frame) => {
      if (frame.id !== null) all.push(frame.id);
      return isLast(frame);
    });
    expect(all).toEqual(all.toSorted((one, other) => one - other));
    expect(new Set(all).size).toBe(all.length);
    expect(seen.filter((ids) => ids.join() !== all.join())).toEqual([]);
    expect(reconnects).toBeGreaterThanOrEqual(kills);
  });
});
