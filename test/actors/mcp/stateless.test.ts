import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { connectMcp } from '../../../src/actors/mcp/connection.ts';
import type { PeerInput, Transport } from '../../../src/actors/mcp/peer.ts';
import { headerParameters, statelessHeaders } from '../../../src/actors/mcp/stateless.ts';
import { openHttp, openStdio } from '../../../src/actors/mcp/transports.ts';
import { childEnvironment } from '../../../src/actors/process/run-command.ts';
import { createNoSandbox } from '../../../src/actors/sandbox/run-sandboxed.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const program = join(import.meta.dirname, '..', '..', 'support', 'mcp', 'changing-server.mjs');

interface Asked {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const serve = async (answer: (asked: Asked, response: ServerResponse) => void) => {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const one = { method: request.method ?? '', headers: request.headers, body };
    asked.push(one);
    answer(one, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return { asked, url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/mcp` };
};

const { signal } = new AbortController();
const reach = async (url: string) => {
  const connection = await connectMcp({
    ...{ server: 'far', version: '0', startMs: 10_000, signal },
    place: { open: openHttp(url, {}), roots: [], hint: null },
  });
  onTestFinished(() => connection.close());
  return connection;
};

test('the tools of an official server of 2026-07-28 are called without a session', async () => {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'notes', version: '1' });
    server.registerTool('add', { inputSchema: z.object({ text: z.string() }) }, ({ text }) => ({
      content: [{ type: 'text', text: `added ${text}` }],
    }));
    return server;
  });
  const { url, asked } = await serve(async ({ headers, body }, response) => {
    const given = await handler.fetch(
      new Request('http://127.0.0.1/mcp', {
        method: 'POST',
        headers: Object.entries(headers).map(([key, value]) => [key, String(value)]),
        body,
      }),
    );
    response.writeHead(given.status, Object.fromEntries(given.headers)).end(await given.text());
  });
  const connection = await reach(url);

  const result = await connection.call('add', { text: 'one' }, 5_000, signal);

  expect(result).toEqual({ ok: true, text: 'added one' });
  expect(asked.map(({ headers }) => headers['mcp-method'])).toEqual([
    'server/discover',
    'subscriptions/listen',
    'tools/list',
    'tools/call',
  ]);
});

const json = (response: ServerResponse, id: unknown, result: object) =>
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ jsonrpc: '2.0', id, result }));

test('an older server gets initialize; a cut answer goes on where it ended', async () => {
  const { url, asked } = await serve(({ method, headers, body }, response) => {
    const { id, method: what } = body === '' ? { id: 0, method: '' } : JSON.parse(body);
    const stream = { 'content-type': 'text/event-stream' };
    if (method === 'GET' && headers['last-event-id'] === undefined) response.writeHead(405).end();
    else if (method === 'GET')
      response
        .writeHead(200, stream)
        .end(
          `data: {"jsonrpc":"2.0","id":${String(headers['last-event-id'])},"result":{"content":[{"type":"text","text":"late"}]}}\n\n`,
        );
    else if (what === 'tools/call')
      response.writeHead(200, stream).end(`id: ${id}\nretry: 1\ndata: \n\n`);
    else if (what === 'initialize')
      json(response, id, { protocolVersion: '2025-11-25', capabilities: { tools: {} } });
    else if (what === 'tools/list') json(response, id, { tools: [{ name: 'slow' }] });
    else response.writeHead(what === 'server/discover' ? 400 : 202).end();
  });
  const connection = await reach(url);

  const result = await connection.call('slow', {}, 5_000, signal);

  expect(result).toEqual({ ok: true, text: 'late' });
  expect(asked.filter(({ method }) => method === 'GET')).toHaveLength(2);
});

test('a parameter with a header is repeated in it, and a strange one leaves the tool out', () => {
  const schema = {
    type: 'object',
    properties: { region: { type: 'string', 'x-mcp-header': 'R' } },
  };
  const params = { name: 'a', arguments: { region: 'Zürich' } };

  expect(statelessHeaders('tools/call', params, headerParameters(schema))).toEqual({
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Method': 'tools/call',
    'Mcp-Name': 'a',
    'Mcp-Param-R': '=?base64?WsO8cmljaA==?=',
  });
  expect(() => headerParameters({ items: { type: 'string', 'x-mcp-header': 'R' } })).toThrow(
    'no fixed place',
  );
});

test.each([
  ['2026', '', ['server/discover', 'subscriptions/listen', 'tools/list']],
  ['2025', '', ['server/discover', 'initialize', 'notifications/initialized', 'tools/list']],
  ['2025', 'older', ['server/discover', 'initialize', 'notifications/initialized', 'tools/list']],
])(
  'a program of %s is greeted in the newest version that it speaks (%s)',
  async (line, habit, methods) => {
    const sent: string[] = [];
    const open = openStdio(createNoSandbox(), {
      argv: [process.execPath, program, line, 'stdio', habit],
      ...{ root: temporaryFolder(), readable: [], readOnly: true, network: false },
      env: childEnvironment(process.env),
    });
    const listened = (input: PeerInput): Transport => {
      const transport = open(input);
      const send: Transport['send'] = (text, ...more) => {
        sent.push(JSON.parse(text).method);
        transport.send(text, ...more);
      };
      return { ...transport, send };
    };

    const connection = await connectMcp({
      ...{ server: 'near', version: '0', startMs: 20_000, signal },
      place: { open: listened, roots: [], hint: null },
    });
    onTestFinished(() => connection.close());

    expect(sent).toEqual(methods);
    expect(connection.tools.map(({ tool }) => tool)).toEqual(['grow']);
  },
);
