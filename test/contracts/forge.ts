import { beforeEach, describe, expect, test } from 'vitest';
import type { Forge, ForgeError, WantedPullRequest } from '../../src/actors/forge/port.ts';
import type { FakeGitHub } from '../support/forge/github.ts';

/** A forge for tests, and what people do there. */
export interface ForgeWorld {
  readonly forge: Forge;
  /** Commits a file to a branch of the forge, as a person. @returns the commit */
  readonly commit: (branch: string, file: string, text: string) => string;
  readonly tip: (branch: string) => string | null;
  readonly person: FakeGitHub['person'];
  /** The next answer to such a request is lost after it was carried out. */
  readonly loseAnswer: (match: RegExp) => void;
}

export const never = new AbortController().signal;

export const wanted = (more: Partial<WantedPullRequest> = {}): WantedPullRequest => ({
  ...{ head: 'agent/bd-a1/pr', base: 'main', title: 'Add a cache', body: 'Closes #1' },
  ...{ draft: false, ...more },
});

/** The fault and the message of a call that fails. */
export const faultOf = async (call: Promise<unknown>): Promise<ForgeError> =>
  call.then(
    () => expect.unreachable('it did not fail'),
    (error: ForgeError) => {
      expect(error.name).toBe('ForgeError');
      return error;
    },
  );

