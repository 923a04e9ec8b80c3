import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

/** A task that the tracker says somebody works on, and no server of ours does. */
const withTaken = (assignee: string | null) => {
  const project = openProject();
  mkdirSync(join(project.root, '.beads'), { recursive: true });
  const issue = { id: 'x-1', title: 'taken', status: 'in_progress', assignee };
  writeFileSync(join(project.root, '.beads', 'issues.jsonl'), `${JSON.stringify(issue)}\n`);
  return project;
};

const held = (holder: string) => ({
  code: 4,
  err: expect.stringContaining(
    `task x-1 is held by ${holder} in the tracker; release it with: agent reopen x-1`,
  ),
});

test.each([
  [null, 'somebody (status in_progress)'],
  ['amy', 'amy'],
])(
  'a task that %s has taken is released by reopen, and every refusal says so',
  async (assignee, holder) => {
    const { agent } = withTaken(assignee);
    await agent('server', 'start');

    for (const words of [
      ['engineer', 'x-1'],
      ['cancel', 'x-1'],
      ['retry', 'x-1'],
    ])
      expect(await agent(...words)).toMatchObject(held(holder));
    expect(await agent('reopen', 'x-1')).toMatchObject({ code: 0 });

    expect(JSON.parse((await agent('show', 'x-1', '--json')).out)).toMatchObject({
      status: 'queued',
      ready: true,
    });
  },
);

test('without a server, reopen releases a task that somebody has taken', async () => {
  const { agent } = withTaken('amy');

  expect(await agent('reopen', 'x-1', '--no-start', '--reason', 'amy is away')).toMatchObject({
    code: 0,
  });

  expect(JSON.parse((await agent('show', 'x-1', '--json')).out)).toMatchObject({
    status: 'queued',
    ready: true,
  });
});

test('a server that stops does not count tasks of others among those that go on', async () => {
  const { agent } = withTaken(null);
  await agent('server', 'start');

  const { out } = await agent('server', 'stop');

  expect(out).toMatch(/^the server \(pid \d+\) has stopped\n$/);
});
