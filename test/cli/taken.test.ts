import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

/** A task that the tracker says somebody works on, and no server of ours does. */
const withTaken = (assignee: string | null) => {
  const project = openProject();
  mkdirSync(join(project.root, '.beads'), { recursive: true });
  const issues = [
    { id: 'x-1', title: 'taken', status: 'in_progress', assignee },
    {
      ...{ id: 'x-2', title: 'after it', status: 'open' },
      dependencies: [{ issue_id: 'x-2', depends_on_id: 'x-1', type: 'blocks' }],
    },
  ];
  const lines = issues.map((issue) => `${JSON.stringify(issue)}\n`);
  writeFileSync(join(project.root, '.beads', 'issues.jsonl'), lines.join(''));
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
      ['discard', 'x-1'],
      ['delete', 'x-1'],
    ])
      expect(await agent(...words)).toMatchObject(held(holder));
    expect(await agent('reopen', 'x-1')).toMatchObject({ code: 0 });

    const after = [await agent('explain', 'x-1'), await agent('show', 'x-1')];
    expect(after.map(({ out }) => out).join('')).not.toContain('held by');
    expect(after[0]?.out).toContain('nobody has asked for a run since');
    expect(JSON.parse((await agent('show', 'x-1', '--json')).out)).toMatchObject({
      status: 'queued',
      ready: true,
    });
  },
);

test.each([
  [null, 'somebody (status in_progress)'],
  ['amy', 'amy'],
])('a task that %s has taken is named by what lists and plans', async (assignee, holder) => {
  const { agent } = withTaken(assignee);
  const says = `held by ${holder} in the tracker; release it with: agent reopen x-1`;

  const offline = await agent('list', '--no-start');
  await agent('server', 'start');
  const listed = await agent('list');
  const shown = await agent('show', 'x-1');
  const json = JSON.parse((await agent('show', 'x-1', '--json')).out);
  const explained = await agent('explain', 'x-1');
  const dependent = await agent('explain', 'x-2');
  const planned = await agent('run', 'x-2', '--role', 'engineer', '--dry-run');
  const ran = await agent('run', 'x-1', '--role', 'engineer');

  for (const { out, err } of [offline, listed]) {
    expect(out).toContain(`held by ${holder}`);
    expect(err).toContain('x-1 is held by others in the tracker; to release one: agent reopen x-1');
    expect(err).not.toContain('no progress');
  }
  expect(shown.out.replace(/\s+/g, ' ')).toContain(`${holder}; agent reopen x-1 releases it`);
  expect(shown.out).not.toContain('logs -f');
  expect(json.held_by).toBe(holder);
  expect(explained.out.replace(/\s+/g, ' ')).toContain(`because task x-1 is ${says}`);
  expect(explained.out).toMatch(/may now: .*reopen/);
  expect(dependent.out.replace(/\s+/g, ' ')).toContain(
    `it waits for x-1 (held by ${holder}; release it with: agent reopen x-1)`,
  );
  expect(`${planned.out}${planned.err}`).toContain(`skipped x-1: task x-1 is ${says}`);
  expect(planned.out).not.toMatch(/^x-1 /m);
  expect(`${ran.out}${ran.err}`).toContain(`skipped x-1: task x-1 is ${says}`);
});

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
