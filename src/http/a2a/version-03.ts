import { z } from 'zod';
import {
  type A2aMessage,
  type A2aState,
  type A2aTask,
  isTerminal,
  type Part,
  type StreamResponse,
  type TaskStatus,
  taskStates,
  wireState,
} from './protocol.ts';

/** A2A 0.3 as another way to say the same: its methods, params and results (JSON-RPC only). */

const methodNames: ReadonlyMap<string, string> = new Map([
  ['message/send', 'SendMessage'],
  ['message/stream', 'SendStreamingMessage'],
  ['tasks/get', 'GetTask'],
  ['tasks/cancel', 'CancelTask'],
  ['tasks/resubscribe', 'SubscribeToTask'],
  ['tasks/pushNotificationConfig/set', 'CreateTaskPushNotificationConfig'],
  ['tasks/pushNotificationConfig/get', 'GetTaskPushNotificationConfig'],
  ['tasks/pushNotificationConfig/list', 'ListTaskPushNotificationConfigs'],
  ['tasks/pushNotificationConfig/delete', 'DeleteTaskPushNotificationConfig'],
  ['agent/getAuthenticatedExtendedCard', 'GetExtendedAgentCard'],
]);

export const methodNames03: readonly string[] = [...methodNames.keys()];

/** The method of 1.0 that a method of 0.3 is; undefined: it is none of 0.3. */
export const methodOf03 = (method: string): string | undefined => methodNames.get(method);

const wireRoles: ReadonlyMap<unknown, string> = new Map([
  ['user', 'ROLE_USER'],
  ['agent', 'ROLE_AGENT'],
]);

type Loose = Readonly<Record<string, unknown>>;
const loose = z.record(z.string(), z.unknown());
const looseOf = (value: unknown): Loose | null => loose.safeParse(value).data ?? null;

const withoutUndefined = (given: Loose): Loose =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));

const partFrom = (given: unknown): unknown => {
  const part = looseOf(given);
  if (part === null) return given;
  const { kind, text, data, file, metadata } = part;
  if (kind === 'text') return withoutUndefined({ text, metadata });
  if (kind === 'data') return withoutUndefined({ data, metadata });
  const { name, mimeType, bytes, uri } = looseOf(file) ?? {};
  return withoutUndefined({
    raw: bytes,
    url: uri,
    filename: name,
    mediaType: mimeType,
    metadata,
  });
};

const messageFrom = (given: unknown): unknown => {
  const message = looseOf(given);
  if (message === null) return given;
  const { kind: _, role, parts, ...rest } = message;
  return {
    ...rest,
    role: wireRoles.get(role) ?? role,
    parts: Array.isArray(parts) ? parts.map(partFrom) : parts,
  };
};

/** A list of schemes in 0.3, one in 1.0. */
const pushFrom = (given: unknown): unknown => {
  const config = looseOf(given);
  if (config === null) return given;
  const { authentication, ...rest } = config;
  const { schemes, credentials } = looseOf(authentication) ?? {};
  if (!Array.isArray(schemes) || schemes.length === 0) return rest;
  return { ...rest, authentication: withoutUndefined({ scheme: schemes[0], credentials }) };
};

const pushParams = ({ taskId, id, pushNotificationConfig, pushNotificationConfigId }: Loose) =>
  pushNotificationConfig === undefined
    ? withoutUndefined({ taskId: id, id: pushNotificationConfigId })
    : { ...looseOf(pushFrom(pushNotificationConfig)), taskId };

const pushTo = (given: unknown): unknown => {
  const { taskId, authentication, ...config } = looseOf(given) ?? {};
  const scheme = looseOf(authentication)?.['scheme'];
  const schemes = scheme === undefined ? {} : { authentication: { schemes: [scheme] } };
  return { taskId, pushNotificationConfig: { ...config, ...schemes } };
};

