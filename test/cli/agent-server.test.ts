import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { isAlive } from '../../src/actors/process/pid.ts';
import { openDatabase } from '../../src/actors/store/database.ts';
import { createSqliteStore } from '../../src/actors/store/sqlite.ts';
import { aTask } from '../contracts/tracker.ts';
import { bin, openProject, plain } from '../support/cli.ts';
import { embeddedAt, ledgerAt } from '../support/ledger.ts';
import { type AtEnd, endOfFile, temporaryFolder } from '../support/temporary.ts';

const until = async (what: () => boolean): Promise<void> => {
  while (!what()) await new Promise((resolve) => setTimeout(resolve, 20));
};

/** These are tests of the server as a process. */
const open = (config?: object, atEnd?: AtEnd) =>
  openProject(config, { ownServer: true, ...(atEnd === undefined ? {} : { atEnd }) });

const atEnd = endOfFile();
let shared: ReturnType<typeof openProject> | null = null;
/** A project with a running server, for tests that change nothing in them. */
const served = async () => {
  if (shared === null) {
    shared = open(undefined, atEnd);
    shared.start('agent-server', ['--server']);
  }
  const { serverFile } = shared;
  await until(() => serverFile() !== null);
  return shared;
};

test('without --server it prints usage', async () => {
  const { server } = open();

  const ended = await server();

  expect(ended.code).toBe(2);
  expect(ended.out).toContain('agent-server --server');
});

test('the banner names the address, the routes, the features, the sandbox and the tracker', async () => {
  const { start, collect, serverFile } = open();
  const child = start('agent-server', ['--server', '--port', '0', '--max-concurrent', '5']);
  const ended = collect(child);
  await until(() => serverFile() !== null);
  child.kill('SIGTERM');

  const { out, code } = await ended;

  expect(code).toBe(0);
  for (const part of [
    'Agent Task Server 2.1.0',
    'host localhost, port',
    '/a2a/discovery',
    '/a2a/execute',
    '/a2a/status',
    '/stream/:task_id',
    'protocol compliance',
    'SSE streaming',
    'max 5 concurrent',
    'tracker integration',
  ])
    expect(out).toContain(part);
});

test('health, metrics and discovery have the documented form', async () => {
  const { serverFile, stateDir } = await served();
  const { url } = serverFile();
  const authorization = `Bearer ${readFileSync(join(stateDir, 'token'), 'utf8').trim()}`;
  const get = async (path: string, headers = {}) =>
    fetch(`${url}${path}`, { headers: { authorization, ...headers } });

  const health = await (await fetch(`${url}/health`)).json();
  const discovery = await (await get('/a2a/discovery')).json();
  const metrics = await (await get('/metrics', { accept: 'application/json' })).json();
  const text = await (await get('/metrics')).text();

  expect(health).toMatchObject({
    status: 'healthy',
    version: '2.1.0',
    server: 'agent-task-server',
    features: {
      a2a_protocol: true,
      sse_streaming: true,
      parallel_execution: true,
      monitoring: true,
    },
    checks: { store: { status: 'ok' }, tracker: { status: 'ok' }, model: { status: 'ok' } },
    uptime_seconds: expect.any(Number),
  });
  expect(discovery).toMatchObject({
    name: 'agent-task-server',
    version: '2.1.0',
    capabilities: { max_concurrent: 3 },
  });
  expect(Object.keys(metrics as object)).toEqual([
    'tasks_spawned',
    'tasks_completed',
    'tasks_failed',
    'tasks_cancelled',
    'tasks_in_progress',
    'queue_depth',
    'api_calls_total',
    'api_calls_failed',
    'average_execution_seconds',
    'input_tokens_total',
    'output_tokens_total',
    'cached_tokens_total',
    'cache_write_tokens_total',
    'uptime_seconds',
  ]);
  expect(text).toMatch(
    /^# HELP agent_tasks_spawned_total .*\n# TYPE agent_tasks_spawned_total counter\nagent_tasks_spawned_total 0\n/,
  );
});

