import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  finish,
  type Running,
  type Setting,
  startSystem,
  type Turn,
  untilStatus,
} from '../../support/running.ts';

const hourMs = 3_600_000;
const asking: Turn = { calls: [{ tool: 'ask', arguments: { question: 'left or right?' } }] };
const setting: Setting = { turns: [asking, finish('went left')], options: { answerMs: 0 } };

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** So much time passes at once, as on a machine that slept; then every timer has its turn. */
const pass = async (ms: number): Promise<void> => {
  vi.setSystemTime(Date.now() + ms);
  await vi.advanceTimersByTimeAsync(5_000);
};

const untilAsked = ({ service }: Running, id: string) =>
  vi.waitFor(async () => {
    const { awaiting } = await service.status(id);
    if (awaiting === undefined) throw new Error('it asks nothing yet');
    return awaiting;
  });

test('an attempt waits a week for an answer, over a restart and without a slot, and then completes', async () => {
  const first = await startSystem(setting);
  const { task_id: id } = await first.service.create({ description: 'a task' });
  await first.service.execute({ task: id, role: 'engineer', options: {} });
  const asked = await untilAsked(first, id);
  const startedAt = Date.now();
  for (let days = 0; days < 3; days += 1) await pass(25 * hourMs);
  const { status, awaiting } = await first.service.status(id);
  const { deadline } = await first.service.explain(id);
  await first.stop();
  await pass(25 * hourMs);

  const next = await startSystem({ ...setting, root: first.root, stateDir: first.stateDir });
  for (let days = 0; days < 3; days += 1) await pass(25 * hourMs);
  const again = await untilAsked(next, id);
  const { running } = next.system.slotUse();
  const answer = {
    type: 'respond',
    inputId: again.input_id,
    text: 'left',
    decision: null,
  } as const;
  await next.service.respond(id, 1, answer);
  // The deadline of the task that passed the last time is before the end of what the agent has
  // left.
  await pass(100);
  const view = await untilStatus(next, id, 'complete', 'failed');

  expect([status, deadline, running]).toEqual(['started', null, 0]);
  expect(asked?.deadline).toBeUndefined();
  expect([awaiting, again]).toEqual([asked, asked]);
  expect(Date.now() - startedAt).toBeGreaterThan(7 * 24 * hourMs);
  expect(view).toMatchObject({ status: 'complete', attempt: 1, result: 'went left' });
});
