import { createHmac } from 'node:crypto';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Inspection } from '../actors/engine/inspection.ts';
import type { Store } from '../actors/store/port.ts';
import type { System } from '../actors/system.ts';
import type { Tracker } from '../actors/tracker/port.ts';
import { isServiceError, ServiceError } from '../machines/errors.ts';
import { answerBrokenBytes, answerBrokenPath } from './broken-requests.ts';
import { discoveryDocument, type Identity } from './discovery.ts';
import { errorBody, errorStatuses, refusalStatuses } from './error-table.ts';
import { createGate, type GateOptions } from './gate.ts';
import { inspectionStream } from './inspection-stream.ts';
import { createRpc, retryAfterOf } from './json-rpc.ts';
import { createMethods } from './methods.ts';
import { metricsDocument, metricsText } from './metrics-text.ts';
import { openApiDocument } from './openapi.ts';
import { createRateLimit, retryAfterSeconds } from './rate-limit.ts';
import { createSse, type SseConnection } from './sse.ts';
import { createStreamCounter, type StreamLimits } from './stream-limits.ts';
import { createStreams } from './task-stream.ts';

export interface HttpServerOptions extends Identity, GateOptions {
  readonly system: System;
  readonly store: Store;
  readonly tracker: Tracker;
  /** Whether a language model can be called, in one sentence. */
  readonly modelCheck: () => { readonly ok: boolean; readonly detail: string };
  /** Proves who this server is, also where authentication is off (rule R3). */
  readonly proofToken: () => string;
  /** What is wrong with the token file, in one sentence, or null. */
  readonly tokenProblem: () => string | null;
  /** Takes secrets out of every answer. */
  readonly redact: (text: string) => string;
  readonly heartbeatMs: number;
  /** Whether the server is about to stop: it still answers, and says so. */
  readonly draining: () => boolean;
  /** What the actors show of themselves; null unless the server was started to be inspected. */
  readonly inspection: Inspection | null;
  /** JSON-RPC requests a second, however many calls they hold; asked anew for every request. */
  readonly requestsPerSecond: () => number;
  /** Asked anew for every stream. */
  readonly streamLimits: () => StreamLimits;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

const bodyLimit = 1024 * 1024;
const maxHeaderSize = 16 * 1024;

const fastifyLimits = {
  bodyLimit,
  requestTimeout: 30_000,
  keepAliveTimeout: 5_000,
  forceCloseConnections: true,
  exposeHeadRoutes: false,
  clientErrorHandler: answerBrokenBytes,
  frameworkErrors: answerBrokenPath,
  // Whatever the parser takes, so that it is the gate that refuses a long URL.
  routerOptions: { maxParamLength: maxHeaderSize },
  http: {
    headersTimeout: 10_000,
    connectionsCheckingInterval: 1_000,
    maxHeaderSize,
    // The gate refuses it, with a word.
    requireHostHeader: false,
  },
} as const;

const fastifyErrors: Readonly<Record<string, readonly [keyof typeof refusalStatuses, string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type', 'send Content-Type: application/json'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['payload_too_large', `a request holds at most ${bodyLimit} bytes`],
};

/** Lets a client know that this is the server whose token it holds, before it sends the token (rule R3). */
const proofOf = (request: FastifyRequest, token: string): string | undefined => {
  const { challenge } = request.query as { challenge?: unknown };
  if (typeof challenge !== 'string' || challenge.length > 200) return undefined;
  const { localAddress, localPort } = request.socket;
  return createHmac('sha256', token).update(`${challenge} ${localAddress}:${localPort}`).digest('base64url');
};

/** The frame that a reader saw last, or null. An id that this journal has not reached comes from another server. */
const lastEventId = (request: FastifyRequest, store: Store): number | null => {
  const { after } = request.query as { after?: unknown };
  const header = request.headers['last-event-id'];
  const [path, given] = header === undefined ? ['after', after] : ['Last-Event-ID', header];
  const refused = (problem: string) => new ServiceError('invalid_params', { fields: [{ path, problem }] });
  if (given === undefined || given === '') return null;
  if (typeof given !== 'string' || !/^\d{1,15}$/.test(given)) throw refused('expected a frame id');
  if (Number(given) > store.lastSeq())
    throw refused('this server has not sent that frame; read again from the start with ?after=0');
  return Number(given);
};

/** The HTTP face of the service (Spec 4, CONTRACT 3 to 6). It never listens: who calls it does. */
export const buildServer = async (options: HttpServerOptions): Promise<FastifyInstance> => {
  const { system, store, tracker, log, draining } = options;
  const { service, journal } = system;
  const startedAt = performance.now();
  const uptime = (): number => (performance.now() - startedAt) / 1000;
  const app = Fastify(fastifyLimits);

  app.addHook('onRequest', createGate(options));
  app.addHook('onSend', async (_request, _reply, payload) =>
    typeof payload === 'string' ? options.redact(payload) : payload,
  );
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions } = request;
    const facts = { method, route: routeOptions.url ?? 'unknown', status: reply.statusCode, ms: reply.elapsedTime };
    log('request', facts);
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.setErrorHandler((error: FastifyError, _request, reply) => answerError(error, reply, log));
  app.setNotFoundHandler((request, reply) =>
    reply.code(404).send(errorBody('not_found', `no route ${request.method} ${request.url.slice(0, 200)}`)),
  );
  const sse = await createSse(app, options.heartbeatMs);
  app.addHook('preClose', sse.endAll);

