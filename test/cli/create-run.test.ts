import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

const noModel = () => openProject({});

test('create --run accepts the flags of a run', async () => {
  const { agent } = noModel();

  const ran = await agent(
    'create',
    'Do it',
    '--role',
    'engineer',
    '--run',
    '--model',
    'scripted',
    '--verify',
    'exit 3',
  );

  expect(ran).toMatchObject({ code: 1, err: expect.stringContaining('created bd-') });
  expect(ran.out).toContain('verify_failed');
  expect(ran.err.match(/starting a server/g)).toHaveLength(1);
});

test.each([
  [['--model', 'scripted'], '--model'],
  [['--role', 'engineer', '--timeout', '5', '--no-network'], '--timeout, --network'],
])('the flags of a run are refused without a run: %j', async (flags, named) => {
  const { agent } = noModel();

  const ended = await agent('create', 'Do it', ...flags);

  expect(ended).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringContaining(`${named}: only a run takes this; add --run`),
  });
  expect((await agent('list', '--json')).out).toBe('[]\n');
});

test('invalid run options create no task', async () => {
  const { agent } = noModel();

  const ended = await agent('create', 'Do it', '--role', 'engineer', '--run', '--max-turns', '0');

  expect(ended).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringContaining('--max-turns: '),
  });
  expect((await agent('list', '--json')).out).toBe('[]\n');
});

test.each([
  ['create --run', ['create', 'Do it', '--role', 'tester', '--run']],
  ['create --run --async', ['create', 'Do it', '--role', 'tester', '--run', '--async']],
  ['free text', ['tester', 'Do it']],
  ['free text --async', ['tester', 'Do it', '--async']],
])('a run that is refused names the task that was created for it: %s', async (_, words) => {
  const { agent } = noModel();

  const { code, out, err } = await agent(...words, '--json');

  const [task] = JSON.parse((await agent('list', '--json')).out);
  expect(code).toBe(7);
  expect(JSON.parse(out.trim().split('\n').at(-1) ?? '')).toMatchObject({
    error: { code: 'credential_missing', task_id: task.task_id },
  });
  expect(err).toContain(`created ${task.task_id}\n`);
  expect(err).toContain(`${task.task_id} is kept; run it with: agent tester ${task.task_id}\n`);
});
