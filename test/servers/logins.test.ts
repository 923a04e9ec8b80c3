import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { freshAddress, noPostgres } from '../support/postgres.ts';
import { openServer } from '../support/servers.ts';
import { temporaryFolder } from '../support/temporary.ts';

const seconds = 1_000;
const token = 's'.repeat(64);

/** Two servers with one token on one store. */
const openTwo = async () => {
  const file = join(temporaryFolder(), 'token');
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  const address = await freshAddress();
  const given = { config: { server: { token_file: file } } };
  const [one, two] = [await openServer(address, given), await openServer(address, given)];
  for (const server of [one, two])
    expect(await server.agent('server', 'start')).toMatchObject({ code: 0 });
  return { address, one, two };
};

const ask = (url: string, path: string, given: string | null, init: RequestInit = {}) =>
  fetch(`${url}${path}`, {
    ...init,
    headers: {
      'content-type': 'application/json',
      ...(given === null ? {} : { authorization: `Bearer ${given}` }),
    },
  });

describe.skipIf(noPostgres !== null)(`logins at several servers ${noPostgres ?? ''}`, () => {
  test('one token opens all of them', { tags: ['slow'], timeout: 60 * seconds }, async () => {
    const { one, two } = await openTwo();

    for (const server of [one, two]) {
      const { url } = server.serverFile();
      expect((await ask(url, '/metrics', token)).status).toBe(200);
      expect((await ask(url, '/metrics', 't'.repeat(64))).status).toBe(401);
      expect((await server.agent('token')).out).toBe(`${token}\n`);
    }
  });
});
