import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Address } from '../../src/cli/client/transport.ts';
import type { StartServer } from '../../src/cli/invocation.ts';
import type { RunningServer } from '../../src/cli/server/run-server.ts';

/** A signal interrupts `wait`; the program ends at the end of its input. */
const takeSignals = `trap 'echo TERM' TERM; trap 'echo HUP' HUP
exec 3<&0; cat <&3 >/dev/null & while kill -0 $! 2>/dev/null; do wait $!; done`;

/**
 * A process that takes SIGTERM and SIGHUP for a server which runs in this one, and ends when the
 * server has stopped: commands and tests see, signal and wait for it as for any server.
 */
const startStandIn = (server: () => RunningServer | null) => {
  const stop = async (): Promise<void> => server()?.stop();
  const child = spawn('/bin/sh', ['-c', takeSignals], { stdio: ['pipe', 'pipe', 'ignore'] });
  const end = (): void => void child.stdin.end();
  child.stdout.setEncoding('utf8').on('data', (signals: string) => {
    if (signals.includes('HUP')) server()?.reload();
    if (signals.includes('TERM')) void stop().finally(end);
  });
  child.once('exit', (_, signal) => {
    if (signal === null) return;
    void stop();
    throw new Error(`${signal} cannot end a server of this process: ask for \`ownServer\``);
  });
  if (child.pid === undefined) throw new Error('/bin/sh cannot be started');
  return { pid: child.pid, end };
};

const starting = new Map<string, Promise<Address>>();

/** Starts a server in this process, in a fifth of the time. `dist`: the folder of the programs. */
export const startServerHere =
  (dist: string): StartServer =>
  (project, config, env) => {
    const { stateDir } = project;
    const known = starting.get(stateDir);
    if (known !== undefined) return known;
    const started = (async () => {
      const { runServer }: typeof import('../../src/cli/server/run-server.ts') = await import(
        join(dist, 'server/run-server.js')
      );
      const { loadConfig }: typeof import('../../src/cli/config/config.ts') = await import(
        join(dist, 'config/config.js')
      );
      mkdirSync(stateDir, { recursive: true, mode: 0o700 });
      const output = {
        write: (text: string) => {
          try {
            appendFileSync(join(stateDir, 'server.log'), text, { mode: 0o600 });
          } catch {
            // A full disk under the log ends no server.
          }
        },
      };
      const file = config ?? (env['AGENT_SERVER_CONFIG'] || undefined);
      const named = file === undefined ? undefined : resolve(file);
      // As for a process of its own, whose port another server may have.
      const port = loadConfig({ config: named, project }, env).portChosen ? {} : { port: 0 };
      let running: RunningServer | null = null;
      const { pid, end } = startStandIn(() => running);
      try {
        running = await runServer({
          project,
          load: () => loadConfig({ config: named, project, ...port }, env),
          env,
          inspect: false,
          drainMs: 0,
          onLeaseLost: ({ message }) => output.write(`agent-server: ${message}\n`),
          ownProcess: { pid, stdout: output, stderr: output },
        });
      } catch (error) {
        end();
        const message = error instanceof Error ? error.message : String(error);
        throw new Error(`the server did not start: agent-server: ${message}`);
      }
      const token = readFileSync(join(stateDir, 'token'), 'utf8').trim();
      return { url: running.url, token };
    })().finally(() => starting.delete(stateDir));
    starting.set(stateDir, started);
    return started;
  };
