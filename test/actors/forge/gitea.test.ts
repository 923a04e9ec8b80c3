import { expect, test } from 'vitest';
import { createGitea } from '../../../src/actors/forge/gitea.ts';
import { describeForge, never, wanted } from '../../contracts/forge.ts';
import { openGitea } from '../../support/forge/gitea-routes.ts';
import type { FakeGitHub } from '../../support/forge/github.ts';
import { makeRepository } from '../../support/git.ts';

const connect = ({ apiUrl, repository, token }: FakeGitHub) =>
  createGitea({ apiUrl, repository, token: () => token, now: Date.now, pauseMs: 1 });

const open = async () => {
  const gitea = await openGitea(makeRepository());
  const { person, bare } = gitea;
  const forge = connect(gitea);
  return { gitea, forge, person, commit: bare.commit, tip: bare.tip };
};

describeForge(
  'Gitea',
  async () => {
    const { gitea, ...world } = await open();
    return { ...world, loseAnswer: (match) => gitea.fault({ match, connection: 'lost' }) };
  },
  { annotations: false, closeReasons: false },
);

test('a reply to a line is a review of its own where the server has no replies', async () => {
  const { gitea, forge, person, commit } = await open();
  gitea.state.hasReplies = false;
  commit('agent/bd-a1/pr', 'b.txt', 'new\n');
  const { number } = await forge.publish(wanted(), never);
  const id = String(person.lineComment(number, 'mary', 'why?'));

  await forge.reply(number, { to: { id, kind: 'line' }, text: 'so', key: 'k' }, never);

  expect(await forge.comments(number, never)).toMatchObject([
    { kind: 'line', ours: false },
    { kind: 'line', ours: true, path: 'a.txt', line: 1 },
  ]);
});

test('who may write issues, and not push, has no say; where the token may not ask, who may be assigned has', async () => {
  const { gitea, forge, person, commit } = await open();
  const { state } = gitea;
  const ines = {
    type: 'User',
    association: 'NONE',
    permission: 'read',
    writesIssues: true,
  } as const;
  state.people.set('ines', { login: 'ines', ...ines });
  commit('agent/bd-a1/pr', 'b.txt', 'new\n');
  const { number } = await forge.publish(wanted(), never);
  for (const login of ['mary', 'ines', 'stranger']) person.comment(number, login, 'well');
  const say = async (asking: typeof forge) =>
    (await asking.comments(number, never)).map(({ author, canWrite }) => [author, canWrite]);

  expect(await say(forge)).toEqual([
    ['mary', true],
    ['ines', false],
    ['stranger', false],
  ]);
  state.mayAskPermissions = false;
  expect(await say(connect(gitea))).toEqual([
    ['mary', true],
    ['ines', true],
    ['stranger', false],
  ]);
});
