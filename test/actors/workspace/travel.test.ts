import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { carriedName } from '../../../src/actors/workspace/travel/work-travel.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { attempt, branch, id, key, keyed, openCommon } from '../../support/common-repository.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { serveRepository } from '../../support/git-http.ts';
import { landAlone } from '../../support/land-alone.ts';
import { temporaryFolder } from '../../support/temporary.ts';

describe.each(['folder', 'network'] as const)(
  'work of attempts through a repository: %s',
  (kind) => {
    /** Where the same test through the other kind, and other tests of this kind, find the same faults. */
    const slowWith = (slow: typeof kind) => ({ tags: kind === slow ? ['slow'] : [] });

    test('another server gets the folder as a step left it, and saves it as if it were its own', async () => {
      const { project, bare, one, two } = await openCommon(kind);
      const { root } = await one.workspace.open(attempt);
      writeFileSync(join(root, 'a.txt'), 'changed\n');
      mkdirSync(join(root, 'deep'));
      writeFileSync(join(root, 'deep', 'new.sh'), '#!/bin/sh\n');
      chmodSync(join(root, 'deep', 'new.sh'), 0o755);
      await one.travel.keep(keyed, 'act:1:a');
      writeFileSync(join(root, 'later.txt'), 'not kept\n');

      expect(await two.travel.take(attempt, key)).toEqual({
        has: 'step',
        step: 'act:1:a',
        notes: [],
      });
      const here = await two.workspace.open(attempt);
      expect(here.isNew).toBe(false);
      expect(readFileSync(join(here.root, 'a.txt'), 'utf8')).toBe('changed\n');
      expect(existsSync(join(here.root, 'later.txt'))).toBe(false);
      expect((await two.workspace.diff(id, 1))?.patch).toMatch(/a\.txt[\s\S]*deep\/new\.sh/);
      rmSync(join(here.root, 'deep', 'new.sh'));
      writeFileSync(join(here.root, 'more.txt'), 'more\n');
      const saved = await two.workspace.save(attempt, 'Change it');

      expect(saved).toMatchObject({ base: gitIn(project, 'rev-parse', 'main'), files: 2 });
      expect(gitIn(two.root, 'diff', '--name-status', 'main', 'agent/bd-a1/1')).toBe(
        'M\ta.txt\nA\tmore.txt',
      );
      expect(gitIn(bare, 'for-each-ref', '--format=%(refname)')).toBe(
        `refs/heads/${branch}\nrefs/heads/main`,
      );
      expect(gitIn(bare, 'fsck', '--strict', '--no-dangling')).toBe('');
    });

    test(
      'a server that was taken over from writes there no more, and what it has is old',
      slowWith('folder'),
      async () => {
        const { one, two } = await openCommon(kind);
        const { root } = await one.workspace.open(attempt);
        writeFileSync(join(root, 'a.txt'), 'first\n');
        await one.travel.keep(keyed, 'act:1:a');
        await two.travel.take(attempt, key);
        writeFileSync(join(root, 'a.txt'), 'late\n');
        await expect(one.travel.keep(keyed, 'act:1:b')).rejects.toThrow('another server goes on');

        const { root: there } = await two.workspace.open(attempt);
        writeFileSync(join(there, 'a.txt'), 'second\n');
        await two.travel.keep(keyed, 'act:2:c');

        expect(await one.travel.take(attempt, key)).toEqual({
          has: 'step',
          step: 'act:2:c',
          notes: ['What this server had of it is on the branch agent/bd-a1/1.'],
        });
        const { root: again } = await one.workspace.open(attempt);
        expect(readFileSync(join(again, 'a.txt'), 'utf8')).toBe('second\n');
        expect(gitIn(one.root, 'show', 'agent/bd-a1/1:a.txt')).toBe('late');
        expect(await one.workspace.save(attempt, 'Change it')).toMatchObject({
          branch: 'agent/bd-a1/1-2',
        });
      },
    );

    test('a server that had the attempt before shows and merges it as another one finished it', async () => {
      const { one, two } = await openCommon(kind);
      const { root } = await one.workspace.open(attempt);
      writeFileSync(join(root, 'a.txt'), 'first\n');
      await one.travel.keep(keyed, 'act:1:a');
      writeFileSync(join(root, 'late.txt'), 'not kept\n');
      await two.travel.take(attempt, key);
      const { root: there } = await two.workspace.open(attempt);
      writeFileSync(join(there, 'a.txt'), 'second\n');
      await two.workspace.save(attempt, 'Change it');
      expect(await two.travel.send(keyed)).toBeNull();

      const [, absent] = await Promise.all([
        one.workspace.sweep(async () => true),
        one.travel.takeWork([keyed]),
      ]);
      expect(absent).toEqual([]);
      const shown = await one.workspace.workOf(id, 1);
      expect([shown?.files, shown?.incomplete ?? false]).toEqual([1, false]);
      const patch = (await one.workspace.diff(id, 1))?.patch;
      expect(patch).toContain('+second');
      expect(patch).not.toContain('late.txt');
      expect(gitIn(one.root, 'show', 'agent/bd-a1/1:late.txt')).toBe('not kept');
      expect(await landAlone(one.workspace, id, 1, 'squash', 'Merge it')).toMatchObject({
        status: 'merged',
      });
      expect(gitIn(one.root, 'show', 'main:a.txt')).toBe('second');
    });

    test(
      'finished work is merged by a server that did not do it, and others learn of that',
      slowWith('network'),
      async () => {
        const { one, two } = await openCommon(kind);
        const { root } = await one.workspace.open(attempt);
        writeFileSync(join(root, 'b.txt'), 'work\n');
        await one.workspace.save(attempt, 'Change it');
        expect(await one.travel.send(keyed)).toBeNull();

        expect(await two.travel.takeWork([keyed])).toEqual([]);
        const next = await two.workspace.open(anAttempt(1, 'bd-b2'), [id]);
        expect(readFileSync(join(next.root, 'b.txt'), 'utf8')).toBe('work\n');
        expect(next.notes.join()).toContain('Your folder has the work of bd-a1');
        const merged = await landAlone(two.workspace, id, 1, 'squash', 'Merge it');
        expect(merged.status).toBe('merged');
        expect(await two.travel.send(keyed)).toBeNull();

        await one.travel.takeWork([keyed]);
        expect(await one.workspace.workOf(id, 1)).toMatchObject({
          merge_commit: gitIn(two.root, 'rev-parse', 'main'),
        });
      },
    );

    test('an attempt that a person changed nothing of, or that is not there, is said to be nothing', async () => {
      const { two } = await openCommon(kind);

      expect(await two.travel.take(attempt, key)).toEqual({ has: 'nothing', notes: [] });
      const none = { ...keyed, taskId: 'bd-none' as TaskId };
      expect(await two.travel.takeWork([keyed, none])).toEqual([keyed, none]);
      expect((await two.workspace.open(attempt)).isNew).toBe(true);
    });

    test('a base that the other clone does not have comes along', slowWith('network'), async () => {
      const { one, two } = await openCommon(kind);
      commitIn(one.root, 'only-here.txt', 'new\n');
      const { root } = await one.workspace.open(attempt);
      writeFileSync(join(root, 'b.txt'), 'work\n');
      await one.travel.keep(keyed, 'act:1:a');

      await two.travel.take(attempt, key);
      const { root: there } = await two.workspace.open(attempt);
      expect(readFileSync(join(there, 'only-here.txt'), 'utf8')).toBe('new\n');
      expect(await two.workspace.save(attempt, 'Change it')).toMatchObject({ files: 1 });
    });

    test('what nobody needs is removed there, and only that', async () => {
      const { bare, one } = await openCommon(kind);
      const { root } = await one.workspace.open(attempt);
      writeFileSync(join(root, 'b.txt'), 'work\n');
      await one.travel.keep(keyed, 'act:1:a');
      const other = { ...keyed, key: 'of another attempt' };
      expect(await one.travel.remove(other)).toBeNull();
      expect(gitIn(bare, 'for-each-ref', '--format=%(refname)', 'refs/heads/agent')).not.toBe('');

      expect(await one.travel.remove(keyed)).toBeNull();
      expect(gitIn(bare, 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/main');
    });

    test('what cannot be sent is sent later', async () => {
      const { bare, one, two } = await openCommon(kind);
      const { root } = await one.workspace.open(attempt);
      writeFileSync(join(root, 'b.txt'), 'work\n');
      rmSync(join(bare, 'HEAD'));
      await expect(one.travel.keep(keyed, 'act:1:a')).rejects.toThrow();
      await one.workspace.save(attempt, 'Change it');
      expect(await one.travel.send(keyed)).toMatch(/no bare repository|cannot be read/);
      expect(await one.travel.unsent()).toEqual([{ taskId: id, attempt: 1 }]);

      writeFileSync(join(bare, 'HEAD'), 'ref: refs/heads/main\n');
      expect(await one.travel.send(keyed)).toBeNull();
      expect(await one.travel.unsent()).toEqual([]);
      await two.travel.takeWork([keyed]);
      expect(await two.workspace.workOf(id, 1)).toMatchObject({ files: 1 });
    });
  },
);

test('from an address, only what is new is fetched, and not the history of the project', async () => {
  const project = makeRepository();
  writeFileSync(join(project, 'large.bin'), randomBytes(400_000));
  gitIn(project, 'add', '--all');
  gitIn(project, 'commit', '--quiet', '-m', 'large');
  const bare = join(temporaryFolder(), 'work.git');
  gitIn(project, 'clone', '--quiet', '--bare', '--no-hardlinks', project, bare);
  let bytes = 0;
  const address = await serveRepository(bare, (more) => {
    bytes += more;
  });
  const serverOf = async (server: string) => {
    const root = join(temporaryFolder(), 'project');
    gitIn(project, 'clone', '--quiet', '--no-hardlinks', project, root);
    const repository = { address, server, env: process.env };
    return worktreesOf(root, temporaryFolder(), [], { repository });
  };
  const [one, two] = [await serverOf('one'), await serverOf('two')];
  const { root } = await one.open(attempt);
  writeFileSync(join(root, 'a.txt'), 'changed\n');
  await one.travel?.keep(keyed, 'act:1:a');

  expect(await two.travel?.take(attempt, key)).toMatchObject({ has: 'step' });
  expect(bytes).toBeLessThan(50_000);
});

test('a repository that does not answer stops who waits for it, and nobody else', async () => {
  const silent = createServer();
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void silent.close().closeAllConnections());
  const asked = new Promise((resolve) => silent.once('request', resolve));
  const address = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
  const repository = { address, server: 'one', env: process.env };
  const workspace = await worktreesOf(makeRepository(), temporaryFolder(), [], { repository });
  const stop = new AbortController();
  const reading = Promise.allSettled(
    [1, 2].map(() => workspace.travel?.takeWork([keyed], stop.signal)),
  );
  await asked;

  expect((await workspace.open(attempt)).isNew).toBe(true);
  stop.abort(new Error('enough'));
  const stopped = { status: 'rejected', reason: new Error('enough') };
  expect(await reading).toEqual([stopped, stopped]);
});

test('another attempt of the same number does not meet the work of the first', async () => {
  const { bare, one, two } = await openCommon('folder');
  const { root } = await one.workspace.open(attempt);
  writeFileSync(join(root, 'a.txt'), 'of the first\n');
  await one.travel.keep(keyed, 'act:1:a');
  const again = { ...keyed, key: 'the key of the second' };

  expect(await two.travel.take(attempt, again.key)).toEqual({ has: 'nothing', notes: [] });
  const { root: there } = await two.workspace.open(attempt);
  writeFileSync(join(there, 'b.txt'), 'of the second\n');
  await two.travel.keep(again, 'act:1:a');
  expect(gitIn(bare, 'show', `${branch}:a.txt`)).toBe('of the first');
  expect(gitIn(bare, 'show', `${carriedName(again)}:b.txt`)).toBe('of the second');
});
