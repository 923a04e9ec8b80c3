import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { TaskService } from '../../actors/engine/service/task-service.ts';
import { requireAllowedHost } from '../../actors/network/addresses.ts';
import type { EntryReads, Store } from '../../actors/store/port.ts';
import type { PushConfig, PushConfigs } from '../../actors/store/rows/push-configs.ts';
import { isServiceError } from '../../machines/errors.ts';
import { isJsonObject } from '../../machines/json.ts';
import type { Role } from '../../machines/task.ts';
import type { Caller } from '../people/callers.ts';
import type { Guard } from '../people/guard.ts';
import { needsOfOperation } from '../people/rights.ts';
import { A2aError, fromService, invalidParams } from './errors.ts';
import { artifactsWithPatch, followRun } from './follow-run.ts';
import { listRuns, type TaskList } from './list.ts';
import {
  type A2aTask,
  type A2aVersion,
  type Artifact,
  extensionUri,
  isInterrupted,
  isTerminal,
  type StreamResponse,
} from './protocol.ts';
import { createPushDelivery, type PushDelivery } from './push-delivery.ts';
import { type ReadRun, readLatestRun, readRun, readRunAt } from './read-run.ts';
import {
  getSchema,
  idSchema,
  idText,
  listSchema,
  pageSize,
  parseA2a,
  pushConfigSchema,
  type SendParams,
  sendSchema,
  tenant,
} from './schemas.ts';
import { sendMessage } from './send.ts';
import { taskObject } from './task-object.ts';

interface PushOperationPorts {
  readonly configs: PushConfigs;
  readonly delivery: PushDelivery;
  readonly read: (id: string) => Promise<ReadRun>;
}

type GivenConfig = z.infer<typeof pushConfigSchema>;

const configsOfRunAtMost = 10;
const configsAtMost = 1_000;
/** Nobody is told of a run that is over; its configs can be read until others take their place. */
const afterEndAtMost = 100;

const createSchema = pushConfigSchema.extend({ tenant: tenant.optional(), taskId: idText });
const oneSchema = z.object({ tenant: tenant.optional(), taskId: idText, id: idText });
/** 0.3 names no config where a task has one. */
const oneSchema03 = z.object({ taskId: idText, id: idText.optional() });
const configListSchema = z.object({
  tenant: tenant.optional(),
  taskId: idText,
  pageSize: pageSize.optional(),
  pageToken: z.string().max(512).optional(),
});

/** Without its credentials. */
const configObject = ({ run, id, url, token, scheme }: PushConfig) => ({
  taskId: run,
  id,
  url,
  ...(token === null ? {} : { token }),
  ...(scheme === null ? {} : { authentication: { scheme } }),
});

const headerText = /^[\x20-\x7e]*$/;

/**
 * Checks an address that is written out; a name is looked up when it is called. @throws
 * INVALID_PARAMS
 */
const requireReceiver = ({ url, token, authentication }: GivenConfig): void => {
  try {
    requireAllowedHost(new URL(url), 'loopback');
  } catch (error) {
    throw invalidParams('url', error instanceof Error ? error.message : 'cannot be called');
  }
  const inHeaders = [token, authentication?.scheme, authentication?.credentials];
  if (inHeaders.some((text) => text !== undefined && !headerText.test(text)))
    throw invalidParams('authentication', 'token, scheme and credentials hold ASCII only');
};

const full = (message: string): A2aError => new A2aError('UNSUPPORTED_OPERATION', message);

