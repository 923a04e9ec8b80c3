import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject, plain } from '../support/cli.ts';
import { gitIn } from '../support/git.ts';
import { startModelServer } from '../support/model-server.ts';
import { endOfFile, temporaryFolder } from '../support/temporary.ts';

const scripted = (turns: readonly object[], ownServer = false) => {
  const project = openProject(undefined, { ownServer });
  const script = join(project.stateDir, '..', 'script.json');
  writeFileSync(script, JSON.stringify({ scripts: [{ turns }] }));
  writeFileSync(
    project.configFile,
    JSON.stringify({ ...plain, api: { backend: 'scripted', script } }),
  );
  return project;
};
const finish = (status: string, summary: string) => ({
  say: 'I am done.',
  calls: [{ tool: 'finish', arguments: { status, summary } }],
});
const hang = {
  say: '',
  calls: [{ tool: 'bash', arguments: { command: 'echo $$ > pid; exec sleep 600' } }],
};
const ask = { calls: [{ tool: 'ask', arguments: { question: 'red or blue?' } }] };

const atEnd = endOfFile();
let opened: ReturnType<typeof openProject> | null = null;
/**
 * One project for tests that need no server of their own. What a task is called decides what its
 * agent does: hang, give up, ask, or finish.
 */
const shared = () => {
  if (opened !== null) return opened;
  const script = join(temporaryFolder(atEnd), 'script.json');
  const scripts = [
    { title: 'hang', turns: [hang] },
    { title: 'give up', turns: [finish('failed', 'the tests are red')] },
    { title: 'ask', turns: [ask, finish('done', 'so blue')] },
    { title: '', turns: [finish('done', 'ok')] },
  ];
  writeFileSync(script, JSON.stringify({ scripts }));
  opened = openProject({ api: { backend: 'scripted', script } }, { atEnd });
  return opened;
};
const pidIn = (root: string): string =>
  existsSync(join(root, 'pid')) ? readFileSync(join(root, 'pid'), 'utf8') : '';
/** A task that hangs when it runs; `pid` is not there before. */
const createHanging = async ({ agent, root }: ReturnType<typeof openProject>): Promise<string> => {
  rmSync(join(root, 'pid'), { force: true });
  return (await agent('create', 'hang')).out.trim();
};

const until = async (what: () => boolean): Promise<void> => {
  while (!what()) await new Promise((resolve) => setTimeout(resolve, 20));
};

test('a line of the tracker that cannot be read is named by list and show, with and without a server', async () => {
  const project = openProject();
  const id = (await project.agent('create', 'whole')).out.trim();
  appendFileSync(join(project.root, '.beads', 'issues.jsonl'), '{"id":"bd two","title":"odd"}\n');
  const look = async () => [
    await project.agent('list'),
    await project.agent('show', 'bd-2'),
    await project.agent('show', id),
  ];

  const without = await look();
  await project.agent('server', 'start');
  const withServer = await look();

  for (const [list, missing, whole] of [without, withServer]) {
    expect(list).toMatchObject({
      code: 0,
      err: expect.stringContaining('issues.jsonl line 2 cannot be read'),
    });
    expect(missing).toMatchObject({
      code: 6,
      err: expect.stringContaining('issues.jsonl line 2 cannot be read'),
    });
    expect(whole).toMatchObject({ code: 0 });
  }
});

test('tasks are created, shown, listed and closed without a server', {
  tags: ['slow'],
}, async () => {
  const { program: agent, serverFile, root } = openProject();

  const first = await agent('create', 'Design it');
  const second = await agent(
    'create',
    'Build it\nas designed',
    '--deps',
    first.out.trim(),
    '--priority',
    '1',
    '--role',
    'engineer',
  );
  const ready = await agent('list', '--status', 'queued');
  const shown = await agent('show', second.out.trim());
  const closed = await agent('close', first.out.trim());
  const readyNow = await agent('list', '--status', 'queued', '--json');

  expect(first).toMatchObject({ code: 0, out: expect.stringMatching(/^bd-[a-z0-9]{4}\n$/) });
  expect(ready.out).toMatch(/queued \(ready\) +- +- +\d+s +- +Design it\n$/);
  expect(ready.out).not.toContain('Build it');
  expect(shown.out).toContain(`waits for  ${first.out.trim()}`);
  expect(closed.out).toBe(`${first.out.trim()} complete\n`);
  expect(JSON.parse(readyNow.out)).toMatchObject([
    { task_id: second.out.trim(), ready: true, role: 'engineer', priority: 1 },
  ]);
  expect(serverFile()).toBeNull();
  expect(existsSync(join(root, '.beads', 'issues.jsonl'))).toBe(true);
});

