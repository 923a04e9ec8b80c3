import { expect, test } from 'vitest';
import { openGitea } from '../../support/forge/gitea-routes.ts';
import { openForgeProject, writing } from '../../support/forge/project.ts';
import { token } from '../../support/forge/state.ts';

const open = (forge: object = {}, given: Readonly<Record<string, string>> = {}) =>
  openForgeProject(
    [writing('Add a page')],
    { type: 'gitea', ...forge },
    { GITHUB_TOKEN: '', GITEA_TOKEN: token, ...given },
    openGitea,
  );

test('work is published at Gitea, answers a comment by another attempt, and is merged there', {
  tags: ['slow'],
}, async () => {
  const { agent, github, complete, untilPr } = await open({ merge: 'when_green' });
  await agent('config', 'set', 'merge.verify', '["test -f e.txt"]');
  const id = await complete('Add a page');
  const head = () => github.bare.tip(`agent/${id}/pr`) ?? '';

  const published = await agent('publish', id, '--draft');
  await untilPr(id, { state: 'open', waits_for: 'checks' });
  const titles = github.state.pulls.map(({ title }) => title);
  github.person.comment(1, 'mary', 'Why?');
  await untilPr(id, { round: 1, state: 'open' });
  await expect.poll(() => github.state.said.length, { timeout: 60_000 }).toBe(2);
  const [pull] = github.state.pulls;
  Object.assign(pull ?? {}, { title: 'Add a page' });
  const last = head();
  github.person.check(last, 'ci', 'success');
  await untilPr(id, { state: 'merged', head_sha: last });

  expect(published.out).toContain('#1 open');
  expect(titles).toEqual(['WIP: Add a page']);
  expect(github.state.said[1]).toMatchObject({ user: 'agent-bot' });
  expect(github.state.said[1]?.text).toMatch(/^> Why\?/);
  expect(github.bare.has('main', 'e.txt')).toBe(true);
});

test.each([
  ['of the variable that token_env names', { token_env: 'OUR_TOKEN' }, 'OUR_TOKEN'],
  ['of GITEA_TOKEN', {}, 'GITEA_TOKEN'],
])('the token %s is used', async (_, forge, name) => {
  const { agent, complete } = await open(forge, { GITEA_TOKEN: '', [name]: token });

  const published = await agent('publish', await complete('Add a page'));

  expect(published.code, published.out).toBe(0);
});

test('a token of GitHub is not sent to Gitea, and the one that agent auth login keeps is used', async () => {
  const { agent, shell, github, complete } = await open(
    {},
    { GITEA_TOKEN: '', GITHUB_TOKEN: token },
  );
  const id = await complete('Add a page');

  const without = await agent('publish', id);
  const heard = github.heard.length;
  await shell(`printf '%s' '${token}' | $AGENT auth login gitea`);
  const published = await agent('publish', id);

  expect(without.code).toBe(8);
  expect(without.out).toContain('agent auth login gitea, or set GITEA_TOKEN');
  expect(heard).toBe(0);
  expect(published.out).toContain('#1 open');
});

test.each(['', 'https://api.github.com'])(
  'the address %j is refused with what to set',
  async (api_url) => {
    const { agent, github, complete } = await open();
    const id = await complete('Add a page');
    if (api_url === '') await agent('config', 'unset', 'forge.api_url');
    else await agent('config', 'set', 'forge.api_url', api_url);

    const published = await agent('publish', id);

    expect(published.code).toBe(4);
    expect(published.out).toContain('set forge.api_url to https://<host>/api/v1');
    expect(github.state.pulls).toEqual([]);
  },
);
