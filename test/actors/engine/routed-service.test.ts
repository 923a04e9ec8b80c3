import { expect, expectTypeOf, onTestFinished, test } from 'vitest';
import {
  createRoutedService,
  type RoutedMethod,
} from '../../../src/actors/engine/service/routed-service.ts';
import type { TaskService } from '../../../src/actors/engine/service/task-service.ts';
import { OwnedElsewhereError } from '../../../src/actors/engine/tasks/owned-elsewhere.ts';
import { parsePostgresAddress } from '../../../src/actors/store/postgres/address.ts';
import { openPostgresDatabase } from '../../../src/actors/store/postgres/database.ts';
import { createServerCalls } from '../../../src/actors/store/postgres/server-calls.ts';
import { isServiceError, ServiceError } from '../../../src/machines/errors.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { describeUnless } from '../../support/needs.ts';
import { freshAddress, noPostgres } from '../../support/postgres.ts';
import { hang, startSystem, untilStatus } from '../../support/running.ts';

type Call = readonly [method: string, ...args: readonly unknown[]];

/** A service of one server that keeps what it was asked. */
const scripted = (
  node: string,
  answer: (method: string, args: readonly unknown[]) => unknown = () => node,
) => {
  const calls: Call[] = [];
  const service = new Proxy({} as TaskService, {
    ownKeys: () => ['status', 'list', 'create', 'run'],
    getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
    get:
      (_, method: string) =>
      async (...args: readonly unknown[]) => {
        calls.push([method, ...args]);
        return answer(method, args);
      },
  });
  return { service, calls };
};

type Owners = (taskId: TaskId) => string | null;

interface Server extends TaskService {
  /** Asks the server `two`. */
  ask(method: string, params: unknown): Promise<unknown>;
}

/** Starts servers of one database; `owners` is asked by all. */
const startServers = async (
  services: Readonly<Record<string, TaskService>>,
  owners: Owners,
): Promise<(node: string) => Server> => {
  const url = await freshAddress();
  const started = new Map<string, Server>();
  for (const [node, inner] of Object.entries(services)) {
    const db = await openPostgresDatabase(parsePostgresAddress(url, {}));
    onTestFinished(db.close);
    const calls = createServerCalls(db, {
      node,
      redact: (text) => text,
      log: () => {},
    });
    const routed = createRoutedService(inner, { node, ownerOf: owners, ask: calls.ask });
    calls.answerWith(routed.answer);
    started.set(node, {
      ...routed.service,
      ask: (method, params) => calls.ask('two', method, params),
    });
  }
  return (node) => {
    const found = started.get(node);
    if (found === undefined) throw new Error(`no server ${node}`);
    return found;
  };
};
const failureOf = async (work: Promise<unknown>): Promise<ServiceError> => {
  try {
    await work;
  } catch (error) {
    if (isServiceError(error)) return error;
    throw error;
  }
  throw new Error('it did not fail');
};
const refusalOf = async (work: Promise<unknown>) => {
  const { code, facts } = await failureOf(work);
  return { code, facts };
};
const id = 'bd-a1';
const run = { role: 'engineer', options: {} } as const;
const ownedBy =
  (owner: string | null): Owners =>
  () =>
    owner;