test('a run starts a server, shows its progress, and ends with 0', { tags: ['slow'] }, async () => {
  const { agent, program, serverFile, stateDir } = scripted([finish('done', 'All is well.')]);
  const id = (await agent('create', 'Do it')).out.trim();

  const run = await program('engineer', id);
  const logs = await agent('logs', id);
  const shown = await agent('show', id, '--json');

  expect(run).toMatchObject({ code: 0, err: expect.stringContaining('starting a server') });
  expect(run.out).toContain('started (preparing)');
  expect(run.out).toContain('I am done.');
  expect(run.out).toContain(`All is well.\nresults: .beads/tasks/task-${id}/30-results.md`);
  expect(logs.out).toContain(`${id} complete`);
  expect(JSON.parse(shown.out)).toMatchObject({
    status: 'complete',
    attempt: 1,
    result: 'All is well.',
  });
  expect(serverFile()).toMatchObject({
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    version: '2.1.0',
  });
  expect(readFileSync(join(stateDir, 'server.log'), 'utf8')).toContain('Agent Task Server 2.1.0');
});

test('--json gives one frame per line, ending with stream_closed', async () => {
  const { agent } = shared();
  const id = (await agent('create', 'Do it')).out.trim();

  const { out, code } = await agent('tester', id, '--json');

  const frames = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(code).toBe(0);
  expect(frames.slice(-2).map(({ type }) => type)).toEqual(['completed', 'stream_closed']);
  expect(frames.every(({ task_id }) => task_id === id)).toBe(true);
});

test('--async returns at once, and the work continues without the client', async () => {
  const { agent, root } = shared();
  const id = (await agent('create', 'Do it')).out.trim();

  const started = await agent('--async', 'engineer', id);
  await until(() => existsSync(join(root, '.beads', 'tasks', `task-${id}`, '30-results.md')));
  const followed = await agent('logs', '-f', id);

  expect(started).toMatchObject({
    code: 0,
    out: expect.stringContaining('continues in the background'),
  });
  expect(followed.code).toBe(0);
  expect(followed.out).toContain('ok');
});

test('a failed run ends with 1 and says why', async () => {
  const { agent, program } = shared();
  const id = (await agent('create', 'give up')).out.trim();

  const run = await program('engineer', id);

  expect(run.code).toBe(1);
  expect(run.out).toContain('failed: the agent gave up: the tests are red');
});

test('Ctrl-C cancels the task, stops its processes and ends with 130', async () => {
  const { agent, start, collect, root } = shared();
  const id = await createHanging(shared());
  const child = start('agent', ['engineer', id]);
  const ended = collect(child);
  await until(() => pidIn(root) !== '');
  const pid = Number(pidIn(root));

  child.kill('SIGINT');

  expect((await ended).code).toBe(130);
  expect(() => process.kill(pid, 0)).toThrow();
  expect(JSON.parse((await agent('show', id, '--json')).out).status).toBe('cancelled');
});

test('a cancel from elsewhere ends the run with 5', async () => {
  const { agent, program, root } = shared();
  const id = await createHanging(shared());
  const run = program('engineer', id);
  await until(() => pidIn(root) !== '');

  const cancelled = await agent('cancel', id, '--reason', 'not now');

  expect(cancelled).toMatchObject({ code: 0, out: `${id} cancelled\n` });
  expect((await run).code).toBe(5);
});

