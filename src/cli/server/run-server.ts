import { createInspection } from '../../actors/engine/queries/inspection.ts';
import { storeDeadline } from '../../actors/journal/commit-answer.ts';
import { type OpenedLedger, openLedger } from '../../actors/ledger/ledger.ts';
import { childEnvironment } from '../../actors/process/run-command.ts';
import { openDatabase } from '../../actors/store/database.ts';
import type { HeldWait } from '../../actors/store/transactions.ts';
import { gitIdentity } from '../../actors/workspace/git/signing.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { LoadedConfig } from '../config/config.ts';
import { type Project, serverNameOf, stateFiles } from '../config/places/project.ts';
import { remoteSecrets } from '../config/remote-credentials.ts';
import { projectFolders, sandboxFor } from '../config/sandbox.ts';
import { type StoreChoice, storeFor, storeSecrets } from '../config/store.ts';
import { pathsOf, requireTrustedOutside, trustedPath } from '../config/trusted-places.ts';
import { workspaceFor } from '../config/workspace.ts';
import { projectRoleNote } from '../roles/apply-project-roles.ts';
import {
  type Assembled,
  assemble,
  type Current,
  type ServerParts,
  type ServerProcess,
  takeFrom,
} from './assemble.ts';
import { takeCredentials } from './assistants.ts';
import { type InterruptedNote, noteOf } from './interrupted-commands.ts';
import { lockProject } from './lock-project.ts';
import { createLogger, type Logger, loggingOf } from './logs/logger.ts';
import { modelNote } from './models.ts';
import { requireOwnStoreFile } from './own-store-file.ts';
import { needsRestart } from './reload.ts';
import { keptSecrets, watchKeptKeys } from './secrets/kept-keys.ts';
import { stateFolderError } from './secrets/private-files.ts';
import { createRedactor } from './secrets/redact.ts';
import { createTokenSource, tokenFileFor } from './secrets/token-file.ts';
import { takeForgeSecret, takeWebhooks } from './secrets/webhook-secrets.ts';
import { type Serving, serve } from './serve.ts';
import { traceHeaders } from './traces.ts';

interface StorePlace {
  readonly project: Project;
  readonly choice: StoreChoice;
  readonly redact: (text: string) => string;
  readonly logger: Logger;
}

/** The event loop of a server must not stop while another program holds the database. */
const heldWait: HeldWait = { blockingMs: 50, inPausesMs: storeDeadline.deadlineMs - 500 };

/** @throws StoreError */
export const openSqliteFile = (file: string, { project, redact, logger }: StorePlace) =>
  openLedger({
    db: openDatabase({ file, heldWait }),
    projectRoot: project.root,
    redact,
    clock: Date.now,
    log: logger.log,
  });

/** The store of a project, as the configuration chooses it. Rejects with a StoreError. */
const openStore = async (place: StorePlace): Promise<OpenedLedger> => {
  const { choice, project, redact, logger } = place;
  if (choice.kind === 'sqlite') {
    requireOwnStoreFile(choice.file, project);
    return openSqliteFile(choice.file, place);
  }
  // The driver is loaded only where it is used.
  const { openPostgresLedger } = await import('../../actors/ledger/postgres-ledger.ts');
  return openPostgresLedger(choice.address, {
    projectRoot: project.root,
    filesPrefix: stateFiles(project.stateDir).exchange,
    exporter: { name: serverNameOf(project), chosen: choice.exportNode, claims: true },
    redact,
    clock: Date.now,
    log: logger.log,
  });
};

export interface RunningServer extends Serving {
  /** A bad file changes nothing. */
  reload(): void;
}

export interface RunServerOptions {
  readonly project: Project;
  /** Called at the start and at every reload. @throws ConfigError */
  readonly load: () => LoadedConfig;
  readonly env: NodeJS.ProcessEnv;
  readonly inspect: boolean;
  /** Time (ms) for running attempts to finish after a signal; then they wait for the next start. */
  readonly drainMs: number;
  /** Called when nothing can be saved any more; the caller ends the server. */
  readonly onLeaseLost: ServerParts['onLeaseLost'];
  /** Another one than that of the caller. */
  readonly ownProcess?: ServerProcess;
  /** @throws StoreError */
  readonly open?: (place: StorePlace) => OpenedLedger | Promise<OpenedLedger>;
}

const interruptedMessage = 'an interrupted command made what other programs obey';

/** @throws PrivateFileError instead of a system error */
const inStateFolder = <T>({ stateDir }: Project, use: () => Promise<T>): Promise<T> =>
  use().catch((cause: unknown) => {
    throw cause instanceof Error && 'errno' in cause ? stateFolderError(stateDir, cause) : cause;
  });

