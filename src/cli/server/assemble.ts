import { z } from 'zod';
import type { Assistants } from '../../actors/assistants/assistants.ts';
import type { Settings } from '../../actors/engine/attempts/settings.ts';
import type { Inspection } from '../../actors/engine/queries/inspection.ts';
import { storeDeadline } from '../../actors/journal/commit-answer.ts';
import type { Journal } from '../../actors/journal/journal.ts';
import { createSteadyClock } from '../../actors/journal/monotonic-clock.ts';
import type { OpenedLedger } from '../../actors/ledger/ledger.ts';
import type { Model } from '../../actors/model/port.ts';
import { noticeTypeOf } from '../../actors/notify/notice.ts';
import { withTimeout } from '../../actors/process/deadline.ts';
import { endOrphans } from '../../actors/process/orphans.ts';
import { createResults } from '../../actors/results/results.ts';
import type { Sandbox } from '../../actors/sandbox/port.ts';
import type { Entry, StoreError, StoreReads } from '../../actors/store/port.ts';
import { createSystem } from '../../actors/system.ts';
import type { Workspace } from '../../actors/workspace/port.ts';
import type { LoadedConfig } from '../config/config.ts';
import { createForgePlaces } from '../config/places/forge-place.ts';
import { type Project, stateFiles } from '../config/places/project.ts';
import { keySources, withChosenModel } from '../config/providers.ts';
import { modelChoice, type ResolvedSettings, resolveSettings } from '../config/settings.ts';
import type { StoreChoice } from '../config/store.ts';
import { trackerFor } from '../config/tracker.ts';
import {
  requireTrustedOutside,
  serverPlaces,
  type TrustedPlace,
} from '../config/trusted-places.ts';
import type { Outputs } from '../output/io.ts';
import { version } from '../version.ts';
import { workflowConfigs, workflowFinder } from '../workflows/find-workflow.ts';
import {
  assistantsFor,
  currentAssistants,
  type ServerEnvironment,
  secretsIn,
} from './assistants.ts';
import type { InterruptedNote } from './interrupted-commands.ts';
import type { Logger } from './logs/logger.ts';
import { modelsFor } from './models.ts';
import { requireKeptKeys } from './secrets/kept-keys.ts';
import type { TokenSource } from './secrets/token-file.ts';
import type { SecretWebhook } from './secrets/webhook-secrets.ts';
import { clockOf, isShared, sharedPortsOf } from './shared-store.ts';

const dataSchema = z.object({
  waited_seconds: z.number().optional(),
  error: z.object({ code: z.string() }).nullish(),
  parked_until: z.string().optional(),
  turn: z.number().optional(),
  call_id: z.string().optional(),
  tool: z.string().optional(),
  ok: z.boolean().optional(),
  duration_ms: z.number().optional(),
});
type LoggedData = z.infer<typeof dataSchema>;

const endMessages = {
  completed: 'attempt complete',
  failed: 'attempt failed',
  cancelled: 'attempt cancelled',
  input_required: 'the agent asks',
  approval_required: 'the agent asks permission',
  parked: 'attempt parked',
  pull_request_needs_you: 'the pull request waits for a person',
} as const;

const stepMessages: Readonly<Record<string, string>> = {
  api_call_complete: 'model call ended',
  tool_end: 'tool call ended',
};

const messageFor = (entry: Entry, { waited_seconds: waited }: LoggedData): string | null => {
  const notice = noticeTypeOf(entry);
  if (notice !== null) return endMessages[notice];
  if (entry.type === 'status_update') return waited === undefined ? null : 'attempt started';
  return stepMessages[entry.type] ?? null;
};

/** Texts of a model or a tool stay in the journal. */
const logFacts = (
  { taskId, attempt }: Entry,
  { error, turn, call_id: callId, ...rest }: LoggedData,
): Readonly<Record<string, unknown>> => ({
  task_id: taskId,
  attempt,
  ...(callId === undefined && turn === undefined ? {} : { step: callId ?? `turn ${turn}` }),
  ...rest,
  ...(error == null ? {} : { code: error.code }),
});

const isLogged = ({ type }: Entry): boolean =>
  type in endMessages || type in stepMessages || type === 'status_update';

/** Writes the attempts of this server to the log, at level `debug` also their steps. */
const logAttempts = (journal: Pick<Journal, 'onOwnCommit'>, log: Logger['log']): void => {
  journal.onOwnCommit((entries) => {
    for (const entry of entries.filter(isLogged)) {
      const data = dataSchema.parse(JSON.parse(entry.data));
      const message = messageFor(entry, data);
      if (message !== null) log(message, logFacts(entry, data));
    }
  });
};

export interface Current {
  /** Why the server refused its newest configuration; null: it counts. */
  refused: string | null;
  loaded: LoadedConfig;
  /**
   * By the keys that are there now: `agent auth` adds and removes them while the server runs. Null:
   * without the model of a local server, which was found and not configured.
   */
  choose: (local?: null) => LoadedConfig;
  resolved: ResolvedSettings;
  selectModel: (requested: string) => Model | null;
  assistants: Assistants;
  /** Never shown. */
  secrets: readonly string[];
  /** What the server trusts in a folder of agents, who may not change it. */
  trusted: readonly TrustedPlace[];
}

/**
 * Adds the credentials that the server took from its environment at the start. `local` is the model of
 * a local server, for those who have nothing else. @throws ConfigError
 */