test.each<[string, readonly string[], number, string]>([
  ['an unknown id', ['show', 'bd-none'], 3, 'task bd-none does not exist'],
  ['a run of an unknown id', ['engineer', 'bd-none'], 3, 'task bd-none does not exist'],
  ['a path for an id', ['show', '../x'], 3, 'task ../x does not exist'],
  ['a path to run', ['engineer', '../x'], 3, 'task ../x does not exist'],
  ['dots to run', ['engineer', '..'], 3, 'task .. does not exist'],
  ['a flag for an id', ['show', '-x'], 2, 'unknown flag: -x'],
  ['an empty id', ['show', ''], 2, 'task_id: is empty'],
  ['an empty id to run', ['engineer', ''], 2, 'task_id: is empty'],
  ['a path to cancel', ['cancel', '../x'], 3, 'task ../x does not exist'],
  ['200 characters', ['show', 'x'.repeat(200)], 3, 'does not exist'],
  [
    'an unknown role',
    ['janitor', 'bd-none'],
    2,
    'unknown role "janitor"; the roles are engineer, tester, reviewer',
  ],
  ['an unknown command', ['frobnicate'], 2, 'unknown command: frobnicate'],
  ['an unknown flag', ['list', '--speed'], 2, 'unknown flag: --speed'],
  ['an unknown dependency', ['create', 'x', '--deps', 'bd-none'], 3, 'task bd-none does not exist'],
  ['an empty description', ['create', ''], 2, 'description: is empty'],
  ['priority 7', ['create', 'x', '--priority', '7'], 2, 'priority: '],
  ['a project that is not there', ['list', '--project', '/nowhere/at/all'], 2, 'does not exist'],
])('%s ends with its exit code, one line, and nothing written', async (_, args, code, message) => {
  const { agent, root, serverFile } = openProject();

  const ended = await agent(...args);

  expect(ended).toMatchObject({ code, out: '' });
  expect(ended.err).toContain(message);
  expect(ended.err).not.toMatch(/\n\s+at /);
  expect(existsSync(join(root, '.beads', 'issues.jsonl'))).toBe(false);
  if (args[1] !== 'bd-none') expect(serverFile()).toBeNull();
});

test('an unmet dependency ends with 4 and its id, a second run with 4 and its attempt', async () => {
  const { agent, program } = shared();
  const first = await createHanging(shared());
  const second = (await agent('create', 'second', '--deps', first)).out.trim();

  const unmet = await agent('engineer', second, '--json');
  await agent('--async', 'engineer', first);
  const twice = await program('engineer', first);

  expect(unmet.code).toBe(4);
  expect(
    unmet.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .at(-1),
  ).toEqual({
    error: {
      code: 'dependencies_unmet',
      message: `task has unmet dependencies [${first}]`,
      task_id: second,
      unmet: [first],
    },
  });
  expect(twice).toMatchObject({
    code: 4,
    err: expect.stringContaining('already running as attempt 1'),
  });
  await agent('cancel', first);
});

test('without a key a run is refused with 7 and says what to do', { tags: ['slow'] }, async () => {
  const { agent, program } = openProject({});
  const id = (await agent('create', 'Do it')).out.trim();

  const refused = await program('engineer', id);
  const scriptedRun = await agent('engineer', id, '--model', 'scripted');

  expect(refused).toMatchObject({
    code: 7,
    err: expect.stringContaining('OPENAI_API_KEY is not set'),
  });
  expect(scriptedRun.code).toBe(0);
  expect(scriptedRun.out).toContain('no language model was called');
});

test('--no-start refuses to start a server, with 6', async () => {
  const { agent, program, serverFile } = openProject();
  const id = (await agent('create', 'Do it')).out.trim();

  expect(await program('engineer', id, '--no-start')).toMatchObject({
    code: 6,
    err: expect.stringContaining('no server runs'),
  });
  expect(serverFile()).toBeNull();
});

test('two runs at once start one server', async () => {
  const { agent } = scripted([finish('done', 'ok')]);
  const ids = [
    (await agent('create', 'one')).out.trim(),
    (await agent('create', 'two')).out.trim(),
  ];

  const runs = await Promise.all(ids.map((id) => agent('engineer', id)));

  expect(runs.map(({ code }) => code)).toEqual([0, 0]);
});

