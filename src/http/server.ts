import Fastify, { type FastifyError, type FastifyInstance } from 'fastify';
import type { EntryReads, Store, StoreHealth } from '../actors/store/port.ts';
import type { LoginRows } from '../actors/store/postgres/login-rows.ts';
import type { PushConfigs } from '../actors/store/push-configs.ts';
import type { System } from '../actors/system.ts';
import { addCardRoutes, extendedCardOf } from './a2a/card-routes.ts';
import { createDispatch } from './a2a/dispatch.ts';
import { createOperations } from './a2a/operations.ts';
import { addRestRoutes } from './a2a/rest-routes.ts';
import type { A2aRules } from './a2a/versions.ts';
import { answerError, bodyLimit } from './answer-error.ts';
import { answerBrokenBytes, answerBrokenPath } from './broken-requests.ts';
import { discoveryDocument } from './discovery.ts';
import { addExportRoute, type ExportOptions } from './export-route.ts';
import { createGate, type GateOptions, isStillAllowed } from './gate.ts';
import { addHealthRoutes, type HealthOptions } from './health.ts';
import { parseText } from './json-body.ts';
import type { AnswerPolicy } from './mcp/backend.ts';
import { addMcpRoutes } from './mcp/mcp-routes.ts';
import { createServiceBackend } from './mcp/service-backend.ts';
import { createMethods } from './methods.ts';
import { histogramsFrom, metricsDocument, metricsText } from './metrics-text.ts';
import { answerNoRoute } from './other-method.ts';
import { addPageRoutes, type PageRouteOptions } from './page-routes.ts';
import {
  createPageSessions,
  createSharedPageSessions,
  type PageSessions,
} from './page-sessions.ts';
import { addRpcRoutes, createRateGate, type RpcRouteOptions } from './rpc-routes.ts';
import { createSse } from './sse.ts';
import { addStreamRoutes, createStreamOpening, type StreamRouteOptions } from './stream-routes.ts';

export interface HttpServerOptions
  extends Omit<GateOptions, 'sessions'>,
    ExportOptions,
    HealthOptions,
    Omit<PageRouteOptions, 'sessions' | 'onLogout'>,
    RpcRouteOptions,
    StreamRouteOptions {
  readonly system: System;
  readonly store: EntryReads & StoreHealth & Pick<Store, 'request' | 'rememberAnswer'>;
  readonly redact: (text: string) => string;
  readonly heartbeatMs: number;
  readonly mcpAnswer: () => AnswerPolicy;
  readonly a2aRules: () => A2aRules;
  readonly pushConfigs: PushConfigs;
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
  options: HttpServerOptions & Pick<GateOptions, 'sessions'>,
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

const sessionsFor = ({ token, now, sharedLogins }: HttpServerOptions): PageSessions =>
  sharedLogins === null
    ? createPageSessions(token, now)
    : createSharedPageSessions(token, sharedLogins);

/** The caller listens. */
export const buildServer = async (options: HttpServerOptions): Promise<FastifyInstance> => {
  const { system } = options;
  const startedAt = performance.now();
  const uptimeSeconds = (): number => (performance.now() - startedAt) / 1000;
  const app = Fastify(fastifyLimits);
  const sessions = sessionsFor(options);
  addHooks(app, { ...options, sessions });
  const sse = await createSse(app, options.heartbeatMs, (request) =>
    isStillAllowed(request, { token: options.token, sessions }),
  );
  app.addHook('preClose', sse.endAll);
  options.sharedLogins?.onEnd(sse.checkRights);
  const { openStream, reserveStream } = createStreamOpening(sse, options.streamLimits);
  const discovery = () => discoveryDocument(options, system.settings());
  const operations = createOperations({ ...options, service: system.service });
  app.addHook('onReady', async () => operations.push.startAll());
  app.addHook('preClose', operations.push.stopAll);
  const onA2aProblem = (error: unknown): void => options.log('A2A request failed', { error });
  const a2a = {
    ...{ operations, reserveStream, redact: options.redact, onInternal: onA2aProblem },
    ...{ rules: options.a2aRules, extendedCard: extendedCardOf(options) },
  };
  const rpc = {
    a2a: createDispatch(a2a),
    methods: createMethods(system.service, discovery, system.workflows),
    onRequest: createRateGate(options.requestsPerSecond),
  };
  addRpcRoutes(app, rpc, options);
  addCardRoutes(app, options);
  addRestRoutes(app, { ...a2a, onRequest: rpc.onRequest });
  app.get('/a2a/discovery', async () => discovery());
  addMcpRoutes(app, {
    ...{ openStream, identity: options, redact: options.redact, onRequest: rpc.onRequest },
    backend: createServiceBackend(rpc.methods, options.store, options.mcpAnswer, (error) =>
      options.log('MCP request failed', { error }),
    ),
  });
  addPageRoutes(app, { ...options, sessions, onLogout: sse.checkRights });
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
  addStreamRoutes(app, openStream, options);
  return app;
};