const createPushOperations = ({ configs, delivery, read }: PushOperationPorts) => {
  /** @throws A2aError when there is no room */
  const requireRoom = async (run: string | null): Promise<void> => {
    if (run !== null && (await configs.ofRun(run)).length >= configsOfRunAtMost)
      throw full(`a task has at most ${configsOfRunAtMost} push notification configs`);
    if ((await configs.count()) >= configsAtMost)
      throw full(`this server has ${configsAtMost} push notification configs; delete one`);
  };
  const add = async (
    run: string,
    { id = randomUUID(), url, token, authentication }: GivenConfig,
    sent: number,
    version: string,
  ): Promise<PushConfig> => {
    const config: PushConfig = {
      run,
      id,
      version,
      url,
      sent,
      token: token ?? null,
      scheme: authentication?.scheme ?? null,
      credentials: authentication?.credentials ?? null,
    };
    const others = await configs.ofRun(run);
    if (!others.some((each) => each.id === id)) await requireRoom(run);
    await configs.put(config);
    return config;
  };
  /** The latest configs of runs that are over, the oldest first. */
  const afterEnd = new Map<string, PushConfig>();
  const keepAfterEnd = async (config: PushConfig): Promise<void> => {
    const key = JSON.stringify([config.run, config.id]);
    afterEnd.delete(key);
    afterEnd.set(key, config);
    const [oldest] = afterEnd;
    if (afterEnd.size <= afterEndAtMost || oldest === undefined) return;
    afterEnd.delete(oldest[0]);
    await configs.remove(oldest[1].run, oldest[1].id);
  };
  const addAndStart = async (...given: Parameters<typeof add>): Promise<PushConfig> => {
    const config = await add(...given);
    delivery.start(config);
    return config;
  };
  const one = async (given: unknown, version: string): Promise<PushConfig> => {
    const schema = version === '0.3' ? oneSchema03 : oneSchema;
    const { taskId, id } = parseA2a<z.infer<typeof oneSchema03>>(schema, given);
    await read(taskId);
    const all = await configs.ofRun(taskId);
    const found = id === undefined ? all[0] : all.find((each) => each.id === id);
    if (found !== undefined) return found;
    const which = id === undefined ? '' : ` ${id}`;
    throw new A2aError('TASK_NOT_FOUND', `task ${taskId} has no push notification config${which}`);
  };
  return {
    /** For the config of a message, before its task is there. @throws A2aError */
    check: async (given: GivenConfig): Promise<void> => {
      requireReceiver(given);
      await requireRoom(null);
    },
    /** Adds a config that is told a run from its beginning. */
    addToNew: (run: string, given: GivenConfig, version: string) =>
      addAndStart(run, given, 0, version),
    create: async (given: unknown, version: string) => {
      const { taskId, tenant: _, ...config } = parseA2a(createSchema, given);
      requireReceiver(config);
      const { run, asOf } = await read(taskId);
      if (!isTerminal(run.state))
        return configObject(await addAndStart(taskId, config, asOf, version));
      const kept = await add(taskId, config, asOf, version);
      await keepAfterEnd(kept);
      return configObject(kept);
    },
    get: async (given: unknown, version: string) => configObject(await one(given, version)),
    list: async (given: unknown) => {
      const { taskId } = parseA2a(configListSchema, given);
      await read(taskId);
      const found = await configs.ofRun(taskId);
      return { configs: found.map(configObject), nextPageToken: '' };
    },
    delete: async (given: unknown) => {
      const { taskId, id } = parseA2a(oneSchema, given);
      await read(taskId);
      delivery.stop({ run: taskId, id });
      await configs.remove(taskId, id);
      return {};
    },
  };
};

interface OperationPorts {
  readonly service: TaskService;
  readonly store: Pick<EntryReads, 'read' | 'removed' | 'subscribe'> &
    Pick<Store, 'request' | 'rememberAnswer'>;
  readonly pushConfigs: PushConfigs;
  readonly redact: (text: string) => string;
  readonly now: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
  readonly guard: Guard;
}

export interface OperationContext {
  /** The role that the address names; null: none. */
  readonly role: Role | null;
  readonly caller: Caller;
  readonly version: A2aVersion;
  /** What the client calls this request, so that it may repeat it; null: nothing. */
  readonly idempotencyKey: string | null;
  /** Aborts when the client is gone. */
  readonly signal: () => AbortSignal;
}

type Operation = (params: unknown, context: OperationContext) => Promise<unknown>;
/** Resolves with its first event read: what fails before it is no stream. */
type StreamOperation = (
  params: unknown,
  context: OperationContext,
) => Promise<{ readonly events: AsyncGenerator<StreamResponse> }>;

export interface Operations {
  readonly calls: Readonly<Record<string, Operation>>;
  readonly streams: Readonly<Record<string, StreamOperation>>;
  readonly push: PushDelivery;
}

const patchCharactersAtMost = 512 * 1024;

