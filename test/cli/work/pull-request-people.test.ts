import { expect, test, vi } from 'vitest';
import { openForgeProject, writing } from '../../support/forge/project.ts';

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

test('with on_comments: ask, the newest words of a comment go to an attempt when a person says so', {
  tags: ['slow'],
}, async () => {
  const { agent, github, complete, untilPr } = await openForgeProject(scripts, {
    on_comments: 'ask',
  });
  const { person, state } = github;
  const id = await complete('Add a page');
  await agent('publish', id);
  const comment = person.comment(1, 'mary', 'One more lien.');

  await untilPr(id, {
    ...{ round: 0, waits_for: 'person', reason: '1 comment without an answer' },
  });
  person.editComment(comment, 'One more line.');
  const fixed = await agent('publish', id, '--fix');
  await untilPr(id, { round: 1, waits_for: 'review' });
  // What an attempt got is not given to another one, whatever it says now.
  person.editComment(comment, 'Or none.');
  person.comment(1, 'rita', 'I may only read.');
  await untilPr(id, { round: 1, waits_for: 'review' });

  expect(fixed.code, fixed.err).toBe(0);
  const { review, attempt } = JSON.parse((await agent('show', id, '--json')).out);
  expect(attempt).toBe(2);
  expect(review.comments.map(({ text }: { text: string }) => text)).toEqual([
    'mary wrote at the pull request:\nOne more line.',
  ]);
  const replies = state.said.filter(({ user }) => user === 'agent-bot');
  expect(replies.map(({ text }) => text.split('\n')[0])).toEqual(['> One more line.']);
});

test('a task that is opened again says so; cancelled, its pull request is closed', {
  tags: ['slow'],
}, async () => {
  const { agent, github, complete, untilPr } = await openForgeProject(scripts);
  const id = await complete('Add a page');
  await agent('publish', id);
  await untilPr(id, { waits_for: 'review', reason: 'nobody has approved it yet' });

  await agent('reopen', id);
  await untilPr(id, {
    waits_for: 'person',
    reason: 'its task was opened again: its next attempt is pushed when it is complete',
  });
  const shown = await agent('pr', id);
  await agent('cancel', id);
  await untilPr(id, { state: 'abandoned' });

  expect(shown.out.replaceAll(/\s+/g, ' ')).toContain('its task was opened again');
  await vi.waitFor(() => expect(github.state.pulls).toMatchObject([{ state: 'closed' }]));
});

test('a draft is not merged when it is green, until a person says that it is ready', {
  tags: ['slow'],
}, async () => {
  const { agent, github, complete, untilPr } = await openForgeProject(scripts, {
    ...{ merge: 'when_green', draft: true },
  });
  const { person, state, bare } = github;
  await agent('config', 'set', 'merge.verify', '["test -f page.txt"]');
  const id = await complete('Add a page');
  await agent('publish', id);
  const head = bare.tip(`agent/${id}/pr`) ?? '';
  person.check(head, 'ci', 'success');

  await untilPr(id, { checks: 'green', waits_for: 'person', reason: 'it is a draft' });
  const before = state.pulls.map(({ draft, state: is }) => [draft, is]);
  for (const pull of state.pulls) pull.draft = false;
  await untilPr(id, { state: 'merged' });

  expect(before).toEqual([[true, 'open']]);
  expect(state.pulls).toMatchObject([{ lastSha: head }]);
});

test('three tasks in a row are stacked, and each goes to main when the one before has landed', {
  tags: ['slow'],
}, async () => {
  const titles = ['Task 2', 'Task 3'];
  const own = ['Task 1', ...titles].map((title) => writing(title));
  const { agent, github, complete, untilPr } = await openForgeProject(own);
  const { person, state } = github;
  const ids = [await complete('Task 1')];
  for (const title of titles) {
    const id = (await agent('create', title, '--deps', ids.at(-1) ?? '')).out.trim();
    expect((await agent('engineer', id)).code).toBe(0);
    ids.push(id);
  }
  const [first = '', second = '', third = ''] = ids;
  for (const id of ids) await agent('publish', id);
  const bases = () => state.pulls.map(({ base }) => base);
  const before = bases();

  person.merge(1);
  await untilPr(first, { state: 'merged' });
  await vi.waitFor(() => expect(state.pulls[1]?.base).toBe('main'), { timeout: 60_000 });
  const between = bases();
  await untilPr(second, { state: 'open' });
  person.merge(2);
  await untilPr(second, { state: 'merged' });
  await vi.waitFor(() => expect(state.pulls[2]?.base).toBe('main'), { timeout: 60_000 });
  await untilPr(third, { state: 'open', mergeable: 'yes' });

  expect(before).toEqual(['main', `agent/${first}/pr`, `agent/${second}/pr`]);
  expect(between).toEqual(['main', 'main', `agent/${second}/pr`]);
});

test('auto-merge is off before the next attempt is pushed, and asked for again when all is answered', {
  tags: ['slow'],
}, async () => {
  const { agent, github, complete, untilPr } = await openForgeProject(scripts, { merge: 'queue' });
  const { person, state, bare } = github;
  person.protect('main', ['ci']);
  await agent('config', 'set', 'merge.verify', '["test -f page.txt"]');
  const id = await complete('Add a page');
  await agent('publish', id);
  const head = () => bare.tip(`agent/${id}/pr`) ?? '';
  const first = head();
  await vi.waitFor(() => expect(state.pulls[0]?.autoMerge?.sha).toBe(first), { timeout: 60_000 });

  person.comment(1, 'mary', 'One more line.');
  await vi.waitFor(() => expect(head()).not.toBe(first), { timeout: 60_000 });
  await vi.waitFor(() => expect(state.pulls[0]?.autoMerge?.sha).toBe(head()), { timeout: 60_000 });
  await untilPr(id, { round: 1, state: 'open' });

  expect(state.autoMerges).toEqual([`on ${first}`, `off ${first}`, `on ${head()}`]);
});
