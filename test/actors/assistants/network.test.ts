import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createAcp } from '../../../src/actors/assistants/acp/acp.ts';
import { createClaude } from '../../../src/actors/assistants/claude.ts';
import { createCodex } from '../../../src/actors/assistants/codex.ts';
import { createCommandAssistant } from '../../../src/actors/assistants/command.ts';
import type { Assistant } from '../../../src/actors/assistants/port.ts';
import { providersOf } from '../../../src/actors/assistants/providers.ts';
import type { NetworkAccess } from '../../../src/actors/network/access.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { fakeAssistants } from '../../support/assistants.ts';
import { framesOf, stdioServer } from '../../support/mcp.ts';
import { noSandbox, testUnless } from '../../support/needs.ts';
import { startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const toy = join(import.meta.dirname, '..', '..', 'support', 'mcp', 'toy-server.mjs');
const sandbox = createBubblewrap({ readPaths: [dirname(toy)], network: false });

const mcpServers = [stdioServer('toy', [toy], { readPaths: [dirname(toy)] })];

const startHost = async (): Promise<number> => {
  const server = createServer((_request, response) => response.end('reached'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
};

/** What an assistant that is this script writes into `out`. */
const runScript = async (
  script: string,
  network: NetworkAccess,
  secrets: Readonly<Record<string, string>> = {},
) => {
  const running = await startSystem({
    sandbox,
    assistants: fakeAssistants({
      command: createCommandAssistant(['/bin/sh', '-c', `${script}; echo done`]),
      secrets,
      passedVariables: Object.keys(secrets),
    }),
    role: { network: null },
    options: { backend: 'command', network },
  });
  const { task_id: id } = await running.service.create({ description: 'look' });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  await untilStatus(running, id, 'complete', 'failed');
  const asked = (await framesOf(running, id)).flatMap(({ type, data }) =>
    type === 'network' ? [data] : [],
  );
  return { lines: readFileSync(join(running.root, 'out'), 'utf8').trim().split('\n'), asked };
};

testUnless(noSandbox).each<readonly [NetworkAccess, string, boolean | null]>([
  [false, 'none', false],
  [['127.0.0.1'], 'listed', true],
  [['a.example'], 'none', false],
  [true, 'whole', null],
])(
  'an assistant with sandbox.network %j gets to a port of this machine: %s',
  async (network, reaches, allowed) => {
    const port = await startHost();

    const { lines, asked } = await runScript(`node ${toy} reach ${port} > out`, network);

    expect(lines).toEqual([reaches]);
    expect(asked).toEqual(allowed === null ? [] : [{ host: '127.0.0.1', port, allowed }]);
  },
);

const callingProgram = `#!/usr/bin/env node
const { readFileSync, writeFileSync } = require('node:fs');
const file = process.argv.find((word) => word.startsWith('--mcp-config=')).slice(13);
const { url, headers } = JSON.parse(readFileSync(file, 'utf8')).mcpServers.toy;
const end = (text) => {
  writeFileSync('out', text);
  console.log(JSON.stringify({ type: 'result', subtype: 'success', result: 'done' }));
};
require('node:http')
  .request(url, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } })
  .on('response', (answer) => answer.setEncoding('utf8').on('data', end))
  .on('error', (error) => end(error.code))
  .end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }));
`;

testUnless(noSandbox)(
  'an assistant behind a list of hosts calls the MCP servers of its role',
  async () => {
    const path = join(temporaryFolder(), 'claude');
    writeFileSync(path, callingProgram, { mode: 0o755 });
    const running = await startSystem({
      sandbox,
      assistants: fakeAssistants({ claude: createClaude({ path }) }),
      environment: { HOME: temporaryFolder() },
      role: { network: null, mcp: ['toy'] },
      options: { backend: 'claude', network: ['a.example'], mcpServers },
      mcp: { variables: {}, pinsFile: null, version: '0' },
    });
    const { task_id: id } = await running.service.create({ description: 'look' });

    await running.service.execute({ task: id, role: 'engineer', options: {} });
    await untilStatus(running, id, 'complete', 'failed');

    expect(readFileSync(join(running.root, 'out'), 'utf8')).toContain('"name":"look"');
  },
);

testUnless(noSandbox)(
  'its provider on this machine is at its own address, also for a program without a proxy',
  async () => {
    const [provider, other] = [await startHost(), await startHost()];
    const secrets = { MY_BASE_URL: `http://127.0.0.1:${provider}/v1` };

    const { lines } = await runScript(
      `node ${toy} reach ${provider} > out; node ${toy} reach ${other} >> out`,
      ['a.example'],
      secrets,
    );

    expect(lines).toEqual(['whole', 'none']);
  },
);

test.each<readonly [string, Assistant, string]>([
  ['claude', createClaude(), 'api.anthropic.com:443'],
  ['codex', createCodex(), 'api.openai.com:443'],
  ['gemini', createAcp(['gemini']), 'generativelanguage.googleapis.com:443'],
  ['copilot', createAcp(['copilot']), 'api.githubcopilot.com:443'],
  ['opencode', createAcp(['opencode']), 'api.openai.com:443'],
])('%s reaches its provider with any list', (_, assistant, place) => {
  expect(placesOf(assistant, temporaryFolder())).toContain(place);
});

const start = {
  ...{ model: null, session: null, promptFile: '', taskId: 'bd-1', role: 'engineer' },
  moneyLeftUsd: null,
};
const placesOf = (assistant: Assistant, home: string, env = {}): readonly string[] =>
  providersOf(assistant, start, { HOME: home, ...env }).map(({ host, port }) => `${host}:${port}`);

test('the address of a provider comes from variables, arguments and the own settings', () => {
  const home = temporaryFolder();
  mkdirSync(join(home, '.codex'));
  writeFileSync(
    join(home, '.codex', 'config.toml'),
    '[model_providers.x]\nbase_url = "http://LLM.corp.example:8080/v1"\n',
  );
  mkdirSync(join(home, '.claude'));
  writeFileSync(
    join(home, '.claude', 'settings.json'),
    JSON.stringify({ env: { ANTHROPIC_BASE_URL: 'https://gateway.example' } }),
  );
  const args = ['-c', 'model_providers.y.base_url="http://[::1]:1234/v1"'];

  expect(placesOf(createCodex({ args }), home)).toEqual(
    expect.arrayContaining(['llm.corp.example:8080', '::1:1234']),
  );
  expect(placesOf(createClaude(), home, { ANTHROPIC_BASE_URL: 'http://10.0.0.1/v1' })).toEqual(
    expect.arrayContaining(['gateway.example:443', '10.0.0.1:80']),
  );
});
