import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { createCodex } from '../../../src/actors/assistants/codex.ts';
import { handToAcp, handToClaude, handToCodex } from '../../../src/actors/assistants/hand-over.ts';
import { handedServers } from '../../../src/actors/mcp/handed-servers.ts';
import type { McpServer } from '../../../src/actors/mcp/port.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { createNoSandbox } from '../../../src/actors/sandbox/no-sandbox.ts';
import type { AssistantName } from '../../../src/machines/agent-context.ts';
import { fakeAssistants, runsIn } from '../../support/assistants.ts';
import { isLong } from '../../support/long.ts';
import { framesOf, notes, stdioServer } from '../../support/mcp.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';
import { realCodex } from '../../support/real-codex.ts';
import { startSystem, untilStatus } from '../../support/running.ts';

const bubblewrap = createBubblewrap({ readPaths: [], network: false });
const sandbox = bubblewrap.check().ok ? bubblewrap : createNoSandbox();

const env = { NOTES_KEY: `key \${NOTES_KEY}`, CODEX_API_KEY: 'of notes' };
const near = stdioServer('near', notes(), { env });
const far: McpServer = {
  name: 'far',
  place: {
    kind: 'http',
    url: 'https://mcp.example/mcp',
    headers: { Authorization: `Bearer \${FAR_TOKEN}` },
  },
  tools: ['search', 'get.one'],
  startMs: 20_000,
  callMs: 60_000,
};
const variables = { NOTES_KEY: 'n-1', FAR_TOKEN: 'f-1' };
const argv = near.place.kind === 'stdio' ? near.place.argv : [];
const guarded = ['-c', expect.stringContaining('unset "$name"'), 'sh', ...argv];
const nearEnv = { NOTES_KEY: 'key n-1', CODEX_API_KEY: 'of notes' };
const farHeaders = { Authorization: 'Bearer f-1' };

const run = async (backend: AssistantName) => {
  const running = await startSystem({
    assistants: fakeAssistants(),
    sandbox,
    role: { mcp: ['near', 'far', 'lost'] },
    options: {
      backend,
      mcpServers: [
        near,
        far,
        { ...far, name: 'lost', place: { ...far.place, headers: { A: `\${NO}` } } } as McpServer,
      ],
    },
    mcp: { variables, pinsFile: null, version: '0' },
  });
  const { task_id: id } = await running.service.create({ description: 'play: well' });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  await untilStatus(running, id, 'complete', 'failed');
  const [first] = runsIn(running.root);
  return { running, id, first };
};

test('claude gets the servers in a file that only it reads', async () => {
  const { running, id, first } = await run('claude');

  expect(first?.servers).toEqual({
    mcpServers: {
      near: { type: 'stdio', command: '/bin/sh', args: guarded, env: nearEnv },
      far: { type: 'http', url: 'https://mcp.example/mcp', headers: farHeaders },
    },
  });
  expect(first?.argv).toContain('--strict-mcp-config');
  expect(first?.argv).toContain('--allowedTools=mcp__near,mcp__far__search,mcp__far__get_one');
  expect(first?.argv.join(' ')).not.toMatch(/n-1|f-1/);
  const logs = (await framesOf(running, id)).filter(({ type }) => type === 'log');
  expect(logs.map(({ data }) => data['message'])).toContain(
    'the MCP server lost is not handed to the assistant: the variable NO, which A needs, is not set; set it for the server',
  );
});

