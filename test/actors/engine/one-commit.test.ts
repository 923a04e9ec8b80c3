import { expect, test } from 'vitest';
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
