import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { startEmulate } from '../../support/forge/emulate.ts';
import { openEmulatedGitHub, seed } from '../../support/forge/emulated-github.ts';
import { openProjectAt } from '../../support/forge/project.ts';

/** Each attempt adds a line, and answers the first comments. */
const answers = [1, 2, 3].map((comment) => ({ comment, answer: `Answer ${comment}.` }));
const scripts = [
  {
    turns: [
      { calls: [{ tool: 'bash', arguments: { command: 'echo line >> page.txt' } }] },
      { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'Done.', answers } }] },
    ],
  },
];

const minutes = 60_000;

const saidSchema = z.array(
  z.object({
    body: z.string(),
    user: z.object({ login: z.string() }),
    in_reply_to_id: z.number().nullish(),
  }),
);
type Said = z.infer<typeof saidSchema>;

const ofUs = (answer: unknown): Said =>
  saidSchema.parse(answer).filter(({ user }) => user.login === 'agent-bot');

test('a task becomes a merged pull request at a GitHub that others wrote', {
  tags: ['slow'],
  timeout: 8 * minutes,
}, async ({ skip }) => {
  const emulate = await startEmulate(seed);
  if ('missing' in emulate) return skip(emulate.missing);
  const { agent, github, complete, untilPr, stopServer, start } = await openProjectAt(
    (project) => openEmulatedGitHub(project, emulate.url),
    scripts,
  );
  const { as, bare, heard } = github;
  await agent('config', 'set', 'merge.verify', '["test -f page.txt"]');
  const id = await complete('Add a page');
  const head = () => bare.tip(`agent/${id}/pr`) ?? '';
  const check = (conclusion: string, output: object = {}) =>
    as('mary', 'POST', 'check-runs', {
      ...{ name: 'ci/test', head_sha: head(), status: 'completed', conclusion, output },
    });
  const untilMoved = (from: string) =>
    vi.waitFor(() => expect(head()).not.toBe(from), { timeout: minutes });

  const published = await agent('publish', id);
  const first = head();
  await untilPr(id, { number: 1, state: 'open', checks: 'none', head_sha: first });

  const place = { path: 'page.txt', start_line: 1, end_line: 1, annotation_level: 'failure' };
  await check('failure', {
    ...{ title: 'Tests', summary: '1 failed' },
    annotations: [{ ...place, message: 'expected 1, got 2' }],
  });
  await untilPr(id, { round: 1 });
  await untilMoved(first);
  const second = head();
  await check('success');
  await as('mary', 'POST', `statuses/${second}`, { context: 'ci/lint', state: 'success' });
  await untilPr(id, { state: 'open', checks: 'green', head_sha: second });

  await as('rita', 'POST', 'issues/1/comments', { body: 'I may only read.' });
  await as('mary', 'POST', 'issues/1/comments', { body: 'Please three lines.' });
  await untilPr(id, { round: 2 });
  await untilMoved(second);
  const third = head();
  await check('success');
  await untilPr(id, { state: 'open', checks: 'green', head_sha: third });

  await as('olga', 'POST', 'pulls/1/reviews', {
    ...{ event: 'REQUEST_CHANGES', body: 'One more.' },
    comments: [{ path: 'page.txt', line: 1, body: 'Why this line?' }],
  });
  await untilPr(id, { round: 3 });
  await untilMoved(third);
  const last = head();
  await as('olga', 'POST', 'pulls/1/reviews', { event: 'APPROVE', body: 'Thank you.' });
  await check('success');
  await untilPr(id, { checks: 'green', review: 'approved', mergeable: 'yes', head_sha: last });
  await stopServer('SIGKILL');
  await agent('config', 'set', 'forge.merge', 'when_green');
  await start();
  await untilPr(id, { state: 'merged' });

  const pulls = await as('olga', 'GET', 'pulls?state=all');
  const plain = ofUs(await as('olga', 'GET', 'issues/1/comments'));
  const lines = ofUs(await as('olga', 'GET', 'pulls/1/comments'));
  const { review, attempt } = JSON.parse((await agent('show', id, '--json')).out);
  expect(published.code, published.err).toBe(0);
  expect(pulls).toMatchObject([
    { number: 1, merged: true, head: { sha: last }, merge_commit_sha: bare.tip('main') },
  ]);
  expect(attempt).toBe(4);
  const sources = review.comments.map(({ source }: { source: string }) => source.split(':')[0]);
  expect(sources.toSorted()).toEqual(['check', 'line', 'plain', 'review']);
  expect(review.comments[0].text).toContain('page.txt:1: failure: expected 1, got 2');
  expect(plain.map(({ body }) => body.split('\n')[0])).toEqual([
    'What was done about failed checks:',
    '> Please three lines.',
    '> One more.',
  ]);
  expect(lines.map(({ in_reply_to_id }) => in_reply_to_id)).toEqual([expect.any(Number)]);
  expect(bare.show('main', 'page.txt')).toBe('line\n'.repeat(4));
  expect(heard.filter(({ what }) => what === 'POST /repos/acme/shop/pulls')).toHaveLength(1);
  expect(heard.some(({ status }) => status === 304)).toBe(true);
});
