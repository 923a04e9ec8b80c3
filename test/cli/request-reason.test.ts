import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

/** The log lines that a server wrote about people's requests. */
const asked = (logs: string): readonly string[] => logs.match(/a person .*/g) ?? [];

test('the reason of a reopen and a retry is in the logs, in show and in explain', async () => {
  const { agent } = openProject();
  const id = (await agent('create', 'one')).out.trim();
  await agent('close', id);
  await agent('reopen', id);
  await agent('engineer', id);

  await agent('reopen', id, '--reason', 'the tests fail');
  const reopened = await agent('show', id);
  const why = await agent('explain', id);
  const cancelled = await agent('cancel', id);
  const retried = await agent('retry', id, '--async', '--reason', 'with more time');
  const shown = JSON.parse((await agent('show', id, '--json')).out);
  await agent('wait', id);
  await agent('reopen', id);
  await agent('close', id);
  await agent('close', id);
  const logs = await agent('logs', id);

  expect(reopened.out).toContain('  reason     the tests fail\n');
  expect(why.out).toContain('  requested because the tests fail\n');
  expect([cancelled.code, retried.code]).toEqual([0, 0]);
  expect(shown).toMatchObject({ request_reason: 'with more time' });
  expect(asked(logs.out)).toEqual([
    'a person closed it',
    'a person asked to reopen it',
    'a person asked to reopen it: the tests fail',
    'a person asked to retry it: with more time',
    'a person asked to reopen it',
    'a person closed it',
  ]);
});

test('the reason of a reopen without a server is in the tracker, not as the reason of the close', async () => {
  const { agent, root } = openProject();
  const id = (await agent('create', 'one')).out.trim();
  await agent('close', id, '--reason', 'done by hand');
  const closed = await agent('show', id);

  const reopened = await agent('reopen', id, '--reason', 'the tests fail', '--no-start');

  const issue = JSON.parse(readFileSync(join(root, '.beads', 'issues.jsonl'), 'utf8'));
  expect(closed.out).toContain('  reason     done by hand\n');
  expect(reopened.out + (await agent('show', id)).out).not.toContain('done by hand');
  expect(reopened.code).toBe(0);
  expect(issue).toMatchObject({ status: 'open', comments: [{ text: 'Reopened: the tests fail' }] });
  expect(issue).not.toHaveProperty('close_reason');
});
