import { expect, test } from 'vitest';
import { gitIn } from '../../support/git.ts';
import { openGitProject } from '../../support/git-project.ts';

/** A project in git whose engineer writes a file, then calls `finish` or fails. */
const open = () => {
  const write = {
    say: 'I write it.',
    calls: [{ tool: 'write', arguments: { path: 'one.txt', content: 'one' } }],
  };
  const done = {
    say: 'I wrote it.',
    calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'written' } }],
  };
  const failed = {
    say: 'I cannot.',
    calls: [{ tool: 'finish', arguments: { status: 'failed', summary: 'no way' } }],
  };
  const scripts = [
    { title: 'good', turns: [write, done] },
    { title: 'bad', turns: [write, failed] },
  ];
  return openGitProject(scripts, { mode: 'worktree' });
};

test('discarded work is offered and merged no more, and its branch stays', {
  tags: ['slow'],
}, async () => {
  const { agent, root } = open();
  const id = (await agent('create', 'good', '--role', 'engineer')).out.trim();
  await agent('run');

  const discarded = await agent('discard', id, '--reason', 'done by hand');
  const again = await agent('discard', id);
  const all = await agent('merge', '--all');
  const merged = await agent('merge', id, '--force');

  expect([discarded.code, again.code]).toEqual([0, 0]);
  expect(discarded.out).toContain(`${id} attempt 1: discarded`);
  expect((await agent('logs', id)).out).toContain('its work was discarded: done by hand');
  expect((await agent('list')).out).toContain('complete (discarded)');
  expect((await agent('show', id)).out).toMatch(/on agent\/\S+\/1, discarded \d/);
  expect(all.out).toContain('all complete work is merged');
  expect([merged.code, merged.err]).toEqual([4, expect.stringContaining('discarded')]);
  expect(gitIn(root, 'show', `agent/${id}/1:one.txt`)).toBe('one');
});

test('closing a task says what becomes of its work; without work there is nothing to discard', {
  tags: ['slow'],
}, async () => {
  const { agent } = open();
  const id = (await agent('create', 'bad', '--role', 'engineer')).out.trim();
  const early = await agent('discard', id);
  await agent('run');

  const closed = await agent('close', id, '--reason', 'done by hand');

  expect([early.code, early.err]).toEqual([4, expect.stringContaining('discard')]);
  expect(closed.err).toContain(
    `its work stays on agent/${id}/1 and is not merged; take it with: agent merge ${id} --force, or refuse it with: agent discard ${id}`,
  );
});