test('codex gets the servers as settings, and secrets as variables that it passes on alone', async () => {
  const { first } = await run('codex');

  const settings = (first?.argv ?? []).filter((arg) => arg.startsWith('mcp_servers.'));
  expect(settings).toEqual([
    'mcp_servers.near.command="/bin/sh"',
    expect.stringMatching(
      /^mcp_servers\.near\.args=\["-c","export NOTES_KEY=\\"\$ATS_MCP_0_0_SECRET\\"/,
    ),
    'mcp_servers.near.env_vars=["ATS_MCP_0_0_SECRET","ATS_MCP_0_1_SECRET"]',
    'mcp_servers.near.startup_timeout_sec=20',
    'mcp_servers.near.tool_timeout_sec=10',
    'mcp_servers.near.default_tools_approval_mode="approve"',
    'mcp_servers.far.url="https://mcp.example/mcp"',
    'mcp_servers.far.env_http_headers={"Authorization"="ATS_MCP_1_0_SECRET"}',
    'mcp_servers.far.enabled_tools=["search","get.one"]',
    'mcp_servers.far.startup_timeout_sec=20',
    'mcp_servers.far.tool_timeout_sec=60',
    'mcp_servers.far.default_tools_approval_mode="approve"',
  ]);
  expect(first?.env).toMatchObject({
    ATS_MCP_0_0_SECRET: 'key n-1',
    ATS_MCP_0_1_SECRET: 'of notes',
    ATS_MCP_1_0_SECRET: 'Bearer f-1',
  });
  expect(first?.env['CODEX_API_KEY']).not.toBe('of notes');
  expect(first?.argv.join(' ')).not.toMatch(/n-1|f-1/);
});

test('an ACP agent gets the servers with its session, over HTTP only if it can', async () => {
  const { running } = await run('acp');
  const heard = readFileSync(join(running.root, 'heard.jsonl'), 'utf8');
  const created = heard
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .find(({ method }) => method === 'session/new');

  const pairs = Object.entries(nearEnv).map(([name, value]) => ({ name, value }));
  const own = { name: 'near', command: '/bin/sh', args: guarded, env: pairs };
  expect(created.params.mcpServers).toEqual([own]);
  const handed = handedServers([near, far], variables, () => {});
  expect(handToAcp(handed, true)[1]).toEqual({
    type: 'http',
    name: 'far',
    url: 'https://mcp.example/mcp',
    headers: [{ name: 'Authorization', value: 'Bearer f-1' }],
  });
});

test('a program gets the variables of its entry, and no key of the assistant', async () => {
  const [codex, claude] = [handToCodex, handToClaude].map((hand) =>
    hand(
      handedServers([near], variables, () => {}),
      '',
    ),
  );
  const entry = JSON.parse(claude?.file ?? '{}').mcpServers.near;
  const setting = codex?.arguments.find((arg) => arg.startsWith('mcp_servers.near.args=')) ?? '';
  const others = { ANTHROPIC_API_KEY: 'k-1', ODD: 'a\n* b=c\n1=2', 'BASH_FUNC_x%%': '() { :; }' };
  const seen = async (args: readonly string[], given: Readonly<Record<string, string>>) => {
    const shown = args.map((arg) => (arg === argv[0] ? 'env' : arg)).slice(0, 4);
    const env = { PATH: process.env['PATH'] ?? '', LC_ALL: 'C', ...others, ...given };
    const { stdout } = await execa('/bin/sh', shown, { env, extendEnv: false });
    return stdout.split('\n').filter((line) => !/^(PWD|SHLVL|_|OLDPWD|PATH)=/.test(line));
  };

  const ofClaude = await seen(entry.args, entry.env);
  const ofCodex = await seen(
    JSON.parse(setting.slice(setting.indexOf('=') + 1)),
    codex?.variables ?? {},
  );

  const expected = ['CODEX_API_KEY=of notes', 'LC_ALL=C', 'NOTES_KEY=key n-1'];
  expect(ofClaude.toSorted()).toEqual(expect.arrayContaining(expected));
  expect(ofClaude.join()).not.toMatch(/k-1|a\*|ODD/);
  expect(ofCodex.toSorted()).toEqual(expect.arrayContaining(expected));
  expect(ofCodex.join()).not.toMatch(/k-1|ODD|ATS_MCP/);
});

test('the real codex calls a tool of a server that it is given', async ({ skip }) => {
  if (!isLong) return skip('npm run test:long runs the real codex');
  const codex = await realCodex();
  if ('reason' in codex) return skip(codex.reason);
  const look = { id: 'c1', namespace: 'mcp__near', name: 'look', arguments: '{}' };
  const command = { id: 'c2', name: 'exec_command', arguments: '{"cmd":"env"}' };
  const said: readonly Answer[] = [
    { kind: 'answer', calls: [look] },
    { kind: 'answer', calls: [command] },
    { kind: 'answer', text: 'I looked.' },
  ];
  const provider = await startModelServer(
    (_, number) => said[number - 1] ?? { kind: 'status', status: 400 },
  );
  // codex creates its helpers only outside the temporary folder.
  const home = realpathSync(mkdtempSync('/var/tmp/agent-test-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const own = `[model_providers.scripted]\nname = "scripted"\nbase_url = "${provider.baseURL}"\nwire_api = "responses"\nenv_key = "CODEX_API_KEY"\n`;
  const quiet = 'check_for_update_on_startup = false\n[analytics]\nenabled = false\n';
  writeFileSync(join(home, 'config.toml'), `model_provider = "scripted"\n${quiet}${own}`);
  const secrets = { CODEX_HOME: home, CODEX_API_KEY: 'sk-of-codex' };
  const running = await startSystem({
    assistants: fakeAssistants({ codex: createCodex(codex), secrets }),
    sandbox,
    role: { mcp: ['near'] },
    options: { backend: 'codex', mcpServers: [near] },
    mcp: { variables, pinsFile: null, version: '0' },
  });
  const { task_id: id } = await running.service.create({ description: 'look' });

  await running.service.execute({ task: id, role: 'engineer', options: { model: 'gpt-5.1' } });
  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view).toMatchObject({ status: 'complete', result: 'I looked.' });
  const outputs = provider.requests.map(({ body }) => {
    const { input = [] } = body as { readonly input?: readonly { readonly output?: unknown }[] };
    return JSON.stringify(input.at(-1)?.output ?? null).replaceAll('\\', '');
  });
  expect(outputs[1]).toContain('"NOTES_KEY":"key n-1"');
  expect(outputs[1]).toContain('"CODEX_API_KEY":"of notes"');
  expect(outputs[1]).not.toMatch(/sk-of-codex|ATS_MCP/);
  expect(outputs[2]).toContain('PATH=');
  expect(outputs[2]).not.toMatch(/n-1|of notes|sk-of-codex/);
});