/** Params of 0.3 as those of 1.0; what is wrong stays wrong, and is refused there. */
export const paramsFrom03 = (method: string, given: unknown): unknown => {
  const params = looseOf(given);
  if (params === null) return given;
  if (method.includes('PushNotificationConfig')) return pushParams(params);
  if (params['message'] === undefined) return given;
  const configuration = looseOf(params['configuration']);
  const { blocking, pushNotificationConfig, ...rest } = configuration ?? {};
  return {
    ...params,
    message: messageFrom(params['message']),
    ...(configuration === null
      ? {}
      : {
          configuration: withoutUndefined({
            ...rest,
            returnImmediately: typeof blocking === 'boolean' ? !blocking : blocking,
            taskPushNotificationConfig: pushFrom(pushNotificationConfig),
          }),
        }),
  };
};

const stateNames: ReadonlyMap<string, A2aState> = new Map(
  taskStates.map((state) => [wireState(state), state]),
);
/** `input-required` */
const stateIn03 = (state: string): string =>
  (stateNames.get(state) ?? 'unknown').toLowerCase().replaceAll('_', '-');

const partTo = ({ text, raw, url, data, filename, mediaType, metadata }: Part): Loose => {
  if (text !== undefined) return withoutUndefined({ kind: 'text', text, metadata });
  if (data !== undefined) return withoutUndefined({ kind: 'data', data, metadata });
  const file = withoutUndefined({ name: filename, mimeType: mediaType, bytes: raw, uri: url });
  return withoutUndefined({ kind: 'file', file, metadata });
};

const messageTo = ({ role, parts, ...rest }: A2aMessage): Loose => ({
  kind: 'message',
  ...rest,
  role: role === 'ROLE_USER' ? 'user' : 'agent',
  parts: parts.map(partTo),
});

const statusTo = ({ state, message, timestamp }: TaskStatus): Loose => ({
  state: stateIn03(state),
  timestamp,
  ...(message === undefined ? {} : { message: messageTo(message) }),
});

const taskTo = ({ status, artifacts, history, ...rest }: A2aTask): Loose => ({
  kind: 'task',
  ...rest,
  status: statusTo(status),
  ...(artifacts === undefined
    ? {}
    : { artifacts: artifacts.map((each) => ({ ...each, parts: each.parts.map(partTo) })) }),
  ...(history === undefined ? {} : { history: history.map(messageTo) }),
});

const hasTask = (result: unknown): result is { readonly task: A2aTask } =>
  typeof result === 'object' && result !== null && 'task' in result;

/** The result of a method of 1.0, as 0.3 has it. */
export const resultTo03 = (method: string, result: unknown): unknown => {
  if (method === 'SendMessage' && hasTask(result)) return taskTo(result.task);
  if (method === 'DeleteTaskPushNotificationConfig') return null;
  const configs = looseOf(result)?.['configs'];
  if (Array.isArray(configs)) return configs.map(pushTo);
  if (method.endsWith('PushNotificationConfig')) return pushTo(result);
  return method === 'GetTask' || method === 'CancelTask' ? taskTo(result as A2aTask) : result;
};

/** `endsAtQuestion`: whether a question is the last event of this stream. */
export const eventTo03 = (event: StreamResponse, endsAtQuestion: boolean): Loose => {
  if ('task' in event) return taskTo(event.task);
  if ('artifactUpdate' in event) {
    const { artifact, ...rest } = event.artifactUpdate;
    const parts = artifact.parts.map(partTo);
    return { kind: 'artifact-update', ...rest, artifact: { ...artifact, parts } };
  }
  const { status, ...rest } = event.statusUpdate;
  const state = stateNames.get(status.state);
  const isLast =
    state !== undefined && (isTerminal(state) || (endsAtQuestion && state === 'INPUT_REQUIRED'));
  return { kind: 'status-update', ...rest, status: statusTo(status), final: isLast };
};

/** What a client of 0.3 looks for in a card; it ignores the rest. */
export const cardMembers03 = (url: string, needsToken: boolean): Loose => ({
  protocolVersion: '0.3.0',
  url,
  preferredTransport: 'JSONRPC',
  additionalInterfaces: [{ url, transport: 'JSONRPC' }],
  supportsAuthenticatedExtendedCard: needsToken,
  ...(needsToken ? { security: [{ token: [] }] } : {}),
});
