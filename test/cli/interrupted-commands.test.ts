import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSharedFolders } from '../../src/actors/sandbox/shared-folder.ts';
import { openProject } from '../support/cli.ts';

test('what a command had made when the server died is told by doctor and in the log of its task', async () => {
  const { agent, root, stateDir, stopServer } = openProject();
  const id = (await agent('create', 'Work')).out.trim();
  expect((await agent('engineer', id)).code).toBe(0);
  await stopServer();
  const folders = createSharedFolders({
    quarantine: join(stateDir, 'quarantine'),
    records: join(stateDir, 'commands'),
  });
  expect(await folders.guard(root, 'mark', `0123/${id}#1`)).toHaveProperty('readOnly');
  mkdirSync(join(root, '.vscode'));

  await agent('server', 'start');

  const words =
    'a command that ran when the server died made what other programs obey: .vscode was moved to';
  const { checks } = JSON.parse((await agent('doctor', '--json')).out);
  expect(checks.filter(({ check }: { check: string }) => check === 'quarantine')).toEqual([
    { check: 'quarantine', status: 'note', detail: expect.stringContaining(`${id}: ${words}`) },
  ]);
  expect((await agent('logs', id)).out.replaceAll(/\s+/g, ' ')).toContain(words);
});
