import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import { z } from 'zod';
import { createSerialQueue, QueueFullError } from '../actors/process/serial-queue.ts';
import type { EntryReads, Store, StoreHealth } from '../actors/store/port.ts';
import type { CodeRefusal, LoginRows } from '../actors/store/postgres/login-rows.ts';
import type { Audit } from '../actors/store/rows/audit-rows.ts';
import type { PushConfigs } from '../actors/store/rows/push-configs.ts';
import type { Tokens } from '../actors/store/rows/token-rows.ts';
import type { System } from '../actors/system.ts';
import { isServiceError, type ServiceError } from '../machines/errors.ts';
import { addCardRoutes, extendedCardOf } from './a2a/card-routes.ts';
import { createDispatch } from './a2a/dispatch.ts';
import { httpErrorOf, restMediaType, undecodedPath } from './a2a/errors.ts';
import { createOperations } from './a2a/operations.ts';
import type { A2aRules } from './a2a/protocol.ts';
import { addRestRoutes } from './a2a/rest-routes.ts';
import { discoveryDocument } from './discovery.ts';
import { errorBody, errorStatuses, requestErrors } from './error-table.ts';
import { addForgeWebhook, type ForgeWebhookOptions } from './forge-webhook.ts';
import {
  answerHeaders,
  bearerToken,
  callerOf,
  createGate,
  type GateOptions,
  isStillAllowed,
} from './gate.ts';
import { addHealthRoutes, type HealthOptions } from './health.ts';
import { addImageRoutes } from './image-routes.ts';
import { bodyTooLarge, parseText, wrongMediaType } from './json-rpc.ts';
import type { AnswerPolicy } from './mcp/backend.ts';
import { addMcpRoutes } from './mcp/mcp-routes.ts';
import { createServiceBackend } from './mcp/service-backend.ts';
import { createMethods, guardMethods } from './methods.ts';
import { histogramsFrom, metricsDocument, metricsText } from './metrics-text.ts';
import { answerNoRoute } from './other-method.ts';
import { addPageFiles, type PageFiles } from './page-files.ts';
import {
  createPageSessions,
  createSharedPageSessions,
  loginTimes,
  type PageSessions,
} from './page-sessions.ts';
import {
  addressOf,
  callerFor,
  createIdentify,
  createThrottle,
  type Identify,
  windowMs,
} from './people/callers.ts';
import { createGuard, type Guard } from './people/guard.ts';
import {
  addRpcRoutes,
  createRateGate,
  type OnRequest,
  type RpcRouteOptions,
  refuseRate,
} from './rpc-routes.ts';
import { createSse } from './streams/sse.ts';
import {
  addStreamRoutes,
  createStreamOpening,
  type StreamRouteOptions,
} from './streams/stream-routes.ts';

import { parseParams } from './wire.ts';

interface PageRouteOptions {
  readonly identify: Identify;
  readonly guard: Pick<Guard, 'note'>;
  /** Files of the built page; empty when it is not built. */
  readonly page: PageFiles;
  readonly sessions: PageSessions;
  /** Ends the streams of the session. */
  readonly onLogout: () => void;
  /** Called when a code is used or too old. */
  readonly onCodeOver: (code: string) => void;
  /** The name of the project's folder. */
  readonly projectName: string;
  readonly version: string;
  /** `owner/name` of the repository that pull requests go to; null: there is none. */
  readonly forgeRepository: () => Promise<string | null>;
}

const codeSchema = z.strictObject({ code: z.string().min(1).max(256) });
/** In bytes. */
const codeBodyLimit = 1024;

const whyRefused: Readonly<Record<CodeRefusal, string>> = {
  used: 'That code was used already. Run `agent open` again for a new one.',
  expired: 'That code is too old. Run `agent open` again for a new one.',
  unknown: 'The server does not know that code. Run `agent open` for a new one.',
};

const jsonBody = ({ body }: FastifyRequest): unknown => {
  try {
    return JSON.parse(typeof body === 'string' ? body : '');
  } catch {
    return null;
  }
};

