import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openProject, plain } from './cli.ts';
import { inPostgres } from './postgres.ts';

interface Given {
  /** Merged into the configuration. */
  readonly config?: Readonly<Record<string, object>>;
  /** What the commands of an agent are, each in a turn of its own. */
  readonly command?: string | readonly string[];
  /** What an agent asks first. */
  readonly question?: string;
  /** Scripts that come first, for the tasks that they name. */
  readonly scripts?: readonly object[];
  /** Its project is a clone of this repository. */
  readonly origin?: string;
  /** The folder of the programs of another version. */
  readonly programs?: string;
}

/**
 * A server of its own, with its own project and state folder, on a store that others use, too; null:
 * on its own SQLite file.
 */
export const openServer = async (
  address: string | null,
  { config = {}, command = 'true', question, scripts = [], origin, programs }: Given = {},
) => {
  let version = programs;
  const project = openProject(undefined, { ownServer: true, programs: () => version });
  const { root, stateDir, configFile } = project;
  if (origin !== undefined) {
    rmSync(join(root, '.git'), { recursive: true });
    execFileSync('git', ['clone', '-q', '--no-hardlinks', origin, '.'], { cwd: root });
  }
  const script = join(stateDir, '..', 'script.json');
  const asked = question === undefined ? [] : [{ tool: 'ask', arguments: { question } }];
  const commands = [command].flat().map((each) => ({ tool: 'bash', arguments: { command: each } }));
  const work = [...asked, ...commands].map((call) => ({ calls: [call] }));
  const end = { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] };
  writeFileSync(script, JSON.stringify({ scripts: [...scripts, { turns: [...work, end] }] }));
  writeFileSync(
    configFile,
    JSON.stringify({
      ...plain,
      api: { backend: 'scripted', script },
      agent: { on_interrupted: 'repeat' },
      ...config,
      server: { ...plain.server, ...config['server'] },
      ...(address === null
        ? {}
        : { store: { url: 'DATABASE_URL', lease_seconds: 3, ...config['store'] } }),
    }),
  );
  const agent = (...words: string[]) =>
    project.agentWith(address === null ? {} : { DATABASE_URL: address }, ...words);
  const viewOf = async (id: string) => JSON.parse((await agent('show', id, '--json')).out);
  /** The whole answer of a JSON-RPC call to the running server. */
  const call = async (method: string, params: object) => {
    const token = readFileSync(join(stateDir, 'token'), 'utf8').trim();
    const response = await fetch(`${project.serverFile().url}/a2a/execute`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    return (await response.json()) as RpcAnswer;
  };
  /** What is asked from now on is asked of the programs of another version. */
  const upgrade = (next: string | undefined): void => {
    version = next;
  };
  return { ...project, agent, viewOf, call, upgrade };
};

interface RpcAnswer {
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string; readonly data: { readonly code: string } };
}

/** The most attempts that ran at once, and on which servers they ended, by the journal. */
export const runsIn = async (address: string) => {
  const rows = await inPostgres(
    address,
    `select task_id, attempt, type, data from journal
     where type in ('status_update', 'snapshot', 'completed', 'failed', 'cancelled') order by seq`,
  );
  const live = new Set<string>();
  let most = 0;
  for (const { task_id, type, data } of rows) {
    if (type !== 'status_update') continue;
    const { status } = JSON.parse(data);
    if (status === 'started') live.add(task_id);
    else live.delete(task_id);
    most = Math.max(most, live.size);
  }
  const owners = await inPostgres(
    address,
    'select owner, count(*)::int as count from attempts group by owner order by owner',
  );
  return { most, owners: owners.map(({ owner, count }): [string, number] => [owner, count]) };
};
