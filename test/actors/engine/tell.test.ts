import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { Model, ModelEvent, ModelMessage } from '../../../src/actors/model/port.ts';
import { crash } from '../../support/crash.ts';
import {
  bash,
  finish,
  type Running,
  type Setting,
  startSystem,
  type Turn,
  untilStatus,
} from '../../support/running.ts';

/**
 * A model that plays these turns, keeps what it last heard, and waits for `open` at a turn. Its first
 * `faults` calls fail, after that wait.
 */
const gated = (turns: readonly Turn[], waitsAt: number | null = null, faults = 0) => {
  let open = (): void => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const heard: ModelMessage[][] = [];
  const model: Model = {
    name: 'gated',
    disclaimer: null,
    async *ask({ messages }): AsyncGenerator<ModelEvent> {
      const turn = messages.filter(({ role }) => role === 'assistant').length;
      heard.push([...messages]);
      if (turn === waitsAt) await gate;
      if (heard.length <= faults) {
        const failure = {
          code: 'model_failed',
          message: 'busy',
          facts: {},
          retryable: true,
        } as const;
        yield { type: 'failed', failure };
        return;
      }
      const calls = (turns[turn] ?? finish('the end')).calls.map((call, index) => ({
        ...{ id: `call_${turn}_${index}`, tool: call.tool },
        arguments: JSON.stringify(call.arguments),
      }));
      const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };
      yield { type: 'answered', text: '', calls, truncated: false, usage };
    },
  };
  const occurrences = (text: string): number =>
    JSON.stringify(heard.at(-1) ?? []).split(text).length - 1;
  return { model, open: () => open(), heard, occurrences };
};

const begin = async (setting: Setting) => {
  const running = await startSystem(setting);
  const { task_id: id } = await running.service.create({ description: 'a task' });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  return { ...running, running, id };
};
const completed = (running: Pick<Running, 'service'>, id: string) =>
  untilStatus(running as Running, id, 'complete', 'failed');
const asked = (heard: readonly unknown[], times: number) =>
  vi.waitFor(() => expect(heard).toHaveLength(times));
const logs = ({ store }: Pick<Running, 'store'>, id: string): readonly string[] =>
  store
    .read({ taskId: id, after: 0, limit: 1_000 })
    .flatMap(({ type, data }) => (type === 'log' ? [JSON.parse(data).message] : []));

test('the agent reads words said during a turn at the next one, once', async () => {
  const { model, open, heard, occurrences } = gated([bash('true'), bash('true'), finish()], 0);
  const { running, service, id } = await begin({ model });
  await asked(heard, 1);

  await service.tell(id, 'use tabs');
  open();
  const view = await completed(running, id);

  expect(view.status).toBe('complete');
  expect(JSON.stringify(heard[0])).not.toContain('use tabs');
  expect(JSON.stringify(heard[1])).toContain('A person says, while you work:');
  expect([heard.length, occurrences('use tabs')]).toEqual([3, 1]);
  expect(logs(running, id)).toContain('a person says: use tabs');
});

test('an agent that is told something during its last call goes on, and ends again', async () => {
  const { model, open, heard, occurrences } = gated([finish('first'), finish('second')], 0);
  const { running, service, id } = await begin({ model });
  await asked(heard, 1);

  await service.tell(id, 'use tabs');
  open();
  const view = await completed(running, id);

  expect(view).toMatchObject({ status: 'complete', result: 'second', attempt: 1 });
  expect([heard.length, occurrences('use tabs')]).toEqual([2, 1]);
});

test('a repeated request tells it once; an agent that has ended is told nothing', async () => {
  const { model, open, heard, occurrences } = gated([bash('true'), finish()], 0);
  const { running, service, id } = await begin({ model });
  await asked(heard, 1);

  await Promise.all([service.tell(id, 'use tabs', 'key'), service.tell(id, 'use tabs', 'key')]);
  await service.tell(id, 'use tabs', 'key');
  open();
  await completed(running, id);
  const late = service.tell(id, 'and spaces');

  expect(occurrences('use tabs')).toBe(1);
  await expect(late).rejects.toMatchObject({ code: 'event_not_allowed' });
});

test('more than an agent can be told before its next turn is refused', async () => {
  const { model, open, heard } = gated([bash('true'), finish()], 0);
  const { running, service, id } = await begin({ model });
  await asked(heard, 1);
  await service.tell(id, 'x'.repeat(60_000));

  const more = service.tell(id, 'y'.repeat(10_000));

  await expect(more).rejects.toMatchObject({ code: 'invalid_params' });
  open();
  await completed(running, id);
});