/** None for a run without work of its own, and where there are no branches. */
const createPatchOf =
  ({ service }: OperationPorts) =>
  async ({ view, run }: ReadRun): Promise<readonly Artifact[]> => {
    if (run.attempt === 0) return [];
    const changes = await service.diff(view.task_id, run.attempt).catch((error: unknown) => {
      if (!isServiceError(error) || error.code === 'internal') throw error;
      return null;
    });
    if (changes === null || changes.patch === '') return [];
    const isTooLarge = changes.patch.length > patchCharactersAtMost;
    const text = isTooLarge
      ? `too large to be shown here; see it with: agent diff ${view.task_id}\n`
      : changes.patch;
    const part = { text, mediaType: 'text/x-diff', filename: `${view.task_id}.patch` };
    return [{ artifactId: 'patch', name: 'Changes of files', parts: [part] }];
  };

/** Marks a run that was refused because nobody is logged in. */
const asRefused = (found: ReadRun, refused: string | null): ReadRun => {
  if (refused !== null) Object.assign(found.run, { state: 'AUTH_REQUIRED', says: refused });
  return found;
};

const cancelMs = 10_000;
const cancelPollMs = 50;

const createRunReads = (ports: OperationPorts) => {
  const { service, store } = ports;
  const reads = { store, status: service.status };
  const read = (id: string): Promise<ReadRun> => readRun(reads, id);
  const follows = { store, patchOf: createPatchOf(ports) };
  const whole = async (found: ReadRun, historyLength: number | undefined): Promise<A2aTask> =>
    taskObject(found, { historyLength, artifacts: await artifactsWithPatch(follows, found) });

  const isSettled = ({ run }: ReadRun): boolean =>
    isTerminal(run.state) || isInterrupted(run.state);

  /** Reads and follows until the run is over or waits for somebody. */
  const settled = async (id: string, signal: AbortSignal): Promise<ReadRun> => {
    const found = await read(id);
    if (isSettled(found)) return found;
    for await (const _ of followRun(follows, found, signal)) if (isSettled(found)) break;
    return read(id);
  };

  return { reads, read, follows, whole, settled };
};
type RunReading = ReturnType<typeof createRunReads>;

const createDelivery = (
  { pushConfigs: configs, redact, now, log }: OperationPorts,
  { reads, follows }: RunReading,
): PushDelivery =>
  createPushDelivery({
    configs,
    follows,
    redact,
    now,
    log,
    readAt: ({ run, sent }) =>
      readRunAt(reads, run, sent).catch((error: unknown) => {
        if (error instanceof A2aError || isServiceError(error)) return null;
        throw error;
      }),
  });

const createSends = (
  { service, store }: OperationPorts,
  { read, whole, settled, follows }: RunReading,
  push: ReturnType<typeof createPushOperations>,
) => {
  const send = async (params: SendParams, context: OperationContext) => {
    const { role, version, idempotencyKey, caller } = context;
    const { message, tenant, configuration } = params;
    const config = configuration?.taskPushNotificationConfig;
    if (config !== undefined) await push.check(config);
    const sent = await sendMessage({ service, read, store }, message, {
      tenant,
      role,
      idempotencyKey,
      by: caller.name,
    });
    if (config === undefined) return sent;
    if (message.taskId === undefined) await push.addToNew(sent.id, config, version);
    else await push.create({ ...config, taskId: sent.id }, version).catch(() => null);
    return sent;
  };

  const sendBlocking: Operation = async (given, context) => {
    const params = parseA2a(sendSchema, given);
    const { historyLength, returnImmediately = false } = params.configuration ?? {};
    const { id, refused } = await send(params, context);
    const isOver = returnImmediately || refused !== null;
    const found = await (isOver ? read(id) : settled(id, context.signal()));
    return { task: await whole(asRefused(found, refused), historyLength) };
  };

  const sendStreaming: StreamOperation = async (given, context) => {
    const params = parseA2a(sendSchema, given);
    const { id, refused } = await send(params, context);
    const found = asRefused(await read(id), refused);
    return { events: untilQuestion(followRun(follows, found, context.signal()), found) };
  };
  return { sendBlocking, sendStreaming };
};

