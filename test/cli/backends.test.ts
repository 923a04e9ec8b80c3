import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { fakeProgram, runsIn } from '../support/assistants.ts';
import { openProject, plain } from '../support/cli.ts';
import { noSandbox, testUnless } from '../support/needs.ts';
import { temporaryFolder } from '../support/temporary.ts';

/** A PATH on which the fakes have the names of the real programs. */
const pathWith = (...names: readonly ('codex' | 'claude' | 'opencode')[]): string => {
  const folder = temporaryFolder();
  for (const name of names)
    symlinkSync(fakeProgram(name === 'opencode' ? 'acp' : name), join(folder, name));
  return [folder, process.env['PATH']].join(delimiter);
};

const passed = { pass_environment: ['FAKE_LOGGED_IN'] };

test('without a key, a codex that is logged in does the work, and banner, doctor and run say so', async () => {
  const project = openProject({ ...plain, api: passed });
  const env = { PATH: pathWith('codex', 'claude'), FAKE_LOGGED_IN: 'codex,claude' };
  const before = await project.agentWith(env, 'doctor');
  await project.agentWith(env, 'server', 'start');
  const id =
    (await project.agentWith(env, 'create', 'play: well')).out.trim().split(/\s+/)[0] ?? '';

  const ran = await project.agentWith(env, 'engineer', id);
  const log = readFileSync(join(project.stateDir, 'server.log'), 'utf8');

  expect(before.out).toMatch(/ok +model +codex, which is logged in \(OPENAI_API_KEY is not set\)/);
  expect(log).toMatch(/model +codex, which is logged in/);
  expect(log).not.toContain('runs outside this sandbox');
  expect(ran).toMatchObject({
    code: 0,
    out: expect.stringMatching(/I begin ☃\.[\s\S]*command[\s\S]*made/),
  });
  expect(runsIn(project.root)).toHaveLength(1);
});

test.each([
  [
    {},
    {
      status: 'ok',
      detail: expect.stringMatching(/^gpt-5\.1: \$1\.25 in, \$10 out .*genai-prices /),
    },
  ],
  [
    { prices: { 'gpt-5.1': { input_per_million: 3, output_per_million: 4 } } },
    { status: 'ok', detail: 'gpt-5.1: $3 in, $4 out for a million tokens, by api.prices' },
  ],
  [
    { provider_model: 'my-model' },
    {
      status: 'note',
      detail: expect.stringMatching(/^my-model: not known, so .*api\.prices\."my-model"/),
    },
  ],
])('with %j doctor says what the model costs, and how it knows', async (api, expected) => {
  const project = openProject({ ...plain, api: { backend: 'builtin', ...api } });

  const { out } = await project.agentWith({ OPENAI_API_KEY: 'none' }, 'doctor', '--json');

  const { checks } = JSON.parse(out) as { checks: readonly { check: string }[] };
  expect(checks.filter(({ check }) => check === 'price')).toEqual([
    { check: 'price', ...expected },
  ]);
});

test('a codex that is not logged in is no credential, and the refusal names what is', async () => {
  const project = openProject({ ...plain, api: passed });
  const env = { PATH: pathWith('codex', 'claude'), FAKE_LOGGED_IN: '' };
  const id =
    (await project.agentWith(env, 'create', 'play: well')).out.trim().split(/\s+/)[0] ?? '';

  const [doctor, ran] = [
    await project.agentWith(env, 'doctor'),
    await project.agentWith(env, 'engineer', id),
  ];

  expect(doctor.out).toMatch(
    /problem +model +OPENAI_API_KEY is not set and no coding assistant is logged in/,
  );
  expect(ran).toMatchObject({
    code: 7,
    err: expect.stringMatching(/OPENAI_API_KEY is not set.*codex login/),
  });
});

test('a proxy gets every call: no assistant is taken instead unless it is named', async () => {
  const proxy = { mode: 'proxy', proxy: { base_url: 'http://127.0.0.1:9' } };
  const env = { PATH: pathWith('codex'), FAKE_LOGGED_IN: 'codex' };
  const doctorOf = (api: object) => openProject({ ...plain, api }).agentWith(env, 'doctor');

  const [auto, named] = [
    await doctorOf({ ...passed, ...proxy }),
    await doctorOf({ ...passed, ...proxy, backend: 'codex' }),
  ];

  expect(auto.out).toMatch(/problem +model/);
  expect(named.out).toMatch(/ok +model +codex, by api\.backend/);
});