test("another program on the server's port gets no token", async () => {
  const { agent, stateDir } = openProject();
  const id = (await agent('create', 'Do it')).out.trim();
  const heard: string[] = [];
  const { createServer } = await import('node:http');
  const stranger = createServer((request, response) => {
    heard.push(JSON.stringify([request.url, request.headers]));
    response.end('{"status":"healthy","proof":"made-up"}');
  });
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
  const address = stranger.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const url = `http://127.0.0.1:${port}`;
  writeFileSync(
    join(stateDir, 'server.json'),
    JSON.stringify({ url, pid: 1, version: '2.1.0', started_at: new Date().toISOString() }),
  );

  const ended = await agent('engineer', id, '--no-start');

  stranger.close();
  rmSync(join(stateDir, 'server.json'));
  expect(ended.code).toBe(6);
  expect(heard).toHaveLength(1);
  expect(heard.join()).not.toContain(readFileSync(join(stateDir, 'token'), 'utf8').trim());
});

test('agent alone, help, -h and --help print the same help on stdout, help <command> that of the command', async () => {
  const { agent, program } = openProject();
  const help = await agent('--help');

  expect(help).toMatchObject({
    code: 0,
    err: '',
    out: expect.stringContaining('  create        Create a task'),
  });
  expect(await program('--help')).toEqual(help);
  for (const words of [[], ['help'], ['-h']]) expect(await agent(...words)).toEqual(help);
  expect(await agent('help', 'create')).toEqual(await agent('create', '--help'));
  expect(await agent('version')).toEqual(await agent('--version'));
});

test.each(['agent', 'agent-server'] as const)(
  '%s speaks English whatever the language of the terminal',
  async (name) => {
    const { start, collect } = openProject();

    const { out } = await collect(start(name, ['--help'], { LC_ALL: 'de_DE.UTF-8' }));

    expect(out).toContain('Usage:');
    expect(out).toContain('Show help');
  },
);

test('every command has help with an example', async () => {
  const { agent } = openProject();
  const help = (await agent('--help')).out;
  const names = [...help.matchAll(/^ {2}([a-z-]+)(?:, \w+)* +[A-Z]/gm)].map(
    ([, name]) => name ?? '',
  );

  expect(names).toEqual(
    expect.arrayContaining([
      'create',
      'engineer',
      'product-manager',
      'show',
      'list',
      'close',
      'cancel',
      'logs',
    ]),
  );
  for (const name of names) expect((await agent(name, '--help')).out).toContain(`agent ${name}`);
});

test('dependencies are added, shown and removed; a cycle ends with 4 and its names', async () => {
  const { agent } = openProject();
  const [one, two] = [
    (await agent('create', 'one')).out.trim(),
    (await agent('create', 'two')).out.trim(),
  ];

  const added = await agent('dep', 'add', two, one);
  const cycle = await agent('dep', 'add', one, two);
  const tree = await agent('dep', 'tree', two);
  const removed = await agent('dep', 'remove', two, one);
  const three = (await agent('create', 'three')).out.trim();
  const both = await agent('dep', 'add', three, one, two);
  const half = await agent('dep', 'add', two);

  expect(added).toMatchObject({ code: 0, out: `${two} depends on ${one}\n` });
  expect(cycle).toMatchObject({
    code: 4,
    err: expect.stringContaining(`would close a cycle: ${one} -> ${two} -> ${one}`),
  });
  expect(tree.out).toBe(`${two}  queued  two\n  ${one}  queued  one\n`);
  expect(removed).toMatchObject({ code: 0, out: `${two} depends on nothing\n` });
  expect(both).toMatchObject({ code: 0, out: `${three} depends on ${one}, ${two}\n` });
  expect(half).toMatchObject({ code: 2, err: expect.stringContaining('needs two task ids') });
});

