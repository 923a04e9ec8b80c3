import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { bdIn, bdTracker, type FakeBd, inBd, makeBd, makeBdProject } from '../../support/bd.ts';
import type { Answer } from '../../support/model-server.ts';
import {
  finished,
  noQuota,
  startProvider,
  untilParked,
  writeHalf,
} from '../../support/provider-limits.ts';
import { startSystem, untilStatus } from '../../support/running.ts';

/** Tasks of bd whose provider is at a limit. */

/** The holder of a task in bd is absent when nobody has it. */
const heldInBd = async (bd: FakeBd, root: string, id: string): Promise<string> => {
  const { status, assignee = 'nobody' } = await inBd(bd, root, id);
  return `${status}, ${assignee}`;
};

const open = async (answers: readonly Answer[]) => {
  const bd = makeBd('A-direct');
  const root = await makeBdProject(bd);
  let asked = 0;
  const { provider, model } = await startProvider(() => {
    asked += 1;
    return answers[asked - 1] ?? finished;
  });
  const setting = { model, root, tracker: bdTracker(bd) };
  const running = await startSystem(setting);
  const { task_id } = await running.service.create({ description: 'a task' });
  await running.service.execute({ task: task_id, role: 'engineer', options: {} });
  return { bd, root, provider, setting, running, id: task_id };
};

test('a parked task is open in bd, survives a restart, goes on, and is closed in bd', {
  tags: ['slow'],
}, async () => {
  const { bd, root, provider, setting, running, id } = await open([writeHalf, noQuota(4)]);
  const before = await untilParked(running, id);
  const parked = await heldInBd(bd, root, id);
  await running.stop();

  const next = await startSystem({ ...setting, stateDir: running.stateDir });
  const after = await next.service.status(id);
  const inBetween = await heldInBd(bd, root, id);
  const ended = await untilStatus(next, id, 'complete', 'failed');

  expect(parked).toBe('open, nobody');
  expect(after).toMatchObject({
    status: 'queued',
    attempt: 1,
    parked_until: before.parked_until,
    parked_reason: before.parked_reason,
  });
  expect(inBetween).toBe('open, nobody');
  expect(ended).toMatchObject({ status: 'complete', attempt: 1, usage: { turns: 2 } });
  expect(await inBd(bd, root, id)).toMatchObject({ status: 'closed', assignee: 'agent-server' });
  expect(provider.requests).toHaveLength(3);
  expect(existsSync(join(root, 'half.txt'))).toBe(true);
});

test('while bd is away the task waits to be parked, and is parked when bd is back', {
  tags: ['slow'],
}, async () => {
  const { bd, root, running, id } = await open([
    {
      kind: 'answer',
      calls: [{ name: 'bash', arguments: '{"command":"while [ ! -e go ]; do :; done"}' }],
    },
    noQuota(600),
  ]);
  await vi.waitFor(async () => expect((await running.service.status(id)).phase).toBe('acting'));
  bd.fail({
    kind: 'says',
    on: 'update',
    stderr: 'Error: Dolt server appears down\n',
    code: 1,
    times: 4,
  });
  writeFileSync(join(root, 'go'), '');
  await vi.waitFor(async () =>
    expect((await running.service.status(id)).phase).toBe('waiting_for_tracker'),
  );

  const parked = await untilParked(running, id);

  expect(parked).toMatchObject({ status: 'queued', attempt: 1 });
  expect(running.system.slotUse()).toMatchObject({ running: 0 });
  expect(await heldInBd(bd, root, id)).toBe('open, nobody');
});

test.each([
  {
    what: 'closes',
    seconds: 600,
    words: ['close', '--reason', 'by hand'],
    end: ['complete', 'complete'],
    why: /^somebody closed the task/,
    inTheEnd: { status: 'closed', close_reason: 'by hand' },
  },
  {
    what: 'takes',
    seconds: 2,
    words: ['update', '--status', 'in_progress', '--assignee', 'alice'],
    end: ['started', 'started'],
    why: /alice/,
    inTheEnd: { status: 'in_progress', assignee: 'alice' },
  },
])('when somebody $what a parked task in bd, its attempt ends', { tags: ['slow'] }, async (row) => {
  const { seconds, words, end, why, inTheEnd } = row;
  const { bd, root, provider, running, id } = await open([writeHalf, noQuota(seconds)]);
  await untilParked(running, id);

  const [command = '', ...options] = words;
  await bdIn(bd, root, command, id, ...options);
  const view = await vi.waitFor(async () => {
    const now = await running.service.status(id);
    expect([now.status, now.phase]).toEqual(end);
    return now;
  });

  expect(view.parked_until).toBeUndefined();
  expect(String((await running.service.explain(id)).reason)).toMatch(why);
  expect(await inBd(bd, root, id)).toMatchObject(inTheEnd);
  expect(provider.requests).toHaveLength(2);
});