test('where a sandbox is required, only an assistant with its own sandbox is chosen automatically', async () => {
  const env = { FAKE_LOGGED_IN: 'codex,claude' };
  const doctorOf = async (sandbox: object, ...names: readonly ('codex' | 'claude')[]) => {
    const project = openProject({
      ...plain,
      api: passed,
      sandbox: { mode: 'required', ...sandbox },
    });
    return (await project.agentWith({ ...env, PATH: pathWith(...names) }, 'doctor')).out;
  };

  expect(await doctorOf({}, 'claude')).toMatch(/ok +model +claude, which is logged in/);
  expect(await doctorOf({ assistants: 'off' }, 'codex', 'claude')).toMatch(
    /ok +model +codex, which is logged in/,
  );
  expect(await doctorOf({ assistants: 'off' }, 'claude')).toMatch(/problem +model/);
});

test.each<[string, object, RegExp]>([
  [
    'in the sandbox',
    { mode: 'auto' },
    /ok +assistants +run in the sandbox; assistants reach every public host, through/,
  ],
  [
    'as the user',
    { assistants: 'off' },
    /note +assistants +run as you, unconfined \(sandbox\.assistants\)/,
  ],
  [
    'as the user, like commands',
    { mode: 'off' },
    /note +assistants +run as you, unconfined \(sandbox\.mode\)/,
  ],
])('doctor says that assistants run %s', async (_, sandbox, line) => {
  expect((await openProject({ ...plain, sandbox }).agent('doctor')).out).toMatch(line);
});

test('doctor names the backend of each role that has one, and what is wrong with it', async () => {
  const roles = { tester: { backend: 'claude' }, reviewer: { backend: 'codex' } };
  const project = openProject({
    ...plain,
    api: { backend: 'scripted', codex_path: '/nowhere/codex' },
    roles,
  });

  const { out, code } = await project.agentWith({ PATH: pathWith('claude') }, 'doctor');

  expect(out).toMatch(/ok +tester +claude, by roles\.tester\.backend/);
  expect(out).toMatch(
    /problem +reviewer +codex, by roles\.reviewer\.backend, but \/nowhere\/codex is not a program/,
  );
  expect(code).toBe(1);
});

test('no credential and no setting of the server reaches a command backend', async () => {
  const project = openProject({
    ...plain,
    api: { backend: 'command', command: [fakeProgram('command')] },
  });
  const env = {
    OPENAI_API_KEY: 'sk-one-two-three',
    ANTHROPIC_API_KEY: 'sk-ant-four',
    AGENT_SECRET: 'five',
  };
  const id =
    (await project.agentWith(env, 'create', 'play: well')).out.trim().split(/\s+/)[0] ?? '';

  const ran = await project.agentWith(env, 'engineer', id);
  const names = Object.keys(runsIn(project.root)[0]?.env ?? {});

  expect(ran.code).toBe(0);
  expect(names).toContain('PATH');
  expect(names.filter((name) => /KEY|SECRET|^AGENT_/.test(name))).toEqual([]);
});

test.each<[string, object, string]>([
  ['a command that is not named', { api: { backend: 'command' } }, 'api.command: is needed'],
  [
    'a role without its command',
    { roles: { tester: { backend: 'command' } } },
    'api.command: is needed',
  ],
  ['an agent that is not named', { api: { backend: 'acp' } }, 'api.acp.command: is needed'],
  ['a backend that nobody knows', { api: { backend: 'gemini' } }, 'api.backend: '],
  [
    'a program without a folder',
    { api: { codex_path: 'codex' } },
    'api.codex_path: must be an absolute path',
  ],
  ['a variable with a value', { api: { pass_environment: ['A=b'] } }, 'api.pass_environment.0: '],
])('%s is refused by its key', async (_, config, message) => {
  const server = await openProject({ ...plain, ...config }).server('--server');

  expect(server).toMatchObject({ code: 78, err: expect.stringContaining(message) });
});