test('wait ends with 0 when all are complete, with 124 when the time is up; explain says why', async () => {
  const { agent, program, root } = shared();
  const [busy, closed] = [
    await createHanging(shared()),
    (await agent('create', 'closed')).out.trim(),
  ];
  await agent('close', closed);
  await agent('--async', 'engineer', busy);
  await until(() => pidIn(root) !== '');

  const late = await program('wait', busy, closed, '--timeout', '1');
  const why = await agent('explain', busy);
  await agent('cancel', busy);

  expect(late).toMatchObject({ code: 124, out: `${busy} started\n${closed} complete\n` });
  expect(why.out).toContain(`${busy} is started (`);
  expect(why.out).toMatch(/^ {2}yes {2}its dependencies are complete$/m);
  expect(why.out).toContain('may now: cancel');
  expect(await agent('wait', busy)).toMatchObject({ code: 5 });
  expect(await agent('wait', closed)).toMatchObject({ code: 0 });
});

test('the server is started, asked and stopped by the CLI, and its token replaced while it runs', {
  tags: ['slow'],
}, async () => {
  const { agent, program, stateDir, serverFile } = openProject();

  const none = await agent('server', 'status');
  const started = await program('server', 'start');
  const before = (await agent('token')).out.trim();
  await agent('token', 'rotate');
  const answer = await fetch(`${serverFile().url}/metrics`, {
    headers: { authorization: `Bearer ${before}` },
  });
  const after = await agent('server', 'status', '--json');
  const stopped = await program('server', 'stop');

  expect(none.code).toBe(6);
  expect(started).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^http:\S+ is healthy\n {2}project {4}/),
  });
  expect(answer.status).toBe(401);
  expect(readFileSync(join(stateDir, 'token'), 'utf8').trim()).not.toBe(before);
  expect(JSON.parse(after.out)).toMatchObject({ running: true, health: { status: 'healthy' } });
  expect(stopped).toMatchObject({ code: 0, out: expect.stringContaining('has stopped') });
  expect((await agent('server', 'status')).code).toBe(6);
});

test('init sets up a project, and repeating it changes nothing', async () => {
  const { agent, root } = openProject();

  const first = await agent('init');
  const second = await agent('init');

  const wrote = ['issues.jsonl', '.gitignore'].map((name) => join(root, '.beads', name));
  expect(first.out).toBe(wrote.map((path) => `wrote ${path}\n`).join(''));
  expect(second).toMatchObject({ code: 0, out: expect.stringContaining('already exists') });
  expect((await agent('list', '--json')).out).toBe('[]\n');
});

test('git ignores results and takes the tasks after init, which leaves a file of yours', async () => {
  const [fresh, own] = [openProject(), openProject()];
  gitIn(fresh.root, 'init', '--quiet');
  mkdirSync(join(own.root, '.beads'));
  writeFileSync(join(own.root, '.beads', '.gitignore'), '# mine\n');

  await fresh.agent('init');
  const kept = await own.agent('init');
  mkdirSync(join(fresh.root, '.beads', 'tasks', 'task-bd-a'), { recursive: true });
  writeFileSync(join(fresh.root, '.beads', 'tasks', 'task-bd-a', '30-results.md'), 'x');
  writeFileSync(join(fresh.root, '.beads', '.~issues.jsonl.0123456789ab'), 'x');

  expect(gitIn(fresh.root, 'status', '--porcelain', '--untracked-files=all')).toBe(
    '?? .beads/.gitignore\n?? .beads/issues.jsonl',
  );
  expect(kept.out).toBe(`wrote ${join(own.root, '.beads', 'issues.jsonl')}\n`);
  expect(readFileSync(join(own.root, '.beads', '.gitignore'), 'utf8')).toBe('# mine\n');
});

test('a long list is written whole to a pipe, and a reader that stops early is no error', {
  tags: ['slow'],
}, async () => {
  const { shell, root, start, collect } = openProject();
  mkdirSync(join(root, '.beads'));
  const line = (n: number) =>
    JSON.stringify({
      id: `bd-x${n}`,
      title: `task ${n} ${'x'.repeat(60)}`,
      status: 'open',
      priority: 2,
      created_at: '2026-01-01T00:00:00Z',
      updated_at: '2026-01-01T00:00:00Z',
    });
  writeFileSync(
    join(root, '.beads', 'issues.jsonl'),
    Array.from({ length: 3_000 }, (_, n) => line(n)).join('\n'),
  );

  const { out } = await shell('$AGENT list | { read first; sleep 1; wc -l; }');
  const early = start('agent', ['list']);
  early.stdout?.once('data', () => early.stdout?.destroy());

  expect(out.trim()).toBe('3000');
  expect(await collect(early)).toMatchObject({
    code: 0,
    err: expect.not.stringContaining('EPIPE'),
  });
});