const refuseCode = (reply: FastifyReply, refused: CodeRefusal, over: boolean): FastifyReply =>
  over
    ? reply
        .code(requestErrors.too_many_failures)
        .header('retry-after', windowMs / 1_000)
        .send(errorBody('too_many_failures', 'too many wrong codes; wait a minute'))
    : reply
        .code(requestErrors.unauthorized)
        .send(errorBody('unauthorized', whyRefused[refused], { code_refused: refused }));

/**
 * The web page and its login: `agent open` asks for a code with the token of the server, the page
 * exchanges it for the token of a session.
 */
const addPageRoutes = (app: FastifyInstance, options: PageRouteOptions): void => {
  const { page, sessions, onLogout, onCodeOver, projectName, version, identify, guard } = options;
  const throttle = createThrottle(() => performance.now());
  const startedAt = new Date().toISOString();
  addPageFiles(app, page);
  app.post('/page/codes', { bodyLimit: codeBodyLimit }, async (request) => {
    const { code, expiresAt } = await sessions.createCode(callerOf(request).under);
    setTimeout(() => onCodeOver(code), loginTimes.codeMs).unref();
    return { code, expires_at: new Date(expiresAt).toISOString() };
  });
  app.post('/page/session', { bodyLimit: codeBodyLimit }, async (request, reply) => {
    const { code } = parseParams(codeSchema, jsonBody(request));
    const session = await sessions.exchange(code);
    if ('refused' in session)
      return refuseCode(reply, session.refused, throttle.failed(addressOf(request)).over);
    onCodeOver(code);
    // The token that asked for it may have been replaced or revoked meanwhile.
    const found = await identify(session.token);
    if (found === null) return refuseCode(reply, 'expired', false);
    await guard.note(callerFor(request, found), 'login');
    return { token: session.token, expires_at: new Date(session.expiresAt).toISOString() };
  });
  app.get('/page/session', async (request) => {
    const found = await sessions.find(bearerToken(request) ?? '');
    const repository = await options.forgeRepository().catch(() => null);
    const { name, rights } = callerOf(request);
    return {
      name,
      rights,
      project: projectName,
      version,
      started_at: startedAt,
      ...(repository === null ? {} : { repository }),
      ...(found === null ? {} : { expires_at: new Date(found.expiresAt).toISOString() }),
    };
  });
  app.delete('/page/session', async (request, reply) => {
    await sessions.end(bearerToken(request) ?? '');
    onLogout();
    await guard.note(callerOf(request), 'logout');
    return reply.code(204).send();
  });
};

const parserRefusals: Readonly<Record<string, readonly [keyof typeof requestErrors, string]>> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'the headers of a request hold at most 16 KiB'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['payload_too_large', 'the extensions of a chunk are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'the request did not arrive in time'],
};
const unreadableRequest = ['invalid_request', 'this is not an HTTP/1.1 request'] as const;

/** Answers bytes that are no HTTP request with a JSON error, and closes the connection. */
const answerBrokenBytes = ({ code }: { readonly code?: string }, socket: Socket): void => {
  if (code === 'ECONNRESET' || !socket.writable) return;
  const [name, message] = parserRefusals[code ?? ''] ?? unreadableRequest;
  const status = requestErrors[name];
  const body = JSON.stringify(errorBody(name, message));
  const headers = Object.entries({
    ...answerHeaders,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }).map(([key, value]) => `${key}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers.join('')}\r\n${body}`);
  socket.destroySoon();
};

const isRest = /^(?:\/agents\/[^/]*)?\/a2a\/rest\//;

/** Fastify runs no hook for a path that cannot be decoded. */
const answerBrokenPath = (
  _error: Error,
  { raw }: FastifyRequest,
  reply: FastifyReply,
): FastifyReply => {
  reply.headers(answerHeaders);
  if (isRest.test(raw.url ?? '')) {
    const { code, body } = httpErrorOf(undecodedPath());
    return reply.code(code).type(restMediaType).send(body);
  }
  return reply
    .code(requestErrors.invalid_request)
    .send(errorBody('invalid_request', 'the path of the request cannot be decoded'));
};

interface ExportOptions {
  /** The file of `agent export`. @throws task_not_found */
  readonly exportTask: (taskId: string) => Promise<string>;
}

/** A file is made in memory and may have 25 MB: one after the other. */
const waitingAtMost = 4;