/** Waits a while for the end, so that a client reads CANCELED. */
const createCancel =
  ({ service }: OperationPorts, { read, whole }: RunReading): Operation =>
  async (given) => {
    const { id } = parseA2a(idSchema, given);
    const { view, run } = await read(id);
    if (run.state === 'CANCELED') return whole(await read(id), undefined);
    if (isTerminal(run.state))
      throw new A2aError('TASK_NOT_CANCELABLE', `task ${id} is over: it is ${view.status}`);
    await service.cancel(view.task_id, 'cancelled by an A2A client').catch((error: unknown) => {
      if (!isServiceError(error) || error.code !== 'event_not_allowed') throw error;
      throw new A2aError('TASK_NOT_CANCELABLE', error.message, { ours: error });
    });
    const until = performance.now() + cancelMs;
    let found = await read(id);
    while (!isTerminal(found.run.state) && performance.now() < until) {
      await delay(cancelPollMs);
      found = await read(id);
    }
    return whole(found, undefined);
  };

export const createOperations = (ports: OperationPorts): Operations => {
  const { service, store } = ports;
  const reading = createRunReads(ports);
  const { reads, read, follows, whole } = reading;
  const delivery = createDelivery(ports, reading);
  const push = createPushOperations({ configs: ports.pushConfigs, delivery, read });
  const { sendBlocking, sendStreaming } = createSends(ports, reading, push);

  const get: Operation = async (given) => {
    const { id, historyLength } = parseA2a(getSchema, given);
    return whole(await read(id), historyLength);
  };

  const list: Operation = (given): Promise<TaskList> =>
    listRuns(
      {
        service,
        readLatest: (taskId, view) =>
          readLatestRun(view === undefined ? reads : { store, status: async () => view }, taskId),
        artifactsOf: (found) => artifactsWithPatch(follows, found),
      },
      parseA2a(listSchema, given),
    );

  const subscribe: StreamOperation = async (given, { signal }) => {
    const { id } = parseA2a(idSchema, given);
    const found = await read(id);
    if (isTerminal(found.run.state))
      throw new A2aError('UNSUPPORTED_OPERATION', `task ${id} is over; read it with GetTask`);
    return { events: followRun(follows, found, signal()) };
  };

  const guarded =
    <Result>(
      name: string,
      operation: (given: unknown, context: OperationContext) => Promise<Result>,
    ) =>
    (params: unknown, context: OperationContext): Promise<Result> => {
      const own = ['message', 'metadata', extensionUri].reduce<unknown>(
        (value, key) => (isJsonObject(value) ? value[key] : undefined),
        params,
      );
      const asked = { action: name, needs: needsOfOperation(name, own) ?? 'admin', params };
      const caller = { ...context.caller, via: 'a2a' } as const;
      return ports.guard.carryOut(caller, asked, () => operation(params, context));
    };
  const guardedAll = <Result>(
    all: Readonly<Record<string, (given: unknown, context: OperationContext) => Promise<Result>>>,
  ) => Object.fromEntries(Object.entries(all).map(([name, each]) => [name, guarded(name, each)]));

  return {
    calls: guardedAll<unknown>({
      SendMessage: sendBlocking,
      GetTask: get,
      ListTasks: list,
      CancelTask: createCancel(ports, reading),
      CreateTaskPushNotificationConfig: (given, { version }: OperationContext) =>
        push.create(given, version),
      GetTaskPushNotificationConfig: (given, { version }: OperationContext) =>
        push.get(given, version),
      ListTaskPushNotificationConfigs: push.list,
      DeleteTaskPushNotificationConfig: push.delete,
    }),
    streams: guardedAll({ SendStreamingMessage: sendStreaming, SubscribeToTask: subscribe }),
    push: delivery,
  };
};

/** The stream of a message ends at a question, since the next message goes on; another stays open. */
async function* untilQuestion(
  events: AsyncGenerator<StreamResponse>,
  { run }: ReadRun,
): AsyncGenerator<StreamResponse> {
  for await (const event of events) {
    yield event;
    if (run.state === 'INPUT_REQUIRED') return;
  }
}

/** Any error as one of A2A; what is unexpected goes to the log alone. */
export const toA2aError = (error: unknown, onInternal: (error: unknown) => void): A2aError => {
  if (error instanceof A2aError) return error;
  if (isServiceError(error) && error.code !== 'internal') return fromService(error);
  onInternal(error);
  return new A2aError('INTERNAL', 'internal error; the server log has the details');
};