test('doctor says what is used and what is missing, and never a key', async () => {
  const { agent, program, agentWith, configFile } = openProject({
    server: { port: 0, max_concurrent_agents: 2 },
  });

  const missing = await agent('doctor');
  const ready = await agentWith({ OPENAI_API_KEY: 'sk-canary-0123456789' }, 'doctor', '--json');
  writeFileSync(configFile, '{"sever":{}}');
  const broken = await program('doctor');

  expect(missing).toMatchObject({
    code: 1,
    out: expect.stringMatching(/problem +model +OPENAI_API_KEY is not set/),
  });
  expect(missing.out).toContain(`ok       config        ${configFile}`);
  expect(ready.code).toBe(0);
  expect(JSON.parse(ready.out)).toMatchObject({
    config: { server: { max_concurrent_agents: 2, queue_limit: 10_000 } },
  });
  expect(ready.out + ready.err).not.toContain('sk-canary');
  expect(broken).toMatchObject({
    code: 78,
    err: expect.stringContaining('sever: is not known here; did you mean server?'),
  });
});

test.each([
  ['the variables', (baseURL: string) => ({ env: { OPENAI_BASE_URL: baseURL }, api: {} })],
  ['the configured address', (baseURL: string) => ({ env: {}, api: { base_url: baseURL } })],
  [
    'the proxy',
    (baseURL: string) => ({
      env: {},
      api: { mode: 'proxy', proxy: { type: 'generic', base_url: baseURL } },
    }),
  ],
])('a run calls the provider by %s with the key, and no other address', async (_, by) => {
  const provider = await startModelServer((_request, number) =>
    number === 1
      ? {
          kind: 'answer',
          text: 'I write.',
          calls: [{ id: 'a', name: 'write', arguments: '{"path":"hello.txt","content":"hi"}' }],
        }
      : {
          kind: 'answer',
          calls: [
            { id: 'b', name: 'finish', arguments: '{"status":"done","summary":"wrote hello.txt"}' },
          ],
        },
  );
  const { env, api } = by(provider.baseURL);
  const { agent, agentWith, root } = openProject({ api: { provider_model: 'some-model', ...api } });
  const id = (await agent('create', 'Say hi in hello.txt')).out.trim();

  const run = await agentWith({ ...env, OPENAI_API_KEY: 'sk-canary-0123456789' }, 'engineer', id);

  expect(run).toMatchObject({ code: 0, out: expect.stringContaining('wrote hello.txt') });
  expect(readFileSync(join(root, 'hello.txt'), 'utf8')).toBe('hi');
  expect(provider.requests).toHaveLength(2);
  for (const { headers, body } of provider.requests) {
    expect(headers.authorization).toBe('Bearer sk-canary-0123456789');
    expect(body['model']).toBe('some-model');
  }
  expect(
    run.out +
      run.err +
      readFileSync(join(root, '.beads', 'tasks', `task-${id}`, '30-results.md'), 'utf8'),
  ).not.toContain('sk-canary');
});

test('completion names the shells that it knows', async () => {
  const { agent } = openProject();

  const other = await agent('completion', 'tcsh');

  expect(other).toMatchObject({ code: 2, err: expect.stringContaining('bash, zsh, fish') });
});

test('a watched run shows a question, and another terminal answers it', async () => {
  const { agent } = shared();
  const id = (await agent('create', 'ask')).out.trim();
  await agent('server', 'start');
  const watched = agent('engineer', id);
  let asked = await agent('respond', id, '--json');
  while (asked.code === 4) asked = await agent('respond', id, '--json');

  const answered = await agent('respond', id, 'blue');
  const again = await agent('respond', id, 'blue');

  expect(asked).toMatchObject({
    code: 2,
    err: expect.stringContaining(`agent respond ${id} "<answer>"`),
  });
  expect(JSON.parse(asked.out)).toMatchObject({
    kind: 'input',
    question: 'red or blue?',
    error: { code: 'usage' },
  });
  expect(answered).toMatchObject({ code: 0, out: expect.stringContaining(`${id} started`) });
  expect(again.code).toBe(4);
  const { code, out } = await watched;
  expect(code).toBe(0);
  expect(out).toContain(`asks: red or blue?; answer with: agent respond ${id}`);
  expect(out).toContain('so blue');
});