test('a second server of one project refuses to start and names the first', {
  tags: ['slow'],
}, async () => {
  const { server, serverFile } = await served();

  const second = await server('--server');

  expect(second.code).toBe(1);
  expect(second.err).toContain(
    `already served by the server at ${serverFile().url} (pid ${serverFile().pid})`,
  );
});

test('a second server of one project with another state folder refuses to start', {
  tags: ['slow'],
}, async () => {
  const { root, serverFile, agentWith } = await served();

  const second = await agentWith({ AGENT_STATE_DIR: temporaryFolder() }, 'server', 'start');
  const usual = await agentWith({ AGENT_STATE_DIR: undefined }, 'server', 'start');

  for (const { code, err } of [second, usual]) {
    expect(code).toBe(6);
    expect(err).toContain(
      `${root} is already served by the server at ${serverFile().url} (pid ${serverFile().pid})`,
    );
  }
});

test('a server with a state folder of its own is refused while one runs with the usual folder', {
  tags: ['slow'],
}, async () => {
  const { root, agentWith } = open();
  const usual = { AGENT_STATE_DIR: undefined };
  const first = JSON.parse((await agentWith(usual, 'server', 'start', '--json')).out);

  const second = await agentWith({}, 'server', 'start');
  await agentWith(usual, 'server', 'stop');

  expect(second.code).toBe(6);
  expect(second.err).toContain(
    `${root} is already served by the server at ${first.url} (pid ${first.pid})`,
  );
});

test('after kill -9 the next server starts at once, and nothing is lost', {
  tags: ['slow'],
}, async () => {
  const { start, serverFile, stopServer, agent } = open();
  const id = (await agent('create', 'Do it')).out.trim();
  start('agent-server', ['--server']);
  await until(() => serverFile() !== null);
  const { pid } = serverFile();
  await stopServer('SIGKILL');

  const run = await agent('engineer', id);

  expect(run.code).toBe(0);
  expect(serverFile().pid).not.toBe(pid);
});

test('a server exports at its start what an earlier process only saved', async () => {
  const { agent, root, stateDir, start } = open();
  await agent('create', 'exported');
  const db = openDatabase({ file: join(stateDir, 'journal.db') });
  await embeddedAt(root, {}, ledgerAt(root, db)).create(aTask({ title: 'only saved' }));
  db.close();
  const file = (): string => readFileSync(join(root, '.beads', 'issues.jsonl'), 'utf8');
  expect(file()).not.toContain('only saved');

  start('agent-server', ['--server']);

  await until(() => file().includes('only saved'));
});

/** A zombie does not count as running. */
const isRunning = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !['Z', 'X'].includes(stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3));
  } catch {
    return false;
  }
};

test('a task of a dead server is shown with a note, and asks a person at the next start', {
  tags: ['slow'],
}, async () => {
  const { agent, configFile, stateDir, root, stopServer } = open();
  const script = join(stateDir, '..', 'script.json');
  const calls = [{ tool: 'bash', arguments: { command: 'echo $$ > pid; exec sleep 600' } }];
  writeFileSync(script, JSON.stringify({ scripts: [{ turns: [{ calls }] }] }));
  writeFileSync(configFile, JSON.stringify({ ...plain, api: { backend: 'scripted', script } }));
  const id = (await agent('create', 'Do it')).out.trim();
  await agent('--async', 'engineer', id);
  await until(
    () => existsSync(join(root, 'pid')) && readFileSync(join(root, 'pid'), 'utf8') !== '',
  );
  await stopServer('SIGKILL');
  const pid = Number(readFileSync(join(root, 'pid'), 'utf8'));

  const stranded = await agent('show', id);
  expect(isRunning(pid)).toBe(true);
  await agent('server', 'start');
  let asked = await agent('show', id, '--json');
  while (!asked.out.includes('awaiting_input')) asked = await agent('show', id, '--json');

  expect(stranded.err).toContain(`no server runs, so ${id} makes no progress`);
  expect(JSON.parse(asked.out)).toMatchObject({
    status: 'started',
    attempt: 1,
    awaiting: {
      kind: 'input',
      question: expect.stringContaining('The server stopped while this was at work: bash'),
    },
  });
  expect(isRunning(pid)).toBe(false);
  await agent('respond', id, 'it is done, finish');
  expect((await agent('wait', id)).code).toBe(0);
  expect((await agent('show', id)).out).toContain('complete');
});

