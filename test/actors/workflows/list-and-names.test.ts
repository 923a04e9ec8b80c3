import { expect, test } from 'vitest';
import { startWithParts } from '../../support/workflows.ts';

const start = { kind: 'feature', name: 'CSV export', steps: [] } as const;
const cancelled = async (running: Awaited<ReturnType<typeof startWithParts>>, name: string) => {
  const { workflow_id } = await running.system.workflows.start({ ...start, name });
  await running.system.workflows.cancel(workflow_id, null);
  return workflow_id;
};

test('the list has those that are not over, and the others by pages, the last to end first', async () => {
  const running = await startWithParts([]);
  const { workflows } = running.system;
  const ended = [
    await cancelled(running, 'One'),
    await cancelled(running, 'Two'),
    await cancelled(running, 'Three'),
  ].reverse();
  const open = [
    (await workflows.start({ ...start, name: 'Four' })).workflow_id,
    (await workflows.start({ ...start, name: 'Five' })).workflow_id,
  ].reverse();

  const first = await workflows.list({ limit: 2 });
  const second = await workflows.list({ limit: 2, cursor: first.next_cursor ?? '' });

  const ids = (page: typeof first) => page.workflows.map(({ workflow_id }) => workflow_id);
  expect(ids(first)).toEqual([...open, ...ended.slice(0, 2)]);
  expect(first.next_cursor).toBe(ended[1]);
  expect([ids(second), second.next_cursor]).toEqual([ended.slice(2), undefined]);
  expect(ids(await workflows.list())).toEqual([...open, ...ended]);
  for (const cursor of ['wf-none', open[0] ?? ''])
    await expect(workflows.list({ cursor })).rejects.toThrow(
      'cursor: names no workflow that is over',
    );
}, 60_000);
