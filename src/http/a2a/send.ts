import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { TaskService } from '../../actors/engine/service/task-service.ts';
import { createSharedCalls } from '../../actors/engine/tasks/shared-calls.ts';
import type { Store } from '../../actors/store/port.ts';
import { isServiceError, requireRole } from '../../machines/errors.ts';
import { type Role, roles } from '../../machines/task.ts';
import { optionsSchema, runOptions } from '../wire.ts';
import { A2aError, invalidParams, unknownRoleText } from './errors.ts';
import { extensionUri, isTerminal } from './protocol.ts';
import { parseRunId, type ReadRun } from './read-run.ts';
import { type GivenMessage, type GivenPart, parseA2a } from './schemas.ts';
import { contextOf, labelOfContext } from './task-object.ts';

export const inputModes = ['text/plain', 'text/markdown', 'application/json'];
export const outputModes = ['text/markdown', 'text/plain', 'text/x-diff', 'application/json'];

const isReadable = (mediaType: string): boolean =>
  /^(text\/[\w.+-]+|application\/json)(\s*;.*)?$/i.test(mediaType);

const fenced = (language: string, text: string): string => `\`\`\`${language}\n${text}\n\`\`\``;

/** A URL is for the agent to read: the server fetches nothing. */
const textOfPart = ({ text, raw, url, data, filename, mediaType }: GivenPart): string => {
  if (mediaType !== undefined && !isReadable(mediaType))
    throw new A2aError(
      'CONTENT_TYPE_NOT_SUPPORTED',
      `a part of the type ${JSON.stringify(mediaType)} cannot be read; send text or JSON`,
    );
  if (text !== undefined) return text;
  if (url !== undefined) return filename === undefined ? url : `${filename}: ${url}`;
  if (data !== undefined) return fenced('json', JSON.stringify(data, null, 2));
  if (mediaType === undefined)
    throw new A2aError(
      'CONTENT_TYPE_NOT_SUPPORTED',
      'a part with bytes needs a mediaType, text or JSON',
    );
  const content = fenced('', Buffer.from(raw ?? '', 'base64').toString('utf8'));
  return filename === undefined ? content : `${filename}:\n${content}`;
};

/** The text of a message, for an agent. @throws CONTENT_TYPE_NOT_SUPPORTED */
const messageText = (parts: readonly GivenPart[]): string =>
  parts.map(textOfPart).join('\n\n').trim();

export type SendService = Pick<
  TaskService,
  'delete' | 'edit' | 'execute' | 'respond' | 'status' | 'tell'
>;

export interface SendPorts {
  readonly service: SendService;
  readonly read: (id: string) => Promise<ReadRun>;
  readonly store: Pick<Store, 'request' | 'rememberAnswer'>;
}

/** Metadata that a client may send under our extension. */
const ownSchema = z.object({
  role: z.string().max(100).optional(),
  dependsOn: z.array(z.string().max(256)).max(1_000).default([]),
  options: optionsSchema.default({}),
  request_id: z.string().min(1).max(256).optional(),
});

const ownMetadata = ({ metadata = {} }: GivenMessage) =>
  parseA2a(z.object({ message: z.object({ metadata: z.object({ [extensionUri]: ownSchema }) }) }), {
    message: { metadata: { [extensionUri]: metadata[extensionUri] ?? {} } },
  }).message.metadata[extensionUri] ?? ownSchema.parse({});

const defaultRole: Role = 'engineer';

/** By the address, else the tenant, else what the message names. @throws INVALID_PARAMS */
const roleFor = (
  bound: string | null,
  tenant: string | undefined,
  { metadata = {} }: GivenMessage,
  own: string | undefined,
): Role => {
  const skill = metadata['skillId'];
  const named = own ?? (typeof skill === 'string' ? skill : undefined);
  const role = bound ?? (tenant === undefined || tenant === '' ? named : tenant) ?? defaultRole;
  if (roles.some((known) => known === role)) return requireRole(role);
  const key = own === undefined ? 'skillId' : `${extensionUri}.role`;
  throw invalidParams(`message.metadata.${key}`, unknownRoleText(role));
};

const requireMessageText = (message: GivenMessage): string => {
  const text = messageText(message.parts);
  if (text === '') throw invalidParams('message.parts', 'hold no text');
  return text;
};

const missingCredential = (error: unknown): boolean =>
  isServiceError(error) && error.code === 'credential_missing';

interface NewRun {
  readonly tenant: string | undefined;
  /** The role of the address; null: none. */
  readonly role: string | null;
  readonly idempotencyKey: string | null;
  /** Who sends it. */
  readonly by: string;
}

export interface SentMessage {
  readonly id: string;
  /** Why nothing runs: a person must log in or set a key. */
  readonly refused: string | null;
}

/**
 * A repeated message has the same key and says the same: the key alone may be used for another one
 * by mistake.
 */
const requestIdOf = (key: string | null, to: NewRun, message: GivenMessage) => {
  if (key === null) return {};
  const { role, tenant } = to;
  const said = JSON.stringify([key, role, tenant ?? null, message]);
  return { requestId: `a2a/${createHash('sha256').update(said).digest('base64url')}` };
};

const unknownDependency = (error: unknown): boolean =>
  error instanceof A2aError || (isServiceError(error) && error.code === 'task_not_found');

/** A refused run names the task that was created for it. */
const createdFor = (error: unknown): string | null => {
  const taskId = isServiceError(error) ? (error.facts as { task_id?: unknown }).task_id : null;
  return typeof taskId === 'string' ? taskId : null;
};

