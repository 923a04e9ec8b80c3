import { expect, test } from 'vitest';
import type { TaskId } from '../../../src/machines/task.ts';
import { startSystem } from '../../support/running.ts';

const ofWorkflow = ['workflow:wf-1', 'phase:0', 'question:wanted'];

test('an edit of its labels does not take a question out of its workflow', async () => {
  const { service, tracker } = await startSystem({ turns: [] });
  const { id } = await tracker.create({
    ...{ title: 'is it wanted', description: '', dependencies: [], priority: 2 },
    labels: [...ofWorkflow, 'old'],
  });

  await service.edit(id, { labels: ['urgent'] });

  expect([...((await tracker.find(id))?.labels ?? [])].sort()).toEqual(
    [...ofWorkflow, 'urgent'].sort(),
  );
  await expect(service.edit(id, { labels: ['role:engineer'] })).rejects.toThrow(
    'role:engineer says who does a step',
  );
});

test('no edit puts a task into a workflow', async () => {
  const { service, tracker } = await startSystem({ turns: [] });
  const { task_id: id } = await service.create({ description: 'a task' });

  await expect(service.edit(id, { labels: ['workflow:wf-1'] })).rejects.toThrow(
    'workflow:wf-1 says to which workflow a task belongs',
  );
  await service.edit(id, { labels: ['phase:moon', 'role:engineer'] });

  expect((await tracker.find(id as TaskId))?.labels).toEqual(['phase:moon', 'role:engineer']);
});

test('the log names the fields that an edit changed, not those that it repeats, when it is answered', async () => {
  const { service } = await startSystem({ turns: [] });
  const { task_id: id, description } = await service.create({
    ...{ description: 'a task', labels: ['urgent'] },
  });

  await service.edit(id, { title: 'another', description, priority: 2, labels: ['urgent'] });
  await service.edit(id, { title: 'another' });
  await service.edit(id, { title: 'another', priority: 1 });

  const { entries } = await service.history({ taskId: id });
  expect(JSON.stringify(entries).match(/edited: [a-z, ]+/g)).toEqual([
    'edited: title',
    'edited: priority',
  ]);
});
