import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Inspection } from '../../actors/engine/queries/inspection.ts';
import type { EntryReads } from '../../actors/store/port.ts';
import type { System } from '../../actors/system.ts';
import { ServiceError } from '../../machines/errors.ts';
import { errorBody } from '../error-table.ts';
import type { Sse, SseConnection } from './sse.ts';
import { createStreams } from './task-stream.ts';

interface StreamLimits {
  readonly inAll: number;
  readonly perTask: number;
}

interface StreamCounter {
  /**
   * @param taskId null for the stream of all tasks, which only `inAll` limits
   * @returns `close`, to be called when the stream closes, or the limit that refuses it
   */
  open(
    taskId: string | null,
  ): { readonly close: () => void } | { readonly refused: keyof StreamLimits };
}

const createStreamCounter = (limitsNow: () => StreamLimits): StreamCounter => {
  const ofTask = new Map<string, number>();
  let total = 0;
  const count = (taskId: string | null, more: 1 | -1): void => {
    total += more;
    if (taskId === null) return;
    const left = (ofTask.get(taskId) ?? 0) + more;
    if (left === 0) ofTask.delete(taskId);
    else ofTask.set(taskId, left);
  };
  return {
    open: (taskId) => {
      const limits = limitsNow();
      if (total >= limits.inAll) return { refused: 'inAll' };
      if (taskId !== null && (ofTask.get(taskId) ?? 0) >= limits.perTask)
        return { refused: 'perTask' };
      count(taskId, 1);
      let closed = false;
      return {
        close: () => {
          if (closed) return;
          closed = true;
          count(taskId, -1);
        },
      };
    },
  };
};

const inspectionBytesAtMost = 4 * 1024 * 1024;

/** The messages have no event name and no id. */
const inspectionStream = (connection: SseConnection, inspection: Inspection): void => {
  const leave = inspection.subscribe((message) => {
    if (connection.buffered() > inspectionBytesAtMost) connection.end();
    else connection.write(`data: ${message}\n\n`);
  });
  connection.onClose(leave);
};

export type OpenStream = (
  reply: FastifyReply,
  taskId: string | null,
  run: (connection: SseConnection) => void,
) => FastifyReply;

export interface StreamRouteOptions {
  readonly system: Pick<System, 'service'>;
  readonly store: EntryReads;
  /** Null unless the server was started with --inspect. */
  readonly inspection: Inspection | null;
  readonly streamLimits: () => StreamLimits;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

interface StreamRoute {
  Querystring: { readonly after?: unknown };
}

/**
 * The last frame that a reader saw, from the header Last-Event-ID or the query `after`; null when
 * neither is set.
 * @throws invalid_params when it is no number, or higher than the newest frame of this server
 */
const lastEventId = async (
  { query: { after }, headers }: Pick<FastifyRequest<StreamRoute>, 'query' | 'headers'>,
  store: EntryReads,
): Promise<number | null> => {
  const header = headers['last-event-id'];
  const [path, given] = header === undefined ? ['after', after] : ['Last-Event-ID', header];
  const refused = (problem: string) =>
    new ServiceError('invalid_params', { fields: [{ path, problem }] });
  if (given === undefined || given === '') return null;
  if (typeof given !== 'string' || !/^\d{1,15}$/.test(given)) throw refused('expected a frame id');
  if (Number(given) > (await store.lastSeq()))
    throw refused('this server has not sent that frame; read again from the start with ?after=0');
  return Number(given);
};

const streamRetrySeconds = 5;

const refuseStream = (
  reply: FastifyReply,
  which: keyof StreamLimits,
  limits: StreamLimits,
): FastifyReply => {
  const where = which === 'inAll' ? 'on this server' : 'of this task';
  return reply
    .code(which === 'inAll' ? 503 : 429)
    .header('retry-after', streamRetrySeconds)
    .send(
      errorBody(
        'too_many_streams',
        `${limits[which]} streams ${where} are already open; close one`,
      ),
    );
};

type StreamWork = Parameters<OpenStream>[2];

/** A place among the streams of the server, for a request that changes something first. */
export type ReservedStream =
  | { readonly refused: FastifyReply }
  | { readonly open: (run: StreamWork) => FastifyReply; readonly release: () => void };

/** Opens streams up to the limits of the server, and refuses more. */
export const createStreamOpening = (sse: Sse, streamLimits: () => StreamLimits) => {
  const counter = createStreamCounter(streamLimits);
  const reserve = (reply: FastifyReply, taskId: string | null): ReservedStream => {
    const counted = counter.open(taskId);
    if ('refused' in counted)
      return { refused: refuseStream(reply, counted.refused, streamLimits()) };
    const open = (run: StreamWork): FastifyReply => {
      const connection = sse.open(reply);
      connection.onClose(counted.close);
      run(connection);
      return reply;
    };
    return { open, release: counted.close };
  };
  const openStream: OpenStream = (reply, taskId, run) => {
    const reserved = reserve(reply, taskId);
    return 'refused' in reserved ? reserved.refused : reserved.open(run);
  };
  return { openStream, reserveStream: (reply: FastifyReply) => reserve(reply, null) };
};
export type ReserveStream = ReturnType<typeof createStreamOpening>['reserveStream'];

export const addStreamRoutes = (
  app: FastifyInstance,
  openStream: OpenStream,
  options: StreamRouteOptions,
): void => {
  const { system, store, inspection, log } = options;
  const streams = createStreams(store, (error) => log('stream failed', { error }));
  app.get<StreamRoute>('/stream', async (request, reply) => {
    const after = await lastEventId(request, store);
    return openStream(reply, null, (connection) => streams.every(connection, after));
  });
  app.get('/inspect', async (_request, reply) => {
    if (inspection === null)
      return reply
        .code(404)
        .send(errorBody('not_found', 'inspection is off; start the server with --inspect'));
    return openStream(reply, null, (connection) => inspectionStream(connection, inspection));
  });
  app.get<StreamRoute & { Params: { task_id: string } }>(
    '/stream/:task_id',
    async (request, reply) => {
      const view = await system.service.status(request.params.task_id);
      const after = await lastEventId(request, store);
      return openStream(reply, view.task_id, (connection) => streams.task(connection, view, after));
    },
  );
};