const addExportRoute = (
  app: FastifyInstance,
  { exportTask }: ExportOptions,
  onRequest: OnRequest,
): void => {
  const queue = createSerialQueue(waitingAtMost);
  app.get<{ Params: { task_id: string } }>(
    '/export/:task_id',
    { onRequest },
    async (request, reply) => {
      try {
        const file = await queue(() => exportTask(request.params.task_id));
        return reply
          .type('text/html; charset=utf-8')
          .header('content-disposition', 'attachment')
          .send(Buffer.from(file));
      } catch (error) {
        if (error instanceof QueueFullError) return refuseRate(reply);
        throw error;
      }
    },
  );
};

/** In bytes. */
const bodyLimit = 1024 * 1024;

const fastifyErrors: Readonly<Record<string, readonly [keyof typeof requestErrors, string]>> = {
  [wrongMediaType]: ['unsupported_media_type', 'send Content-Type: application/json, in UTF-8'],
  [bodyTooLarge]: ['payload_too_large', `a request holds at most ${bodyLimit} bytes`],
};

/** Only the log gets the details of an internal error. */
const answerError = (
  error: FastifyError | ServiceError,
  reply: FastifyReply,
  log: (message: string, facts: Readonly<Record<string, unknown>>) => void,
): FastifyReply => {
  if (isServiceError(error) && error.code !== 'internal')
    return reply
      .code(errorStatuses[error.code].http)
      .send(errorBody(error.code, error.message, error.facts));
  const known = fastifyErrors[error.code];
  if (known !== undefined) return reply.code(requestErrors[known[0]]).send(errorBody(...known));
  const status = 'statusCode' in error ? (error.statusCode ?? 500) : 500;
  if (status < 500)
    return reply.code(status).send(errorBody('invalid_request', 'the request cannot be read'));
  log('request failed', { error });
  return reply
    .code(500)
    .send(errorBody('internal', 'internal error; the server log has the details'));
};

interface HttpServerOptions
  extends Omit<GateOptions, 'identify' | 'refuse'>,
    ExportOptions,
    ForgeWebhookOptions,
    HealthOptions,
    Omit<PageRouteOptions, 'sessions' | 'onLogout' | 'identify' | 'guard'>,
    RpcRouteOptions,
    StreamRouteOptions {
  readonly system: System;
  readonly store: EntryReads & StoreHealth & Pick<Store, 'request' | 'rememberAnswer'>;
  readonly redact: (text: string) => string;
  readonly heartbeatMs: number;
  readonly mcpAnswer: () => AnswerPolicy;
  readonly a2aRules: () => A2aRules;
  readonly pushConfigs: PushConfigs;
  /** Null when authentication is off. */
  readonly token: () => string | null;
  readonly tokens: Tokens;
  readonly audit: Audit;
  /** Facts that the server took from the shell that started it. */
  readonly surroundings: () => object;
  /** Logins of the page that hold at other servers, too; null: only at this one. */
  readonly sharedLogins: LoginRows | null;
  /** Epoch ms. */
  readonly now: () => number;
}

const maxHeaderSize = 16 * 1024;

const noSchemas = (): never => {
  throw new Error('zod checks what comes in; no route has a JSON schema');
};

const fastifyLimits = {
  // Without these, each start of a server loads two compilers of schemas.
  schemaController: {
    compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas },
  },
  bodyLimit,
  requestTimeout: 30_000,
  keepAliveTimeout: 5_000,
  forceCloseConnections: true,
  exposeHeadRoutes: false,
  clientErrorHandler: answerBrokenBytes,
  frameworkErrors: answerBrokenPath,
  // The parser's limit: the gate refuses a long URL.
  routerOptions: { maxParamLength: maxHeaderSize },
  http: {
    headersTimeout: 10_000,
    connectionsCheckingInterval: 1_000,
    maxHeaderSize,
    // The gate refuses a request without one, with a message.
    requireHostHeader: false,
  },
} as const;

