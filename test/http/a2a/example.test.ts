import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { bash, finish, startServer } from '../../support/running.ts';

const examples = join(import.meta.dirname, '..', '..', '..', 'examples', 'client');
const ask = { calls: [{ tool: 'ask', arguments: { question: 'Which port?' } }] };

test('the example gives a task, answers its question, and says whether it is complete', async () => {
  const { base, headers, call } = await startServer({ turns: [ask, finish('all good')] });
  const token = headers.authorization.slice('Bearer '.length);

  const ran = await execa(
    process.execPath,
    [join(examples, 'a2a.mjs'), base, token, 'Serve', 'tester'],
    {
      ...{ input: '8080\n', reject: false },
    },
  );

  expect([ran.exitCode, ran.stderr]).toEqual([0, '']);
  expect(ran.stdout).toMatch(
    /TASK_STATE_INPUT_REQUIRED Which port\?\n[\s\S]*TASK_STATE_COMPLETED all good/,
  );
  expect((await call('list', {})).result.tasks).toMatchObject([{ role: 'tester' }]);
});

test('the example that is told by pushes takes those that are signed, up to the end', async () => {
  const { base, headers } = await startServer({
    turns: [{ say: 'I look.', ...bash('true') }, finish('all good')],
  });
  const token = headers.authorization.slice('Bearer '.length);

  const ran = await execa(
    process.execPath,
    [join(examples, 'a2a-push.mjs'), base, token, 'Serve'],
    { reject: false },
  );

  expect([ran.exitCode, ran.stderr]).toEqual([0, '']);
  expect(ran.stdout).toMatch(/^bd-\w+$/m);
  expect(ran.stdout).toMatch(/TASK_STATE_WORKING[\s\S]*TASK_STATE_COMPLETED all good$/);
  expect(ran.stdout.split('\n')).toEqual(expect.arrayContaining(['transcript', 'Results']));
  expect(ran.stdout).not.toContain('undefined');
});
