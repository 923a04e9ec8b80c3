import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { ErrorCode } from '../../src/machines/errors.ts';
import { openProject } from '../support/cli.ts';
import { startModelServer } from '../support/model-server.ts';
import { endOfFile, temporaryFolder } from '../support/temporary.ts';

/** Every error over HTTP, with its codes, and by CLI, with its exit code. */

const turn = (tool: string, args: object) => ({ calls: [{ tool, arguments: args }] });
const finish = (status = 'done') => turn('finish', { status, summary: 'so it is' });
const scripts = [
  { title: 'hangs', turns: [turn('bash', { command: 'exec sleep 600' })] },
  { title: 'asks', turns: [turn('ask', { question: 'red or blue?' }), finish()] },
  { title: 'gives up', turns: [finish('failed')] },
  { title: 'repeats', turns: Array.from({ length: 9 }, () => turn('find', { pattern: '*.none' })) },
  { title: 'talks', turns: Array.from({ length: 9 }, () => ({ say: 'well', calls: [] })) },
  { title: '', turns: [finish()] },
];

const open = (config: object = {}, options: Parameters<typeof openProject>[1] = {}) => {
  const script = join(temporaryFolder(atEnd), 'script.json');
  writeFileSync(script, JSON.stringify({ scripts }));
  return openProject({ api: { backend: 'scripted', script }, ...config }, options);
};
type Project = ReturnType<typeof open>;

const atEnd = endOfFile();
let opened: Project | null = null;
/** With a server that runs from its first use to the end of the file. */
const shared = (): Project => {
  opened ??= open({}, { atEnd });
  return opened;
};

