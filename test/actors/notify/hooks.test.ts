import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createNoticeReader, startHooks } from '../../../src/actors/notify/start-notices.ts';
import { isAlive } from '../../../src/actors/process/pid.ts';
import { finish, startSystem, untilStatus } from '../../support/running.ts';

const start = async (script: string, timeoutMs = 60_000) => {
  const running = await startSystem({ turns: [finish('a teapot')] });
  const hooks = startHooks({
    hooks: [{ argv: ['/bin/sh', '-c', script], events: new Set(['completed']), timeoutMs }],
    journal: running.system.journal,
    readNotice: createNoticeReader(running.store, { key: 'p', name: 'project' }),
    cwd: running.root,
    environment: { PATH: process.env['PATH'] ?? '' },
    log: running.log,
  });
  onTestFinished(hooks.stop);
  const work = async () => {
    const { task_id } = await running.service.create({ description: 'say hello' });
    await running.service.execute({ task: task_id, role: 'engineer', options: {} });
    await untilStatus(running, task_id, 'complete');
    return task_id;
  };
  const logged = () =>
    running.logged.filter(({ message }) => /a command for an event/.test(message));
  const file = (name: string) => join(running.root, name);
  return { ...running, hooks, work, logged, file };
};

test('a command gets the event on its input, and nothing of our environment', async () => {
  vi.stubEnv('OPENAI_API_KEY', 'sk-secret');
  onTestFinished(() => void vi.unstubAllEnvs());
  const { work, file, logged } = await start('cat > event.json; env > env.txt; mv env.txt env');

  const id = await work();
  await vi.waitFor(() => expect(existsSync(file('env'))).toBe(true));

  const event = JSON.parse(readFileSync(file('event.json'), 'utf8'));
  expect(event).toMatchObject({ type: 'completed', data: { task_id: id, status: 'complete' } });
  expect(JSON.stringify(event)).not.toContain('teapot');
  const names = readFileSync(file('env'), 'utf8').match(/^\w+(?==)/gm) ?? [];
  const own = ['ATS_COMMAND', 'PATH', 'PWD', 'OLDPWD', 'SHLVL', '_'];
  expect(names.filter((name) => !own.includes(name))).toEqual([]);
  expect(logged()).toEqual([]);
});

test('a command that fails, floods or hangs is one line in the log, and no task waits', {
  tags: ['slow'],
}, async () => {
  const failing = await start('yes | head -c 1000000; exit 3');
  const hanging = await start('echo $$ > pid; trap "" TERM; sleep 600', 300);

  await failing.work();
  await hanging.work();
  await vi.waitFor(() => expect(failing.logged()).toHaveLength(1));
  await vi.waitFor(() => expect(hanging.logged()).toHaveLength(1));

  expect(failing.logged()[0]?.facts).toMatchObject({ problem: 'it ended with exit code 3' });
  expect(JSON.stringify(failing.logged()).length).toBeLessThan(10_000);
  expect(hanging.logged()[0]?.facts).toMatchObject({ problem: 'it was ended after 0.3 s' });
  expect(isAlive(Number(readFileSync(hanging.file('pid'), 'utf8')))).toBe(false);
});

test('four commands run at once, and a flood of events leaves some out', async () => {
  const running = await start('echo . >> begun; sleep 600');
  const at = Date.now();
  for (let number = 1; number <= 300; number += 1)
    running.system.journal.gather({
      entries: [
        {
          ...{ taskId: 'bd-a1', attempt: number, type: 'completed', at, data: '{}', cause: null },
        },
      ],
    });
  await running.system.journal.flush();
  await vi.waitFor(() => expect(readFileSync(running.file('begun'), 'utf8')).toBe('.\n'.repeat(4)));

  await running.hooks.stop();

  expect(readFileSync(running.file('begun'), 'utf8')).toBe('.\n'.repeat(4));
  expect(running.logged()).toHaveLength(100);
  expect(running.logged()[0]?.message).toBe('skipped a command for an event: too many are waiting');
});