const addHooks = (
  app: FastifyInstance,
  options: HttpServerOptions & Pick<GateOptions, 'identify' | 'refuse'>,
): void => {
  const { log, redact } = options;
  app.addHook('onRequest', createGate(options));
  app.addHook('onSend', async (_request, _reply, payload) =>
    typeof payload === 'string' ? redact(payload) : payload,
  );
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions } = request;
    const facts = {
      method,
      route: routeOptions.url ?? 'unknown',
      status: reply.statusCode,
      ms: reply.elapsedTime,
    };
    log('request', facts);
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    ['application/json', 'application/a2a+json'],
    { parseAs: 'string' },
    parseText,
  );
  app.setErrorHandler((error: FastifyError, _request, reply) => answerError(error, reply, log));
  answerNoRoute(app);
};

/** The caller listens. */
export const buildServer = async (options: HttpServerOptions): Promise<FastifyInstance> => {
  const { system } = options;
  const startedAt = performance.now();
  const uptimeSeconds = (): number => (performance.now() - startedAt) / 1000;
  const app = Fastify(fastifyLimits);
  const { sharedLogins, now, audit, tokens } = options;
  const sessions =
    sharedLogins === null ? createPageSessions(now) : createSharedPageSessions(sharedLogins);
  const identify = createIdentify({ ...options, sessions });
  const guard = createGuard(audit, now);
  addHooks(app, { ...options, identify, refuse: guard.refuse });
  const sse = await createSse(app, options.heartbeatMs, (request) =>
    isStillAllowed(request, { identify }),
  );
  app.addHook('preClose', sse.endAll);
  app.addHook('onClose', async () => audit.flush());
  sharedLogins?.onEnd(sse.checkRights);
  const onRevoked = (): void => {
    sse.checkRights();
    sharedLogins
      ?.tellEnd()
      .catch((error: unknown) =>
        options.log('could not tell the other servers that a token was revoked', { error }),
      );
  };
  const { openStream, reserveStream } = createStreamOpening(sse, options.streamLimits);
  const discovery = () => discoveryDocument(options, system.settings());
  const operations = createOperations({ ...options, guard, service: system.service });
  app.addHook('onReady', async () => operations.push.startAll());
  app.addHook('preClose', operations.push.stopAll);
  const onA2aProblem = (error: unknown): void => options.log('A2A request failed', { error });
  const a2a = {
    operations,
    reserveStream,
    redact: options.redact,
    onInternal: onA2aProblem,
    rules: options.a2aRules,
    extendedCard: extendedCardOf(options),
  };
  const rpc = {
    a2a: createDispatch(a2a),
    methods: guardMethods(
      createMethods(system.service, discovery, system.workflows, { tokens, audit, now, onRevoked }),
      guard,
    ),
    onRequest: createRateGate(options.requestsPerSecond),
  };
  addRpcRoutes(app, rpc, options);
  addCardRoutes(app, options);
  addRestRoutes(app, { ...a2a, onRequest: rpc.onRequest });
  app.get('/a2a/discovery', async () => discovery());
  addMcpRoutes(app, {
    openStream,
    identity: options,
    redact: options.redact,
    onRequest: rpc.onRequest,
    backendFor: (caller) =>
      createServiceBackend(
        {
          methods: rpc.methods,
          store: options.store,
          answerPolicy: options.mcpAnswer,
          guard,
          onInternal: (error) => options.log('MCP request failed', { error }),
        },
        caller,
      ),
  });
  addPageRoutes(app, { ...options, sessions, identify, guard, onLogout: sse.checkRights });
  addHealthRoutes(app, options, uptimeSeconds);
  app.get('/metrics', async (request, reply) => {
    const counters = await system.counters();
    const document = metricsDocument(counters, system.slotUse(), uptimeSeconds());
    if ((request.headers.accept ?? '').includes('application/json')) return reply.send(document);
    return reply
      .type('text/plain; version=0.0.4; charset=utf-8')
      .send(metricsText(document, histogramsFrom(counters, system.durations())));
  });
  app.get('/surroundings', async () => options.surroundings());
  addExportRoute(app, options, rpc.onRequest);
  addImageRoutes(app, system.service, rpc.onRequest);
  addForgeWebhook(app, {
    secret: options.forgeSecret,
    wake: system.wakeForge,
    onRequest: rpc.onRequest,
    log: options.log,
  });
  addStreamRoutes(app, openStream, options);
  return app;
};
