import { Webhooks } from '@octokit/webhooks';
import { expect, test, vi } from 'vitest';
import { openForgeProject } from '../../support/forge/project.ts';
import { token } from '../../support/forge/state.ts';

const scripts = ['Add a page', 'Add a door'].map((title) => ({
  title,
  turns: [
    { calls: [{ tool: 'write', arguments: { path: `${title.at(-1)}.txt`, content: 'x\n' } }] },
    { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'It is there.' } }] },
  ],
}));

const open = (forge: object = {}, given: Readonly<Record<string, string>> = {}) =>
  openForgeProject(scripts, forge, given);

test('work is published, followed through its checks and reviews, and ends when a person merges it', {
  tags: ['slow'],
}, async () => {
  const { agent, github, complete, untilPr } = await open({ on_checks: 'ask' });
  const id = await complete('Add a page');

  const published = await agent('publish', id);
  const head = github.bare.tip(`agent/${id}/pr`);

  expect(published.code, published.err).toBe(0);
  expect(published.out).toMatch(new RegExp(`^${id}  #1 open\n  page +http`));
  expect(github.state.pulls).toMatchObject([
    { head: `agent/${id}/pr`, base: 'main', title: 'Add a page', state: 'open' },
  ]);
  expect(github.state.pulls[0]?.body).toMatch(
    new RegExp(`^It is there\\.\n\n- Task ${id}, attempt 1 by the engineer\n- 1 file, \\+1 −0`),
  );
  await untilPr(id, { checks: 'none', review: 'none', waits_for: 'review', head_sha: head });

  for (let n = 0; n < 300; n += 1)
    github.person.check(head ?? '', `${n} \u001b[2J\n${'x'.repeat(5_000)}`, 'failure');
  await untilPr(id, { checks: 'red' });
  expect((await agent('pr', id)).out.length).toBeLessThan(1_000);
  github.state.runs.length = 0;
  github.person.check(head ?? '', 'ci/test', 'failure');
  await untilPr(id, { checks: 'red', waits_for: 'person', reason: '1 check failed: ci/test' });
  github.person.check(head ?? '', 'ci/test', 'success');
  github.person.review(1, 'olga', 'APPROVED');
  await untilPr(id, { checks: 'green', review: 'approved', mergeable: 'yes' });
  const again = await agent('publish', id, '--json');
  github.person.merge(1);
  await untilPr(id, { state: 'merged' });

  expect(JSON.parse(again.out).pull_request).toMatchObject({ number: 1, state: 'open' });
  expect(github.state.pulls).toHaveLength(1);
  expect((await agent('pr')).out).toBe('no pull request is open\n');
  const shown = await agent('show', id, '--json');
  expect(JSON.parse(shown.out)).toMatchObject({ pull_request: { number: 1, state: 'merged' } });
  expect((await agent('replay', `${id}/pr`)).out).not.toContain('differs');
});

test('a signed delivery of the forge has the pull request looked at before its next look', {
  tags: ['slow'],
}, async () => {
  const settings = { poll_seconds: 3_600, webhook_secret_env: 'HOOK_SECRET' };
  const secret = 'a secret of the webhook of a test';
  const { agent, github, complete, untilPr } = await open(settings, { HOOK_SECRET: secret });
  const id = await complete('Add a page');
  await agent('publish', id);
  const { url } = JSON.parse((await agent('server', 'status', '--json')).out);
  const deliver = async (repository: string) => {
    const body = JSON.stringify({ action: 'submitted', repository: { full_name: repository } });
    const signature = await new Webhooks({ secret }).sign(body);
    const headers = { 'x-hub-signature-256': signature };
    return (await fetch(`${url}/forge/webhook`, { method: 'POST', headers, body })).status;
  };
  await untilPr(id, { state: 'open', review: 'none' });
  github.person.review(1, 'olga', 'APPROVED');
  github.heard.length = 0;

  expect(await deliver('acme/other')).toBe(202);
  expect(github.heard).toEqual([]);
  expect(await deliver('acme/Shop')).toBe(202);

  await untilPr(id, { review: 'approved' });
  expect((await agent('config', 'show')).out).not.toContain(secret);
  expect((await agent('server', 'logs')).out).not.toContain(secret);
});

