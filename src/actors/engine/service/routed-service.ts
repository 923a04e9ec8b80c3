import { z } from 'zod';
import { ServiceError } from '../../../machines/errors.ts';
import { parseTaskId, type TaskId } from '../../../machines/task.ts';
import type { Answer } from '../../store/port.ts';
import { isFreeText } from '../queries/task-id.ts';
import { OwnedElsewhereError } from '../tasks/owned-elsewhere.ts';
import type { TaskService } from './task-service.ts';

/** Longer than a command waits for the answer of its actor. */
const commandMs = 45_000;

/**
 * Methods that need the actor or the folder of a task, with the longest wait for another server. Their
 * parameters and results are JSON. All other methods read and write rows, as any server can.
 */
const waitsMs = {
  execute: commandMs,
  retry: commandMs,
  cancel: commandMs,
  close: commandMs,
  reopen: commandMs,
  respond: commandMs,
  tell: commandMs,
  review: commandMs,
  explain: commandMs,
  diff: commandMs,
  merge: 3 * 3_600_000,
  update: 3 * 3_600_000,
  undo: 3 * 3_600_000,
  discard: commandMs,
  publish: commandMs,
  pullRequest: commandMs,
} as const satisfies { readonly [Method in keyof TaskService]?: number };
export type RoutedMethod = keyof typeof waitsMs;

export interface RoutePorts {
  /** This start of the server. */
  readonly node: string;
  /** The live server that has the task; null: none. */
  readonly ownerOf: (taskId: TaskId) => Answer<string | null>;
  /** `ServerCalls.ask` */
  readonly ask: (
    node: string,
    method: string,
    params: unknown,
    timeoutMs: number,
  ) => Promise<unknown>;
}

export interface RoutedService {
  readonly service: TaskService;
  /** Carries out here what another server asks. @throws ServiceError */
  readonly answer: (method: string, params: unknown) => Promise<unknown>;
}

const argumentsSchema = z.array(z.unknown());
/** `owner`: another server has the task. */
const routedReplySchema = z.object({
  result: z.unknown().optional(),
  owner: z.string().optional(),
});
type RoutedReply = z.infer<typeof routedReplySchema>;

const isRouted = (method: string): method is RoutedMethod => Object.hasOwn(waitsMs, method);
/** JSON would make null of an argument that is absent. A signal stays on this server. */
const asJson = (given: readonly unknown[]): readonly unknown[] => {
  const args = given.filter((argument) => !(argument instanceof AbortSignal));
  return args.slice(0, args.findLastIndex((argument) => argument !== undefined) + 1);
};

/** A task of another live server is handed to that server. All others are carried out here. */
export const createRoutedService = (
  inner: TaskService,
  { node, ownerOf, ask }: RoutePorts,
): RoutedService => {
  const carryOut = async (method: RoutedMethod, args: readonly unknown[]): Promise<RoutedReply> => {
    const call = inner[method] as (...args: readonly unknown[]) => Promise<unknown>;
    try {
      return { result: await call(...args) };
    } catch (error) {
      if (error instanceof OwnedElsewhereError) return { owner: error.owner };
      throw error;
    }
  };
  const carryOutAt = async (
    owner: string | null,
    method: RoutedMethod,
    args: readonly unknown[],
  ): Promise<RoutedReply> => {
    if (owner === null || owner === node) return carryOut(method, args);
    return routedReplySchema.parse(await ask(owner, method, asJson(args), waitsMs[method]));
  };
  const route = async (
    method: RoutedMethod,
    given: string | null,
    args: readonly unknown[],
  ): Promise<unknown> => {
    const taskId = given === null ? null : parseTaskId(given);
    const owner = taskId === null ? null : await ownerOf(taskId);
    const first = await carryOutAt(owner, method, args);
    const last = first.owner === undefined ? first : await carryOutAt(first.owner, method, args);
    if (last.owner !== undefined) throw new OwnedElsewhereError(last.owner);
    return last.result;
  };
  const routed = <Method extends RoutedMethod>(
    method: Method,
    taskOf: (...args: Parameters<TaskService[Method]>) => string | null,
  ) =>
    ((...args: Parameters<TaskService[Method]>) =>
      route(method, taskOf(...args), args)) as unknown as TaskService[Method];
  const first = (taskId: string): string => taskId;

  return {
    service: {
      ...inner,
      execute: routed('execute', ({ task, draft }) =>
        draft !== undefined || isFreeText(task) ? null : task,
      ),
      retry: routed('retry', first),
      cancel: routed('cancel', first),
      close: routed('close', first),
      reopen: routed('reopen', first),
      respond: routed('respond', first),
      tell: routed('tell', first),
      review: routed('review', first),
      explain: routed('explain', first),
      diff: routed('diff', first),
      discard: routed('discard', first),
      publish: routed('publish', ({ taskId }) => taskId),
      pullRequest: routed('pullRequest', first),
      update: routed('update', first),
      undo: routed('undo', ({ taskId }) => taskId),
      merge: routed('merge', ({ taskId }) => taskId),
    },
    answer: async (method, params) => {
      if (!isRouted(method))
        throw new ServiceError('internal', {
          detail: `the server ${node} is of another version, which has no method ${method}`,
        });
      return carryOut(method, argumentsSchema.parse(params));
    },
  };
};