export const takeFrom =
  (project: Project, surroundings: ServerEnvironment) =>
  (given: LoadedConfig, local: string | null = null): Current => {
    const variables = { ...surroundings.env, ...surroundings.credentials };
    requireKeptKeys(variables);
    const find = keySources(given.config, variables);
    const loaded = withChosenModel(given, variables, { find, local });
    let { defaultProvider } = loaded;
    const choose = (also = local) => {
      const how = { find, before: defaultProvider, local: also };
      const chosen = withChosenModel(given, variables, how);
      ({ defaultProvider } = chosen);
      return chosen;
    };
    return {
      refused: null,
      loaded,
      choose,
      trusted: requireTrustedOutside(loaded, project, surroundings.env),
      resolved: resolveSettings(loaded, project.root),
      selectModel: modelsFor(loaded, variables, () => defaultProvider),
      assistants: assistantsFor(
        loaded.config,
        surroundings,
        serverPlaces(loaded, project, surroundings.env),
      ),
      secrets: secretsIn(loaded.config, surroundings.credentials, surroundings.env),
    };
  };

/** Takes the model that the keys of now choose, for a running server too. */
const withNewestChoice = (current: Current, settings: Settings, log: Logger['log']): Settings => {
  const loaded = current.choose();
  const isSame =
    loaded.config.api.provider_model === current.loaded.config.api.provider_model &&
    loaded.defaultProvider === current.loaded.defaultProvider;
  if (isSame) return settings;
  current.loaded = loaded;
  log('a key came or went, so agents use another model', { choice: loaded.choice });
  return { ...settings, ...modelChoice(loaded) };
};

/** The process of a server: its outputs, and the id that signals are sent to. */
export interface ServerProcess extends Outputs {
  readonly pid: number;
}

export interface ServerParts {
  /** What commands of an earlier process had made, as found at the start. */
  readonly interrupted: readonly InterruptedNote[];
  readonly ownProcess: ServerProcess;
  readonly project: Project;
  readonly choice: StoreChoice;
  readonly env: NodeJS.ProcessEnv;
  readonly current: Current;
  readonly tokens: TokenSource;
  readonly redact: (text: string) => string;
  readonly logger: Logger;
  readonly inspection: Inspection | null;
  readonly drainMs: number;
  readonly onLeaseLost: (error: StoreError) => void;
  readonly sandbox: Sandbox;
  readonly workspace: Workspace;
  readonly environment: Readonly<Record<string, string>>;
  readonly credentials: Readonly<Record<string, string>>;
  readonly webhooks: readonly SecretWebhook[];
  /** Of deliveries of the forge. */
  readonly forgeSecret: string | null;
}

/** Pending deadlines use the clock of the server that set them, so time must not run backwards. */
const lastMomentOf = async (store: StoreReads): Promise<number> => {
  if ((await store.pendingCount()) === 0) return 0;
  const [last] = await store.read({ after: (await store.lastSeq()) - 1, limit: 1 });
  return last?.at ?? 0;
};

/** With what may hold it up, since the database does not say. */
const firstSharedCommit =
  'the first commit (held up by a session that locks the tables, a standby of synchronous_standby_names that is away, or a pool without room; see docs/guides/postgresql-and-several-servers.md)';

/** The caller starts the system. */
export const assemble = async (
  parts: ServerParts,
  { store, ledger, importThrough }: OpenedLedger,
) => {
  const { project, env, current, redact, logger, inspection, sandbox, workspace, environment } =
    parts;
  // A journal of version 2.1 is counted now, while nobody waits.
  await withTimeout(
    (async () => store.commit({ entries: [] }))(),
    storeDeadline.deadlineMs,
    isShared(ledger.db) ? firstSharedCommit : 'the first commit',
  );
  const tracker = trackerFor(
    current.loaded.config,
    project.root,
    env,
    logger.log,
    () => ledger,
    redact,
  );
  const now = createSteadyClock({
    wall: clockOf(ledger.db),
    steady: () => performance.now(),
    notBefore: await lastMomentOf(store),
  });
  const forges = createForgePlaces({
    config: () => current.loaded.config.forge,
    variables: { ...env, ...parts.credentials },
    workspace,
    now,
  });
  const system = createSystem(current.resolved.settings, {
    tracker,
    store,
    shared: sharedPortsOf(project, current.loaded.config, ledger.db, {
      redact,
      log: logger.log,
      runsAgents: workspace.refusal() === null,
    }),
    workspace,
    sandbox,
    selectModel: (requested) => current.selectModel(requested),
    newest: (settings) => withNewestChoice(current, settings, logger.log),
    assistants: currentAssistants(() => current.assistants),
    environment,
    results: createResults(project.root, redact),
    passedTreesFile: stateFiles(project.stateDir).passedTrees,
    forge: forges.place,
    forgeOf: forges.forgeOf,
    workflows: {
      definition: workflowFinder(workflowConfigs(project, env, current.loaded.named), project.root),
      reportsFolder: stateFiles(project.stateDir).reports,
    },
    mcp: {
      variables: { ...env, ...parts.credentials },
      pinsFile: stateFiles(project.stateDir).mcpTools,
      version,
    },
    endOrphans: endOrphans,
    now,
    onLeaseLost: parts.onLeaseLost,
    log: logger.log,
    inspect: inspection?.observe,
  });
  importThrough(system.journal);
  logAttempts(system.journal, logger.log);
  return { tracker, store, ledger, system };
};

export type Assembled = Awaited<ReturnType<typeof assemble>>;