describeUnless(noPostgres)('a task of another server', () => {
  test('is handed to it with all that was given, and nothing that was not', async () => {
    const [one, two] = [scripted('one'), scripted('two')];
    const at = await startServers({ one: one.service, two: two.service }, ownedBy('two'));
    const service = at('one');
    const response = {
      type: 'respond',
      inputId: 'q1',
      text: 'a\0"\ud800',
      decision: null,
    } as const;
    const comments = [{ path: 'a.ts', line: 1, endLine: null, text: 'why?' }];

    const answers = [
      await service.execute({ task: id, ...run, options: { when: 'ready', verify: ['true'] } }),
      await service.execute({ task: id, ...run, requestId: 'r1' }),
      await service.retry(id, null, null, null),
      await service.retry(id, 'engineer', { maxTurns: 3, network: false }, 'again'),
      await service.cancel(id, null),
      await service.close(id, 'done'),
      await service.reopen(id, null),
      await service.respond(id, 2, response),
      await service.tell(id, 'use tabs'),
      await service.tell(id, 'use tabs', undefined),
      await service.tell(id, 'use tabs', 'r2'),
      await service.review(id, { verdict: 'request_changes', attempt: null, comments }),
      await service.explain(id),
      await service.diff(id, null),
      await service.diff(id, 1, { names: true }),
      await service.merge({ taskId: id, squash: true }),
    ];

    expect(answers).toEqual(answers.map(() => 'two'));
    expect(one.calls).toEqual([]);
    expect(two.calls).toStrictEqual([
      ['execute', { task: id, ...run, options: { when: 'ready', verify: ['true'] } }],
      ['execute', { task: id, ...run, requestId: 'r1' }],
      ['retry', id, null, null, null],
      ['retry', id, 'engineer', { maxTurns: 3, network: false }, 'again'],
      ['cancel', id, null],
      ['close', id, 'done'],
      ['reopen', id, null],
      ['respond', id, 2, response],
      ['tell', id, 'use tabs'],
      ['tell', id, 'use tabs'],
      ['tell', id, 'use tabs', 'r2'],
      ['review', id, { verdict: 'request_changes', attempt: null, comments }],
      ['explain', id],
      ['diff', id, null],
      ['diff', id, 1, { names: true }],
      ['merge', { taskId: id, squash: true }],
    ]);
  });

  test('is worked on as if that server had been asked', async () => {
    const running = await startSystem({ turns: [hang] });
    const one = scripted('one', () => {
      throw new Error('it is not the task of this server');
    });
    const at = await startServers({ one: one.service, two: running.service }, ownedBy('two'));
    const [service, direct] = [at('one'), running.service];
    const { task_id } = await direct.create({ description: 'a task' });

    const execution = await service.execute({ task: task_id, ...run });
    expect(execution).toMatchObject({ task_id, role: 'engineer', attempt: 1 });
    await untilStatus(running, task_id, 'started');
    await expect.poll(async () => (await direct.status(task_id)).phase).toBe('acting');
    expect(await service.explain(task_id)).toEqual(await direct.explain(task_id));
    expect(await service.tell(task_id, 'use tabs')).toBeUndefined();
    const again = { task: task_id, ...run };
    expect(await refusalOf(service.execute(again))).toEqual(await refusalOf(direct.execute(again)));
    const answer = { type: 'respond', inputId: 'q', text: 'yes', decision: null } as const;
    expect(await refusalOf(service.respond(task_id, 1, answer))).toEqual(
      await refusalOf(direct.respond(task_id, 1, answer)),
    );
    expect(await refusalOf(service.diff(task_id, null))).toEqual(
      await refusalOf(direct.diff(task_id, null)),
    );
    expect(await refusalOf(service.merge({ taskId: task_id }))).toEqual(
      await refusalOf(direct.merge({ taskId: task_id })),
    );

    await service.cancel(task_id, 'enough');
    await untilStatus(running, task_id, 'cancelled');
    expect(await service.close(task_id, 'by hand')).toMatchObject({ task_id, status: 'complete' });
    const reopened = await service.reopen(task_id, 'not yet');
    expect(await direct.status(task_id)).toMatchObject(reopened);
    expect(reopened.status).toBe('queued');
    expect(one.calls).toEqual([]);
  });

  test('is refused there with the facts of the refusal', async () => {
    const facts = { task_id: id, event: 'cancel', state: 'complete', allowed: ['reopen'] };
    const two = scripted('two', () => {
      throw ServiceError.from({ code: 'event_not_allowed', facts: facts as never });
    });
    const at = await startServers(
      { one: scripted('one').service, two: two.service },
      ownedBy('two'),
    );

    expect(await refusalOf(at('one').cancel(id, null))).toEqual({
      code: 'event_not_allowed',
      facts,
    });
  });

  test('that changes its server meanwhile is handed on by the one that was asked first', async () => {
    const to = (owner: string) => () => {
      throw new OwnedElsewhereError(owner);
    };
    const [two, three] = [scripted('two', to('three')), scripted('three')];
    const one = scripted('one', to('two'));
    let owner: string | null = 'two';
    const at = await startServers(
      { one: one.service, two: two.service, three: three.service },
      () => owner,
    );

    expect(await at('one').cancel(id, null)).toBe('three');
    expect([one.calls.length, two.calls.length, three.calls.length]).toEqual([0, 1, 1]);

    owner = null;
    const failure = await failureOf(at('one').cancel(id, null));
    expect(failure.message).toContain('the task is with the server three now; try again');
    expect([one.calls.length, two.calls.length, three.calls.length]).toEqual([1, 2, 1]);

    expect(await at('two').cancel(id, null)).toBe('three');
  });

  test('that comes back to the server that was asked is worked on there', async () => {
    const one = scripted('one');
    const two = scripted('two', () => {
      throw new OwnedElsewhereError('one');
    });
    const at = await startServers({ one: one.service, two: two.service }, ownedBy('two'));

    expect(await at('one').close(id, null)).toBe('one');
    expect([one.calls.length, two.calls.length]).toEqual([1, 1]);
  });

  test('200 requests in both directions are each answered once', async () => {
    const answer = (_: string, args: readonly unknown[]) => args[1];
    const [one, two] = [scripted('one', answer), scripted('two', answer)];
    const at = await startServers({ one: one.service, two: two.service }, (taskId) =>
      taskId.endsWith('1') ? 'one' : 'two',
    );
    const reasons = Array.from({ length: 200 }, (_, n) => `reason ${n}`);

    const answers = await Promise.all(
      reasons.map((reason, n) =>
        at(n % 2 === 0 ? 'one' : 'two').cancel(n % 2 === 0 ? 'bd-a2' : 'bd-a1', reason),
      ),
    );

    expect(answers).toEqual(reasons);
    const asked = [...one.calls, ...two.calls].map(([, , reason]) => reason);
    expect(asked.toSorted()).toEqual(reasons.toSorted());
    expect(two.calls.every(([, taskId]) => taskId === 'bd-a2')).toBe(true);
  });
});

