import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { commitIn, gitIn } from '../support/git.ts';
import { temporaryFolder } from '../support/temporary.ts';

/** A project in git whose engineer writes a file named as the task's first word. */
const open = () => {
  const script = join(temporaryFolder(), 'script.json');
  const file = { path: 'b.txt', content: 'new\n' };
  const turns = [
    { calls: [{ tool: 'write', arguments: file }] },
    { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] },
  ];
  writeFileSync(script, JSON.stringify({ scripts: [{ turns }] }));
  const project = openProject({ api: { backend: 'scripted', script }, workspace: {} });
  const { root, agent } = project;
  rmSync(join(root, '.git'), { recursive: true });
  gitIn(root, 'init', '--quiet', '--initial-branch=main');
  gitIn(root, 'config', 'user.name', 'Amy');
  gitIn(root, 'config', 'user.email', 'amy@localhost');
  commitIn(root, 'a.txt', 'one\n');
  const ran = async (title: string): Promise<string> => {
    const id = (await agent('create', title)).out.trim();
    await agent('engineer', id);
    return id;
  };
  const branches = (): string =>
    gitIn(root, 'branch', '--list', '--format=%(refname:short)', 'agent/*');
  const ageByDays = (days: number, taskId: string): void => {
    const db = new Database(join(project.stateDir, 'journal.db'));
    db.prepare('update journal set at = at - ? where task_id = ?').run(days * 86_400_000, taskId);
    db.prepare('update actors set changed_at = changed_at - ? where task_id = ?').run(
      days * 86_400_000,
      taskId,
    );
    db.close();
  };
  return { ...project, ran, branches, ageByDays };
};

test('prune removes merged branches and old histories, and says what and how much; the rest stays', {
  tags: ['slow'],
}, async () => {
  const { agent, ran, branches, ageByDays, stopServer, root } = open();
  expect(await agent('prune')).toMatchObject({ code: 0, out: 'there is nothing to remove\n' });
  const merged = await ran('Merged');
  const waiting = await ran('Not merged');
  await agent('merge', merged);
  gitIn(root, 'branch', 'agent/mine');
  await stopServer();
  ageByDays(91, merged);
  ageByDays(91, waiting);

  const dry = await agent('prune', '--dry-run');
  const before = branches();
  const done = await agent('prune', '--json');
  const again = await agent('prune');

  expect(dry).toMatchObject({ code: 0, err: expect.stringContaining('agent discard <id>') });
  const [kept, branch, history, total] = dry.out.split('\n');
  expect(kept).toBe(`kept     agent/${waiting}/1: not merged`);
  expect(branch).toBe(`would remove  branch   agent/${merged}/1`);
  expect(history).toMatch(new RegExp(`^would remove  history  ${merged}  [\\d.]+ kB$`));
  expect(total).toMatch(/^would remove 1 branch, 1 history: [\d.]+ kB$/);
  expect(before.split('\n')).toEqual(
    [`agent/${merged}/1`, `agent/${waiting}/1`, 'agent/mine'].sort(),
  );
  expect(JSON.parse(done.out)).toMatchObject({
    dry_run: false,
    removed: [
      { kind: 'branch', task_id: merged, name: `agent/${merged}/1`, bytes: 0 },
      { kind: 'history', task_id: merged, bytes: expect.any(Number) },
    ],
    kept: [{ task_id: waiting, name: `agent/${waiting}/1`, why: 'not merged' }],
  });
  expect(branches().split('\n').sort()).toEqual([`agent/${waiting}/1`, 'agent/mine'].sort());
  expect(again.out).toBe(`kept     agent/${waiting}/1: not merged\nthere is nothing to remove\n`);
  expect((await agent('show', merged)).out).toContain('removed on');
  expect((await agent('diff', merged)).err).toContain(`${merged} has no attempt with a branch`);
  expect((await agent('diff', waiting)).out).toContain('+new');
  expect((await agent('merge', waiting, '--squash')).code).toBe(0);
});

test('prune works beside a server and in two terminals at once; work of a task that was deleted stays until it is merged', {
  tags: ['slow'],
}, async () => {
  const { agent, program, ran, branches, root } = open();
  const merged = await ran('Merged');
  const deleted = await ran('Deleted');
  await agent('merge', merged);
  const lines = join(root, '.beads', 'issues.jsonl');
  const lineOf = () => readFileSync(lines, 'utf8').split('\n');
  while (!lineOf().some((line) => line.includes(deleted) && line.includes('"closed"')))
    await agent('list');
  writeFileSync(
    lines,
    lineOf()
      .filter((line) => !line.includes(deleted))
      .join('\n'),
  );
  while ((await agent('show', deleted)).code === 0);

  const head = gitIn(root, 'rev-parse', '--short=12', 'HEAD');

  const both = await Promise.all([program('prune'), program('prune')]);
  const pruned = await agent('diff', merged);
  const shown = await agent('list');
  const next = await ran('Another');

  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(pruned).toMatchObject({
    code: 1,
    err: expect.stringContaining(`its work was merged: git show ${head}`),
  });
  expect(shown.out).toContain('complete (merged)');
  expect(both.map(({ out }) => out).join('')).toContain(`removed  branch   agent/${merged}/1`);
  expect(both.map(({ out }) => out).join('')).toContain(
    `kept     agent/${deleted}/1: not merged; its task was deleted`,
  );
  for (const { err } of both)
    expect(err).toContain('with a reason too, and the work on them: agent prune --superseded');
  for (const { out } of both)
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  expect([branches(), (await agent('wait', next)).code]).toEqual([`agent/${deleted}/1`, 0]);
  expect((await agent('prune', '--superseded')).out).toContain(
    `removed  branch   agent/${deleted}/1`,
  );
  expect(branches()).not.toContain(deleted);
});

test('prune --superseded removes in one run also what only superseded work began with', {
  tags: ['slow'],
}, async () => {
  const { agent, ran, branches } = open();
  const first = await ran('First');
  const next = (await agent('create', 'Next', '--deps', first)).out.trim();
  const failed = await agent('engineer', next, '--verify', 'false');
  await agent('merge', first, '--squash');

  const dry = await agent('prune', '--superseded', '--dry-run');
  const done = await agent('prune', '--superseded');

  expect(failed.code).toBe(1);
  expect(dry.out).toContain(`would remove  branch   agent/${first}/1`);
  expect(dry.out).not.toContain('kept');
  expect(done.out.replaceAll('removed', 'would remove')).toBe(dry.out);
  expect(branches()).toBe('');
});
