import { expect, test, vi } from 'vitest';
import { openGitHub } from '../support/forge/github.ts';
import { token } from '../support/forge/state.ts';
import { makeRepository } from '../support/git.ts';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../support/postgres.ts';
import { openServer } from '../support/servers.ts';

const patience = { timeout: 60_000, interval: 300 };

describeUnless(noPostgres)('servers that share a store', () => {
  test('one follows a pull request, and the other goes on with it after kill -9', {
    tags: ['slow'],
    timeout: 240_000,
  }, async () => {
    const address = await freshAddress();
    const github = await openGitHub(makeRepository());
    const { person, heard, bare, remote, repository } = github;
    /** Each names the forge in its own way, so that requests tell who asks. */
    const openAt = async (apiUrl: string) => {
      const forge = { api_url: apiUrl, repository, remote, poll_seconds: 1 };
      const rest = { workspace: { mode: 'worktree' }, forge };
      const server = await openServer(address, {
        config: rest,
        command: 'echo line >> page.txt',
        origin: bare.dir,
      });
      const env = { DATABASE_URL: address, GITHUB_TOKEN: token };
      const started = await server.agentWith(env, 'server', 'start');
      expect(started.code, started.err).toBe(0);
      const host = new URL(apiUrl).host;
      return { ...server, asks: () => heard.filter((each) => each.host === host).length };
    };
    const one = await openAt(github.apiUrl);
    const two = await openAt(github.apiUrl.replace('127.0.0.1', 'localhost'));
    const prOf = async (server: typeof one, id: string) =>
      JSON.parse((await server.agent('pr', id, '--json')).out).pull_request;
    const id = (await one.agent('create', 'Add a page')).out.trim();
    expect((await one.agent('engineer', id)).code).toBe(0);
    const published = await one.agent('publish', id);
    expect(published.code, published.out + published.err).toBe(0);
    const head = bare.tip(`agent/${id}/pr`) ?? '';
    person.check(head, 'ci', 'success');
    await vi.waitFor(
      async () => expect(await prOf(two, id)).toMatchObject({ checks: 'green' }),
      patience,
    );
    const askedBefore = two.asks();

    await one.stopServer('SIGKILL');
    person.review(1, 'olga', 'APPROVED');
    await vi.waitFor(
      async () => expect(await prOf(two, id)).toMatchObject({ review: 'approved' }),
      patience,
    );
    person.merge(1);
    await vi.waitFor(
      async () => expect(await prOf(two, id)).toMatchObject({ state: 'merged' }),
      patience,
    );

    expect(askedBefore).toBe(0);
    expect(two.asks()).toBeGreaterThan(0);
    expect(github.state.pulls).toHaveLength(1);
    const actors = await inPostgres(address, `select id from actors where id like '%${id}/pr'`);
    expect(actors).toHaveLength(1);
  });
});