const http = async (project: Project, path: string, init: RequestInit = {}, token?: string) => {
  const { url } = project.serverFile();
  const own = readFileSync(join(project.stateDir, 'token'), 'utf8').trim();
  const headers = {
    authorization: `Bearer ${token ?? own}`,
    'content-type': 'application/json',
    ...init.headers,
  };
  const response = await fetch(`${url}${path}`, { ...init, headers });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === '' ? null : JSON.parse(text),
  };
};
const call = async (project: Project, method: string, params: object) =>
  (
    await http(project, '/a2a/execute', {
      method: 'POST',
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
  ).body;

const created = async ({ agent }: Project, ...words: string[]): Promise<string> =>
  (await agent('create', ...words)).out.trim();

interface Provoked {
  readonly project: Project;
  readonly method: string;
  readonly params: object;
  readonly words: readonly string[];
}

/**
 * `internal` is what the code cannot foresee; the full disk below provokes it. `forbidden` needs a token of
 * its own; `rights.test.ts` provokes it. Before `project_refused` there is no server to ask;
 * `refused-projects.test.ts` provokes it.
 */
type ForeseenError = Exclude<ErrorCode, 'internal' | 'project_refused' | 'forbidden'>;

const provoked: Readonly<
  Record<ForeseenError, readonly [rpc: number, exit: number, provoke: () => Promise<Provoked>]>
> = {
  task_not_found: [
    -32001,
    3,
    async () => ({
      project: shared(),
      method: 'status',
      params: { task_id: 'bd-none' },
      words: ['show', 'bd-none'],
    }),
  ],
  dependencies_unmet: [
    -32010,
    4,
    async () => {
      const project = shared();
      const id = await created(project, 'second', '--deps', await created(project, 'first'));
      return {
        project,
        method: 'execute',
        params: { task_id: id, role: 'engineer' },
        words: ['engineer', id],
      };
    },
  ],
  dependency_cycle: [
    -32011,
    4,
    async () => {
      const project = shared();
      const first = await created(project, 'first');
      const second = await created(project, 'second', '--deps', first);
      const params = { task_id: first, depends_on: second };
      return { project, method: 'add_dependency', params, words: ['dep', 'add', first, second] };
    },
  ],
  already_running: [
    -32012,
    4,
    async () => {
      const project = shared();
      const id = await created(project, 'hangs');
      await project.agent('--async', 'engineer', id);
      return {
        project,
        method: 'execute',
        params: { task_id: id, role: 'tester' },
        words: ['tester', id],
      };
    },
  ],
  event_not_allowed: [
    -32013,
    4,
    async () => {
      const project = shared();
      const id = await created(project, 'one');
      return { project, method: 'reopen', params: { task_id: id }, words: ['reopen', id] };
    },
  ],
  role_unknown: [
    -32014,
    2,
    async () => {
      const project = shared();
      const id = await created(project, 'one');
      return {
        project,
        method: 'execute',
        params: { task_id: id, role: 'janitor' },
        words: ['janitor', id],
      };
    },
  ],
  queue_full: [
    -32015,
    6,
    async () => {
      const project = open({ server: { port: 0, max_concurrent_agents: 1, queue_limit: 1 } });
      for (const title of ['hangs', 'waits'])
        await project.agent('--async', 'engineer', await created(project, title));
      const id = await created(project, 'too many');
      return {
        project,
        method: 'execute',
        params: { task_id: id, role: 'engineer' },
        words: ['engineer', id],
      };
    },
  ],
  credential_missing: [
    -32016,
    7,
    async () => {
      const project = openProject({});
      const id = await created(project, 'one');
      return {
        project,
        method: 'execute',
        params: { task_id: id, role: 'engineer' },
        words: ['engineer', id],
      };
    },
  ],
  tracker_unavailable: [
    -32017,
    6,
    async () => {
      const project = open();
      await created(project, 'one');
      const file = join(project.root, '.beads', 'issues.jsonl');
      rmSync(file);
      symlinkSync('/dev/null', file);
      return { project, method: 'create', params: { description: 'x' }, words: ['create', 'x'] };
    },
  ],
  tracker_conflict: [
    -32018,
    4,
    async () => {
      const project = open();
      const id = await created(project, 'one');
      const file = join(project.root, '.beads', 'issues.jsonl');
      const issue = JSON.parse(readFileSync(file, 'utf8'));
      writeFileSync(
        file,
        `${JSON.stringify({ ...issue, status: 'in_progress', assignee: 'somebody' })}\n`,
      );
      return {
        project,
        method: 'execute',
        params: { task_id: id, role: 'engineer' },
        words: ['engineer', id],
      };
    },
  ],
  stale_attempt: [
    -32019,
    4,
    async () => {
      const project = shared();
      const id = await created(project, 'asks');
      await project.agent('--async', 'engineer', id);
      for (let task = null; task?.awaiting === undefined; )
        task = JSON.parse((await project.agent('show', id, '--json')).out);
      const params = { task_id: id, attempt: 9, input_id: 'input-1', text: 'blue' };
      return {
        project,
        method: 'respond',
        params,
        words: ['respond', id, 'blue', '--attempt', '9'],
      };
    },
  ],
  invalid_params: [
    -32602,
    2,
    async () => ({
      project: shared(),
      method: 'create',
      params: { description: 'x', priority: 7 },
      words: ['create', 'x', '--priority', '7'],
    }),
  ],
};

test.each(Object.entries(provoked))('%s', async (name, [rpc, exit, provoke]) => {
  const { project, method, params, words } = await provoke();
  await project.agent('server', 'start');

  const answer = await call(project, method, params);
  const ended = await project.agent(...words, '--json');

  expect(answer).toMatchObject({ id: 1, error: { code: rpc, data: { code: name } } });
  expect(ended.code).toBe(exit);
  const said = JSON.parse(ended.out.trim().split('\n').at(-1) ?? '').error;
  if (name !== 'role_unknown') expect(said).toMatchObject({ code: name });
  expect(`${ended.err}${JSON.stringify(answer)}`).not.toMatch(/\n\s+at |node_modules/);
});

test('an error before a method has its HTTP status, its name, and no stack', async () => {
  const project = shared();
  await project.agent('server', 'start');
  const post = (body: string, headers: Record<string, string> = {}) =>
    http(project, '/a2a/execute', { method: 'POST', body, headers });
  const rpc = (method: string) => JSON.stringify({ jsonrpc: '2.0', id: 1, method });

  const answers = {
    parse_error: await post('{'),
    invalid_request: await post('[]'),
    method_not_found: await post(rpc('fly')),
    payload_too_large: await post(JSON.stringify({ text: 'x'.repeat(1024 * 1024) })),
    unsupported_media_type: await post(rpc('list'), { 'content-type': 'text/plain' }),
    unauthorized: await http(project, '/metrics', {}, 'wrong'),
    forbidden: await http(project, '/metrics', { headers: { origin: 'http://evil.example' } }),
    task_not_found: await http(project, '/stream/bd-none'),
    not_found: await http(project, '/nowhere'),
  };

  expect(
    Object.entries(answers).map(([name, { status, body }]) => [
      name,
      status,
      body.error.data?.code ?? body.error.code,
    ]),
  ).toEqual([
    ['parse_error', 400, 'parse_error'],
    ['invalid_request', 400, 'invalid_request'],
    ['method_not_found', 200, 'method_not_found'],
    ['payload_too_large', 413, 'payload_too_large'],
    ['unsupported_media_type', 415, 'unsupported_media_type'],
    ['unauthorized', 401, 'unauthorized'],
    ['forbidden', 403, 'forbidden'],
    ['task_not_found', 404, 'task_not_found'],
    ['not_found', 404, 'not_found'],
  ]);
  expect(
    [answers.parse_error, answers.invalid_request, answers.method_not_found].map(
      ({ body }) => body.error.code,
    ),
  ).toEqual([-32700, -32600, -32601]);
  expect(JSON.stringify(answers)).not.toMatch(/\\n\s+at |node_modules/);
});

test('a token that others can read is refused with 8', async () => {
  const project = shared();
  await project.agent('server', 'start');
  chmodSync(join(project.stateDir, 'token'), 0o644);

  expect(await project.agent('list')).toMatchObject({
    code: 8,
    err: expect.stringContaining('is readable by others'),
  });
  chmodSync(join(project.stateDir, 'token'), 0o600);
});

test.each([
  ['budget_exceeded', 'asks', ['--max-turns', '1']],
  ['timed_out', 'hangs', ['--timeout', '1']],
  ['loop_detected', 'repeats', []],
  ['model_failed', 'gives up', []],
  ['verify_failed', 'done', ['--verify', 'exit 3']],
])(
  'an attempt that ends with %s makes the CLI exit with 1, and the task says why',
  async (code, title, flags) => {
    const project = shared();
    const id = await created(project, title);

    const running = project.agent('engineer', id, ...flags);
    if (title === 'asks') {
      for (let answered = null; answered !== 0; )
        answered = (await project.agent('respond', id, 'blue')).code;
    }
    const ended = await running;

    expect(ended.code).toBe(1);
    expect((await call(project, 'status', { task_id: id })).result).toMatchObject({
      status: 'failed',
      error: { code },
    });
  },
);

test('an answer cut at its token limit makes the CLI exit with 1, and none of its calls runs', async () => {
  const call = { name: 'bash', arguments: '{"command":"touch cut"}' };
  const { baseURL } = await startModelServer(() => ({
    kind: 'answer',
    calls: [call],
    finish: 'length',
  }));
  const project = openProject({ api: { base_url: baseURL } });
  const id = await created(project, 'one');

  const ended = await project.agentWith({ OPENAI_API_KEY: 'key-of-nobody' }, 'engineer', id);

  expect(ended.code).toBe(1);
  const { status, error } = JSON.parse((await project.agent('show', id, '--json')).out);
  expect([status, error.code]).toEqual(['failed', 'output_truncated']);
  expect(existsSync(join(project.root, 'cut'))).toBe(false);
});

const mounted = (folder: string, ...options: readonly string[]): boolean =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', options.join(','), 'tmpfs', folder]).status === 0;

test('a state folder that cannot be written is named in the error, and nothing is left behind', async () => {
  const project = open({}, { ownServer: true });
  const file = join(temporaryFolder(), 'a-file');
  writeFileSync(file, '');

  const ended = await project.agentWith(
    { AGENT_STATE_DIR: join(file, 'state') },
    'server',
    'start',
  );

  expect(ended.code).toBe(6);
  expect(ended.err).toContain(`the state folder ${join(file, 'state')} cannot be used (ENOTDIR`);
  expect(ended.err).not.toMatch(/\n\s+at /);
  expect(readFileSync(file, 'utf8')).toBe('');
});

test('a state folder on a read-only file system is said by name', {
  tags: ['slow', 'root'],
}, async (context) => {
  const project = open({}, { ownServer: true });
  mkdirSync(project.stateDir, { mode: 0o700 });
  if (!mounted(project.stateDir, 'ro', 'mode=0700'))
    context.skip('needs the right to mount a small file system');
  onTestFinished(() => void spawnSync('umount', ['-l', project.stateDir]));

  const started = await project.agent('server', 'start');
  const served = await project.server('--server');
  const made = await project.agent('create', 'one');

  expect(started).toMatchObject({
    code: 6,
    err: expect.stringContaining(`the state folder ${project.stateDir} cannot be used (EROFS`),
  });
  expect(served).toMatchObject({
    code: 1,
    out: '',
    err: expect.stringContaining('set AGENT_STATE_DIR to another'),
  });
  expect(made).toMatchObject({ code: 6, err: expect.stringContaining('EROFS') });
  expect(await project.agent('doctor')).toMatchObject({
    code: 1,
    out: expect.stringMatching(/problem +state +\S+ cannot be used \(EROFS/),
  });
});

test('a full state folder is named in the error, acknowledged tasks stay, and free space restores service', {
  tags: ['slow', 'root'],
}, async (context) => {
  const project = open({}, { ownServer: true });
  mkdirSync(project.stateDir, { mode: 0o700 });
  if (!mounted(project.stateDir, 'size=1m', 'mode=0700'))
    context.skip('needs the right to mount a small file system');
  onTestFinished(async () => {
    await project.stopServer();
    spawnSync('umount', ['-l', project.stateDir]);
  });
  const id = await created(project, 'one');
  await project.agent('server', 'start');
  const ballast = join(project.stateDir, 'ballast');
  const fill = (): void => {
    for (let size = 1024 * 1024; size >= 512; size /= 2)
      try {
        appendFileSync(ballast, Buffer.alloc(size));
      } catch {}
  };
  fill();

  const refused = await call(project, 'execute', { task_id: id, role: 'engineer' });
  const health = await http(project, '/health');
  const ended = await project.agent('engineer', id);
  const shown = await call(project, 'status', { task_id: id });
  const doctor = await project.agent('doctor');
  expect(doctor).toMatchObject({
    code: 1,
    out: expect.stringMatching(/problem +server +running .*its store is failing/),
  });
  rmSync(ballast);
  let again = await call(project, 'execute', { task_id: id, role: 'engineer' });
  while (again.error?.data.code === 'internal')
    again = await call(project, 'execute', { task_id: id, role: 'engineer' });
  await project.agent('wait', id);

  expect(refused.error.data).toEqual({ code: 'internal' });
  expect(refused.error.message).toMatch(/the journal .* cannot be written: .*full/);
  expect(ended).toMatchObject({ code: 1, err: expect.stringContaining('cannot be written') });
  expect(ended.err).not.toMatch(/\n\s+at /);
  expect(health.body.checks.store).toMatchObject({ status: 'failing' });
  expect(shown.result.task_id).toBe(id);
  expect((await call(project, 'status', { task_id: id })).result.status).toBe('complete');
});
