import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../support/postgres.ts';
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

describeUnless(noPostgres)('logins at several servers', () => {
  test('one token opens all of them', { tags: ['slow'], timeout: 60 * seconds }, async () => {
    const { one, two } = await openTwo();

    for (const server of [one, two]) {
      const { url } = server.serverFile();
      expect((await ask(url, '/metrics', token)).status).toBe(200);
      expect((await ask(url, '/metrics', 't'.repeat(64))).status).toBe(401);
      expect((await server.agent('token')).out).toBe(`${token}\n`);
    }
  });

  test('a login at one server holds at the other, and ends there at once', {
    tags: ['slow'],
    timeout: 60 * seconds,
  }, async () => {
    const { address, one, two } = await openTwo();
    const [here, there] = [one.serverFile().url, two.serverFile().url];
    const code = (await one.agent('open', '--direct', '--print')).out.trim().split('#c=')[1] ?? '';
    const exchange = (url: string) =>
      ask(url, '/page/session', null, { method: 'POST', body: JSON.stringify({ code }) });

    const both = await Promise.all([exchange(here), exchange(there)]);
    const answers: { token?: string; error?: object }[] = [];
    for (const answer of both) answers.push(JSON.parse(await answer.text()));

    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 401]);
    expect(answers.find(({ error }) => error !== undefined)?.error).toMatchObject({
      code_refused: 'used',
    });
    const session = answers.find((answer) => answer.token !== undefined)?.token ?? '';
    for (const url of [here, there]) expect((await ask(url, '/metrics', session)).status).toBe(200);
    const rows = JSON.stringify(await inPostgres(address, 'select * from page_logins'));
    expect([rows.includes(session), rows.includes(code), rows.includes(token)]).toEqual([
      false,
      false,
      false,
    ]);
    const stream = await ask(there, '/stream', session);
    const ended = stream.text();

    expect((await ask(here, '/page/session', session, { method: 'DELETE' })).status).toBe(204);

    for (const url of [here, there]) expect((await ask(url, '/metrics', session)).status).toBe(401);
    expect(await ended, 'a stream of the other server').toContain('connected');
  });

  test('a token holds at all of them, and ends at all at once; both write one audit log', {
    tags: ['slow'],
    timeout: 60 * seconds,
  }, async () => {
    const { one, two } = await openTwo();
    const there = two.serverFile().url;
    const words = ['token', 'create', '--name', 'ana', '--rights', 'read', '--json'];
    const given = JSON.parse((await one.agent(...words)).out).token;
    const stream = await ask(there, '/stream', given);
    const ended = stream.text();
    for (const server of [one, two, one]) await server.agent('create', 'Say hello');

    expect((await one.agent('token', 'revoke', 'ana')).code).toBe(0);

    expect((await ask(there, '/metrics', given)).status).toBe(401);
    expect(await ended, 'a stream of the other server').toContain('connected');
    const verified = await two.agent('audit', '--verify', '--json');
    // Two for each task: what was asked for, and the id that came of it.
    expect([verified.code, JSON.parse(verified.out).lines]).toEqual([0, 8]);
  });

  test('a login goes on after a restart of its server, and ends by the clock of the database', {
    tags: ['slow'],
    timeout: 60 * seconds,
  }, async () => {
    const { address, one, two } = await openTwo();
    const { url } = one.serverFile();
    const made = await ask(url, '/page/codes', token, { method: 'POST' });
    const { code } = JSON.parse(await made.text());
    const post = { method: 'POST', body: JSON.stringify({ code }) };
    const opened = await ask(url, '/page/session', null, post);
    const session = JSON.parse(await opened.text()).token;
    await one.agent('server', 'restart');
    const again = one.serverFile().url;
    expect((await ask(again, '/metrics', session)).status).toBe(200);

    await inPostgres(address, 'update page_logins set expires_at = clock_ms() - 1');

    for (const server of [again, two.serverFile().url])
      expect((await ask(server, '/metrics', session)).status).toBe(401);
    await ask(again, '/page/codes', token, { method: 'POST' });
    expect(await inPostgres(address, "select 1 from page_logins where kind = 'session'")).toEqual(
      [],
    );
  });
});
