import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { connectMcp } from '../../../src/actors/mcp/connection.ts';
import type { McpServer } from '../../../src/actors/mcp/port.ts';
import { openHttp } from '../../../src/actors/mcp/transports.ts';
import { resultsOf, startMcpServer } from '../../support/mcp.ts';
import { finish, startSystem, untilStatus } from '../../support/running.ts';

const program = join(import.meta.dirname, '..', '..', 'support', 'mcp', 'notes-server.mjs');

/** The official SDK's server; `told` gets what it says of its sessions. */
const startNotes = (variant: string) => startMcpServer(program, ['http', variant]);

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** A server of this test's own making; `asked` are its requests. */
const startHostile = async (answer: Answer) => {
  const asked: { readonly url: string | undefined; readonly authorization: string | undefined }[] =
    [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    asked.push({ url: request.url, authorization: request.headers.authorization });
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => answer(request, response, Buffer.concat(chunks).toString()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return { url: `http://127.0.0.1:${port}/mcp`, asked };
};

const signal = new AbortController().signal;
const reach = (url: string, headers = {}, startMs = 5_000) =>
  connectMcp({
    server: 'far',
    version: '0',
    startMs,
    signal,
    place: { open: openHttp(url, headers), roots: [], hint: null },
  });

test.each(['plain', 'json'])(
  'an agent calls the tools of a server over HTTP (%s)',
  async (variant) => {
    const { url, told } = await startNotes(variant);
    const server: McpServer = {
      name: 'far',
      place: { kind: 'http', url, headers: { Authorization: `Bearer \${FAR_TOKEN}` } },
      tools: null,
      startMs: 10_000,
      callMs: 10_000,
    };
    const running = await startSystem({
      turns: [
        { calls: [{ tool: 'mcp__far__add', arguments: { text: 'one' } }] },
        { calls: [{ tool: 'mcp__far__look', arguments: {} }] },
        finish(),
      ],
      role: { mcp: ['far'] },
      options: { mcpServers: [server] },
      mcp: { variables: { FAR_TOKEN: 'f-1' }, pinsFile: null, version: '0' },
    });
    const { task_id: id } = await running.service.create({ description: 'Take notes' });

    await running.service.execute({ task: id, role: 'engineer', options: {} });
    await untilStatus(running, id, 'complete', 'failed');

    const [one, looked] = await resultsOf(running, id);
    expect(one).toEqual({ tool: 'mcp__far__add', ok: true, output: '1: one' });
    expect(looked?.output).toContain('"authorization":"Bearer f-1"');
    await vi.waitFor(() => expect(told.at(-1)).toEqual({ closed: expect.any(String) }));
  },
);

test('a redirect is not followed, so no header goes to another place', async () => {
  const other = await startHostile((_, response) => response.end('{}'));
  const { url } = await startHostile((_, response) =>
    response.writeHead(307, { location: other.url }).end(),
  );

  const reached = reach(url, { Authorization: 'Bearer f-1' });

  await expect(reached).rejects.toThrow('redirect');
  expect(other.asked).toEqual([]);
});

test.each<[string, Answer, RegExp]>([
  ['never answers', () => {}, /no answer within 1 s/],
  ['is not MCP', (_, response) => response.end('<html>hello</html>'), /not JSON/],
  ['refuses', (_, response) => response.writeHead(401).end('go away'), /status 401: go away/],
  [
    'answers without an end',
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const more = setInterval(() => response.write('x'.repeat(1_000_000)), 5);
      response.on('close', () => clearInterval(more));
    },
    /more than 4194304 characters/,
  ],
  [
    'streams an event without an end',
    (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: ');
      const more = setInterval(() => response.write('x'.repeat(1_000_000)), 5);
      response.on('close', () => clearInterval(more));
    },
    /an event of more than 4194304/,
  ],
  [
    'streams notifications without an end',
    (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const noise = 'data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'.repeat(100);
      const more = setInterval(() => response.write(noise), 5);
      response.on('close', () => clearInterval(more));
    },
    /more messages than anybody asked for/,
  ],
  [
    'ends its stream without an answer',
    (_, response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end('\n\n'),
    /ends without a result/,
  ],
])('a server that %s is an error in bounded time', async (_, answer, why) => {
  const { url } = await startHostile(answer);
  const startMs = why.source.includes('within') ? 1_000 : 20_000;

  await expect(reach(url, {}, startMs)).rejects.toThrow(why);
});

test('a header that cannot be sent is refused without its value', async () => {
  const reached = reach('http://127.0.0.1:1/mcp', { Authorization: 'Bearer se\u2028cret' });

  await expect(reached).rejects.toThrow(/^the header Authorization holds a character/);
});