test('SIGTERM with --drain-timeout lets a running agent finish first; a second one does not wait', {
  tags: ['slow'],
}, async () => {
  const { agent, configFile, stateDir, root, start, serverFile } = open();
  const script = join(stateDir, '..', 'script.json');
  const waits = {
    tool: 'bash',
    arguments: { command: 'echo > at-work; until [ -e go ]; do sleep 0.05; done' },
  };
  writeFileSync(script, JSON.stringify({ scripts: [{ turns: [{ calls: [waits] }] }] }));
  writeFileSync(configFile, JSON.stringify({ ...plain, api: { backend: 'scripted', script } }));
  const run = async () => {
    rmSync(join(root, 'at-work'), { force: true });
    const server = start('agent-server', ['--server', '--drain-timeout', '60']);
    const ended = new Promise((resolve) => server.once('exit', resolve));
    await until(() => serverFile()?.pid === server.pid);
    const id = (await agent('create', 'Do it')).out.trim();
    await agent('--async', 'engineer', id);
    await until(() => existsSync(join(root, 'at-work')));
    server.kill('SIGTERM');
    // The kernel merges two simultaneous signals into one.
    const { url } = serverFile();
    while ((await fetch(`${url}/health`)).status !== 503);
    return { id, server, ended };
  };

  const patient = await run();
  writeFileSync(join(root, 'go'), '');
  const code = await patient.ended;
  rmSync(join(root, 'go'));
  const hasty = await run();
  hasty.server.kill('SIGTERM');

  expect(code).toBe(0);
  expect((await agent('show', patient.id)).out).toContain('complete');
  expect(await hasty.ended).toBe(1);
  await agent('server', 'start');
  await agent('cancel', hasty.id);
});

test('an invalid --drain-timeout is refused', async () => {
  const { server } = open();

  expect(await server('--server', '--drain-timeout', 'soon')).toMatchObject({
    code: 2,
    err: expect.stringContaining('--drain-timeout needs a number'),
  });
});

test('SIGTERM ends the server with 0, and ends the processes that it ran', async () => {
  const { agent, configFile, stateDir, root, stopServer, serverFile } = open();
  const script = join(stateDir, '..', 'script.json');
  const calls = [{ tool: 'bash', arguments: { command: 'echo $$ > pid; exec sleep 600' } }];
  writeFileSync(script, JSON.stringify({ scripts: [{ turns: [{ calls }] }] }));
  writeFileSync(configFile, JSON.stringify({ ...plain, api: { backend: 'scripted', script } }));
  const id = (await agent('create', 'Do it')).out.trim();
  await agent('--async', 'engineer', id);
  await until(
    () => existsSync(join(root, 'pid')) && readFileSync(join(root, 'pid'), 'utf8') !== '',
  );

  await stopServer('SIGTERM');

  expect(serverFile()).toBeNull();
  expect(isAlive(Number(readFileSync(join(root, 'pid'), 'utf8')))).toBe(false);
});

test("a port in use is reported with what to do, and the project's lock is released", {
  tags: ['slow'],
}, async () => {
  const { server, serverFile } = open();
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const address = other.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;

  const ended = await server('--server', '--port', String(port));

  other.close();
  expect(ended.code).toBe(1);
  expect(ended.err).toContain(
    `agent-server: port ${port} is already in use; free it, or choose another with --port <other> or: agent config set server.port 0\n`,
  );
  expect(serverFile()).toBeNull();
});

