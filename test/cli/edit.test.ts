import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

const turn = (tool: string, args: object) => ({ calls: [{ tool, arguments: args }] });

const open = (title = '') => {
  const project = openProject();
  const script = join(project.configFile, '..', 'script.json');
  const turns = [turn('bash', { command: 'exec sleep 600' })];
  writeFileSync(script, JSON.stringify({ scripts: [{ title, turns }] }));
  const config = JSON.parse(
    JSON.stringify({ server: { port: 0 }, api: { backend: 'scripted', script } }),
  );
  writeFileSync(
    project.configFile,
    JSON.stringify({ ...config, sandbox: { mode: 'off' }, workspace: { mode: 'shared' } }),
  );
  const created = async (...words: string[]) =>
    (await project.agent('create', ...words)).out.trim();
  const shown = async (id: string) => JSON.parse((await project.agent('show', id, '--json')).out);
  return { ...project, created, shown };
};

test.each(['with', 'without'])('a task is edited and deleted %s a server', async (how) => {
  const { agent, created, shown } = open();
  const id = await created('Old title', '--label', 'a', '--role', 'engineer');
  if (how === 'with') await agent('server', 'start', '--no-start');
  if (how === 'with') await agent('server', 'start');

  const edited = await agent('edit', id, '--title', 'New', '--priority', '0', '--label', 'b');
  const view = await shown(id);
  const logs = await agent('logs', id, '--json');
  const emptied = await agent('edit', id, '--title', ' ');
  const deleted = await agent('rm', id);
  const gone = await agent('show', id);
  const list = await agent('list', '--json');

  expect(edited).toMatchObject({ code: 0, out: `${id} edited\n` });
  expect(view).toMatchObject({
    title: 'New',
    description: 'Old title',
    priority: 0,
    labels: ['b'],
  });
  expect(logs.out).toContain('"edited":["title","priority","labels"]');
  expect(emptied).toMatchObject({ code: 2, err: expect.stringContaining('title: is empty') });
  expect(deleted).toMatchObject({ code: 0, out: `${id} deleted\n` });
  expect(gone).toMatchObject({ code: 3, err: expect.stringContaining('does not exist') });
  expect(JSON.parse(list.out)).toEqual([]);
});

test('a task that another one depends on is not deleted, and the error names that one', async () => {
  const { agent, created } = open();
  const first = await created('first');
  const second = await created('second', '--deps', first);

  const refused = await agent('delete', first);
  await agent('dep', 'remove', second, first);
  const deleted = await agent('delete', first);

  expect(refused).toMatchObject({
    code: 4,
    err: expect.stringContaining(`task ${first} is needed by ${second}: delete is not allowed`),
  });
  expect(deleted.code).toBe(0);
});

test('a task that is at work is not deleted; it is edited', { tags: ['slow'] }, async () => {
  const { agent, created, shown } = open();
  const id = await created('hangs');
  await agent('--async', 'engineer', id);
  for (let status = ''; status !== 'started'; ) ({ status } = await shown(id));

  const refused = await agent('delete', id, '--json');
  const edited = await agent('edit', id, '--title', 'still hangs');
  const running = await agent('ps', '--json');
  await agent('cancel', id);
  const deleted = await agent('delete', id);

  expect(refused.code).toBe(4);
  expect(JSON.parse(refused.out).error).toMatchObject({
    code: 'event_not_allowed',
    event: 'delete',
    allowed: ['cancel'],
  });
  expect(edited.code).toBe(0);
  expect(JSON.parse(running.out)).toMatchObject([{ task_id: id, title: 'still hangs' }]);
  expect(deleted.code).toBe(0);
  expect(JSON.parse((await agent('ps', '--json')).out)).toEqual([]);
});
