import { expect, test } from 'vitest';
import { sectionOf } from '../../../src/cli/board/render-board.ts';
import { nextSteps } from '../../../src/cli/output/next-steps.ts';
import { stateWords } from '../../../src/cli/words/state-words.ts';
import { openForgeProject, writing } from '../../support/forge/project.ts';
import { aTask } from '../output/a-task.ts';

const open = { number: 12, state: 'open', checks: 'green', review: 'none', mergeable: 'yes' };
const work = { branch: 'b', files: 1, insertions: 1, deletions: 0 };

test.each([
  [{ ...open, waits_for: 'review' }, 'PR #12 in review', 'forge', 'pr bd-a1'],
  [{ ...open, checks: 'pending', waits_for: 'checks' }, 'PR #12 pending', 'forge', 'pr bd-a1'],
  [{ ...open, checks: 'red', waits_for: 'person' }, 'PR #12 red', 'need', 'pr bd-a1'],
  [
    { ...open, mergeable: 'conflicting', waits_for: 'person' },
    'PR #12 conflicts',
    'need',
    'pr bd-a1',
  ],
  [{ state: 'publishing', waits_for: 'person' }, 'PR refused', 'need', 'publish bd-a1'],
  [{ ...open, state: 'publishing', waits_for: 'forge' }, 'PR #12 publishing', 'forge', 'pr bd-a1'],
  [{ ...open, state: 'merged' }, 'PR #12 merged', 'done', null],
  [{ ...open, state: 'closed' }, 'PR #12 closed', 'review', 'merge bd-a1'],
])('a task with the pull request %j says so, and what is next', (found, word, section, next) => {
  const pull_request = { round: 0, ...found } as never;
  const task = aTask({ status: 'complete', phase: 'complete', attempt: 1, work, pull_request });

  expect(stateWords(task, 0)).toBe(`complete (${word})`);
  expect(sectionOf(task, work)).toBe(section);
  const steps = nextSteps({ ...task, task_id: 'bd-a1' }).map((step) => step.trim());
  expect(steps.slice(1)).toEqual(next === null ? [] : [expect.stringContaining(`agent ${next} `)]);
});

test('list, show and explain say how a pull request stands, and why it is not merged yet', {
  tags: ['slow'],
}, async () => {
  const { agent, github, complete, untilPr } = await openForgeProject([writing('Add a page')], {
    on_checks: 'ask',
  });
  const id = await complete('Add a page');
  await agent('publish', id);
  github.person.check(github.bare.tip(`agent/${id}/pr`) ?? '', 'ci/test', 'failure');
  await untilPr(id, { checks: 'red', mergeable: 'yes' });

  expect((await agent('list')).out).toContain('complete (PR #1 red)');
  expect((await agent('show', id)).out).toMatch(
    /pr +#1 open, checks red, review none, mergeable yes\n +http:.*\/pull\/1\n +waits for you: 1 check failed: ci\/test\n/,
  );
  const explained = (await agent('explain', id)).out;
  expect(explained).toContain(
    '  pull request #1 is open; it waits for you: 1 check failed: ci/test\n',
  );
  expect(explained.split('\n').filter((line) => /^ {2}(yes|no) /.test(line))).toEqual([
    '  no   its checks passed: ci/test',
    '  no   a review approved it',
    '  yes  it can be merged into its branch',
    '  no   the next attempt mends it: forge.on_checks is ask',
    '  no   the server merges it: forge.merge is never',
  ]);
  const { pull_request } = JSON.parse((await agent('explain', id, '--json')).out);
  expect(pull_request.guards).toMatchObject([
    { guard: 'hasChecks', value: false, inputs: { checks: 'red', red: ['ci/test'] } },
    { guard: 'hasReview', value: false },
    { guard: 'isMergeable', value: true },
    { guard: 'hasOthersCommits', value: false, inputs: { task: 'same', own_head: true } },
    { guard: 'hasOtherBase', value: false },
    { guard: 'isFlaky', value: false },
    { guard: 'wantsAttempt', value: false, inputs: { checks: 'red', on_checks: 'ask', round: 0 } },
    { guard: 'isOutdated', value: false },
    { guard: 'mayMerge', value: false, inputs: { merge: 'never', said: 0 } },
  ]);
});

test('agent merge leaves work to its open pull request, unless a person forces it', {
  tags: ['slow'],
}, async () => {
  const { agent, complete } = await openForgeProject([writing('Add a page')]);
  const id = await complete('Add a page');
  await agent('publish', id);

  const refused = await agent('merge', id);
  const all = await agent('merge', '--all');
  const forced = await agent('merge', id, '--force');

  expect(refused.code).toBe(4);
  expect(refused.err).toContain(`${id} is in an open pull request (attempt 1)`);
  expect(all.out + all.err).not.toContain(id);
  expect(forced.code, forced.err).toBe(0);
});
