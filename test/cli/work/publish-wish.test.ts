import { join } from 'node:path';
import Database from 'libsql';
import { expect, test, vi } from 'vitest';
import { openForgeProject, writing } from '../../support/forge/project.ts';

const scripts = [writing('Add a page'), writing('Add a door'), writing('Add a roof')];

test('a run with --publish opens the pull request when its work is complete', async () => {
  const { agent, github, untilPr } = await openForgeProject(scripts);
  const page = (await agent('create', 'Add a page')).out.trim();
  const door = (await agent('create', 'Add a door')).out.trim();

  await agent('run', page, '--role', 'engineer', '--publish');
  await agent('engineer', door);
  const roof = await agent('create', 'Add a roof', '--role', 'engineer', '--run', '--publish');
  await untilPr(page, { state: 'open', number: 1 });

  expect(roof.code, roof.err).toBe(0);
  await vi.waitFor(() =>
    expect(github.state.pulls.map(({ title }) => title)).toEqual(['Add a page', 'Add a roof']),
  );
  await agent('config', 'set', 'workspace.merge', 'squash');
  const refused = await agent('engineer', door, '--publish');
  expect(refused.err).toContain(
    '--publish: its work would be merged here; set workspace.merge to none',
  );
});

test('what was complete when the server died is published after the next start, once', {
  tags: ['slow'],
}, async () => {
  const { agent, stateDir, stopServer, start, github, untilPr } = await openForgeProject(scripts);
  const page = (await agent('create', 'Add a page')).out.trim();
  const door = (await agent('create', 'Add a door')).out.trim();
  await agent('engineer', door);
  await agent('engineer', page, '--publish');
  await untilPr(page, { state: 'open' });
  await stopServer('SIGKILL');
  // As when the server died after the end of the attempt, before it began to publish.
  const db = new Database(join(stateDir, 'journal.db'));
  db.prepare("delete from actors where id = 'pullRequest:' || ?").run(`${page}/pr`);
  db.prepare('delete from journal where task_id = ?').run(`${page}/pr`);
  db.close();
  github.state.pulls.length = 0;

  await start();
  await untilPr(page, { state: 'open' });
  await stopServer('SIGKILL');
  await start();
  await untilPr(page, { state: 'open', checks: 'none' });

  expect(github.state.pulls.map(({ title }) => title)).toEqual(['Add a page']);
});
