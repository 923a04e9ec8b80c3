import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

/** Words that people often get wrong, and the message for each. */

test('text that begins with a dash goes after --, and the error says so', async () => {
  const { agent } = openProject();

  const made = await agent('create', '--priority', '1', '--', '- a bullet');
  const bare = await agent('create', '- a bullet');

  expect(made.code).toBe(0);
  expect(JSON.parse((await agent('list', '--json')).out)).toMatchObject([
    { title: '- a bullet', priority: 1 },
  ]);
  expect(bare).toMatchObject({
    code: 2,
    err: expect.stringContaining('text that begins with - goes after --'),
  });
});

test.each([
  [['create', 'x', '--priority', 'high'], '--priority needs a number'],
  [['diff', 'bd-1', '--attempt', 'last'], '--attempt needs a number'],
  [['list', '--status', 'done'], 'no task has the status done; did you mean complete? (queued,'],
  [['list', '--status', 'compelte'], 'did you mean complete?'],
  [['list', '--status', 'bogus'], 'no task has the status bogus; the statuses are queued, started'],
] as const)('%j ends with 2', async (words, message) => {
  expect(await openProject().agent(...words)).toMatchObject({
    code: 2,
    err: expect.stringContaining(message),
  });
});

test('output that cannot be written is an error without a stack', async () => {
  const { shell } = openProject();

  const { code, err } = await shell('$AGENT list --json > /dev/full');

  expect(code).toBe(1);
  expect(err).toContain('the output cannot be written: ENOSPC');
  expect(err).not.toMatch(/\n\s+at /);
});

test('a relative configuration file is found from a folder below the project', {
  tags: ['slow'],
}, async () => {
  const { root, shell } = openProject();
  mkdirSync(join(root, 'below'));
  writeFileSync(join(root, 'below', 'own.json'), JSON.stringify({ api: { backend: 'scripted' } }));

  const started = await shell('cd below && $AGENT server start --config own.json');
  const named = await shell(
    '$AGENT server stop && cd below && AGENT_SERVER_CONFIG=own.json $AGENT server start',
  );

  expect([started.code, named.code]).toEqual([0, 0]);
});

test('a note says that a key set after the start needs a restart of the server', async () => {
  const { agent, agentWith } = openProject({});
  const id = (await agent('create', 'no key')).out.trim();

  const without = await agent('engineer', id);
  const withKey = await agentWith({ OPENAI_API_KEY: 'sk-test' }, 'engineer', id);

  expect(without).toMatchObject({ code: 7, err: expect.not.stringContaining('agent server stop') });
  expect(withKey).toMatchObject({
    code: 7,
    err: expect.stringContaining('end it with: agent server stop'),
  });
});
