import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { makeRepository, worktreesOf } from '../../support/git.ts';
import { temporaryFolder } from '../../support/temporary.ts';

test('the work of an attempt is read from its commit: changed paths, folders, regular files', async () => {
  const workspace = await worktreesOf(makeRepository(), temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  mkdirSync(join(root, 'docs', 'plan [1]'), { recursive: true });
  writeFileSync(join(root, 'docs', 'plan [1]', 'ä b.md'), 'one\ntwo\n');
  writeFileSync(join(root, 'docs', 'large.md'), 'x'.repeat(100));
  symlinkSync('/etc/passwd', join(root, 'docs', 'link.md'));
  await workspace.save(anAttempt(), 'x');

  const found = await workspace.inspect(anAttempt().taskId, 1, async (files) => ({
    changed: files.changed,
    below: await files.list('docs/'),
    text: await files.read('docs/plan [1]/ä b.md', 50),
    others: [
      await files.read('docs/large.md', 50),
      await files.read('docs/link.md', 50),
      await files.read('docs', 50),
      await files.read('docs/none.md', 50),
    ],
  }));

  expect(found).toEqual({
    changed: ['docs/large.md', 'docs/link.md', 'docs/plan [1]/ä b.md'],
    below: ['docs/large.md', 'docs/plan [1]/ä b.md'],
    text: 'one\ntwo\n',
    others: [null, null, null, null],
  });
});

test('an attempt that changed nothing has the files that it began with', async () => {
  const workspace = await worktreesOf(makeRepository(), temporaryFolder());
  await workspace.open(anAttempt());
  await workspace.save(anAttempt(), 'x');

  const found = await workspace.inspect(anAttempt().taskId, 1, async (files) => files.changed);

  expect(found).toEqual([]);
});

test('nothing is read of an attempt that is not known, or not over', async () => {
  const workspace = await worktreesOf(makeRepository(), temporaryFolder());
  await workspace.open(anAttempt());
  const read = async (): Promise<string> => 'read';

  expect(await workspace.inspect(anAttempt().taskId, 1, read)).toBeNull();
  expect(await workspace.inspect('bd-none' as TaskId, 1, read)).toBeNull();
});