const createAndStart = async (
  { service }: SendPorts,
  message: GivenMessage,
  to: NewRun,
): Promise<SentMessage> => {
  const own = ownMetadata(message);
  const role = roleFor(to.role, to.tenant, message, own.role);
  const references = message.referenceTaskIds ?? [];
  const about = references.length === 0 ? '' : `\n\nSee also: ${references.join(', ')}`;
  const { contextId } = message;
  const request = requestIdOf(to.idempotencyKey ?? own.request_id ?? null, to, message);
  const task = `${requireMessageText(message)}${about}`;
  try {
    const { task_id } = await service.execute({
      task,
      role,
      ...request,
      options: { ...runOptions(own.options), when: 'ready' },
      by: to.by,
      draft: {
        labels: contextId === undefined ? [] : [labelOfContext(contextId)],
        // A run is waited for by its task.
        dependencies: own.dependsOn.map((id) => parseRunId(id).taskId),
      },
    });
    return { id: task_id, refused: null };
  } catch (error) {
    if (error instanceof Error && unknownDependency(error))
      throw invalidParams(`message.metadata.${extensionUri}.dependsOn`, error.message);
    const id = createdFor(error);
    if (id !== null && isServiceError(error) && missingCredential(error))
      return { id, refused: error.message };
    // The client knows no id of it, unless it asks again by its key.
    if (id !== null && !('requestId' in request)) await service.delete(id).catch(() => {});
    throw error;
  }
};

const runAgain = async (
  service: SendService,
  { view }: ReadRun,
  requestId: string | undefined,
  by: string,
): Promise<string | null> => {
  try {
    await service.execute({
      ...(requestId === undefined ? {} : { requestId: `${requestId}/again` }),
      task: view.task_id,
      role: view.role ?? defaultRole,
      options: { when: 'ready' },
      by,
    });
    return null;
  } catch (error) {
    if (isServiceError(error) && missingCredential(error)) return error.message;
    throw error;
  }
};

const refuseSend = (message: string): never => {
  throw new A2aError('UNSUPPORTED_OPERATION', message);
};

/** The agent reads it at its next turn. @throws UNSUPPORTED_OPERATION when it has no turn any more */
const tellAgent = async (
  service: SendService,
  { view: { task_id } }: ReadRun,
  text: string,
  requestId: string | undefined,
): Promise<void> => {
  try {
    await service.tell(task_id, text, requestId);
  } catch (error) {
    if (!isServiceError(error) || error.code !== 'event_not_allowed') throw error;
    refuseSend(
      `the agent of task ${task_id} does not work now and takes no message: wait until the task is over or asks, and send more work without taskId`,
    );
  }
};

const repeated = createSharedCalls<SentMessage>();

/** A message that was sent before is answered as before; one that was refused is tried again. */
const once = (
  { store }: SendPorts,
  taskId: string,
  requestId: string | undefined,
  send: () => Promise<SentMessage>,
): Promise<SentMessage> =>
  requestId === undefined
    ? send()
    : repeated.run(requestId, async () => {
        const seen = await store.request(requestId);
        if (seen?.answer != null) return { id: taskId, refused: null };
        const sent = await send();
        if (sent.refused === null)
          await store.rememberAnswer(requestId, parseRunId(taskId).taskId, sent.id);
        return sent;
      });

const continueTask = async (
  { service, read }: SendPorts,
  message: GivenMessage,
  taskId: string,
  { requestId, by }: { readonly requestId?: string; readonly by: string },
): Promise<SentMessage> => {
  const found = await read(taskId);
  const { view, run } = found;
  if (message.contextId !== undefined && message.contextId !== contextOf(view))
    throw invalidParams('message.contextId', 'is not the context of this task');
  if (isTerminal(run.state))
    return refuseSend(`task ${taskId} is over; send a message without taskId for more work`);
  const text = requireMessageText(message);
  if (run.state === 'INPUT_REQUIRED' && run.inputId !== null) {
    const { inputId } = run;
    await service.respond(view.task_id, run.attempt, {
      type: 'respond',
      inputId,
      text,
      decision: null,
    });
    return { id: taskId, refused: null };
  }
  if (run.inputId !== null)
    return refuseSend(
      `task ${taskId} waits for a person to allow its calls; no message grants that: agent respond ${view.task_id}`,
    );
  const tell = (): Promise<void> => tellAgent(service, found, text, requestId);
  if (view.status !== 'queued' || run.state === 'WORKING') {
    await tell();
    return { id: taskId, refused: null };
  }
  await service.edit(view.task_id, { description: `${view.description}\n\n${text}` });
  if (view.phase === 'waiting_for_run')
    return { id: taskId, refused: await runAgain(service, found, requestId, by) };
  // An agent that began meanwhile may have read the description before.
  const { status } = await service.status(view.task_id);
  if (status === 'started') await tell();
  return { id: taskId, refused: null };
};

/**
 * A message without a task begins one; one with a task answers its question, is told to the agent at
 * work, or adds to what is yet to be done. It never decides on calls that need approval.
 * @throws A2aError, ServiceError
 */
export const sendMessage = (
  ports: SendPorts,
  message: GivenMessage,
  to: NewRun,
): Promise<SentMessage> => {
  if (message.role !== 'ROLE_USER')
    throw invalidParams('message.role', 'expected ROLE_USER: the agent speaks for itself');
  const { taskId } = message;
  if (taskId === undefined) return createAndStart(ports, message, to);
  const key = to.idempotencyKey ?? ownMetadata(message).request_id ?? null;
  const from = { ...requestIdOf(key, to, message), by: to.by };
  return once(ports, taskId, from.requestId, () => continueTask(ports, message, taskId, from));
};
