import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { requireAllowedHost } from '../../actors/network/addresses.ts';
import type { PushConfig, PushConfigs } from '../../actors/store/push-configs.ts';
import { A2aError, invalidParams } from './errors.ts';
import { isTerminal } from './protocol.ts';
import type { PushDelivery } from './push-delivery.ts';
import type { ReadRun } from './read-run.ts';
import { idText, parseA2a, pushConfigSchema, tenant } from './schemas.ts';

export interface PushOperationPorts {
  readonly configs: PushConfigs;
  readonly delivery: PushDelivery;
  readonly read: (id: string) => Promise<ReadRun>;
}

type GivenConfig = z.infer<typeof pushConfigSchema>;

const configsOfRunAtMost = 10;
const configsAtMost = 1_000;

const createSchema = pushConfigSchema.extend({ tenant: tenant.optional(), taskId: idText });
const oneSchema = z.object({ tenant: tenant.optional(), taskId: idText, id: idText });
/** 0.3 names no config where a task has one. */
const oneSchema03 = z.object({ taskId: idText, id: idText.optional() });
const configListSchema = z.object({
  tenant: tenant.optional(),
  taskId: idText,
  pageSize: z.int().min(1).max(100).optional(),
  pageToken: z.string().max(512).optional(),
});

/** Without its credentials. */
const configObject = ({ run, id, url, token, scheme }: PushConfig) => ({
  ...{ taskId: run, id, url },
  ...(token === null ? {} : { token }),
  ...(scheme === null ? {} : { authentication: { scheme } }),
});

const headerText = /^[\x20-\x7e]*$/;

/**
 * Checks an address that is written out; a name is looked up when it is called. @throws
 * INVALID_PARAMS
 */
export const requireReceiver = ({ url, token, authentication }: GivenConfig): void => {
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

export const createPushOperations = ({ configs, delivery, read }: PushOperationPorts) => {
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
      ...{ run, id, version, url, sent },
      token: token ?? null,
      scheme: authentication?.scheme ?? null,
      credentials: authentication?.credentials ?? null,
    };
    const others = await configs.ofRun(run);
    if (!others.some((each) => each.id === id)) await requireRoom(run);
    await configs.put(config);
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
    addToNew: (run: string, given: GivenConfig, version: string) => add(run, given, 0, version),
    create: async (given: unknown, version: string) => {
      const { taskId, tenant: _, ...config } = parseA2a(createSchema, given);
      requireReceiver(config);
      const { run, asOf } = await read(taskId);
      if (isTerminal(run.state)) throw full(`task ${taskId} is over`);
      return configObject(await add(taskId, config, asOf, version));
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
