import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openProject } from '../../support/cli.ts';
import { clientOf } from './client.ts';
import { type DiskEvent, readRecording, recorder } from './recording.ts';

export interface Recorded {
  readonly events: readonly DiskEvent[];
  /** The project, and the folder that the state folder is made in. */
  readonly root: string;
  readonly top: string;
}

const turn = (tool: string, args: object) => ({
  say: 'x'.repeat(500),
  calls: [{ tool, arguments: args }],
});
const turns = [
  // So much that the journal is carried over from its log into the database while the server runs.
  turn('write', { path: 'note.txt', content: 'y'.repeat(20_000) }),
  turn('read', { path: 'note.txt' }),
  turn('finish', { status: 'done', summary: 'done' }),
];

/**
 * The real server under load, watched: what it did to the disk, and what it said to whom in
 * between.
 */
export const recordWork = async (tasks: number): Promise<Recorded> => {
  const project = openProject(undefined, { ownServer: true });
  const { root, stateDir, configFile, start } = project;
  const folder = dirname(configFile);
  const [script, log] = [join(folder, 'script.json'), join(folder, 'recording')];
  writeFileSync(script, JSON.stringify({ scripts: [{ turns }] }));
  const config = {
    server: { port: 0, register_protocol_handler: false },
    sandbox: { mode: 'off' },
    api: { backend: 'scripted', script },
    tracker: { mode: 'embedded' },
  };
  writeFileSync(configFile, JSON.stringify(config));
  const server = start('agent-server', ['--server'], {}, recorder(log));
  const gone = new Promise((resolve) => server.once('exit', resolve));
  const { call, url, headers, ended } = await clientOf(project);
  // What is shown is durable: the stream of all tasks tells what was shown when.
  const shown = (await fetch(`${url}/stream`, { headers })).text().catch(() => {});
  const lane = async (name: number): Promise<void> => {
    for (let n = 0; n < tasks / 2; n += 1) {
      const made = await call('create', { description: `${name}.${n} ${'z'.repeat(n * 97)}` });
      const task_id = made.result?.task_id ?? '';
      await call('execute', { task_id, role: 'engineer', request_id: `run-${task_id}` });
      await ended(task_id);
      if (n > 0) continue;
      await call('reopen', { task_id });
      await call('execute', { task_id, role: 'tester' });
      await ended(task_id);
    }
  };
  await Promise.all([lane(0), lane(1)]);
  await project.stopServer();
  await Promise.all([gone, shown]);
  return { events: readRecording(log, root), root, top: dirname(stateDir) };
};
