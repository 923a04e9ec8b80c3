import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Entry } from '../../../src/actors/store/port.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { finish, startSystem } from '../../support/running.ts';

test('from the request to the agent there is one durable commit, and the request is answered after it', async () => {
  const { service, system } = await startSystem({ turns: [finish()] });
  const { task_id } = await service.create({ description: 'a task' });
  const commits: (readonly Entry[])[] = [];
  system.journal.onCommit((entries) => commits.push(entries));

  await service.execute({ task: task_id as TaskId, role: 'engineer', options: {} });

  const states = commits[0]
    ?.filter(({ type }) => type === 'snapshot')
    .map(({ data }) => JSON.parse(data).value);
  expect(states).toEqual([
    { queued: 'checking' },
    { queued: 'asking' },
    { queued: 'waitingForSlot' },
    { started: 'claiming' },
    { started: 'working' },
    'preparing',
  ]);
});

test('a turn makes two commits: what the agent decides goes with the intent that follows from it', async () => {
  const read = { tool: 'read', arguments: { path: 'a.txt' } };
  const { root, service, system } = await startSystem({ turns: [{ calls: [read] }, finish()] });
  writeFileSync(join(root, 'a.txt'), 'a');
  const { task_id } = await service.create({ description: 'a task' });
  const commits: string[][] = [];
  system.journal.onCommit((entries) => {
    const shown = entries.flatMap(({ type, data }) =>
      type === 'snapshot' || type === 'agent'
        ? [JSON.stringify(JSON.parse(data).value)]
        : type.startsWith('tool_')
          ? [type]
          : [],
    );
    commits.push(shown);
  });
  // What is gathered goes with the next commit, however slow the machine is.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());

  await service.execute({ task: task_id as TaskId, role: 'engineer', options: {} });
  await vi.waitFor(async () =>
    expect((await service.status(task_id as TaskId)).status).toBe('complete'),
  );

  const turn = [
    ['"acting"', 'tool_start'],
    ['tool_end', '"thinking"'],
  ];
  expect(commits.slice(1)).toEqual([
    ['"thinking"'],
    ...turn,
    ['"acting"', 'tool_start'],
    ['tool_end', '"done"', '{"started":"recording"}'],
    ['{"started":"closing"}'],
    ['"complete"'],
  ]);
});
