import { expect, test } from 'vitest';
import { openForgeProject, writing } from '../support/forge/project.ts';
import { token } from '../support/forge/state.ts';

const open = async (forge: object = {}) => {
  const { agent, agentWith, github } = await openForgeProject([writing('Add a page')], forge);
  const check = async (more: Readonly<Record<string, string>>) => {
    const { checks } = JSON.parse((await agentWith(more, 'doctor', '--json')).out);
    return checks.filter((each: { check: string }) => each.check === 'forge');
  };
  return { agent, github, check };
};

test('doctor says where pull requests go, whose token does it, and what that may do', async () => {
  const { github, check } = await open({ publish: 'when_complete' });
  const ours = { GITHUB_TOKEN: token };
  const host = new URL(github.apiUrl).host;
  const name = `github acme/shop at ${host}: agent-bot (GITHUB_TOKEN)`;

  expect(await check(ours)).toEqual([
    {
      ...{ check: 'forge', status: 'ok' },
      detail: `${name} may push; publish: when_complete, merge: never`,
    },
  ]);
  github.state.mayPush = false;
  expect(await check(ours)).toMatchObject([
    { status: 'problem', detail: expect.stringContaining(`${name} may not push: give it that`) },
  ]);
  Object.assign(github.state, { mayPush: true, archived: true });
  expect(await check(ours)).toMatchObject([
    { status: 'problem', detail: expect.stringContaining('is archived') },
  ]);
  expect(await check({ GITHUB_TOKEN: 'ghp_wrong' })).toMatchObject([
    { status: 'problem', detail: expect.stringMatching(/does not accept the token/) },
  ]);
});

test('without a token, doctor says how to give one; it is no problem where nothing is published', async () => {
  const { agent, check } = await open();
  const none = { GITHUB_TOKEN: '', GH_TOKEN: '' };
  const detail = expect.stringContaining('agent auth login github');

  expect(await check(none)).toMatchObject([{ status: 'note', detail }]);
  await agent('config', 'set', 'forge.publish', 'when_complete');
  expect(await check(none)).toMatchObject([{ status: 'problem', detail }]);
  await agent('config', 'set', 'forge.remote', 'elsewhere');
  expect(await check(none)).toEqual([]);
});
