import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createAcp } from '../../../src/actors/assistants/acp/acp.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { fakeAssistants } from '../../support/assistants.ts';
import { isLong } from '../../support/long.ts';
import { stdioServer } from '../../support/mcp.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';
import { processesWith } from '../../support/processes.ts';
import { type RealAgent, realAgent } from '../../support/real-agents.ts';
import { startMessagesApi } from '../../support/real-claude.ts';
import { type Running, type Setting, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const sandbox = createBubblewrap({ readPaths: [], network: false });
const key = 'sk-a-key-of-the-provider';
const command = 'echo right > made.txt';

interface Said {
  readonly text?: string;
  readonly command?: string;
  /** A tool without arguments. */
  readonly tool?: string;
}
interface Provider {
  readonly secrets: Readonly<Record<string, string>>;
  readonly asked: () => readonly string[];
}

const isWork = (body: string): boolean => body.includes('"tools":[');

/** One answer for each call of the model; calls beside them, such as for a title, get a text. */
const openAi = async (
  said: readonly Said[],
  tool: string,
  argument = 'command',
): Promise<Provider & { baseURL: string }> => {
  let next = 0;
  const server = await startModelServer(({ body }): Answer => {
    if (!isWork(JSON.stringify(body))) return { kind: 'answer', text: 'A title' };
    const { text, command: line, tool: other } = said[next++] ?? { text: 'no more' };
    const call = { id: `call_${next}`, name: other ?? tool };
    const isCall = line !== undefined || other !== undefined;
    const given = JSON.stringify(
      other === undefined ? { [argument]: line, description: 'make it' } : {},
    );
    return {
      kind: 'answer',
      ...(text === undefined ? {} : { text }),
      ...(isCall ? { calls: [{ ...call, arguments: given }] } : {}),
    };
  });
  return {
    baseURL: server.baseURL,
    secrets: {},
    asked: () => server.requests.map(({ body }) => JSON.stringify(body)).filter(isWork),
  };
};

const usageMetadata = { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 };
const gemini = async (said: readonly Said[]): Promise<Provider> => {
  const asked: string[] = [];
  let next = 0;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    const streams = request.url?.includes('streamGenerateContent') === true;
    if (streams) asked.push(body);
    const { text, command: line } = streams
      ? (said[next++] ?? { text: 'no more' })
      : { text: '{}' };
    const functionCall = { name: 'run_shell_command', args: { command: line } };
    const parts = [line === undefined ? { text } : { functionCall }];
    const content = { role: 'model', parts };
    const chunk = { candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata };
    response.setHeader('content-type', streams ? 'text/event-stream' : 'application/json');
    response.end(streams ? `data: ${JSON.stringify(chunk)}\n\n` : JSON.stringify(chunk));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return {
    secrets: { GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${port}` },
    asked: () => asked,
  };
};

const newHome = (): string => {
  const home = realpathSync(mkdtempSync('/var/tmp/agent-test-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
};

const providers: Readonly<
  Record<RealAgent, (said: readonly Said[], home: string) => Promise<Provider>>
> = {
  opencode: async (said, home) => {
    const provider = await openAi(said, 'bash');
    const folder = join(home, '.config', 'opencode');
    mkdirSync(folder, { recursive: true });
    const scripted = {
      npm: '@ai-sdk/openai-compatible',
      options: { baseURL: provider.baseURL, apiKey: key },
      models: {
        scripted: {
          cost: { input: 1_000, output: 1_000 },
          limit: { context: 100_000, output: 10_000 },
        },
      },
    };
    const settings = { model: 'scripted/scripted', provider: { scripted } };
    writeFileSync(join(folder, 'opencode.json'), JSON.stringify(settings));
    return { ...provider, secrets: { OPENCODE_DISABLE_MODELS_FETCH: '1' } };
  },
  gemini,
  copilot: async (said) => {
    const provider = await openAi(said, 'bash');
    const secrets = {
      COPILOT_OFFLINE: 'true',
      COPILOT_PROVIDER_BASE_URL: provider.baseURL,
      COPILOT_PROVIDER_API_KEY: key,
      COPILOT_MODEL: 'gpt-4.1',
    };
    return { ...provider, secrets };
  },
  'claude-agent-acp': async (said) => {
    const { baseURL, asked } = await startMessagesApi(
      said.map(({ text, command: line, tool }) => ({
        ...(text === undefined ? {} : { text }),
        ...(line === undefined
          ? {}
          : { call: { name: 'Bash', input: { command: line, description: 'make it' } } }),
        ...(tool === undefined ? {} : { call: { name: tool, input: {} } }),
      })),
    );
    const secrets = {
      ANTHROPIC_BASE_URL: baseURL,
      ANTHROPIC_API_KEY: key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    };
    return { asked: () => asked, secrets };
  },
  'codex-acp': async (said, home) => {
    const provider = await openAi(said, 'exec_command', 'cmd');
    mkdirSync(join(home, '.codex'));
    writeFileSync(
      join(home, '.codex', 'config.toml'),
      `model_provider = "scripted"\nmodel = "gpt-5.1"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n[model_providers.scripted]\nname = "scripted"\nbase_url = "${provider.baseURL}"\nwire_api = "responses"\nenv_key = "CODEX_API_KEY"\n`,
    );
    return { ...provider, secrets: { CODEX_API_KEY: key } };
  },
};

const begin = async (
  name: RealAgent,
  path: string,
  said: readonly Said[],
  { verify, ...more }: Setting & { readonly verify?: readonly string[] } = {},
) => {
  const home = newHome();
  const { secrets, asked } = await providers[name](said, home);
  const nowhere = 'http://127.0.0.1:9';
  const running = await startSystem({
    assistants: fakeAssistants({
      acp: createAcp([path]),
      secrets,
      passedVariables: Object.keys(secrets),
      environment: { PATH: process.env['PATH'] ?? '', HOME: home },
    }),
    sandbox,
    environment: {
      ...{ PATH: process.env['PATH'] ?? '', HOME: home, TERM: 'dumb', CI: 'true' },
      ...{ HTTP_PROXY: nowhere, HTTPS_PROXY: nowhere, NO_PROXY: '127.0.0.1,localhost' },
    },
    options: { backend: 'acp' },
    ...more,
  });
  const { task_id: id } = await running.service.create({ description: 'make the file' });
  const options = verify === undefined ? {} : { verify };
  await running.service.execute({ task: id, role: 'engineer', options });
  return { running, id, asked };
};

type Skip = (reason: string) => never;
const programOf = async (name: RealAgent, skip: Skip): Promise<string> => {
  if (!isLong) return skip('npm run test:long runs the real agents');
  const found = await realAgent(name);
  return 'reason' in found ? skip(found.reason) : found.path;
};

const logsOf = ({ store }: Running, id: string) =>
  store
    .read({ taskId: id, after: 0, limit: 10_000 })
    .filter(({ type }) => type === 'log')
    .map(({ data }) => JSON.parse(data).message as string);

test.for([
  ['opencode', /goes on$/, { cost_usd: expect.closeTo(0.072) }],
  // It says that it loads sessions, and finds none in a new process.
  ['gemini', /does not go on .* a new one begins$/, { input_tokens: 44, output_tokens: 28 }],
  ['copilot', /goes on$/, {}],
  ['codex-acp', /goes on$/, {}],
] as const)(
  'the real %s completes a task, and goes on when its work is sent back',
  { timeout: 300_000 },
  async ([name, goesOn, usage], { skip }) => {
    const path = await programOf(name, skip);
    const said = [
      { command: 'echo wrong > made.txt; touch ~/new && echo home is open' },
      { text: 'I made it ☃.' },
      { command },
      { text: 'I mended it.' },
    ];
    const verify = ['grep -q right made.txt || { echo it is wrong; exit 1; }'];
    const { running, id, asked } = await begin(name, path, said, { verify });

    const view = await untilStatus(running, id, 'complete', 'failed');

    expect(view).toMatchObject({
      status: 'complete',
      attempt: 1,
      result: 'I mended it.',
      usage: { model_calls: 4, tool_calls: 2, ...usage },
    });
    expect(readFileSync(join(running.root, 'made.txt'), 'utf8')).toBe('right\n');
    expect(asked()).toHaveLength(4);
    expect(asked()[0]).toContain('You are an engineer.');
    expect(asked()[2]).toContain('it is wrong');
    expect(asked().join()).not.toContain(key);
    expect(logsOf(running, id)).toContainEqual(expect.stringMatching(goesOn));
  },
);

test.for([
  ['opencode', 'allow'],
  ['opencode', 'deny'],
  ['gemini', 'allow'],
  ['gemini', 'deny'],
  ['copilot', 'allow'],
  ['copilot', 'deny'],
  ['claude-agent-acp', 'allow'],
  ['claude-agent-acp', 'deny'],
] as const)(
  'a person decides on a command of the real %s: %s',
  { timeout: 300_000 },
  async ([name, decision], { skip }) => {
    const path = await programOf(name, skip);
    const said = [{ command }, { text: 'It is over.' }];
    const role = { approvals: ['bash'] };
    const { running, id } = await begin(name, path, said, { role });
    const asked = await vi.waitFor(async () => {
      const view = await running.service.status(id);
      expect(view.status === 'failed' ? view.error : view.awaiting).toBeDefined();
      return view.awaiting;
    });
    expect(asked).toMatchObject({ calls: [{ tool: 'bash' }] });
    expect(JSON.stringify(asked?.calls)).toContain('echo right');

    const inputId = asked?.input_id ?? '';
    await running.service.respond(id, 1, { type: 'respond', inputId, text: null, decision });
    const view = await untilStatus(running, id, 'complete', 'failed');

    expect(existsSync(join(running.root, 'made.txt'))).toBe(decision === 'allow');
    if (decision === 'allow') expect(view).toMatchObject({ status: 'complete' });
  },
);

test.for(['opencode', 'gemini', 'copilot', 'claude-agent-acp', 'codex-acp'] as const)(
  'cancel ends every process of the real %s',
  { timeout: 300_000 },
  async (name, { skip }) => {
    const path = await programOf(name, skip);
    const { running, id } = await begin(name, path, [{ command: "sh -c 'sleep 611; true'" }]);
    const mark = new RegExp(`\0ATS_ATTEMPT=[0-9a-f]{12}/${id}#1\0`);
    await vi.waitFor(() => expect(processesWith(mark).join()).toContain('sleep 611'));

    await running.service.cancel(id, null);
    await untilStatus(running, id, 'cancelled');

    expect(processesWith(mark)).toEqual([]);
  },
);

/** Each of these would make a file if the program obeyed it. */
const projectWithTraps = (): string => {
  const root = realpathSync(temporaryFolder());
  const write = (path: string, content: object | string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(
      join(root, path),
      typeof content === 'string' ? content : JSON.stringify(content),
    );
  };
  const makes = (name: string) => ({ command: 'touch', args: [join(root, `obeyed-${name}`)] });
  const plugin = (name: string) =>
    `require('node:fs').writeFileSync('obeyed-${name}', ''); module.exports = {};`;
  write('opencode.json', {
    mcp: { trap: { type: 'local', command: ['touch', join(root, 'obeyed-opencode-mcp')] } },
    permission: { bash: 'allow', edit: 'allow' },
  });
  write('.opencode/plugin/trap.js', plugin('opencode-plugin'));
  write('.opencode/plugins/trap.js', plugin('opencode-plugins'));
  write('.gemini/settings.json', { mcpServers: { trap: makes('gemini') } });
  for (const path of [
    '.mcp.json',
    '.vscode/mcp.json',
    '.github/mcp.json',
    '.copilot/mcp-config.json',
  ])
    write(path, { mcpServers: { trap: makes(path.replaceAll('/', '-')) } });
  const hook = { type: 'command', bash: `touch ${join(root, 'obeyed-hook')}` };
  write('.github/hooks/trap.json', { version: 1, hooks: { sessionStart: [hook] } });
  return root;
};

test.for(['opencode', 'gemini', 'copilot'] as const)(
  'the real %s obeys no settings, plugins, servers or hooks of the project',
  { timeout: 300_000 },
  async (name, { skip }) => {
    const path = await programOf(name, skip);
    const root = projectWithTraps();
    const said = [{ command }, { text: 'It is over.' }];
    const role = { approvals: ['bash'] };
    const { running, id } = await begin(name, path, said, { root, role });
    const inputId = await vi.waitFor(async () => {
      const view = await running.service.status(id);
      expect(view.status === 'failed' ? view.error : view.awaiting).toBeDefined();
      return view.awaiting?.input_id ?? '';
    });

    await running.service.respond(id, 1, {
      type: 'respond',
      inputId,
      text: null,
      decision: 'allow',
    });
    const view = await untilStatus(running, id, 'complete', 'failed');

    expect(view.status).toBe('complete');
    expect(readdirSync(root).filter((file) => file.startsWith('obeyed'))).toEqual([]);
  },
);

/** A server of the user, whose tool `look` tells its variables. */
const withServer: Setting = {
  role: { mcp: ['near'] },
  options: {
    backend: 'acp',
    mcpServers: [stdioServer('near', undefined, { env: { NOTES_KEY: `key \${NOTES_KEY}` } })],
  },
  mcp: { variables: { NOTES_KEY: 'value-of-notes' }, pinsFile: null, version: '0' },
};

test.for([
  ['opencode', 'near_look'],
  ['copilot', 'near-look'],
] as const)(
  'the real %s calls a tool of a server that it is given',
  { timeout: 300_000 },
  async ([name, tool], { skip }) => {
    const path = await programOf(name, skip);
    const said = [{ tool }, { command: 'env' }, { text: 'I looked.' }];
    const { running, id, asked } = await begin(name, path, said, withServer);

    const view = await untilStatus(running, id, 'complete', 'failed');

    const [, looked = '', ran = ''] = asked();
    expect(view).toMatchObject({ status: 'complete', result: 'I looked.' });
    expect(looked).toContain('key value-of-notes');
    expect(ran).toContain('PATH=');
    expect(ran).not.toContain('ATS_MCP');
  },
);

test('the real gemini gets no server, since it trusts no folder, and the log says so', {
  timeout: 300_000,
}, async ({ skip }) => {
  const path = await programOf('gemini', skip);
  const { running, id, asked } = await begin('gemini', path, [{ text: 'Done.' }], withServer);

  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view).toMatchObject({ status: 'complete', result: 'Done.' });
  expect(logsOf(running, id)).toContain('this agent does not use your MCP servers');
  expect(asked().join()).not.toContain('near');
});