test('create --run creates and runs a task', async () => {
  const { agent } = scripted([finish('done', 'at once')]);

  const ran = await agent('create', 'Do it now', '--role', 'engineer', '--run');
  const without = await agent('create', 'Do it now', '--run');

  expect(ran).toMatchObject({
    code: 0,
    out: expect.stringContaining('at once'),
    err: expect.stringContaining('created bd-'),
  });
  expect(without.code).toBe(2);
  expect(JSON.parse((await agent('list', '--json')).out)).toHaveLength(1);
});

test.each([
  [['lst'], 'unknown command: lst; did you mean: agent list?'],
  [['shwo', 'bd-a1'], 'unknown command: shwo; did you mean: agent show?'],
  [['enginer', 'bd-a1'], 'did you mean: agent engineer?'],
])('%j suggests the right one', async (words, message) => {
  const { agent } = openProject();

  expect(await agent(...words)).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringContaining(message),
  });
});

test('a folder inside the project and --project from elsewhere mean the same project', {
  tags: ['slow'],
}, async () => {
  const { shell, root } = scripted([finish('done', 'from afar')]);
  const id = (await shell('mkdir -p deep/er && cd deep/er && $AGENT create "Do it"')).out.trim();

  const run = await shell(`cd deep/er && $AGENT engineer ${id}`);
  const elsewhere = await shell(
    `cd / && $AGENT show ${id} --json --project ${JSON.stringify(root)}`,
  );

  expect(run).toMatchObject({ code: 0, out: expect.stringContaining('from afar') });
  expect(JSON.parse(elsewhere.out)).toMatchObject({ task_id: id, status: 'complete' });
  expect(existsSync(join(root, '.beads', 'tasks', `task-${id}`, '30-results.md'))).toBe(true);
  expect(existsSync(join(root, 'deep', 'er', '.beads'))).toBe(false);
});

test('a run whose server dies does not end with 0', { tags: ['slow'] }, async () => {
  const { agent, root, stopServer } = scripted([hang], true);
  const id = (await agent('create', 'Do it')).out.trim();
  const run = agent('engineer', id);
  await until(
    () => existsSync(join(root, 'pid')) && readFileSync(join(root, 'pid'), 'utf8') !== '',
  );

  await stopServer('SIGKILL');

  const { code, err } = await run;
  expect(code).toBe(6);
  expect(err).toContain("'agent server status' says whether it runs, and names its log");
  process.kill(Number(readFileSync(join(root, 'pid'), 'utf8')), 'SIGKILL');
});

test('a state folder that two projects share never mixes their tasks', {
  tags: ['slow'],
}, async () => {
  const { agent, server, root, stateDir, stopServer } = openProject();
  const other = temporaryFolder();
  await agent('server', 'start');

  const created = await agent('create', 'for the other', '--project', other);
  const served = await server('--server', '--project', other);
  await stopServer();
  const later = await agent('create', 'for the other', '--project', other);
  const ran = await agent('engineer', later.out.trim(), '--project', other);
  const listed = await agent('list', '--json');

  for (const ended of [created, served])
    expect(ended).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining(
        `the state folder ${stateDir} is in use by the server of ${root}`,
      ),
    });
  expect([later.code, ran.code]).toEqual([0, 0]);
  expect(
    existsSync(join(other, '.beads', 'tasks', `task-${later.out.trim()}`, '30-results.md')),
  ).toBe(true);
  expect(listed).toMatchObject({
    code: 2,
    err: expect.stringContaining(`in use by the server of ${other}`),
  });
  await agent('server', 'stop', '--project', other);
  expect(await agent('list', '--json')).toMatchObject({ code: 0, out: '[]\n' });
});