/**
 * Starts the server of one project on loopback. Its token file and server.json exist before it
 * announces itself. @throws ConfigError, PrivateFileError, AlreadyServedError, PortInUseError
 */
export const runServer = async ({
  project,
  load,
  env,
  inspect,
  drainMs,
  onLeaseLost,
  ownProcess = process,
  open = openStore,
}: RunServerOptions): Promise<RunningServer> => {
  const loaded = load();
  const choice = storeFor(loaded.config, project, env);
  const folders = projectFolders(project);
  const sandbox = sandboxFor(loaded.config, project, folders);
  requireTrustedOutside(loaded, project, env);
  const path = trustedPath(loaded, project, env['PATH']);
  if (path !== undefined) env['PATH'] = path;
  const environment = { ...childEnvironment(env), ...gitIdentity(project.root) };
  const credentials = takeCredentials(env);
  const webhooks = takeWebhooks(loaded.config, env);
  const forgeSecret = takeForgeSecret(loaded.config, env);
  const takeWith = takeFrom(project, { credentials, environment, env });
  let local: string | null = null;
  let onLocalModel = (): void => void Object.assign(current, take(loaded));
  const hasBackend = (): boolean => modelNote(current.loaded, current).ok;
  /** With a look for a local server after the one for logins. */
  const take = (given: LoadedConfig): Current => {
    const next = takeWith(given, local);
    const checkLogins = async (): Promise<void> => {
      await next.assistants.checkLogins();
      if (hasBackend()) return;
      // With a key it is not needed.
      const { findLocalModel } = await import('./local-models.ts');
      local = await findLocalModel(current.loaded.config, { ...env, ...credentials });
      if (local !== null) onLocalModel();
    };
    return { ...next, assistants: { ...next.assistants, checkLogins } };
  };
  const current: Current = take(loaded);
  if (!hasBackend()) await current.assistants.checkLogins();
  const lock = await lockProject(project);
  let assembled: Assembled | null = null;
  try {
    const tokens = createTokenSource(tokenFileFor(loaded.config, project));
    const given = [
      ...storeSecrets(choice),
      ...Object.values(traceHeaders(env)),
      ...webhooks.map(({ secretText }) => secretText),
      ...(forgeSecret === null ? [] : [forgeSecret]),
    ];
    const ofRemotes = remoteSecrets(project.root);
    const keptNow = keptSecrets(env);
    const redact = createRedactor(() => [
      ...current.secrets,
      ...keptNow(),
      ...given,
      ...tokens.all(),
      ...ofRemotes(),
    ]);
    const logger = createLogger(loggingOf(loaded), redact, ownProcess);
    const inspection = inspect ? createInspection(redact) : null;
    let interrupted: readonly InterruptedNote[] = [];
    const workspace = await inStateFolder(project, async () => {
      // Nothing may run in the project's folder before.
      const found = await folders.settleInterrupted();
      for (const { folder, ...each } of found)
        logger.log(interruptedMessage, { ...each, quarantine: folder });
      interrupted = found.map(noteOf);
      return workspaceFor(loaded, project, env, {
        sandbox,
        redact,
        trusted: () => pathsOf(current.trusted),
      });
    });
    const parts: ServerParts = {
      ownProcess,
      project,
      choice,
      env,
      current,
      tokens,
      redact,
      logger,
      inspection,
      drainMs,
      onLeaseLost,
      sandbox,
      workspace,
      environment,
      credentials,
      webhooks,
      forgeSecret,
      interrupted,
    };
    const running = await assemble(parts, await open(parts));
    assembled = running;
    const serving = await serve(parts, running, lock);
    const reloadNow = (): void => reload(parts, running, () => take(load()));
    onLocalModel = reloadNow;
    const unwatch = watchKeptKeys(env, (providers) => {
      for (const name of providers) running.system.providerChanged(name);
    });
    const stop = () => {
      unwatch();
      return serving.stop();
    };
    return { ...serving, stop, reload: reloadNow };
  } catch (error) {
    assembled?.store.close();
    lock.release();
    throw error;
  }
};

const reload = ({ current, logger }: ServerParts, { system }: Assembled, take: () => Current) => {
  try {
    const next = take();
    const { loaded, resolved } = next;
    const kept = needsRestart(current.loaded.config, loaded.config);
    Object.assign(current, next);
    system.reconfigure(resolved.settings);
    logger.configure(loggingOf(loaded));
    logger.log('configuration reloaded', {
      file: loaded.file,
      needs_restart: kept,
      project_roles: resolved.projectRoles.map(projectRoleNote),
    });
  } catch (error) {
    current.refused = messageOf(error);
    logger.log('the new configuration is invalid; the previous one stays in effect', { error });
  }
};