test.each<[string, object | string, string]>([
  ['an unknown key', { server: { prot: 1 } }, 'server.prot: is not known here; did you mean port?'],
  [
    'a key of another place',
    { agent: { verify: ['npm test'] } },
    'agent.verify: is not known here; did you mean roles.<name>.verify or merge.verify?',
  ],
  [
    'a wrong type',
    { server: { port: '8080' } },
    'server.port: expected a whole number from 0 to 65535, got "8080"',
  ],
  [
    'a number out of range',
    { server: { max_concurrent_agents: 0 } },
    'server.max_concurrent_agents: ',
  ],
  ['an address of the network', { server: { host: '0.0.0.0' } }, 'server.host: '],
  [
    'an address that is none',
    { api: { base_url: 'notaurl' } },
    'config.json: api.base_url: expected an address',
  ],
  [
    'proxy mode without an address',
    { api: { mode: 'proxy' } },
    'api.proxy.base_url: is needed when api.mode is proxy',
  ],
  ['text that is not JSON', '{', 'not JSON'],
  ['a list', '[]', 'expected a JSON object'],
])('a configuration with %s is refused with 78, by file and key', async (_, config, message) => {
  const { server, configFile, stateDir } = open();
  writeFileSync(configFile, typeof config === 'string' ? config : JSON.stringify(config));

  const ended = await server('--server');

  expect(ended).toMatchObject({ code: 78, out: '' });
  expect(ended.err).toContain(message);
  expect(existsSync(join(stateDir, 'server.json'))).toBe(false);
});

test.each<[string, string | null, string]>([
  ['is not there', null, 'the file cannot be read'],
  ['is not JSON', '{', 'JSON'],
  ['is no script', '{"scripts":1}', 'scripts'],
])(
  'a script that %s is refused with 78, by configuration file, key and path',
  async (_, text, why) => {
    const { server, configFile } = open({
      api: { backend: 'scripted', script: 'played.json' },
    });
    const script = join(configFile, '..', 'played.json');
    if (text !== null) writeFileSync(script, text);

    const ended = await server('--server');

    expect(ended).toMatchObject({ code: 78, err: expect.stringContaining(why) });
    expect(ended.err).toContain(`agent-server: ${configFile}: api.script: ${script}:`);
  },
);

test('a script is found relative to the configuration file, whatever the working folder', async () => {
  const { agent, configFile } = open({
    api: { backend: 'scripted', script: './played.json' },
  });
  const turn = {
    calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'as it stands beside' } }],
  };
  writeFileSync(
    join(configFile, '..', 'played.json'),
    JSON.stringify({ scripts: [{ turns: [turn] }] }),
  );
  const id = (await agent('create', 'Play')).out.trim();

  expect(await agent('engineer', id)).toMatchObject({
    code: 0,
    out: expect.stringContaining('as it stands beside'),
  });
});

test('a missing configuration file is refused with 78', async () => {
  const { server } = open();

  expect(await server('--server', '--config', '/nowhere.json')).toMatchObject({
    code: 78,
    err: expect.stringContaining('/nowhere.json: the configuration file cannot be read'),
  });
});

test('the default configuration file is accepted', async () => {
  const { start, collect, serverFile } = open();
  const file = fileURLToPath(new URL('../../configs/agent-server.json', import.meta.url));
  const child = start('agent-server', ['--server', '--config', file, '--port', '0']);
  const ended = collect(child);
  await until(() => serverFile() !== null);

  child.kill('SIGTERM');

  expect((await ended).code).toBe(0);
});

test('token and state folder are private', async () => {
  const { stateDir } = await served();

  expect(statSync(stateDir).mode & 0o777).toBe(0o700);
  for (const file of ['token', 'server.json', 'journal.db'])
    expect(statSync(join(stateDir, file)).mode & 0o777).toBe(0o600);
  expect(readFileSync(join(stateDir, 'token'), 'utf8')).toMatch(/^[A-Za-z0-9_-]{43}\n$/);
});