  const discovery = () => discoveryDocument(options, system.settings());
  const rpc = createRpc(createMethods(service, discovery), (error) => log('a method broke', { error }));
  const answerRpc = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const answer = await rpc(typeof request.body === 'string' ? request.body : '');
    if (answer.status === 204) return reply.code(204).send();
    const retryAfter = retryAfterOf(answer.body);
    if (retryAfter !== null) reply.header('retry-after', retryAfter);
    return reply.code(answer.status).send(answer.body);
  };
  const mayAsk = createRateLimit(options.requestsPerSecond, () => performance.now());
  const onRequest = (_request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    if (mayAsk()) done();
    else refuseRate(reply);
  };
  for (const path of ['/a2a/execute', '/a2a/status', '/a2a/discovery']) app.post(path, { onRequest }, answerRpc);
  app.get('/a2a/discovery', async () => discovery());
  app.get('/openapi.json', async () => openApiDocument(options.name, options.version));

  const health = async (request: FastifyRequest) => {
    const problem = journal.retry();
    const storeCheck = problem === null ? store.check() : { ok: false, detail: problem };
    const [trackerCheck, modelCheck] = [await tracker.check(), options.modelCheck()];
    const shown = ({ ok, detail }: { ok: boolean; detail: string }) => ({ status: ok ? 'ok' : 'failing', detail });
    const proof = proofOf(request, options.proofToken());
    const tokenProblem = options.tokenProblem();
    const supervisorCheck = system.check();
    const isHealthy = storeCheck.ok && trackerCheck.ok && supervisorCheck.ok && tokenProblem === null;
    return {
      status: draining() ? 'draining' : isHealthy ? 'healthy' : 'degraded',
      version: options.version,
      server: options.name,
      features: { a2a_protocol: true, sse_streaming: true, parallel_execution: true, monitoring: true },
      checks: {
        store: shown(storeCheck),
        tracker: shown(trackerCheck),
        supervisor: shown(supervisorCheck),
        token: shown({ ok: tokenProblem === null, detail: tokenProblem ?? 'the token file is in order' }),
        model: { ...shown(modelCheck), status: modelCheck.ok ? 'ok' : 'missing' },
      },
      uptime_seconds: uptime(),
      ...(proof === undefined ? {} : { proof }),
    };
  };
  app.get('/health', async (request, reply) => reply.code(draining() ? 503 : 200).send(await health(request)));
  app.get('/health/ready', async (_request, reply) =>
    reply.code(draining() ? 503 : 200).send({ status: draining() ? 'draining' : 'ready' }),
  );

  app.get('/metrics', async (request, reply) => {
    const document = metricsDocument(system.tally(), system.load(), uptime());
    if ((request.headers.accept ?? '').includes('application/json')) return reply.send(document);
    return reply.type('text/plain; version=0.0.4; charset=utf-8').send(metricsText(document));
  });

  const counter = createStreamCounter(options.streamLimits);
  const streams = createStreams(store, journal, (error) => log('a stream broke', { error }));
  const stream = (reply: FastifyReply, taskId: string | null, run: (connection: SseConnection) => void) => {
    const counted = counter.open(taskId);
    if ('refused' in counted) return refuseStream(reply, counted.refused, options.streamLimits());
    const connection = sse.open(reply);
    connection.onClose(counted.close);
    run(connection);
    return reply;
  };
  app.get('/stream', async (request, reply) => {
    const after = lastEventId(request, store);
    return stream(reply, null, (connection) => streams.every(connection, after));
  });
  app.get('/inspect', async (_request, reply) => {
    const { inspection } = options;
    if (inspection === null)
      return reply.code(404).send(errorBody('not_found', 'this server is not inspected; start it with --inspect'));
    return stream(reply, null, (connection) => inspectionStream(connection, inspection));
  });
  app.get<{ Params: { task_id: string } }>('/stream/:task_id', async (request, reply) => {
    const view = await service.status(request.params.task_id);
    const after = lastEventId(request, store);
    return stream(reply, view.task_id, (connection) => streams.task(connection, view, after));
  });
  return app;
};

const refuseRate = (reply: FastifyReply): FastifyReply =>
  reply
    .code(refusalStatuses.too_many_requests)
    .header('retry-after', retryAfterSeconds)
    .send(errorBody('too_many_requests', 'too many requests at once; send them more slowly, or as batches'));

const streamRetrySeconds = 5;

const refuseStream = (reply: FastifyReply, which: keyof StreamLimits, limits: StreamLimits): FastifyReply => {
  const where = which === 'inAll' ? 'on this server' : 'of this task';
  return reply
    .code(which === 'inAll' ? 503 : 429)
    .header('retry-after', streamRetrySeconds)
    .send(errorBody('too_many_streams', `${limits[which]} streams ${where} are open already; close one`));
};

const answerError = (
  error: FastifyError | ServiceError,
  reply: FastifyReply,
  log: HttpServerOptions['log'],
): FastifyReply => {
  if (isServiceError(error) && error.code !== 'internal')
    return reply.code(errorStatuses[error.code].http).send(errorBody(error.code, error.message, error.facts));
  const known = fastifyErrors[error.code];
  if (known !== undefined) return reply.code(refusalStatuses[known[0]]).send(errorBody(...known));
  const status = 'statusCode' in error ? (error.statusCode ?? 500) : 500;
  if (status < 500) return reply.code(status).send(errorBody('invalid_request', 'the request cannot be read'));
  log('a request broke', { error });
  return reply.code(500).send(errorBody('internal', 'internal error; the server log has the details'));
};