describeUnless(noPostgres)('everything else is done by the server that is asked', () => {
  test('tasks without an owner, its own tasks, new tasks, lists and ids that are none', async () => {
    const [one, two] = [scripted('one'), scripted('two')];
    const owners: Record<string, string> = { 'bd-own': 'one', 'bd-other': 'two' };
    const at = await startServers(
      { one: one.service, two: two.service },
      (taskId) => owners[taskId] ?? null,
    );
    const service = at('one');

    await service.cancel('bd-free', null);
    await service.cancel('bd-own', null);
    await service.cancel('no id\0', null);
    await service.cancel('', null);
    await service.execute({ task: 'write the docs', ...run });
    await service.execute({ task: 'bd-other', ...run, draft: { labels: [] } });
    await service.status('bd-other');
    await service.run({ taskIds: ['bd-other'], options: {} });
    await service.list({});

    expect(two.calls).toEqual([]);
    expect(one.calls).toHaveLength(9);
  });

  test('a repeated request for a new task finds the server that has the task', async () => {
    const one = scripted('one', () => {
      throw new OwnedElsewhereError('two');
    });
    const two = scripted('two');
    const at = await startServers({ one: one.service, two: two.service }, ownedBy(null));
    const request = { task: 'write the docs', ...run, requestId: 'r1' };

    expect(await at('one').execute(request)).toBe('two');
    expect(two.calls).toEqual([['execute', request]]);
  });

  test('a server carries out only the methods that are handed over', async () => {
    const two = scripted('two');
    const at = await startServers(
      { one: scripted('one').service, two: two.service },
      ownedBy(null),
    );

    for (const method of ['create', 'delete', 'constructor', '__proto__', 'toString', ''])
      expect((await failureOf(at('one').ask(method, []))).message).toContain(
        `the server two is of another version, which has no method ${method}`,
      );
    expect((await refusalOf(at('one').ask('cancel', { length: 1 }))).code).toBe('internal');
    expect(two.calls).toEqual([]);
  });
});

/** What JSON makes of a type: the same, or `never` where something is lost. */
type Json<T> = unknown extends T
  ? T
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends (...args: never) => unknown
      ? never
      : T extends Date | ReadonlyMap<unknown, unknown> | ReadonlySet<unknown> | bigint | symbol
        ? never
        : { [Key in keyof T]: Json<T[Key]> };
/** A signal stays on the server that was asked. */
type Given<Method extends RoutedMethod> = Method extends 'merge' | 'update' | 'undo' | 'update'
  ? [Parameters<TaskService[Method]>[0]]
  : Parameters<TaskService[Method]>;
type Got<Method extends RoutedMethod> = Awaited<ReturnType<TaskService[Method]>>;

test('parameters and results between servers are JSON', () => {
  type Every = { [Method in RoutedMethod]: [Given<Method>, Exclude<Got<Method>, void>] };

  expectTypeOf<Every>().toExtend<{ [Method in RoutedMethod]: Json<Every[Method]> }>();
  expectTypeOf<{ at: Date }>().not.toExtend<Json<{ at: Date }>>();
});