test.each<[string, (path: string) => void]>([
  [
    'others may read',
    (path) => {
      writeFileSync(path, `${'a'.repeat(43)}\n`);
      chmodSync(path, 0o644);
    },
  ],
  ['is a link', (path) => symlinkSync('/etc/hostname', path)],
  ['holds no token', (path) => writeFileSync(path, 'x\n', { mode: 0o600 })],
])('a token file that %s is refused', async (_, make) => {
  const { server, stateDir } = open();
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  make(join(stateDir, 'token'));

  const ended = await server('--server');

  expect(ended.code).toBe(1);
  expect(ended.err).toContain('delete it, and the server makes a new one');
});

test('the provider key reaches no child process, log or journal', { tags: ['slow'] }, async () => {
  const key = 'sk-canary-0123456789abcdef';
  const { agentWith, agent, root, stateDir, configFile } = open();
  const script = join(stateDir, '..', 'script.json');
  const command = 'env';
  const calls = [{ tool: 'bash', arguments: { command } }];
  writeFileSync(
    script,
    JSON.stringify({
      scripts: [
        {
          turns: [
            { calls },
            {
              calls: [
                { tool: 'finish', arguments: { status: 'done', summary: '{{last_output}}' } },
              ],
            },
          ],
        },
      ],
    }),
  );
  writeFileSync(configFile, JSON.stringify({ ...plain, api: { backend: 'scripted', script } }));
  const id = (await agent('create', `Do it with ${key}`)).out.trim();

  await agentWith({ OPENAI_API_KEY: key }, 'engineer', id);

  // The task itself is the user's own text, as in .beads/issues.jsonl.
  const store = createSqliteStore({
    file: join(stateDir, 'journal.db'),
    readonly: true,
    redact: (text) => text,
  });
  const journal = JSON.stringify([
    store.read({ after: 0, limit: 1_000 }),
    store.tasks('all'),
    store.actor(`${id}#1`),
  ]);
  store.close();
  const log = readFileSync(join(stateDir, 'server.log'), 'utf8');
  const results = readFileSync(
    join(root, '.beads', 'tasks', `task-${id}`, '30-results.md'),
    'utf8',
  );
  expect(results).toContain('PATH=');
  expect(journal).toContain('PATH=');
  for (const text of [results, journal, log]) expect(text).not.toContain(key);
});

test('the helper script starts the server, forwards signals, and has its exit code', {
  tags: ['slow'],
}, async () => {
  const { root, stateDir, configFile, serverFile } = open();
  const script = fileURLToPath(new URL('../../scripts/start-server.mjs', import.meta.url));
  const env = { ...process.env, AGENT_STATE_DIR: stateDir, HOME: temporaryFolder() };
  const child = spawn(process.execPath, [script, '--config', configFile, '--project', root], {
    env,
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  await until(() => serverFile() !== null);

  child.kill('SIGTERM');

  expect(await ended).toEqual([0, null]);
  expect(serverFile()).toBeNull();
});

test('idle connections take no descriptor that a request needs', async () => {
  const { root, stateDir, configFile, serverFile } = open();
  const env = {
    ...process.env,
    AGENT_STATE_DIR: stateDir,
    AGENT_SERVER_CONFIG: configFile,
    HOME: temporaryFolder(),
  };
  const line = `ulimit -n 256; exec ${process.execPath} ${bin('agent-server')} --server`;
  const child = spawn('/bin/sh', ['-c', line], { cwd: root, env, stdio: 'ignore' });
  await until(() => serverFile() !== null);
  const { port } = new URL(serverFile().url);
  const idle = Array.from({ length: 300 }, () =>
    connect(Number(port), '127.0.0.1').on('error', () => {}),
  );
  await until(
    () =>
      idle.filter(({ destroyed, readyState }) => destroyed || readyState === 'open').length === 300,
  );

  const began = Date.now();
  let healthy = false;
  while (!healthy && Date.now() - began < 15_000)
    healthy = await fetch(`${serverFile().url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );

  expect(healthy).toBe(true);
  for (const socket of idle) socket.destroy();
  child.kill('SIGTERM');
  await once(child, 'exit');
});