test.each([
  { when: 'before its next turn', waitsAt: 0, calls: 1 },
  { when: 'during the turn that reads it', waitsAt: 1, calls: 2 },
])(
  'a server that dies $when loses nothing of it, and says it once',
  { tags: ['slow'] },
  async ({ waitsAt, calls }) => {
    const turns = [bash('sleep 0.2'), bash('true'), finish()];
    const first = gated(turns, waitsAt);
    const setting: Setting = { model: first.model };
    const { running, service, id } = await begin(setting);
    await asked(first.heard, 1);
    await service.tell(id, 'use tabs');
    await asked(first.heard, calls);

    const second = gated(turns);
    const left = await crash(running, { ...setting, model: second.model });
    const again = await startSystem(left);
    const view = await completed(again, id);

    expect(view.status).toBe('complete');
    expect(second.occurrences('use tabs')).toBe(1);
  },
);

/** Fails until there is a file `go`, and is at work from `busy` on. */
const check =
  'touch busy; for i in $(seq 200); do [ -e seen ] && break; sleep 0.05; done; [ -e go ]';

const beginChecked = async (setting: Setting) => {
  const running = await startSystem(setting);
  const { task_id: id } = await running.service.create({ description: 'a task' });
  const options = { verify: [check] };
  await running.service.execute({ task: id, role: 'engineer', options });
  await vi.waitFor(async () => expect((await running.service.status(id)).phase).toBe('verifying'));
  return { ...running, running, id };
};
const letGo = ({ root }: Pick<Running, 'root'>, ...names: readonly string[]): void => {
  for (const name of names) writeFileSync(join(root, name), '');
};

test('the agent reads words said during a check that fails when it continues, once', async () => {
  const { model, occurrences, heard } = gated([
    finish('first'),
    bash('touch go'),
    finish('second'),
  ]);
  const { running, service, id } = await beginChecked({ model });

  await Promise.all([service.tell(id, 'use tabs', 'key'), service.tell(id, 'use tabs', 'key')]);
  letGo(running, 'seen');
  const view = await completed(running, id);

  expect(view).toMatchObject({ status: 'complete', result: 'second', attempt: 1 });
  expect([heard.length, occurrences('use tabs')]).toEqual([3, 1]);
  expect(logs(running, id).filter((each) => each === 'a person says: use tabs')).toHaveLength(1);
});

test('unread words of a person are in the result; a task that is over takes none', async () => {
  const { model } = gated([finish('first')]);
  const { running, root, service, id } = await beginChecked({ model });

  await service.tell(id, 'use tabs');
  const full = service.tell(id, 'x'.repeat(65_536));
  await expect(full).rejects.toMatchObject({ code: 'invalid_params' });
  letGo(running, 'go', 'seen');
  await completed(running, id);

  const result = readFileSync(join(root, '.beads', 'tasks', `task-${id}`, '30-results.md'), 'utf8');
  expect(result).toContain('## Not read\n');
  expect(result).toContain('> use tabs');
  expect(logs(running, id)).toContain('the task ended before an agent read 1 message of a person');
  await expect(service.tell(id, 'late')).rejects.toMatchObject({ code: 'event_not_allowed' });
});

test('a server that dies loses no message that waits with the task, and gives it once', {
  tags: ['slow'],
}, async () => {
  const turns = [finish('first'), bash('touch go'), finish('second')];
  const first = gated(turns);
  const setting: Setting = { model: first.model };
  const { running, service, id } = await beginChecked(setting);
  await service.tell(id, 'use tabs');

  const second = gated(turns);
  const left = await crash(running, { ...setting, model: second.model });
  letGo(left, 'seen');
  const again = await startSystem(left);
  const view = await completed(again, id);

  expect(view).toMatchObject({ status: 'complete', result: 'second' });
  expect(second.occurrences('use tabs')).toBe(1);
});

test('the next attempt reads what the failed one did not, and what was said between them', {
  tags: ['slow'],
}, async () => {
  const { model, open, heard, occurrences } = gated([bash('true'), finish()], 0, 1);
  const { running, service, id } = await begin({ model, options: { maxRetries: 1 } });
  await asked(heard, 1);

  await service.tell(id, 'use tabs');
  open();
  await vi.waitFor(async () => expect((await service.status(id)).phase).toBe('backing_off'));
  await service.tell(id, 'and spaces');
  const view = await completed(running, id);

  expect(view).toMatchObject({ status: 'complete', attempt: 2 });
  expect([occurrences('use tabs'), occurrences('and spaces')]).toEqual([1, 1]);
});