test('a limit of the forge parks all pull requests by one request, and says until when', {
  tags: ['slow'],
}, async () => {
  const { agent, github, complete, untilPr } = await open();
  const [one, two] = [await complete('Add a page'), await complete('Add a door')];
  for (const id of [one, two]) await agent('publish', id);
  for (const id of [one, two]) await untilPr(id, { checks: 'none', waits_for: 'review' });
  const refused = () => github.heard.filter(({ status }) => status === 403).length;
  const headers = { 'retry-after': '3' };
  const body = { message: 'You have exceeded a secondary rate limit' };
  const reason = expect.stringMatching(/answers nothing until 20.*Z: You have exceeded/);

  github.fault({ match: /./, status: 403, headers, body });
  const limited = [one, two].map((id) => untilPr(id, { waits_for: 'limit', reason }));
  github.person.review(1, 'olga', 'APPROVED');
  await Promise.all(limited);
  const during = refused();
  await untilPr(one, { review: 'approved', waits_for: 'person' });
  await untilPr(two, { waits_for: 'review' });

  expect([during, refused()]).toEqual([1, 1]);
});

test('an answer that is lost and a server that is killed make no second pull request', {
  tags: ['slow'],
}, async () => {
  const { agent, stopServer, start, github, complete, untilPr } = await open();
  const [one, two] = [await complete('Add a page'), await complete('Add a door')];
  github.fault({ match: /^POST .*\/pulls$/, connection: 'lost' });

  await agent('publish', one);
  await agent('publish', two);
  await stopServer('SIGKILL');
  await start();

  for (const id of [one, two]) await untilPr(id, { state: 'open', checks: 'none' });
  expect(github.state.pulls.map(({ head }) => head).toSorted()).toEqual(
    [one, two].map((id) => `agent/${id}/pr`).toSorted(),
  );
});

test('the next attempt goes to the same pull request; discarded work closes it', {
  tags: ['slow'],
}, async () => {
  const { agent, github, complete, untilPr } = await open({ publish: 'when_complete' });
  const id = await complete('Add a page');
  await untilPr(id, { state: 'open', number: 1 });

  await agent('reopen', id);
  await agent('engineer', id);
  const { commit } = JSON.parse((await agent('show', id, '--json')).out).work;
  await untilPr(id, { state: 'open', number: 1, head_sha: commit });
  github.person.close(1);
  await untilPr(id, { state: 'closed' });
  github.person.reopen(1);
  await untilPr(id, { state: 'open' });
  await agent('discard', id);
  await untilPr(id, { state: 'abandoned' });

  // It is told while the forge is asked.
  await vi.waitFor(() => expect(github.state.pulls).toMatchObject([{ state: 'closed' }]));
});

test('a secret that an agent repeats is not in the text of a pull request', async () => {
  const summary = `The token is ${token}.`;
  const { agent, github, complete } = await openForgeProject([
    {
      turns: [
        { calls: [{ tool: 'write', arguments: { path: 'page.txt', content: 'x\n' } }] },
        { calls: [{ tool: 'finish', arguments: { status: 'done', summary } }] },
      ],
    },
  ]);

  await agent('publish', await complete('Add a page'));

  expect(github.state.pulls[0]?.body).toContain('The token is ');
  expect(github.state.pulls[0]?.body).not.toContain(token);
});

test.each([
  ['without a token', {}, { GITHUB_TOKEN: '' }, 8, 'there is no token for acme/shop'],
  ['with a wrong token', {}, { GITHUB_TOKEN: 'ghp_wrong' }, 8, ''],
  ['without the remote', { remote: 'upstream' }, {}, 4, 'the project has no remote upstream'],
])('publishing %s says what is wrong, and what to do', async (_, forge, env, code, says) => {
  const { agent, github, complete } = await open(forge, env);
  const id = await complete('Add a page');

  const published = await agent('publish', id);

  expect(published.out).toContain(says);
  expect(published.out).toContain('waits for  person');
  expect(published.code).toBe(code);
  expect(github.state.pulls).toEqual([]);
  expect((await agent('publish', 'bd-none')).code).toBe(3);
});

test('a token that agent auth login keeps counts for the server that runs', async () => {
  const { agent, shell, github, complete } = await open({}, { GITHUB_TOKEN: '' });
  const id = await complete('Add a page');
  await agent('publish', id);

  await shell(`printf '%s' '${github.token}' | $AGENT auth login github`);
  const published = await agent('publish', id);

  expect(published.out).toContain('#1 open');
  expect((await agent('auth', 'status', 'github')).out).toContain('by agent auth login');
});
