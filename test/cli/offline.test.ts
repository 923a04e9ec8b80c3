import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSqliteStore } from '../../src/actors/store/sqlite.ts';
import { openProject } from '../support/cli.ts';

/** Task commands that need no agent work without a server. */

test('a closed task is reopened in the files, and the next server continues from there', async () => {
  const { agent, serverFile } = openProject();
  const id = (await agent('create', 'one')).out.trim();
  await agent('close', id);

  const reopened = await agent('reopen', id, '--no-start');
  const again = await agent('reopen', id, '--no-start', '--json');
  const unknown = await agent('reopen', 'bd-none', '--no-start');
  const withoutServer = serverFile() === null;
  const ran = await agent('engineer', id);

  expect(reopened).toMatchObject({ code: 0, out: `${id} queued\n` });
  expect([again.code, JSON.parse(again.out).error]).toEqual([
    4,
    expect.objectContaining({
      code: 'event_not_allowed',
      state: 'queued',
      allowed: ['run', 'close', 'cancel'],
    }),
  ]);
  expect(unknown).toMatchObject({
    code: 3,
    err: expect.stringContaining('task bd-none does not exist'),
  });
  expect(withoutServer).toBe(true);
  expect(ran.code).toBe(0);
});

test('a task that an attempt completed is reopened in the files, and runs again as the next attempt', async () => {
  const { agent, stopServer } = openProject();
  const id = (await agent('create', 'one')).out.trim();
  await agent('engineer', id);
  await stopServer();

  const reopened = await agent('reopen', id, '--no-start', '--json');
  const ran = await agent('engineer', id);
  const shown = JSON.parse((await agent('show', id, '--json')).out);

  expect([reopened.code, JSON.parse(reopened.out)]).toEqual([
    0,
    expect.objectContaining({ status: 'queued', ready: true, attempt: 1 }),
  ]);
  expect(ran.code).toBe(0);
  expect(shown).toMatchObject({ status: 'complete', attempt: 2 });
});

test('wait needs no server for ended tasks and missing ids', async () => {
  const { agent, serverFile } = openProject();
  const [over, open] = [
    (await agent('create', 'one')).out.trim(),
    (await agent('create', 'two')).out.trim(),
  ];
  await agent('close', over);

  expect(await agent('wait', over)).toMatchObject({ code: 0, out: `${over} complete\n` });
  expect(await agent('wait', over, 'bd-none')).toMatchObject({ code: 3, out: '' });
  expect(await agent('wait', over, open, '--no-start')).toMatchObject({ code: 6, out: '' });
  expect(serverFile()).toBeNull();
});

test.each(['cancel', 'retry', 'explain', 'respond'])(
  '%s needs a server, and says so',
  async (command) => {
    const { agent, serverFile } = openProject();
    const id = (await agent('create', 'one')).out.trim();

    const ended = await agent(command, id, '--no-start');

    expect(ended).toMatchObject({
      code: 6,
      err: expect.stringContaining('leave out --no-start, or start one with: agent server start'),
    });
    expect(serverFile()).toBeNull();
  },
);

test('headers of traces that cannot be read end no command', async () => {
  const { agentWith } = openProject();

  const listed = await agentWith({ OTEL_EXPORTER_OTLP_HEADERS: 'a b=%zz' }, 'list');

  expect(listed.err).toMatch(/^no tasks/);
  expect(listed.code).toBe(0);
});

test('a secret in a changed line of the file is not stored, also without a server', async () => {
  const { agentWith, root, stateDir, serverFile } = openProject();
  const key = 'sk-canary-0123456789';
  await agentWith({ OPENAI_API_KEY: key }, 'create', 'one');
  const file = join(root, '.beads', 'issues.jsonl');
  const line = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(file, `${JSON.stringify({ ...line, [key]: 1 })}\n`);
  await agentWith({ OPENAI_API_KEY: key }, 'list');

  const store = createSqliteStore({ file: join(stateDir, 'journal.db'), redact: (text) => text });
  const stored = JSON.stringify(store.read({ after: 0, limit: 100 }));
  store.close();

  expect(serverFile()).toBe(null);
  expect(stored).toContain('[secret]');
  expect(stored).not.toContain(key);
});

test.each(['with a server', 'without one'])(
  'a secret in a reason, a title or a note reaches no task and no file, %s',
  async (where) => {
    const key = 'sk-canary-0123456789';
    const { agentWith, root } = openProject();
    const agent = (...words: string[]) => agentWith({ OPENAI_API_KEY: key }, ...words);
    if (where === 'with a server') await agent('server', 'start');
    const id = (await agent('create', `Rotate ${key}`, '--title', `of ${key}`)).out.trim();
    await agent('edit', id, '--description', `Rotate ${key} now`);

    await agent('close', id, '--reason', `${key} is no more`);
    if (where === 'with a server') await agent('server', 'stop');
    const closed = readFileSync(join(root, '.beads', 'issues.jsonl'), 'utf8');
    await agent('reopen', id, '--reason', `${key} is there again`);
    const reopened = readFileSync(join(root, '.beads', 'issues.jsonl'), 'utf8');

    expect(closed).toContain('[secret] is no more');
    expect(reopened).toContain('[secret] is there again');
    expect(closed + reopened).not.toContain(key);
  },
);
