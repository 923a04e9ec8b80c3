import { expect, test } from 'vitest';
import { createGitea } from '../../../src/actors/forge/gitea.ts';
import { describeForge, never, wanted } from '../../contracts/forge.ts';
import { giteaRoutes } from '../../support/forge/gitea-routes.ts';
import { openForge } from '../../support/forge/github.ts';
import { makeRepository } from '../../support/git.ts';

const open = async () => {
  const gitea = await openForge(makeRepository(), { routes: giteaRoutes, base: '/api/v1' });
  const { apiUrl, repository, token, person, bare } = gitea;
  const forge = createGitea({ apiUrl, repository, token: () => token, now: Date.now, pauseMs: 1 });
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
