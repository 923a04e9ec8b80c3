// A server of an official SDK whose list of tools changes while it runs:
// `node changing-server.mjs <2025|2026> <stdio|http> [older]`. Each call of `grow` says that the
// list has changed; from the first on it has `extra`. `older`: it ends at a first request that is
// not `initialize`, as some older servers do.
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { McpServer as OldServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const [line, kind, habit] = process.argv.slice(2);
let hasGrown = false;
const textOf = (text) => ({ content: [{ type: 'text', text }] });

const build = (Server, tell = (server) => server.sendToolListChanged()) => {
  const capabilities = { tools: { listChanged: true } };
  const server = new Server({ name: 'changing', version: '1.0.0' }, { capabilities });
  const inputSchema = z.object({});
  const addExtra = () =>
    server.registerTool('extra', { description: 'Is new.', inputSchema }, () => textOf('extra'));
  if (hasGrown) addExtra();
  server.registerTool('grow', { description: 'Adds a tool.', inputSchema }, () => {
    if (!hasGrown) addExtra();
    hasGrown = true;
    tell(server);
    return textOf('grown');
  });
  return server;
};
const listen = (answer) => {
  const http = createServer(answer);
  http.listen(0, '127.0.0.1', () => process.send?.({ port: http.address().port }));
};

if (line === '2026' && kind === 'stdio') serveStdio(() => build(McpServer));
else if (line === '2026') {
  const handler = createMcpHandler(() => build(McpServer, () => handler.notify.toolsChanged()));
  listen(async (request, response) => {
    let body = '';
    for await (const piece of request.setEncoding('utf8')) body += piece;
    const headers = Object.entries(request.headers).map(([key, value]) => [key, String(value)]);
    const given = await handler.fetch(
      new Request('http://127.0.0.1/mcp', { method: 'POST', headers, body }),
    );
    response.writeHead(given.status, Object.fromEntries(given.headers));
    response.flushHeaders();
    if (given.body === null) response.end();
    else Readable.fromWeb(given.body).pipe(response);
  });
} else if (kind === 'stdio') {
  if (habit === 'older')
    process.stdin.once('data', (text) => {
      if (!String(text).includes('"initialize"')) process.exit(1);
    });
  await build(OldServer).connect(new StdioServerTransport());
} else {
  const transports = new Map();
  listen(async (request, response) => {
    const known = transports.get(request.headers['mcp-session-id']);
    if (known !== undefined) return known.handleRequest(request, response);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => transports.set(id, transport),
    });
    await build(OldServer).connect(transport);
    await transport.handleRequest(request, response);
  });
}