/** The contract of every forge. `open` makes a new repository with a branch `main`; what a forge does not have is false. */
export const describeForge = (
  name: string,
  open: () => Promise<ForgeWorld>,
  { annotations = true, closeReasons = true } = {},
) =>
  describe(`${name} forge`, () => {
    let world: ForgeWorld;
    let forge: Forge;
    beforeEach(async () => {
      world = await open();
      forge = world.forge;
    });
    const publish = async (more: Partial<WantedPullRequest> = {}) => {
      world.commit(more.head ?? wanted().head, 'b.txt', 'new\n');
      return forge.publish(wanted(more), never);
    };
    const statusOf = async (number: number) => {
      const status = await forge.status(number, null, never);
      return status ?? expect.unreachable('there is no such pull request');
    };

    test('names the default branch', async () => {
      expect(await forge.defaultBranch(never)).toBe('main');
    });

    describe('publish', () => {
      test('opens a pull request for a branch', async () => {
        const sha = world.commit('agent/bd-a1/pr', 'b.txt', 'new\n');

        const opened = await forge.publish(wanted({ draft: true }), never);

        expect(opened).toMatchObject({ state: 'open', headSha: sha, base: 'main', draft: true });
        expect(opened.url).toMatch(/^https?:.*\/pulls?\/1$/);
      });

      test('of the same head again brings the open one up to date', async () => {
        const { number } = await publish();
        world.commit('release', 'c.txt', 'c\n');

        const again = await forge.publish(wanted({ title: 'Other', base: 'release' }), never);

        expect(again).toMatchObject({ number, base: 'release', state: 'open' });
      });

      test.each(['merge', 'close'] as const)('finds one after a person did %s', async (how) => {
        const { number } = await publish();
        world.person[how](number);

        expect(await forge.publish(wanted(), never)).toMatchObject({
          number,
          state: how === 'merge' ? 'merged' : 'closed',
        });
      });

      test('whose answer was lost makes no second one', async () => {
        world.loseAnswer(/^POST .*\/pulls$/);

        const { fault } = await faultOf(publish());
        const again = await forge.publish(wanted(), never);

        expect([fault, again.number]).toEqual(['away', 1]);
      });

      test('at the moment when another server does makes one', async () => {
        world.commit('agent/bd-a1/pr', 'b.txt', 'new\n');

        const both = [1, 2].map(() => forge.publish(wanted(), never));

        expect((await Promise.all(both)).map(({ number }) => number)).toEqual([1, 1]);
      });

      test.each([
        ['head', { head: 'agent/none' }],
        ['base', { base: 'none' }],
      ])('without the branch %s says that it is gone', async (_, more) => {
        world.commit('agent/bd-a1/pr', 'b.txt', 'new\n');

        const error = await faultOf(forge.publish(wanted(more), never));

        expect(error).toMatchObject({ fault: 'gone' });
        expect(error.message).toContain('none');
      });

      test('without a change is refused', async () => {
        world.commit('agent/bd-a1/pr', 'b.txt', 'new\n');

        const same = forge.publish(wanted({ base: 'agent/bd-a1/pr' }), never);

        expect(await faultOf(same)).toMatchObject({ fault: 'refused' });
      });
    });

    describe('status', () => {
      test('of a pull request without checks and reviews', async () => {
        const { number, headSha } = await publish();

        expect(await statusOf(number)).toMatchObject({
          ...{ number, headSha, state: 'open', mergeable: 'yes' },
          ...{ checks: [], review: 'none' },
        });
      });

      test('is null when there is none', async () => {
        expect(await forge.status(77, null, never)).toBe(null);
      });

      test('has check runs and statuses of the head, the newest of each name', async () => {
        const { number, headSha } = await publish();
        world.person.check(headSha, 'build', 'failure');
        world.person.check(headSha, 'build', 'success');
        world.person.check(headSha, 'lint', null);
        world.person.check(headSha, 'optional', 'skipped');
        world.person.status(headSha, 'ci/deploy', 'failure', 'no quota');

        const { checks } = await statusOf(number);

        expect(checks.map((check) => [check.name, check.state])).toEqual([
          ['build', 'green'],
          ['ci/deploy', 'red'],
          ['lint', 'pending'],
          ['optional', 'green'],
        ]);
      });

      test('has no checks of an older commit', async () => {
        const { number, headSha } = await publish();
        world.person.check(headSha, 'build', 'success');
        const first = await statusOf(number);
        const sha = world.commit('agent/bd-a1/pr', 'b.txt', 'newer\n');

        const second = await forge.status(number, first, never);

        expect(first.checks).toHaveLength(1);
        expect(second).toMatchObject({ headSha: sha, checks: [] });
      });

      test('that did not change is the same again', async () => {
        const { number, headSha } = await publish();
        world.person.check(headSha, 'build', 'success');
        world.person.status(headSha, 'ci', 'pending');
        world.person.review(number, 'mary', 'APPROVED');
        const first = await statusOf(number);

        expect(await forge.status(number, first, never)).toEqual(first);
      });

      test('shows a change of one part, and keeps the others', async () => {
        const { number, headSha } = await publish();
        world.person.check(headSha, 'build', 'success');
        world.person.status(headSha, 'ci', 'pending');
        const first = await statusOf(number);

        world.person.status(headSha, 'ci', 'success');
        const second = await forge.status(number, first, never);
        world.person.review(number, 'mary', 'APPROVED');
        const third = await forge.status(number, second, never);

        expect(second?.checks.map(({ state }) => state)).toEqual(['green', 'green']);
        expect(third).toMatchObject({ review: 'approved', checks: second?.checks });
      });

      test.each([
        ['nobody', [], 'none'],
        ['a remark', [['mary', 'COMMENTED']], 'none'],
        ['an approval', [['mary', 'APPROVED']], 'approved'],
        ['a stranger', [['nick', 'APPROVED']], 'none'],
        ['a member without the right to push', [['rita', 'CHANGES_REQUESTED']], 'none'],
        ['a contributor who may push', [['carl', 'CHANGES_REQUESTED']], 'changes'],
        ['a bot', [['robo[bot]', 'APPROVED']], 'none'],
        [
          'who changed their mind',
          [
            ['mary', 'CHANGES_REQUESTED'],
            ['mary', 'APPROVED'],
          ],
          'approved',
        ],
        [
          'who said more later',
          [
            ['mary', 'CHANGES_REQUESTED'],
            ['mary', 'COMMENTED'],
          ],
          'changes',
        ],
        [
          'who was dismissed',
          [
            ['mary', 'CHANGES_REQUESTED'],
            ['mary', 'DISMISSED'],
          ],
          'none',
        ],
        [
          'one of two',
          [
            ['olga', 'CHANGES_REQUESTED'],
            ['mary', 'APPROVED'],
          ],
          'changes',
        ],
      ] as const)('counts the review of %s', async (_, reviews, review) => {
        const { number } = await publish();
        for (const [user, value] of reviews) world.person.review(number, user, value);

        expect(await statusOf(number)).toMatchObject({ review });
      });

      test('tells behind and conflicting', async () => {
        const { number } = await publish();
        world.person.protect('other', []);
        world.commit('main', 'b.txt', 'another\n');

        const first = await statusOf(number);
        const second = await forge.status(number, first, never);

        expect(second).toMatchObject({ mergeable: 'conflicting' });
      });

      test('of a merged one has its commit', async () => {
        const { number } = await publish();
        world.person.merge(number);

        const { state, mergeCommit } = await statusOf(number);

        expect([state, mergeCommit]).toEqual(['merged', world.tip('main')]);
      });
    });

    describe('digests', () => {
      test('are another one when something moves, and the same when nothing does', async () => {
        const { number, headSha } = await publish();
        const digest = async () => (await forge.digests([number, 77], never))?.get(number) ?? null;
        const first = await digest();
        if (first === null) return;
        const moves = [
          () => world.person.check(headSha, 'build', null),
          () => world.person.check(headSha, 'build', 'failure'),
          () => world.person.status(headSha, 'ci', 'success'),
          () => world.person.review(number, 'mary', 'APPROVED'),
          () => world.person.comment(number, 'mary', 'hello'),
          () => world.commit('main', 'b.txt', 'another\n'),
          () => world.commit('agent/bd-a1/pr', 'c.txt', 'newer\n'),
          () => world.person.close(number),
        ];

        const found = [first, await digest()];
        for (const move of moves) {
          move();
          found.push(await digest());
        }

        expect(found[1]).toBe(first);
        expect(new Set(found).size).toBe(moves.length + 1);
        expect((await forge.digests([77], never))?.get(77)).toBe('gone');
      });
    });

    describe('comments', () => {
      test('are of three kinds, the oldest first', async () => {
        const { number } = await publish();
        world.person.comment(number, 'mary', 'please a test');
        world.person.lineComment(number, 'nick', 'typo');
        world.person.review(number, 'olga', 'CHANGES_REQUESTED', 'not yet');
        world.person.review(number, 'olga', 'APPROVED', 'fine now');
        world.person.comment(number, 'robo[bot]', 'coverage 80 %');

        const comments = await forge.comments(number, never);

        expect(
          comments.map((each) => [each.kind, each.author, each.canWrite, each.isBot, each.text]),
        ).toEqual([
          ['plain', 'mary', true, false, 'please a test'],
          ['line', 'nick', false, false, 'typo'],
          ['review', 'olga', true, false, 'not yet'],
          ['review', 'olga', true, false, 'fine now'],
          ['plain', 'robo[bot]', false, true, 'coverage 80 %'],
        ]);
        expect(comments[1]).toMatchObject({ path: 'a.txt', line: 1, ours: false });
        expect(comments.map(({ approves }) => approves === true).indexOf(true)).toBe(3);
      });

      test('are all there when there are 300', async () => {
        const { number } = await publish();
        for (let each = 1; each <= 300; each += 1)
          world.person.comment(number, 'mary', `comment ${each}`);

        const comments = await forge.comments(number, never);

        expect(comments).toHaveLength(300);
        expect(comments.at(-1)?.text).toBe('comment 300');
      });

      test('are the newest thousand when there are more', async () => {
        const { number } = await publish();
        for (let each = 1; each <= 1_050; each += 1)
          world.person.comment(number, 'mary', `comment ${each}`);

        const comments = await forge.comments(number, never);

        expect(comments.length).toBeLessThanOrEqual(1_000);
        expect(comments.at(-1)?.text).toBe('comment 1050');
      });

      test('of a deleted account are of nobody who may write', async () => {
        const { number } = await publish();
        world.person.comment(number, '', 'hello');

        expect(await forge.comments(number, never)).toMatchObject([
          { author: 'ghost', canWrite: false, isBot: false },
        ]);
      });
    });

    describe('reply', () => {
      test('is ours, once for each key', async () => {
        const { number } = await publish();
        const reply = { to: null, text: 'Done in 1a2b.', key: 'bd-a1:7' };

        await forge.reply(number, reply, never);
        await forge.reply(number, reply, never);
        await forge.reply(number, { ...reply, key: 'bd-a1:8' }, never);

        const comments = await forge.comments(number, never);
        expect(comments.map(({ ours, kind }) => [ours, kind])).toEqual([
          [true, 'plain'],
          [true, 'plain'],
        ]);
        expect(comments[0]?.text).toContain('Done in 1a2b.');
      });

      test('to a line is in its thread, also below an answer there', async () => {
        const { number } = await publish();
        const first = world.person.lineComment(number, 'mary', 'why?');
        const second = world.person.lineComment(number, 'mary', 'and how?', first);

        for (const id of [first, second]) {
          const to = { id: String(id), kind: 'line' } as const;
          await forge.reply(number, { to, text: 'so', key: `${id}` }, never);
          await forge.reply(number, { to, text: 'so', key: `${id}` }, never);
        }

        const comments = await forge.comments(number, never);
        expect(comments.map(({ kind, ours }) => [kind, ours])).toEqual([
          ['line', false],
          ['line', false],
          ['line', true],
          ['line', true],
        ]);
      });

      test('to a comment that was removed says that it is gone', async () => {
        const { number } = await publish();
        const id = world.person.lineComment(number, 'mary', 'why?');
        world.person.removeComment(id);
        const reply = { to: { id: String(id), kind: 'line' }, text: 'so', key: 'k' } as const;

        expect(await faultOf(forge.reply(number, reply, never))).toMatchObject({ fault: 'gone' });
      });

      test('whose answer was lost is not written twice', async () => {
        const { number } = await publish();
        const reply = { to: null, text: 'Done.', key: 'k' };
        world.loseAnswer(/^POST .*\/comments$/);

        expect(await faultOf(forge.reply(number, reply, never))).toMatchObject({ fault: 'away' });
        await forge.reply(number, reply, never);

        expect(await forge.comments(number, never)).toHaveLength(1);
      });

      test('is not ours when somebody else copies the marker, or quotes it', async () => {
        const { number } = await publish();
        await forge.reply(number, { to: null, text: 'Done.', key: 'k' }, never);
        const [own] = await forge.comments(number, never);
        world.person.comment(number, 'mary', own?.text ?? '');
        world.person.comment(number, 'agent-bot', `> ${own?.text.replaceAll('\n', '\n> ')}\n\nno`);

        const comments = await forge.comments(number, never);

        expect(comments.map(({ ours }) => ours)).toEqual([true, false, false]);
      });

      test('is written although somebody else has put its marker there', async () => {
        const { number } = await publish();
        world.person.comment(number, 'nick', 'ha\n\n<!-- agent-task-server:k -->');

        await forge.reply(number, { to: null, text: 'Done.', key: 'k' }, never);

        expect(await forge.comments(number, never)).toHaveLength(2);
      });
    });

    test('a note is one comment, whose text changes', async () => {
      const { number } = await publish();
      const { updatedAt } = await statusOf(number);

      await forge.note(number, { text: 'One round.', key: 'rounds' }, never);
      await forge.note(number, { text: 'Two rounds.', key: 'rounds' }, never);

      const comments = await forge.comments(number, never);
      expect(comments).toMatchObject([{ ours: true, kind: 'plain' }]);
      expect(comments[0]?.text).toContain('Two rounds.');
      expect((await statusOf(number)).updatedAt > updatedAt).toBe(true);
    });

    test('a check of a job runs again, another one cannot', async () => {
      const { number, headSha } = await publish();
      world.person.check(headSha, 'ci/test', 'failure');
      world.person.check(headSha, 'other', 'failure', { app: 'other' });
      const { checks } = await statusOf(number);

      const again = [];
      for (const check of checks) again.push(await forge.rerun(check, never));

      expect(again).toEqual([true, false]);
      expect((await statusOf(number)).checks.map(({ state }) => state)).toEqual(['pending', 'red']);
    });

    describe('failure', () => {
      const checkOf = async (number: number, name: string) =>
        (await statusOf(number)).checks.find((check) => check.name === name) ??
        expect.unreachable(`no check ${name}`);
      const line = (second: number, text: string) =>
        `2026-11-01T10:00:${String(second).padStart(2, '0')}.1234567Z ${text}\n`;
      const step = (name: string, from: number, to: number, conclusion: string) => ({
        ...{ name, conclusion, started_at: `2026-11-01T10:00:${String(from).padStart(2, '0')}Z` },
        completed_at: `2026-11-01T10:00:${String(to).padStart(2, '0')}Z`,
      });

      test('has the last 50 lines of the failed step, and the annotations', async () => {
        const { number, headSha } = await publish();
        const own = Array.from({ length: 80 }, (_, each) => line(20, `test ${each + 1}`));
        world.person.check(headSha, 'test', 'failure', {
          steps: [
            step('Set up', 1, 5, 'success'),
            step('npm test', 10, 20, 'failure'),
            step('Clean up', 30, 31, 'success'),
          ],
          log: [
            ...[line(1, 'setting up'), ...own],
            ...[line(20, '\u001b[31m##[error]Process completed with exit code 1.\u001b[0m')],
            line(30, 'cleaning up'),
          ].join(''),
          annotations: [
            { path: 'a.ts', start_line: 3, annotation_level: 'failure', message: 'no such name' },
          ],
        });

        const text = await forge.failure(await checkOf(number, 'test'), never);

        expect(text).toContain('Step "npm test" of job test failed.');
        expect(text.includes('a.ts:3: failure: no such name')).toBe(annotations);
        expect(text).toContain('test 80\n##[error]Process completed with exit code 1.');
        expect(text.match(/^test \d+$/gm)).toHaveLength(49);
        expect(text).not.toMatch(/setting up|cleaning up|2026-/);
      });

      test('has no line of another step, also where that failed and was allowed to', async () => {
        const { number, headSha } = await publish();
        const log = [
          line(2, '##[error]allowed to fail'),
          line(20, 'the cause'),
          line(40, '##[error]not cleaned up'),
        ];
        world.person.check(headSha, 'test', 'failure', {
          steps: [step('Lint', 1, 5, 'success'), step('npm test', 10, 20, 'failure')],
          log: log.join(''),
        });

        const text = await forge.failure(await checkOf(number, 'test'), never);

        expect(text).toMatch(/Its last lines:\nthe cause$/);
      });

      test('of a log of 2 MB is short', async () => {
        const { number, headSha } = await publish();
        const log = `${line(1, 'x'.repeat(200)).repeat(10_000)}${line(2, '##[error]the end')}`;
        world.person.check(headSha, 'test', 'failure', { log });

        const text = await forge.failure(await checkOf(number, 'test'), never);

        expect(log.length).toBeGreaterThan(2_000_000);
        expect(text.length).toBeLessThanOrEqual(20_000);
        expect(text).toContain('the end');
      });

      test('of one long line is bounded', async () => {
        const { number, headSha } = await publish();
        world.person.check(headSha, 'test', 'failure', { log: 'y'.repeat(2_000_000) });

        const text = await forge.failure(await checkOf(number, 'test'), never);

        expect(text.length).toBeLessThan(1_000);
      });

      test('of a job without a log says so', async () => {
        const { number, headSha } = await publish();
        world.person.check(headSha, 'test', 'failure');

        const text = await forge.failure(await checkOf(number, 'test'), never);

        expect(text).toContain('log is not there any more');
      });

      test('of another program and of a status has what they say', async () => {
        const { number, headSha } = await publish();
        const output = { title: '2 problems', summary: 'a.ts is too long' };
        world.person.check(headSha, 'scan', 'failure', { app: 'scanner', output });
        world.person.status(headSha, 'ci', 'error', 'no machine was free');

        expect(await forge.failure(await checkOf(number, 'scan'), never)).toContain(
          '2 problems\na.ts is too long',
        );
        expect(await forge.failure(await checkOf(number, 'ci'), never)).toContain(
          'no machine was free',
        );
      });
    });

    describe('merge', () => {
      const how = (sha: string, whenItMay = false) =>
        ({ sha, method: 'squash', whenItMay }) as const;

      test('merges the head that was named', async () => {
        const { number, headSha } = await publish();

        await forge.merge(number, how(headSha), never);

        expect(await statusOf(number)).toMatchObject({
          ...{ state: 'merged', headSha },
          mergeCommit: world.tip('main'),
        });
      });

      test.each([false, true])('of another head moves nothing (when it may: %s)', async (may) => {
        const { number, headSha } = await publish();
        world.person.protect('main', ['build']);
        const sha = world.commit('agent/bd-a1/pr', 'b.txt', 'newer\n');

        const error = await faultOf(forge.merge(number, how(headSha, may), never));

        expect(error).toMatchObject({ fault: 'moved' });
        expect(error.message).toContain(sha);
      });

      test('whose answer was lost is done when it is asked for again', async () => {
        const { number, headSha } = await publish();
        world.loseAnswer(/^(PUT|POST) .*\/merge$/);

        const { fault } = await faultOf(forge.merge(number, how(headSha), never));
        await forge.merge(number, how(headSha), never);

        expect(fault).toBe('away');
      });

      test('against a rule, of a closed one and with a conflict is refused', async () => {
        const { number, headSha } = await publish();
        world.person.protect('main', ['build']);
        const ruled = await faultOf(forge.merge(number, how(headSha), never));
        world.person.close(number);
        const closed = await faultOf(forge.merge(number, how(headSha), never));

        expect([ruled.fault, closed.fault]).toEqual(['refused', 'refused']);
        expect(ruled.message).toMatch(/required status check/i);
        expect(closed.message).toContain('closed');
      });

      test('when it may is taken back once, and what a person asked for stays', async () => {
        const { number, headSha } = await publish();
        world.person.protect('main', ['build']);
        await forge.withdraw(number, never);
        await forge.merge(number, how(headSha, true), never);
        const before = world.person.hasAutoMerge(number);

        await forge.withdraw(number, never);
        const after = world.person.hasAutoMerge(number);
        world.person.autoMerge(number, 'mary');
        await forge.withdraw(number, never);

        expect([before, after, world.person.hasAutoMerge(number)]).toEqual([true, false, true]);
      });

      test('when it may: waits for the checks, or merges at once', async () => {
        const { number, headSha } = await publish();
        world.person.protect('main', ['build']);

        await forge.merge(number, how(headSha, true), never);
        const waiting = await statusOf(number);
        world.person.check(headSha, 'build', 'success');
        await forge.merge(number, how(headSha, true), never);
        await forge.merge(number, how(headSha, true), never);

        expect([waiting.state, (await statusOf(number)).state]).toEqual(['open', 'merged']);
      });
    });

    test('close closes, and leaves what is merged alone', async () => {
      const { number } = await publish();
      await forge.close(number, never);
      await forge.close(number, never);
      const closed = await statusOf(number);
      world.person.reopen(number);
      world.person.merge(number);
      await forge.close(number, never);

      expect([closed.state, (await statusOf(number)).state]).toEqual(['closed', 'merged']);
      expect(await faultOf(forge.close(99, never))).toMatchObject({ fault: 'gone' });
    });

    describe('issues', () => {
      test('are the open ones with all labels, without pull requests', async () => {
        await publish();
        world.person.issue('One', 'text', ['agent']);
        world.person.issue('Two', 'text', ['agent', 'bug']);
        world.person.issue('Three', 'text', ['bug']);

        const of = async (...labels: string[]) =>
          (await forge.issues(labels, never)).map(({ title }) => title);

        expect(await of('agent')).toEqual(['One', 'Two']);
        expect(await of('agent', 'bug')).toEqual(['Two']);
        expect(await of()).toEqual(['One', 'Two', 'Three']);
      });

      test('have what blocks them, by a relation or by their text', async () => {
        const first = world.person.issue('One', 'text', ['agent']);
        const second = world.person.issue('Two', `Blocked by #${first}`, ['agent'], [first]);
        const text = `- [ ] #${first}\n- [x] #99\n  - [ ] #${second} and more\nsee #98`;
        world.person.issue('Three', text, ['agent']);

        const issues = await forge.issues(['agent'], never);

        expect(issues.map(({ blockedBy }) => blockedBy)).toEqual([[], [first], [first, second]]);
        expect(issues[0]).toMatchObject({ number: first, state: 'open', labels: ['agent'] });
      });

      test.each([
        ['completed', 'done'],
        ['not_planned', 'not_planned'],
      ] as const)('that left the list are found: %s is %s', async (reason, state) => {
        const number = world.person.issue('One', 'text', ['agent']);
        world.person.closeIssue(number, reason);

        expect(await forge.issue(number, never)).toMatchObject({
          ...{ number, title: 'One', state: closeReasons ? state : 'done' },
        });
      });

      test.each(['deleted', 'transferred'] as const)('that are %s are null', async (gone) => {
        const number = world.person.issue('One', 'text', ['agent']);
        world.person.editIssue(number, { gone });

        expect(await forge.issue(number, never)).toBe(null);
        expect(await forge.issue(99, never)).toBe(null);
      });

      test('get one comment, also when the answer to the first was lost', async () => {
        const number = world.person.issue('One', 'text', ['agent']);
        world.loseAnswer(/^POST .*\/comments$/);

        await faultOf(forge.note(number, { key: 'source', text: 'taken up' }, never));
        await forge.note(number, { key: 'source', text: 'taken up' }, never);
        await forge.note(number, { key: 'source', text: 'done' }, never);

        const [only, ...others] = await forge.comments(number, never);
        expect(others).toEqual([]);
        expect(only).toMatchObject({ ours: true, text: expect.stringMatching(/^done\n/) });
      });
    });
  });

/** The part of the contract that writes nothing; for a repository of somebody. */
export const describeForgeReads = (describeIt: typeof describe, name: string, open: () => Forge) =>
  describeIt(`${name}, read`, () => {
    test('names the default branch', async () => {
      expect(await open().defaultBranch(never)).toMatch(/\S/);
    });

    test('lists issues', async () => {
      for (const issue of await open().issues([], never)) expect(issue.state).toBe('open');
    });

    test('knows that there is no pull request 999999999', async () => {
      expect(await open().status(999_999_999, null, never)).toBe(null);
    });

    test('reads a pull request, the same twice', async () => {
      const forge = open();
      const number = Number(process.env['FORGE_PULL_REQUEST'] ?? 1);
      const first = await forge.status(number, null, never);

      expect(await forge.status(number, first, never)).toEqual(first);
      if (first === null) return;
      for (const comment of await forge.comments(number, never))
        expect(Date.parse(comment.at)).toBeGreaterThan(0);
      const red = first.checks.find(({ state }) => state === 'red');
      if (red !== undefined) expect(await forge.failure(red, never)).toContain(red.name);
    });
  });
