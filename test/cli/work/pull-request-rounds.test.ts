import { expect, test, vi } from 'vitest';
import { openForgeProject } from '../../support/forge/project.ts';

/** Each attempt adds a line, and answers the first comments. */
const answers = [1, 2, 3, 4].map((comment) => ({ comment, answer: `Answer ${comment}.` }));
const scripts = [
  {
    turns: [
      { calls: [{ tool: 'bash', arguments: { command: 'echo line >> page.txt' } }] },
      { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'Done.', answers } }] },
    ],
  },
];

test('a red check and comments begin the next attempt, and each is answered once', {
  tags: ['slow'],
}, async () => {
  const { agent, github, complete, untilPr } = await openForgeProject(scripts);
  const { person, state, bare } = github;
  const id = await complete('Add a page');
  await agent('publish', id);
  const head = () => bare.tip(`agent/${id}/pr`) ?? '';
  const first = head();

  person.check(first, 'ci/test', 'failure', { log: '2026-11-01T00:00:00Z expected 1, got 2' });
  await untilPr(id, { round: 1, state: 'open' });
  await vi.waitFor(() => expect(head()).not.toBe(first), { timeout: 60_000 });
  const second = head();
  person.check(second, 'ci/test', 'success');
  await untilPr(id, { checks: 'green', head_sha: second });
  person.comment(1, 'rita', 'I may only read.');
  person.comment(1, 'robo[bot]', 'coverage 80 %');
  person.lineComment(1, 'mary', 'Why one line?');
  person.review(1, 'olga', 'CHANGES_REQUESTED', 'Please two.');
  await untilPr(id, { round: 2 });
  await vi.waitFor(() => expect(head()).not.toBe(second), { timeout: 60_000 });
  person.check(head(), 'ci/test', 'success');
  person.review(1, 'olga', 'APPROVED', 'Thank you.');
  await untilPr(id, { round: 2, checks: 'green', review: 'approved', head_sha: head() });

  const { review, attempt } = JSON.parse((await agent('show', id, '--json')).out);
  expect(attempt).toBe(3);
  expect(
    review.comments.map(({ source, attempt: of }: { source: string; attempt: number }) => [
      source.replace(/[0-9a-f]{12}|\d{4}$/, 'x'),
      of,
    ]),
  ).toEqual([
    ['check:x:ci/test', 1],
    ['line:x', 2],
    ['review:x', 2],
  ]);
  expect(review.comments[0].text).toContain('expected 1, got 2');
  const ours = state.said.filter(({ user }) => user === 'agent-bot');
  expect(ours.map(({ kind, text }) => [kind, text.replace(/\n[^]*/, '')])).toEqual([
    ['plain', 'What was done about failed checks:'],
    ['line', 'Answer 2.'],
    ['plain', '> Please two.'],
  ]);
  expect(ours[0]?.text).toContain('- attempt 2, `ci/test`: Answer 1.');
  expect(ours[1]?.text).toContain(`Work of attempt 3: ${head()}`);
  expect(state.pulls).toHaveLength(1);
});
