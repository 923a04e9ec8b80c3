import { expect, test } from 'vitest';
import type { Frame } from '../../../web/data/frame.ts';
import { activities, applyFrames } from '../../../web/data/tasks.ts';

const frame = (task_id: string, type: string, data: Frame['data']): Frame => ({
  ...{ task_id, type, data, seq: 1, attempt: 1, timestamp: '2026-01-01T00:00:00.000Z' },
});
const snapshot = (task_id: string, status: string): Frame =>
  frame(task_id, 'snapshot', { task: { task_id, status, attempt: 1, title: 'A task' } });

test('what the page notes of attempts is of those that run', () => {
  for (let nth = 0; nth < 2_000; nth += 1) {
    const id = `bd-${nth}`;
    applyFrames([snapshot(id, 'started'), frame(id, 'api_call_start', { turn: 1 })]);
    if (nth > 2) applyFrames([snapshot(id, 'complete'), frame(id, 'log', { message: 'merged' })]);
  }

  expect([...activities.value.keys()]).toEqual(['bd-0', 'bd-1', 'bd-2']);
  expect(activities.value.get('bd-0')).toMatchObject({ turn: 1 });
  applyFrames([frame('bd-0', 'log', { deleted: true })]);
  expect([...activities.value.keys()]).toEqual(['bd-1', 'bd-2']);
});
