import { expect, test, vi } from 'vitest';
import { openForgeProject } from '../../support/forge/project.ts';
import { gitIn } from '../../support/git.ts';

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
  person.lineComment(1, 'mary', '\u001b[2JWhy one line?\u0007');
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
  expect(review.comments[1].text).toBe('mary wrote at the pull request:\nWhy one line?');
  const ours = state.said.filter(({ user }) => user === 'agent-bot');
  expect(ours.map(({ kind, text }) => [kind, text.split('\n')[0]])).toEqual([
    ['plain', 'What was done about failed checks:'],
    ['line', 'Answer 2.'],
    ['plain', '> Please two.'],
  ]);
  expect(ours[0]?.text).toContain('- attempt 2, `ci/test`: Answer 1.');
  expect(ours[1]?.text).toContain(`Work of attempt 3: ${head()}`);
  expect(state.said.find(({ kind }) => kind === 'line')?.isResolved).toBe(true);
  expect(state.pulls).toHaveLength(1);
});

test('a check that fails late begins the next attempt, also when nobody commented in between', {
  tags: ['slow'],
}, async () => {
  const { agent, github, complete, untilPr } = await openForgeProject(scripts);
  const id = await complete('Add a page');
  await agent('publish', id);
  await untilPr(id, { checks: 'none' });

  github.person.check(github.bare.tip(`agent/${id}/pr`) ?? '', 'ci/test', 'failure');

  await untilPr(id, { round: 1 });
});

test('a commit of a person on its branch becomes part of the next attempt', {
  tags: ['slow'],
}, async () => {
  const { github, agent, complete, untilPr } = await openForgeProject(scripts);
  const { person, bare } = github;
  const id = await complete('Add a page');
  await agent('publish', id);
  const head = () => bare.tip(`agent/${id}/pr`) ?? '';

  const theirs = bare.commit(`agent/${id}/pr`, 'person.txt', 'mine\n');
  await untilPr(id, { head_sha: theirs });
  person.comment(1, 'mary', 'One more line.');
  await untilPr(id, { round: 1 });
  await vi.waitFor(() => expect(head()).not.toBe(theirs), { timeout: 60_000 });

  expect(bare.isIn(theirs, head())).toBe(true);
  expect(bare.show(head(), 'page.txt')).toBe('line\nline\n');
  expect(bare.show(head(), 'person.txt')).toBe('mine\n');
});

test('a commit of a person becomes part of the work, also before the pull request could be opened', {
  tags: ['slow'],
}, async () => {
  const { github, agent, complete, untilPr } = await openForgeProject(scripts);
  const { state, bare, fault } = github;
  const id = await complete('Add a page');
  const branch = `agent/${id}/pr`;
  fault({ match: /^POST .*pulls$/, times: 3, status: 500 });

  const published = agent('publish', id);
  await vi.waitFor(() => expect(bare.tip(branch)).not.toBe(null), { timeout: 60_000 });
  const theirs = bare.commit(branch, 'person.txt', 'mine\n');
  await published;
  await untilPr(id, { state: 'open', checks: 'none' });

  expect(state.pulls).toHaveLength(1);
  expect(bare.isIn(theirs, branch)).toBe(true);
  expect(bare.show(branch, 'page.txt')).toBe('line\n');
});

test('a person who replaces our commits is asked, and nothing is forced', {
  tags: ['slow'],
}, async () => {
  const { github, agent, complete, untilPr } = await openForgeProject(scripts);
  const { bare } = github;
  const id = await complete('Add a page');
  await agent('publish', id);

  const theirs = bare.replace(`agent/${id}/pr`, 'person.txt', 'mine\n');
  await untilPr(id, { waits_for: 'person', head_sha: theirs });
  const shown = (await agent('pr', id)).out;

  expect(shown.replaceAll(/\s+/g, ' ')).toContain(
    'somebody replaced the commits that this server pushed',
  );
  expect(bare.tip(`agent/${id}/pr`)).toBe(theirs);
});

test('work that conflicts with its base goes to the next attempt, on top of that base', {
  tags: ['slow'],
}, async () => {
  const resolve = "sed -i '/^[<=>|]\\{7\\}/d' page.txt 2>/dev/null; echo line >> page.txt";
  const turns = scripts[0]?.turns ?? [];
  const { github, agent, complete, untilPr } = await openForgeProject([
    { turns: [{ calls: [{ tool: 'bash', arguments: { command: resolve } }] }, ...turns.slice(1)] },
  ]);
  const { bare } = github;
  const id = await complete('Add a page');
  await agent('publish', id);
  const main = bare.commit('main', 'page.txt', 'theirs\n');

  await untilPr(id, { round: 1 });
  await untilPr(id, { mergeable: 'yes' });

  expect(bare.show(`agent/${id}/pr`, 'page.txt')).toBe('theirs\nline\nline\n');
  expect(bare.isIn(main, `agent/${id}/pr`)).toBe(true);
});

