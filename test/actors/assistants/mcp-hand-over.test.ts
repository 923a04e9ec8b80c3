import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { createClaude } from '../../../src/actors/assistants/claude.ts';
import { createCodex } from '../../../src/actors/assistants/codex.ts';
import { handToAcp, handToCodex } from '../../../src/actors/assistants/hand-over.ts';
import { openRelay, openServers, placeFor } from '../../../src/actors/mcp/open-servers.ts';
import { createVolatilePins } from '../../../src/actors/mcp/pins.ts';
import type { McpServer } from '../../../src/actors/mcp/port.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { createNoSandbox } from '../../../src/actors/sandbox/run-sandboxed.ts';
import type { AssistantName } from '../../../src/machines/agent/agent-context.ts';
import { fakeAssistants, runsIn } from '../../support/assistants.ts';
import { isLong } from '../../support/long.ts';
import { framesOf, notes, stdioServer } from '../../support/mcp.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';
import { realClaude, startMessagesApi } from '../../support/real-claude.ts';
import { realCodex } from '../../support/real-codex.ts';
import { startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const bubblewrap = createBubblewrap({ readPaths: [], network: false });
const sandbox = bubblewrap.check().ok ? bubblewrap : createNoSandbox();

const near = stdioServer('near', notes(), { env: { NOTES_KEY: `key \${NOTES_KEY}` } });
const far: McpServer = {
  name: 'far',
  place: { kind: 'http', url: 'http://127.0.0.1:9/mcp', headers: {} },
  tools: null,
  startMs: 20_000,
  callMs: 60_000,
};
const variables = { NOTES_KEY: 'value-of-notes' };
const handed = {
  name: 'near',
  startMs: 20_000,
  callMs: 10_000,
  token: 't-1',
  url: 'http://here/near',
};

interface RelayAnswer {
  readonly result: {
    readonly tools: readonly { readonly name: string; readonly description: string }[];
    readonly content: readonly { readonly text: string }[];
    readonly isError: boolean;
  };
}

/** The servers as an assistant of this attempt reaches them. */
const hand = async (
  servers: readonly McpServer[],
  pins = createVolatilePins(),
  heard: string[] = [],
) => {
  const root = temporaryFolder();
  const around = {
    ...{ root, readable: [], git: null, sandbox, env: { PATH: '/usr/bin' }, variables },
    networkOf: () => false,
    usersFiles: null,
  };
  const { signal } = new AbortController();
  const warn = (message: string): void => void heard.push(message);
  const open = await openServers({
    ...{ servers, version: '0', pins, signal, warn },
    placeFor: (server) => placeFor(server, around),
  });
  const relay = await openRelay({ servers: open, offered: servers, version: '0', warn });
  onTestFinished(relay.close);
  const [server] = relay.servers;
  const call = async (method: string, params = {}, token = server?.token, accept = '*/*') => {
    const response = await fetch(server?.url ?? '', {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, accept },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const text = await response.text();
    const json = /^data: (.*)$/m.exec(text)?.[1] ?? text;
    return { status: response.status, ...(JSON.parse(json || '{}') as RelayAnswer) };
  };
  return { relay, heard, call };
};

const run = async (backend: AssistantName) => {
  const running = await startSystem({
    assistants: fakeAssistants(),
    sandbox,
    role: { mcp: ['near', 'far'] },
    options: { backend, mcpServers: [near, far] },
    mcp: { variables, pinsFile: null, version: '0' },
  });
  const { task_id: id } = await running.service.create({ description: 'play: well' });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  await untilStatus(running, id, 'complete', 'failed');
  const [first] = runsIn(running.root);
  return { running, id, first };
};

const ofOurs = expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/near$/);

test('claude gets the servers that start in a file that only it reads, and no variable of theirs', async () => {
  const { running, id, first } = await run('claude');

  const headers = { Authorization: expect.stringMatching(/^Bearer [\w-]{43}$/) };
  expect(first?.servers).toEqual({ mcpServers: { near: { type: 'http', url: ofOurs, headers } } });
  expect(first?.argv).toContain('--strict-mcp-config');
  expect(first?.argv).toContain('--allowedTools=mcp__near');
  expect(JSON.stringify(first)).not.toContain('value-of-notes');
  const logs = (await framesOf(running, id)).filter(({ type }) => type === 'log');
  expect(logs.map(({ data }) => data['message'])).toContainEqual(
    expect.stringMatching(/^the MCP server far: /),
  );
});

test('codex gets the servers as settings, and the token of the attempt as a variable', () => {
  expect(handToCodex([handed])).toEqual({
    arguments: [
      'mcp_servers.near.url="http://here/near"',
      'mcp_servers.near.bearer_token_env_var="ATS_MCP_SECRET"',
      'mcp_servers.near.startup_timeout_sec=25',
      'mcp_servers.near.tool_timeout_sec=15',
      'mcp_servers.near.default_tools_approval_mode="approve"',
    ].flatMap((setting) => ['-c', setting]),
    variables: { ATS_MCP_SECRET: 't-1' },
    file: null,
  });
});

test('an ACP agent gets the servers over HTTP, or by a program that passes lines on', async () => {
  const { relay } = await hand([near]);
  const [http] = handToAcp([handed], true);
  const [bridge] = handToAcp(relay.servers, false) as readonly {
    readonly command: string;
    readonly args: readonly string[];
    readonly env: readonly { readonly name: string; readonly value: string }[];
  }[];
  const env = Object.fromEntries((bridge?.env ?? []).map(({ name, value }) => [name, value]));
  const lines = [
    { method: 'initialize', id: 1, params: { protocolVersion: '2025-06-18' } },
    { method: 'notifications/initialized' },
    { method: 'tools/list', id: 2 },
  ].map((each) => `${JSON.stringify({ jsonrpc: '2.0', ...each })}\n`);

  const { stdout } = await execa(bridge?.command ?? '', bridge?.args ?? [], {
    ...{ env, input: lines.join('') },
  });

  expect(http).toEqual({
    ...{ type: 'http', name: 'near', url: 'http://here/near' },
    headers: [{ name: 'Authorization', value: 'Bearer t-1' }],
  });
  expect(stdout).toContain('"protocolVersion":"2025-06-18"');
  expect(stdout).toContain('"name":"look"');
});

test('the entry of a server holds with an assistant: variables, tools and network', async () => {
  const { call } = await hand([{ ...near, tools: ['look'] }]);

  const { result: listed } = await call('tools/list');
  const { result: seen } = await call('tools/call', { name: 'look', arguments: {} });
  const { result: hidden } = await call('tools/call', { name: 'add', arguments: { text: 'x' } });
  const streamed = await call('ping', {}, undefined, 'application/json, text/event-stream');

  expect(listed.tools.map(({ name }) => name)).toEqual(['look']);
  const { env, writes } = JSON.parse(seen.content[0]?.text ?? '');
  expect([env.NOTES_KEY, writes]).toEqual(['key value-of-notes', sandbox !== bubblewrap]);
  expect([hidden.isError, hidden.content[0]?.text]).toEqual([true, 'there is no tool add']);
  expect([streamed.status, streamed.result]).toEqual([200, {}]);
});

test('a tool that is not as the user has known it is left out until it is allowed', async () => {
  const pins = createVolatilePins();
  await hand([near], pins);

  const { call, heard } = await hand([stdioServer('near', notes('more'))], pins);
  const { result } = await call('tools/list');
  const refused = (await call('tools/call', { name: 'add', arguments: { text: 'x' } })).result;

  const names = result.tools.map(({ name }) => name);
  expect(names).toContain('look');
  expect(names).not.toContain('add');
  expect(names).not.toContain('extra');
  expect(heard).toEqual([
    expect.stringMatching(/add, refuse, extra left out.*agent mcp --allow near$/),
  ]);
  expect(refused).toMatchObject({ isError: true });
});

test('nobody without the token of the attempt calls a server', async () => {
  const { call, relay } = await hand([near]);

  const answer = await call('tools/list', {}, 'guessed');
  await relay.close();

  expect(answer.status).toBe(401);
  await expect(call('tools/list')).rejects.toThrow();
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
  expect(outputs[1]).toContain('"NOTES_KEY":"key value-of-notes"');
  expect(outputs[1]).not.toMatch(/sk-of-codex|ATS_MCP/);
  expect(outputs[2]).toContain('PATH=');
  expect(outputs[2]).not.toMatch(/value-of-notes|ATS_MCP|sk-of-codex/);
});

test('the real claude calls a tool of a server that it is given', {
  timeout: 300_000,
}, async ({ skip }) => {
  if (!isLong) return skip('npm run test:long runs the real claude');
  const claude = await realClaude();
  if ('reason' in claude) return skip(claude.reason);
  const { baseURL, asked } = await startMessagesApi([
    { call: { name: 'mcp__near__look', input: {} } },
    { text: 'I looked.' },
  ]);
  const home = realpathSync(mkdtempSync('/var/tmp/agent-test-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const secrets = { ANTHROPIC_BASE_URL: baseURL, ANTHROPIC_API_KEY: 'sk-of-claude' };
  const running = await startSystem({
    assistants: fakeAssistants({
      claude: createClaude(claude),
      secrets,
      environment: { PATH: process.env['PATH'] ?? '', HOME: home },
    }),
    environment: {
      ...{ PATH: process.env['PATH'] ?? '', HOME: home },
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
    sandbox,
    role: { mcp: ['near'] },
    options: { backend: 'claude', mcpServers: [near] },
    mcp: { variables, pinsFile: null, version: '0' },
  });
  const { task_id: id } = await running.service.create({ description: 'look' });

  await running.service.execute({ task: id, role: 'engineer', options: {} });
  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view).toMatchObject({ status: 'complete', result: 'I looked.' });
  expect(asked[0]).toContain('"name":"mcp__near__look"');
  expect(asked[1]).toContain('key value-of-notes');
  expect(asked.join()).not.toContain('sk-of-claude');
});
