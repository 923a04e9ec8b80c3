import type { FastifyInstance } from 'fastify';
import type { ProcessLock } from '../../actors/files/process-lock.ts';
import type { Sandbox } from '../../actors/sandbox/port.ts';
import { buildServer } from '../../http/server.ts';
import { stateFiles } from '../config/project.ts';
import { registerHandler } from '../handler/register.ts';
import { thisProgram } from '../handler/this-program.ts';
import { print } from '../output/io.ts';
import { projectRoleNote } from '../roles/apply-project-roles.ts';
import { serverName, version } from '../version.ts';
import type { Assembled, Parts } from './assemble.ts';
import { banner } from './banner.ts';
import { listenOnLoopback } from './listen.ts';
import { modelNote } from './models.ts';
import { networkNotes, notesOf } from './notes.ts';
import { removeServerFile, writeServerFile } from './write-server-file.ts';

export interface Serving {
  readonly url: string;
  /** Lets what runs go on for as long as was said, then ends streams, stops it, commits, lets go of the project. */
  stop(): Promise<void>;
}

const heartbeatMs = 15_000;

const hostNames = (port: number): readonly string[] =>
  ['localhost', '127.0.0.1', '[::1]'].flatMap((name) => (port === 80 ? [`${name}:80`, name] : [`${name}:${port}`]));

const sandboxLine = (sandbox: Sandbox): string => {
  const { ok } = sandbox.check();
  return ok ? sandbox.describe() : `none, so commands are refused: ${sandbox.describe()}`;
};

const handlerLine = async (wanted: boolean): Promise<string> =>
  wanted ? (await registerHandler(thisProgram())).line : 'not registered: server.register_protocol_handler is false';

/** Listens, starts the system, writes server.json and prints the banner, in this order. */
export const serve = async (
  { project, current, tokens, redact, logger, inspection, drainMs, sandbox, workspace }: Parts,
  { tracker, store, system }: Assembled,
  lock: ProcessLock,
): Promise<Serving> => {
  const files = stateFiles(project.stateDir);
  const config = () => current.loaded.config;
  let names: readonly string[] = [];
  let draining = false;
  const app: FastifyInstance = await buildServer({
    system,
    store,
    tracker,
    name: serverName,
    version,
    models: () => [config().api.provider_model, 'scripted'],
    hosts: () => names,
    token: () => (config().server.auth === 'none' ? null : tokens.current()),
    proofToken: tokens.current,
    tokenProblem: tokens.problem,
    redact,
    tokenHint: `the token of this project is in ${files.token}`,
    modelCheck: () => {
      const { paused } = system.load();
      return paused === null ? modelNote(config(), current) : { ok: false, detail: paused };
    },
    inspection,
    heartbeatMs,
    draining: () => draining,
    requestsPerSecond: () => config().server.max_requests_per_second,
    streamLimits: () => ({ inAll: config().server.max_streams, perTask: config().server.max_streams_per_task }),
    log: logger.log,
  });
  const { host, port } = config().server;
  const listening = await listenOnLoopback(app, host, port, config().server.max_streams);
  names = hostNames(listening.port);
  const url = `http://${host === '::1' ? '[::1]' : '127.0.0.1'}:${listening.port}`;
  await system.start();
  await writeServerFile(files.server, {
    url,
    pid: process.pid,
    version,
    started_at: new Date().toISOString(),
    project: project.root,
  });
  const worker = modelNote(config(), current);
  print(
    'stdout',
    banner({
      version,
      url,
      host,
      port: listening.port,
      cap: system.settings().cap,
      tracker: tracker.name,
      model: worker.detail,
      projectRoot: project.root,
      sandbox: sandboxLine(sandbox),
      workspace: workspace.describe(),
      handler: await handlerLine(config().server.register_protocol_handler),
      notes: [
        ...(listening.note === null ? [] : [listening.note]),
        ...notesOf(config()),
        ...(worker.assistant === undefined || current.assistants.sandboxed()
          ? []
          : [`${worker.assistant} works outside of this sandbox, by sandbox.assistants`]),
        ...networkNotes(system.settings(), config()),
        ...current.resolved.projectRoles.map(projectRoleNote),
        ...(inspection === null ? [] : ['inspected: GET /inspect shows the live machines']),
      ],
    }),
  );
  const stop = async (): Promise<void> => {
    draining = true;
    await system.drain(drainMs);
    removeServerFile(files.server, process.pid);
    await system.stop();
    await app.close();
    listening.close();
    store.close();
    lock.release();
  };
  return { url, stop };
};
