import { expect, test } from 'vitest';
import type { Ledger } from '../../../src/actors/ledger/ledger.ts';
import type { Tracker } from '../../../src/actors/tracker/port.ts';
import type { Response } from '../../../src/machines/agent/agent-context.ts';
import { ServiceError } from '../../../src/machines/errors.ts';
import { embeddedAt } from '../../support/ledger.ts';
import {
  finish,
  type Running,
  type Setting,
  startSystem,
  type Turn,
  untilStatus,
} from '../../support/running.ts';

const ask: Turn = { calls: [{ tool: 'ask', arguments: { question: 'Which one?' } }] };
const one: Setting = { turns: [ask, finish()], options: { cap: 1 } };

const create = async ({ service }: Running) =>
  (await service.create({ description: 'a task' })).task_id;
const run = ({ service }: Running, task: string) =>
  service.execute({ task, role: 'engineer', options: {} });

const untilPhase = async ({ service }: Running, id: string, phase: string): Promise<void> => {
  while ((await service.status(id)).phase !== phase) await new Promise(setImmediate);
};

const answer = async ({ service }: Running, id: string) => {
  const { attempt, awaiting } = await service.status(id);
  const response: Response = {
    type: 'respond',
    inputId: awaiting?.input_id ?? '',
    text: 'this',
    decision: null,
  };
  return service.respond(id, attempt, response);
};

test('while a task waits for a person, other tasks use its slot', async () => {
  const running = await startSystem(one);
  const [first, second, third] = [
    await create(running),
    await create(running),
    await create(running),
  ];
  for (const id of [first, second, third]) await run(running, id);
  for (const id of [first, second, third]) await untilPhase(running, id, 'awaiting_input');

  expect(running.system.slotUse()).toMatchObject({ running: 0, waiting: 0 });
  expect((await running.service.status(first)).status).toBe('started');

  await Promise.all([first, second, third].map((id) => answer(running, id)));
  await Promise.all([first, second, third].map((id) => untilStatus(running, id, 'complete')));
});

test('a task that was answered gets the slot before a task that has not begun', async () => {
  const hold: Turn = { calls: [{ tool: 'bash', arguments: { command: 'sleep 600' } }] };
  const running = await startSystem({ ...one, turns: [ask, hold] });
  const [answered, busy, queued] = [
    await create(running),
    await create(running),
    await create(running),
  ];
  for (const id of [answered, busy]) {
    await run(running, id);
    await untilPhase(running, id, 'awaiting_input');
  }
  await answer(running, busy);
  await untilPhase(running, busy, 'acting');
  await run(running, queued);
  await untilPhase(running, queued, 'waiting_for_slot');
  await answer(running, answered);

  await running.service.cancel(busy, null);
  await untilPhase(running, answered, 'acting');

  expect(await running.service.status(queued)).toMatchObject({
    status: 'queued',
    phase: 'waiting_for_slot',
  });
  for (const id of [answered, queued]) await running.service.cancel(id, null);
});

test('with the cap at work an answer waits for a slot, and the clock of the attempt stands still', async () => {
  const hold: Turn = {
    calls: [{ tool: 'bash', arguments: { command: 'while [ ! -e go ]; do sleep 0.02; done' } }],
  };
  const running = await startSystem({ ...one, turns: [ask, hold, finish()] });
  const [first, second] = [await create(running), await create(running)];
  for (const id of [first, second]) await run(running, id);
  for (const id of [first, second]) await untilPhase(running, id, 'awaiting_input');
  await answer(running, first);
  await untilPhase(running, first, 'acting');

  await answer(running, second);

  expect((await running.service.status(second)).phase).toBe('waiting_for_slot');
  expect(running.system.slotUse()).toMatchObject({ running: 1, cap: 1 });
  await running.service.cancel(first, null);
  await untilPhase(running, second, 'acting');
  expect((await running.service.status(second)).status).toBe('started');
  await running.service.cancel(second, null);
});

test('a lent slot stays lent over a restart, and is had again with the answer', async () => {
  const first = await startSystem(one);
  const [asking, other] = [await create(first), await create(first)];
  await run(first, asking);
  await untilPhase(first, asking, 'awaiting_input');
  await first.stop();

  const next = await startSystem({ ...one, root: first.root, stateDir: first.stateDir });
  await run(next, other);
  await untilPhase(next, other, 'awaiting_input');
  await untilPhase(next, asking, 'awaiting_input');
  for (const id of [asking, other]) await answer(next, id);
  await Promise.all([asking, other].map((id) => untilStatus(next, id, 'complete')));

  expect((await next.service.status(asking)).attempt).toBe(1);
});

test('a slot that was lent at the cancel is not held again after a restart', async () => {
  const away = new ServiceError('tracker_unavailable', { detail: 'it is away', remedy: 'wait' });
  const tracker = (root: string, ledger: Ledger): Tracker => {
    const embedded = embeddedAt(root, {}, ledger);
    return {
      ...embedded,
      prepare: (change, preparation) =>
        change.kind === 'release' ? Promise.reject(away) : embedded.prepare(change, preparation),
    };
  };
  const setting: Setting = { ...one, tracker };
  const first = await startSystem(setting);
  const cancelled = await create(first);
  await run(first, cancelled);
  await untilPhase(first, cancelled, 'awaiting_input');
  await first.service.cancel(cancelled, null).catch(() => {});
  await untilPhase(first, cancelled, 'waiting_for_tracker');
  await first.stop();

  const next = await startSystem({ ...setting, root: first.root, stateDir: first.stateDir });
  const other = await create(next);
  await run(next, other);
  await untilPhase(next, other, 'awaiting_input');

  expect((await next.service.status(cancelled)).status).toBe('started');
});

test('an attempt that was answered and waits for its slot goes on after a restart', async () => {
  const hold: Turn = { calls: [{ tool: 'bash', arguments: { command: 'sleep 600' } }] };
  const setting: Setting = { ...one, turns: [ask, hold], options: { cap: 1 } };
  const first = await startSystem(setting);
  const [busy, asked] = [await create(first), await create(first)];
  for (const id of [busy, asked]) await run(first, id);
  for (const id of [busy, asked]) await untilPhase(first, id, 'awaiting_input');
  await answer(first, busy);
  await untilPhase(first, busy, 'acting');
  await answer(first, asked);
  await untilPhase(first, asked, 'waiting_for_slot');
  await first.stop();

  const next = await startSystem({
    ...setting,
    root: first.root,
    stateDir: first.stateDir,
    turns: [ask, finish()],
  });
  const view = await untilStatus(next, asked, 'complete');
  await untilStatus(next, busy, 'complete');

  expect(view.attempt).toBe(1);
});
