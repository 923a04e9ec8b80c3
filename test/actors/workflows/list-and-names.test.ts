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
});

test('a second workflow that would write to the same folders is refused until the first is over', async () => {
  const running = await startWithParts([]);
  const { workflows } = running.system;
  const [first, twin] = await Promise.allSettled([
    workflows.start(start),
    workflows.start({ ...start, name: 'CSV  Export!' }),
  ]);
  const id = first.status === 'fulfilled' ? first.value.workflow_id : '';

  const research = await workflows.start({ kind: 'research', name: start.name });
  await expect(workflows.start(start)).rejects.toThrow(
    `name: is too much like that of ${id} (feature: CSV export), which is not over and writes to docs/architecture/csv-export/existing-code.md too; give another name, wait for it, or end it with: agent workflow cancel ${id}`,
  );
  await workflows.cancel(id, null);
  const next = await workflows.start(start);

  expect([twin.status, String(twin.status === 'rejected' && twin.reason)]).toEqual([
    'rejected',
    expect.stringContaining(
      'which is not over and writes to docs/architecture/csv-export/existing-code.md too',
    ),
  ]);
  expect([research.status, next.status]).toEqual(['started', 'started']);
});