test.each<[string, object, string]>([
  [
    'leave that nobody could give',
    { agent: { require_approval: ['bash'] }, api: { backend: 'codex' } },
    'require_approval: the engineer works with codex',
  ],
  [
    'leave that an agent does not ask for',
    {
      agent: { require_approval: ['bash'] },
      api: { backend: 'acp', acp: { command: '/opt/codex-acp' } },
    },
    'require_approval: the engineer works with codex-acp, which cannot ask',
  ],
  [
    'a limit of cost without a price',
    { agent: { max_cost_usd: 1 }, api: { backend: 'codex' } },
    'max_cost_usd: the engineer runs codex, whose price',
  ],
])('with an assistant %s is refused before the server starts', async (_, config, message) => {
  const server = await openProject({ ...plain, ...config }).server('--server');

  expect(server).toMatchObject({ code: 78, err: expect.stringContaining(message) });
});

testUnless(noSandbox)(
  'with an assistant a sandbox that it does not run in is refused before the server starts',
  async () => {
    const sandbox = { mode: 'required', assistants: 'off' };
    const project = openProject({ ...plain, sandbox, roles: { tester: { backend: 'claude' } } });

    expect(await project.server('--server')).toMatchObject({
      code: 78,
      err: expect.stringContaining('sandbox.mode is required, but the tester works with claude'),
    });
  },
);

test('opencode by its name: it gets its arguments and settings, asks, and a person answers', async () => {
  const project = openProject({
    ...plain,
    agent: { require_approval: ['write'] },
    api: { backend: 'acp', acp: { command: 'opencode' } },
  });
  const env = {
    PATH: pathWith('opencode'),
    OPENCODE_API_KEY: 'of-opencode',
    GH_TOKEN: 'of-copilot',
  };
  const doctor = await project.agentWith(env, 'doctor');
  const id =
    (await project.agentWith(env, 'create', 'play: asks')).out.trim().split(/\s+/)[0] ?? '';
  await project.agentWith(env, 'engineer', id, '--async');
  await vi.waitFor(
    async () => expect((await project.agentWith(env, 'show', id)).out).toMatch(/make it/),
    { interval: 300 },
  );

  const answered = await project.agentWith(env, 'respond', id, '--allow');
  await vi.waitFor(
    async () => expect((await project.agentWith(env, 'show', id)).out).toMatch(/answered once/),
    { interval: 300 },
  );
  const [only] = runsIn(project.root);

  expect(doctor.out).toMatch(/ok +model +opencode, by api\.backend/);
  expect(answered.code).toBe(0);
  expect(only?.argv).toEqual(['acp']);
  expect(only?.env).toMatchObject({ OPENCODE_API_KEY: 'of-opencode', OPENCODE_PURE: '1' });
  expect(Object.keys(only?.env ?? {})).not.toContain('GH_TOKEN');
});

test.each<[object, object, RegExp]>([
  [
    {},
    {},
    /reads and edits the workspace, and runs no command; to allow more, for instance: agent/,
  ],
  [
    { claude_args: ['--allowedTools', 'Bash(npm test:*),Grep', 'Bash(git log:*)', '--verbose'] },
    { permissions: { allow: ['WebFetch'] } },
    /may use Bash\(npm test:\*\), Grep, Bash\(git log:\*\), WebFetch; to allow more/,
  ],
  [
    { claude_args: ['--dangerously-skip-permissions', '--disallowed-tools=WebFetch'] },
    {},
    /uses every tool, by api\.claude_args, without WebFetch$/m,
  ],
])('doctor says which tools claude may use: %j, %j', async (api, settings, expected) => {
  const project = openProject({ api: { backend: 'claude', ...api } });
  mkdirSync(join(project.env.HOME, '.claude'));
  writeFileSync(join(project.env.HOME, '.claude/settings.json'), JSON.stringify(settings));

  const { out } = await project.agentWith(
    { PATH: pathWith('claude'), CLAUDE_CONFIG_DIR: undefined },
    'doctor',
  );

  expect(out).toMatch(/ok +claude +/);
  expect(out).toMatch(expected);
});
