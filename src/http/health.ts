import { createHmac } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { canRead } from '../actors/journal/chart-versions.ts';
import type { StoreHealth } from '../actors/store/port.ts';
import type { System } from '../actors/system.ts';
import type { TrackerHealth } from '../actors/tracker/port.ts';
import { someOf } from '../machines/plural.ts';

/** Longest wait for the names of the servers. */
const readMs = 2_000;

/** This server and the others of its store, for people; undefined when no other one can use it. */
const serverViews = async ({
  servers,
}: Pick<System, 'servers'>): Promise<readonly object[] | undefined> => {
  if (servers === null) return undefined;
  const late = new Promise<null>((resolve) => setTimeout(resolve, readMs, null).unref());
  const found = await Promise.race([servers(), late]).catch(() => null);
  return (found ?? []).map(({ name, node, isThis, state, slots, running, waiting, facts }) => ({
    name,
    id: node,
    this: isThis,
    state: state === 'live' && facts?.draining === true ? 'draining' : state,
    slots,
    running,
    waiting,
    ...(facts === null
      ? {}
      : {
          version: facts.version,
          pool: facts.pool,
          roles: facts.roles,
          started_at: new Date(facts.startedAt).toISOString(),
        }),
  }));
};

interface CheckResult {
  readonly ok: boolean;
  readonly detail: string;
}

export interface HealthOptions {
  readonly name: string;
  readonly version: string;
  readonly system: Pick<
    System,
    'journal' | 'check' | 'checkMerges' | 'servers' | 'withoutServer' | 'notLoaded'
  >;
  readonly store: StoreHealth;
  readonly tracker: TrackerHealth;
  readonly modelCheck: () => CheckResult;
  /** Null where no webhook is configured. */
  readonly webhookCheck: () => CheckResult | null;
  /** False while the server goes on with an earlier configuration, since it refused a newer one. */
  readonly configAccepted: () => boolean;
  /** Proves the identity of this server, also where authentication is off. */
  readonly proofToken: () => string;
  /** One sentence about a bad token file, or null. */
  readonly tokenProblem: () => string | null;
  readonly draining: () => boolean;
}

interface ChallengeRoute {
  Querystring: { readonly challenge?: unknown };
}

/**
 * Lets a client check that this server knows the token before it sends the token: another program
 * may have taken the port.
 */
const proofOf = (request: FastifyRequest<ChallengeRoute>, token: string): string | undefined => {
  const { challenge } = request.query;
  if (typeof challenge !== 'string' || challenge.length > 200) return undefined;
  const { localAddress, localPort } = request.socket;
  return createHmac('sha256', token)
    .update(`${challenge} ${localAddress}:${localPort}`)
    .digest('base64url');
};

const statusAndDetail = ({ ok, detail }: CheckResult) => ({
  status: ok ? 'ok' : 'failing',
  detail,
});

/** Anybody may read it, so it has no path and no key. */
const configurationCheck = (isAccepted: boolean): CheckResult => ({
  ok: isAccepted,
  detail: isAccepted
    ? 'the newest configuration counts'
    : 'the server refused its new configuration, and the one before still counts; agent doctor says why',
});

const namedAtMost = 10;
const endWords =
  'end a task or a merge queue with agent cancel, a workflow with agent workflow cancel';

/** Null where a server has each pending task. */
const chartsCheck = async ({
  withoutServer,
}: HealthOptions['system']): Promise<CheckResult | null> => {
  const found = await withoutServer(namedAtMost + 1);
  const strange = found.filter((saved) => !canRead(saved));
  if (strange.length === 0) return null;
  const named = strange
    .slice(0, namedAtMost)
    .map(({ taskId, version }) => `${taskId} (version ${version})`);
  const more = strange.length > namedAtMost ? ' and more' : '';
  return {
    ok: false,
    detail: `no server that runs knows the charts of ${named.join(', ')}${more}: start one of that version, or ${endWords}`,
  };
};

/** Null where this server has loaded all that it has. */
const loadedCheck = ({ notLoaded }: HealthOptions['system']): CheckResult | null => {
  const ids = notLoaded();
  if (ids.length === 0) return null;
  return {
    ok: false,
    detail: `could not load ${someOf(ids, namedAtMost)}; the server tries again, and its log says why; to give up: ${endWords}`,
  };
};

const healthDocument = async (
  options: HealthOptions,
  uptimeSeconds: number,
  proof: string | undefined,
): Promise<object> => {
  const { journal } = options.system;
  const problem = journal.problem() ?? journal.deafness();
  // Each may wait for a store that is away.
  const [store, tracker, merges, nodes] = await Promise.all([
    problem === null ? options.store.check() : { ok: false, detail: problem },
    options.tracker.check(),
    options.system.checkMerges(),
    serverViews(options.system),
  ]);
  const model = options.modelCheck();
  const tokenProblem = options.tokenProblem();
  const supervisor = options.system.check();
  const webhooks = options.webhookCheck();
  const configuration = configurationCheck(options.configAccepted());
  const charts = store.ok ? await chartsCheck(options.system).catch(() => null) : null;
  const loaded = loadedCheck(options.system);
  const isHealthy =
    store.ok &&
    tracker.ok &&
    supervisor.ok &&
    merges.ok &&
    tokenProblem === null &&
    webhooks?.ok !== false &&
    configuration.ok &&
    charts === null &&
    loaded === null;
  return {
    status: options.draining() ? 'draining' : isHealthy ? 'healthy' : 'degraded',
    version: options.version,
    server: options.name,
    features: {
      a2a_protocol: true,
      sse_streaming: true,
      parallel_execution: true,
      monitoring: true,
    },
    checks: {
      store: statusAndDetail(store),
      tracker: statusAndDetail(tracker),
      supervisor: { ...statusAndDetail(supervisor), state: supervisor.state },
      merges: { ...statusAndDetail(merges), state: merges.state },
      token: statusAndDetail({
        ok: tokenProblem === null,
        detail: tokenProblem ?? 'the token file is in order',
      }),
      configuration: statusAndDetail(configuration),
      model: { ...statusAndDetail(model), status: model.ok ? 'ok' : 'missing' },
      ...(webhooks === null ? {} : { webhooks: statusAndDetail(webhooks) }),
      ...(charts === null ? {} : { charts: statusAndDetail(charts) }),
      ...(loaded === null ? {} : { loaded: statusAndDetail(loaded) }),
    },
    ...(nodes === undefined ? {} : { nodes }),
    uptime_seconds: uptimeSeconds,
    ...(proof === undefined ? {} : { proof }),
  };
};

/** Both answer 503 while the server drains. */
export const addHealthRoutes = (
  app: FastifyInstance,
  options: HealthOptions,
  uptime: () => number,
): void => {
  const { draining } = options;
  app.get<ChallengeRoute>('/health', async (request, reply) => {
    const document = await healthDocument(
      options,
      uptime(),
      proofOf(request, options.proofToken()),
    );
    return reply.code(draining() ? 503 : 200).send(document);
  });
  app.get('/health/ready', async (_request, reply) =>
    reply.code(draining() ? 503 : 200).send({ status: draining() ? 'draining' : 'ready' }),
  );
};