test('the server merges the head whose checks passed, after its work passed with what is new on its base', {
  tags: ['slow'],
}, async () => {
  const { github, agent, complete, untilPr } = await openForgeProject(scripts, {
    merge: 'when_green',
  });
  const { person, bare, state } = github;
  await agent('config', 'set', 'merge.verify', '["test -f page.txt"]');
  const id = await complete('Add a page');
  await agent('publish', id);
  const head = () => bare.tip(`agent/${id}/pr`) ?? '';
  const first = head();
  bare.commit('main', 'other.txt', 'other\n');

  person.check(first, 'ci/test', 'success');
  await vi.waitFor(() => expect(head()).not.toBe(first), { timeout: 60_000 });
  const second = head();
  await untilPr(id, { head_sha: second, checks: 'pending' });
  const isOpen = state.pulls[0]?.state;
  person.check(second, 'ci/test', 'success');
  await untilPr(id, { state: 'merged' });

  expect(isOpen).toBe('open');
  expect(state.pulls[0]).toMatchObject({ lastSha: second });
  expect(bare.show('main', 'page.txt')).toBe('line\n');
  expect(bare.show('main', 'other.txt')).toBe('other\n');
});

test('why the forge refused the merge is said until something changes', {
  tags: ['slow'],
}, async () => {
  const { github, agent, complete, untilPr } = await openForgeProject(scripts, {
    merge: 'when_green',
  });
  const { person, bare, heard } = github;
  person.protect('main', ['ci/required']);
  const id = await complete('Add a page');
  await agent('publish', id);
  person.check(bare.tip(`agent/${id}/pr`) ?? '', 'ci/test', 'success');
  const why = {
    waits_for: 'person',
    reason: expect.stringContaining('Required status check "ci/required" is expected'),
  };
  await untilPr(id, why);

  const looks = () => heard.filter(({ what }) => what === 'POST /graphql').length;
  const before = looks();
  await vi.waitFor(() => expect(looks()).toBeGreaterThan(before + 1), { timeout: 60_000 });

  await untilPr(id, why);
  expect((await agent('pr', id)).out).toContain('ci/required');
});

test('a check that passed on the same files before runs again first; failing again it asks a person', {
  tags: ['slow'],
}, async () => {
  const { github, agent, complete, untilPr } = await openForgeProject(scripts);
  const { person, bare, state } = github;
  const id = await complete('Add a page');
  await agent('publish', id);
  const head = bare.tip(`agent/${id}/pr`) ?? '';
  person.check(head, 'ci/test', 'success');
  await untilPr(id, { checks: 'green' });

  person.check(head, 'ci/test', 'failure');
  await untilPr(id, { checks: 'pending' });
  const again = state.runs.at(-1);
  Object.assign(again ?? {}, { status: 'completed', conclusion: 'failure' });
  await untilPr(id, { checks: 'red', waits_for: 'person', round: 0 });

  expect(state.runs).toHaveLength(3);
  expect((await agent('pr', id)).out).toContain('1 check failed: ci/test, as before on the same');
});

test('no more attempts than max_rounds are asked for, then a person lets one more', {
  tags: ['slow'],
}, async () => {
  const { github, agent, complete, untilPr } = await openForgeProject(scripts, { max_rounds: 1 });
  const { person, bare } = github;
  const id = await complete('Add a page');
  await agent('publish', id);
  const none = await agent('publish', id, '--fix');
  person.comment(1, 'mary', 'One more line.');
  await untilPr(id, { round: 1, waits_for: 'review' });
  person.comment(1, 'mary', 'And one more.');

  await untilPr(id, {
    ...{ round: 1, waits_for: 'person' },
    reason: '1 comment without an answer, after 1 attempt for it',
  });
  const fixed = await agent('publish', id, '--fix');
  await untilPr(id, { round: 2, waits_for: 'review' });

  expect(none.code).toBe(4);
  expect(none.err).toContain('without a failed check or a comment to answer');
  expect(fixed.code, fixed.err).toBe(0);
  expect(bare.show(`agent/${id}/pr`, 'page.txt')).toBe('line\nline\nline\n');
});

test('a dependent goes to the branch of what it depends on, until that has landed', {
  tags: ['slow'],
}, async () => {
  const { github, agent, complete, untilPr, root } = await openForgeProject(scripts);
  const { person, state, bare } = github;
  const first = await complete('Add a page');
  const second = (await agent('create', 'Add more', '--deps', first)).out.trim();
  await agent('engineer', second);
  await agent('publish', first);
  await agent('publish', second);
  const before = state.pulls.map(({ base }) => base);

  await untilPr(second, { state: 'open', mergeable: 'yes' });
  person.merge(1);
  await untilPr(first, { state: 'merged' });
  await vi.waitFor(() => expect(state.pulls[1]?.base).toBe('main'), { timeout: 60_000 });
  const unmerged = JSON.parse((await agent('show', first, '--json')).out).work.merged_at;
  // Only what has all of main may be merged now.
  person.protect('main', []);
  await vi.waitFor(() => expect(bare.isIn('main', `agent/${second}/pr`)).toBe(true), {
    timeout: 60_000,
  });
  gitIn(root, 'pull', '--quiet', '--ff-only', bare.dir, 'main');

  expect(before).toEqual(['main', `agent/${first}/pr`]);
  expect(unmerged).toBeUndefined();
  await vi.waitFor(async () => {
    const { work } = JSON.parse((await agent('show', first, '--json')).out);
    expect(work.merged_at).toBeDefined();
  });
});
